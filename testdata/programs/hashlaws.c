/* The hashes of capture/shim/src/hash.c against the definitions, bit by bit and element by element, and the laws of
 * docs/method/payload-hashes.md, on random lengths up to 70,000 bytes and all alignments. Argument: the seed. Prints the ways that
 * were there to be tested, then ok; a line for each law that does not hold. */
#include "hash.c"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdio.h>
#include <stdlib.h>

#define LONGEST 70000

static uint64_t state, P, all;
static uint8_t a[LONGEST + 64], b[LONGEST + 64], c[LONGEST + 64], zeros[LONGEST + 64];
static int failures;

static uint64_t rnd(void)
{
	state += 0x9e3779b97f4a7c15u;
	uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void must(int holds, const char *what, int algorithm, size_t n)
{
	if (!holds && ++failures < 20)
		printf("%s, algorithm or element %d, %zu bytes\n", what, algorithm, n);
}

static uint64_t step(uint64_t r)
{
	return r & 1 ? r >> 1 ^ P : r >> 1;
}

static uint64_t slow_crc(const uint8_t *p, size_t n)
{
	uint64_t r = all;
	for (size_t i = 0; i < n; i++) {
		r ^= p[i];
		for (int k = 0; k < 8; k++)
			r = step(r);
	}
	return r ^ all;
}

/* Returns h times x^(8 n). */
static uint64_t moved(uint64_t h, size_t n)
{
	for (size_t i = 0; i < 8 * n; i++)
		h = step(h);
	return h;
}

/* Returns a length: mostly short, where the implementations change over, sometimes long. */
static size_t length(int i)
{
	return i < 300 ? (size_t)i : i % 8 == 0 ? rnd() % (LONGEST + 1) : rnd() % 2000;
}

static void crcs(int algorithm)
{
	static const char *const names[] = {"table", "clmul", "isal"};
	P = algorithm == CQ_ALGORITHM_CRC32 ? 0xedb88320u : 0xc96c5795d7870f42u;
	all = algorithm == CQ_ALGORITHM_CRC32 ? UINT32_MAX : UINT64_MAX;
	for (int way = CQ_BY_TABLE; way <= CQ_BY_ISAL; way++) {
		if (cq_hash_prepare(algorithm, way) != way)
			continue;
		printf("%s ", names[way]);
		for (int i = 0; i < 500; i++) {
			size_t n = length(i), k = n > 0 ? rnd() % (n + 1) : 0;
			const uint8_t *p = a + rnd() % 64, *q = b + rnd() % 64;
			uint64_t h = cq_crc(0, p, n);
			for (size_t j = 0; j < n; j++)
				c[j] = p[j] ^ q[j];
			must(h == slow_crc(p, n), "not the CRC", algorithm, n);
			must(h == cq_crc(cq_crc(0, p, k), p + k, n - k), "in two pieces it is another", algorithm, n);
			must(h == (moved(cq_crc(0, p, k), n - k) ^ cq_crc(0, p + k, n - k)), "concatenation", algorithm, n);
			must(cq_crc(0, c, n) == (h ^ cq_crc(0, q, n) ^ cq_crc(0, zeros, n)), "exclusive or", algorithm, n);
		}
	}
}

static int64_t element_at(int e, const uint8_t *p, size_t i)
{
	int16_t s2;
	int32_t s4;
	int64_t s8;
	memcpy(&s2, p + 2 * (e == CQ_E_S2 || e == CQ_E_U2 ? i : 0), sizeof s2);
	memcpy(&s4, p + 4 * (e == CQ_E_S4 || e == CQ_E_U4 ? i : 0), sizeof s4);
	memcpy(&s8, p + 8 * (e == CQ_E_8 ? i : 0), sizeof s8);
	switch (e) {
	case CQ_E_S1: return (int8_t)p[i];
	case CQ_E_U1: return p[i];
	case CQ_E_S2: return s2;
	case CQ_E_U2: return (uint16_t)s2;
	case CQ_E_S4: return s4;
	case CQ_E_U4: return (uint32_t)s4;
	}
	return s8;
}

static const int sizes[] = {0, 1, 1, 2, 2, 4, 4, 8};

static uint64_t slow_sum(int e, uint64_t s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n / (size_t)sizes[e]; i++)
		s = s * CQ_SUM_BASE + (uint64_t)element_at(e, p, i);
	return s;
}

static uint64_t sum(int e, uint64_t s, const uint8_t *p, size_t n)
{
	cq_crc_and_sum h = cq_crc_with_sum(e, (cq_crc_and_sum){5, s}, p, n);
	must(h.crc == (crc_table(5 ^ ones, p, n) ^ ones), "beside the sum another CRC", e, n);
	return h.sum;
}

#if defined(__x86_64__)

/* Reports whether the upper halves of the first 16 vector registers are in use; -1: the processor cannot say. */
static int upper_in_use(void)
{
	unsigned eax, ebx, ecx, edx;
	if (!has_avx || !__get_cpuid_count(13, 1, &eax, &ebx, &ecx, &edx) || !(eax & 4))
		return -1;
	__asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(1));
	return (eax & 0x44) != 0;
}

/* Continues the program with clear upper halves. */
static void upper_clear(int e)
{
	clear_upper();
	if (upper_in_use() != 0)
		return;
	sum(e, 0, a, 65536);
	must(upper_in_use() == 0, "upper halves of vector registers are in use after", e, 65536);
}

#else

static void upper_clear(int e)
{
	(void)e;
}

#endif

static const uint8_t last[] = {0x80, 0x7f, 0xff}, others[] = {0, 0xff, 0xff};

/* Tests the laws with the implementations that sums and boths select. */
static void sum_laws(const char *name)
{
	printf("%s ", name);
	for (int e = CQ_E_S1; e <= CQ_E_8; e++) {
		size_t size = (size_t)sizes[e];
		upper_clear(e);
		for (int i = 0; i < 400; i++) {
			size_t n = length(i) / size * size, k = n > 0 ? rnd() % (n / size + 1) * size : 0;
			const uint8_t *p = a + rnd() % 64, *q = b + rnd() % 64;
			uint64_t s = sum(e, 0, p, n), power = 1, low = size == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * size) - 1;
			for (size_t j = 0; j < n - k; j += size)
				power *= CQ_SUM_BASE;
			for (size_t j = 0; j < n; j += size) { /* wraps around in the element's width */
				uint64_t x = (uint64_t)element_at(e, p + j, 0) + (uint64_t)element_at(e, q + j, 0);
				memcpy(c + j, &x, size);
			}
			must(s == slow_sum(e, 0, p, n), "not the sum", e, n);
			must(s == sum(e, sum(e, 0, p, k), p + k, n - k), "in two pieces it is another", e, n);
			must(s == sum(e, 0, p, k) * power + sum(e, 0, p + k, n - k), "concatenation", e, n);
			must(((sum(e, 0, c, n) ^ (s + sum(e, 0, q, n))) & low) == 0, "the sum of sums", e, n);
		}
		for (int i = 0; i < 3; i++) { /* the smallest and the largest number, with and without sign */
			for (size_t j = 0; j < sizeof c; j++)
				c[j] = j % size == size - 1 ? last[i] : others[i];
			must(sum(e, 7, c, 65536) == slow_sum(e, 7, c, 65536), "not the sum of extremes", e, 65536);
			must(sum(e, 7, c, 69336) == slow_sum(e, 7, c, 69336), "not the sum of extremes", e, 69336);
		}
	}
}

int main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 7;
	for (size_t i = 0; i < sizeof a; i++) {
		a[i] = (uint8_t)rnd();
		b[i] = (uint8_t)rnd();
	}
	crcs(CQ_ALGORITHM_CRC64);
	crcs(CQ_ALGORITHM_CRC32);
	for (int algorithm = CQ_ALGORITHM_CRC64; algorithm <= CQ_ALGORITHM_CRC32; algorithm++) {
		cq_hash_prepare(algorithm, CQ_BY_ISAL);
		if (boths != NULL)
			sum_laws("avx512");
		boths = NULL;
		if (sums != sums_plain)
			sum_laws("avx2");
		sums = sums_plain;
		sum_laws("plain");
	}
	printf("%s\n", failures > 0 ? "failed" : "ok");
	return failures > 0;
}
