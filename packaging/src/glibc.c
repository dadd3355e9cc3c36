// What GCC's C++ library takes from a glibc newer than 2.28, which releases run on.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// glibc 2.32: whether the process has one thread. Go's programs never do.
char __libc_single_threaded = 0;

// glibc 2.36, for std::random_device.
uint32_t arc4random(void)
{
	uint32_t number;

	if (getentropy(&number, sizeof number) != 0)
		abort();
	return number;
}
