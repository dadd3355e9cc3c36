/* Checksums of slots. A CRC instruction takes three cycles and one can begin in each, so three lanes of one block take
 * no longer than one of them. In 2 ns per slot this leaves nothing to a table in memory, which would take the program's
 * cache: a processor without the instruction makes no checksums. */
#include "crc.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>

typedef uint64_t __attribute__((may_alias)) word;

#define WITH_CRC __attribute__((target("sse4.2")))

int cq_crc32c_there(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2) != 0;
}

WITH_CRC uint32_t cq_crc32c(const void *p, size_t bytes)
{
	const uint8_t *at = p;
	uint32_t crc = UINT32_MAX, four;
	for (size_t i = 0; i < bytes; i += sizeof four) {
		memcpy(&four, at + i, sizeof four);
		crc = _mm_crc32_u32(crc, four);
	}
	return ~crc;
}

WITH_CRC void cq_crc32c_slots(const void *p, uint64_t n, uint32_t crc[3])
{
	const word *a = p;
	uint64_t lane = n / 3 * 8, all = n * 8, x = UINT32_MAX, y = UINT32_MAX, z = UINT32_MAX;
	for (uint64_t i = 0; i < lane; i++) {
		x = _mm_crc32_u64(x, a[i]);
		y = _mm_crc32_u64(y, a[i + lane]);
		z = _mm_crc32_u64(z, a[i + 2 * lane]);
	}
	for (uint64_t i = 3 * lane; i < all; i++)
		z = _mm_crc32_u64(z, a[i]);
	crc[0] = ~(uint32_t)x;
	crc[1] = ~(uint32_t)y;
	crc[2] = ~(uint32_t)z;
}

#else

int cq_crc32c_there(void)
{
	return 0;
}

uint32_t cq_crc32c(const void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
	return 0;
}

void cq_crc32c_slots(const void *p, uint64_t n, uint32_t crc[3])
{
	(void)p;
	(void)n;
	crc[0] = crc[1] = crc[2] = 0;
}

#endif
