/* What a reading of the clock takes, in ns of CPU time: least of ten rounds. Records without times would save two a call. */
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
	enum { TIMES = 2000000 };
	unsigned long long sum = 0;
	double least = 1e18;
	for (int round = 0; round < 10; round++) {
		double begin = cpu();
		for (int i = 0; i < TIMES; i++)
			sum += __rdtsc();
		double took = (cpu() - begin) / TIMES;
		least = took < least ? took : least;
	}
	printf("%.1f ns a reading\n", least);
	return sum == 0;
}
