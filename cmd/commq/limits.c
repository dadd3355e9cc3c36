/* Says what is wrong where the process is given too little to start, before Go's runtime tries. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define LEAST_ADDRESSES ((rlim_t)2 << 30) /* bytes; with 1 GB threads cannot be started, before any work */
#define LEAST_FILES 8

__attribute__((constructor)) static void check_limits(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur < LEAST_ADDRESSES) {
		fprintf(stderr, "commq: this process may use %llu kB of address space; it needs %llu kB to start and 4 GB for large runs: "
			"raise the limit (ulimit -v unlimited)\n", (unsigned long long)(r.rlim_cur >> 10),
			(unsigned long long)(LEAST_ADDRESSES >> 10));
		_exit(2);
	}
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < LEAST_FILES) {
		fprintf(stderr, "commq: this process may open %llu files; it needs %d to start: raise the limit (ulimit -n 1024)\n",
			(unsigned long long)r.rlim_cur, LEAST_FILES);
		_exit(2);
	}
}
