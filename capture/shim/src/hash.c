/* Hashes of bytes: CRC-64/XZ (ECMA-182, reflected), CRC-32 (as in zlib), and a sum of integers that is linear mod
 * 2^64; docs/method/payload-hashes.md explains their uses. ISA-L computes the CRCs if it is installed, else
 * carry-less multiplication, else tables. Processors that can do so compute CRC and sum in one pass. All ways give
 * the same values. */
#include "hash.h"

#include <dlfcn.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "spool.h"

/* Shorter payloads are hashed by table: the other ways need some ns to start. */
#define SHORT_BYTES 64

typedef uint64_t (*isal64)(uint64_t seed, const unsigned char *p, uint64_t n);
typedef uint32_t (*isal32)(uint32_t seed, const unsigned char *p, uint64_t n);

static uint64_t tables[16][256];
static uint64_t polynomial, ones; /* reflected; the bits of the register */
static isal64 by_isal64;
static isal32 by_isal32;
static uint64_t (*of_long)(uint64_t r, const uint8_t *p, size_t n); /* maps register to register */

static uint64_t load8(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

static uint32_t load4(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

/* The register times x. */
static uint64_t times_x(uint64_t r)
{
	return r >> 1 ^ (r & 1 ? polynomial : 0);
}

static void tables_fill(void)
{
	for (int b = 0; b < 256; b++) {
		uint64_t r = (uint64_t)b;
		for (int i = 0; i < 8; i++)
			r = times_x(r);
		tables[0][b] = r;
	}
	for (int k = 1; k < 16; k++) {
		for (int b = 0; b < 256; b++)
			tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 255];
	}
}

/* Table for sixteen bytes at a time: the effect of each byte on the register after the following bytes have passed.
 */
static uint64_t crc_table(uint64_t r, const uint8_t *p, size_t n)
{
	for (; n >= 16; p += 16, n -= 16) {
		uint64_t x = load8(p) ^ r, y = load8(p + 8);
		r = tables[15][x & 255] ^ tables[14][x >> 8 & 255] ^ tables[13][x >> 16 & 255] ^ tables[12][x >> 24 & 255] ^
			tables[11][x >> 32 & 255] ^ tables[10][x >> 40 & 255] ^ tables[9][x >> 48 & 255] ^ tables[8][x >> 56] ^
			tables[7][y & 255] ^ tables[6][y >> 8 & 255] ^ tables[5][y >> 16 & 255] ^ tables[4][y >> 24 & 255] ^
			tables[3][y >> 32 & 255] ^ tables[2][y >> 40 & 255] ^ tables[1][y >> 48 & 255] ^ tables[0][y >> 56];
	}
	if (n >= 8) {
		uint64_t x = load8(p) ^ r;
		r = tables[7][x & 255] ^ tables[6][x >> 8 & 255] ^ tables[5][x >> 16 & 255] ^ tables[4][x >> 24 & 255] ^
			tables[3][x >> 32 & 255] ^ tables[2][x >> 40 & 255] ^ tables[1][x >> 48 & 255] ^ tables[0][x >> 56];
		p += 8;
		n -= 8;
	}
	if (n >= 4) {
		uint32_t x = load4(p) ^ (uint32_t)r;
		r = r >> 32 ^ tables[3][x & 255] ^ tables[2][x >> 8 & 255] ^ tables[1][x >> 16 & 255] ^ tables[0][x >> 24];
		p += 4;
		n -= 4;
	}
	while (n-- > 0)
		r = r >> 8 ^ tables[0][(r ^ *p++) & 255];
	return r;
}

#if defined(__x86_64__)

#define CLMUL __attribute__((target("pclmul,sse4.1")))
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512ifma,pclmul,vpclmulqdq")))

#define INLINE static inline __attribute__((always_inline))

/* factors that advance a block's low and high half by 256, 64 and 16 bytes */
static uint64_t fold256[2], fold64[2], fold16[2];

/* x^n mod the polynomial, its highest coefficient (of x^63) in bit 0. */
static uint64_t power_of_x(int n)
{
	int width = ones == UINT32_MAX ? 32 : 64;
	uint64_t r = (uint64_t)1 << (width - 1);
	for (int i = 0; i < n; i++)
		r = times_x(r);
	return r << (64 - width);
}

/* The product of two reflected 64-bit polynomials has an extra factor x, so exponents are one less. */
static void folds_fill(void)
{
	fold256[0] = power_of_x(2048 + 63);
	fold256[1] = power_of_x(2048 - 1);
	fold64[0] = power_of_x(512 + 63);
	fold64[1] = power_of_x(512 - 1);
	fold16[0] = power_of_x(128 + 63);
	fold16[1] = power_of_x(128 - 1);
}

CLMUL INLINE __m128i fold(__m128i x, __m128i k)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11));
}

CLMUL INLINE __m128i load16(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Folds the four remaining blocks of 16 bytes into one. */
CLMUL INLINE void fold_end(uint8_t last[16], __m128i a, __m128i b, __m128i c, __m128i d)
{
	__m128i near = load16((const uint8_t *)fold16);
	b = _mm_xor_si128(b, fold(a, near));
	c = _mm_xor_si128(c, fold(b, near));
	d = _mm_xor_si128(d, fold(c, near));
	_mm_storeu_si128((__m128i *)(void *)last, d);
}

/* Folds four blocks of 16 bytes over the next 64 bytes until few are left; the table finishes the result. */
CLMUL static uint64_t crc_clmul(uint64_t r, const uint8_t *p, size_t n)
{
	uint8_t last[16];
	__m128i far = load16((const uint8_t *)fold64);
	__m128i a = _mm_xor_si128(load16(p), _mm_cvtsi64_si128((long long)r));
	__m128i b = load16(p + 16), c = load16(p + 32), d = load16(p + 48);
	for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
		a = _mm_xor_si128(fold(a, far), load16(p));
		b = _mm_xor_si128(fold(b, far), load16(p + 16));
		c = _mm_xor_si128(fold(c, far), load16(p + 32));
		d = _mm_xor_si128(fold(d, far), load16(p + 48));
	}
	fold_end(last, a, b, c, d);
	return crc_table(crc_table(0, last, sizeof last), p, n);
}

#endif

/* ISA-L 2.30 does not clear the upper halves of the vector registers. From then on a program compiled for SSE, as
 * most are, would run far slower even without further calls (NAS CG: by half). */
#if defined(__x86_64__)
__attribute__((target("avx"))) static void clear_upper_avx(void)
{
	_mm256_zeroupper();
}

static int has_avx;

static inline void clear_upper(void)
{
	if (has_avx)
		clear_upper_avx();
}
#else
static inline void clear_upper(void)
{
}
#endif

uint64_t cq_crc(uint64_t seed, const void *p, size_t n)
{
	if (n >= SHORT_BYTES) {
		if (by_isal64 != NULL) {
			seed = by_isal64(seed, p, n);
			clear_upper();
			return seed;
		}
		if (by_isal32 != NULL) {
			seed = by_isal32((uint32_t)seed, p, n);
			clear_upper();
			return seed;
		}
		return of_long(seed ^ ones, p, n) ^ ones;
	}
	return crc_table(seed ^ ones, p, n) ^ ones;
}

/* Reports whether the chosen ways agree with the table, the reference. */
static int agrees(void)
{
	uint8_t bytes[211];
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 73 + 5);
	return cq_crc(3, bytes, sizeof bytes) == (crc_table(3 ^ ones, bytes, sizeof bytes) ^ ones);
}

static int crc_prepare(int algorithm, int most)
{
	polynomial = algorithm == CQ_ALGORITHM_CRC32 ? 0xedb88320u : 0xc96c5795d7870f42u;
	ones = algorithm == CQ_ALGORITHM_CRC32 ? UINT32_MAX : UINT64_MAX;
	tables_fill();
#if defined(__x86_64__)
	has_avx = __builtin_cpu_supports("avx");
	folds_fill();
#endif
	by_isal64 = NULL;
	by_isal32 = NULL;
	of_long = crc_table;
	void *lib = most >= CQ_BY_ISAL ? dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL) : NULL;
	void *f = lib != NULL ? dlsym(lib, algorithm == CQ_ALGORITHM_CRC32 ? "crc32_gzip_refl" : "crc64_ecma_refl") : NULL;
	if (f != NULL) {
		memcpy(algorithm == CQ_ALGORITHM_CRC32 ? (void *)&by_isal32 : (void *)&by_isal64, &f, sizeof f);
		if (agrees())
			return CQ_BY_ISAL;
		by_isal64 = NULL;
		by_isal32 = NULL;
	}
#if defined(__x86_64__)
	if (most >= CQ_BY_CLMUL && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")) {
		of_long = crc_clmul;
		if (agrees())
			return CQ_BY_CLMUL;
		of_long = crc_table;
	}
#endif
	return CQ_BY_TABLE;
}

/* The sum. With vectors, rows of 16 or 32 elements are added up. The weight of a row, a power of the base, is the
 * same in all its lanes; in the end the lanes are added up with the weights base^31 .. base^0. Products of 64 bits
 * are slow, so weights are split into two digits, each of which a single instruction multiplies by elements of 32
 * bits. */

#define B1 ((uint64_t)CQ_SUM_BASE)
#define B2 (B1 * B1)
#define B4 (B2 * B2)

#define SUM_PLAIN(name, type, wide) \
	static uint64_t name(uint64_t s, const uint8_t *p, size_t n) \
	{ \
		type x[4]; \
		for (; n >= sizeof x; p += sizeof x, n -= sizeof x) { \
			memcpy(x, p, sizeof x); \
			s = s * B4 + ((uint64_t)(wide)x[0] * (B2 * B1) + (uint64_t)(wide)x[1] * B2 + (uint64_t)(wide)x[2] * B1 + \
				(uint64_t)(wide)x[3]); \
		} \
		for (; n >= sizeof *x; p += sizeof *x, n -= sizeof *x) { \
			memcpy(x, p, sizeof *x); \
			s = s * B1 + (uint64_t)(wide)x[0]; \
		} \
		return s; \
	}

SUM_PLAIN(sum_s1_plain, int8_t, int64_t)
SUM_PLAIN(sum_u1_plain, uint8_t, uint64_t)
SUM_PLAIN(sum_s2_plain, int16_t, int64_t)
SUM_PLAIN(sum_u2_plain, uint16_t, uint64_t)
SUM_PLAIN(sum_s4_plain, int32_t, int64_t)
SUM_PLAIN(sum_u4_plain, uint32_t, uint64_t)
SUM_PLAIN(sum_8_plain, uint64_t, uint64_t)

typedef uint64_t (*sum_by)(uint64_t s, const uint8_t *p, size_t n);
typedef cq_crc_and_sum (*both_by)(cq_crc_and_sum h, const uint8_t *p, size_t blocks);

static const sum_by sums_plain[] = {NULL, sum_s1_plain, sum_u1_plain, sum_s2_plain, sum_u2_plain, sum_s4_plain,
	sum_u4_plain, sum_8_plain};
static const sum_by *sums = sums_plain;
static const both_by *boths; /* NULL: the processor lacks the instructions */

#define BLOCK_BYTES 256

#if defined(__x86_64__)

#define MOST_ROWS 256 /* of 16 elements */

/* Powers of base^16, and their lowest 12 and highest 52 bits. */
static struct {
	uint64_t whole, low, high;
} powers[MOST_ROWS + 1];
static uint64_t lanes[32] __attribute__((aligned(64)));

static void powers_fill(void)
{
	uint64_t w = 1;
	for (int i = 31; i >= 0; i--, w *= B1)
		lanes[i] = w;
	w = 1;
	for (int i = 0; i <= MOST_ROWS; i++, w *= lanes[15]) {
		powers[i].whole = w;
		powers[i].low = w & 4095;
		powers[i].high = w >> 12;
	}
}

/* Four elements. */
AVX2 INLINE __m256i widened4(int element, const uint8_t *p)
{
	switch (element) {
	case CQ_E_S1:
		return _mm256_cvtepi8_epi64(_mm_cvtsi32_si128((int)load4(p)));
	case CQ_E_U1:
		return _mm256_cvtepu8_epi64(_mm_cvtsi32_si128((int)load4(p)));
	case CQ_E_S2:
		return _mm256_cvtepi16_epi64(_mm_loadl_epi64((const void *)p));
	case CQ_E_U2:
		return _mm256_cvtepu16_epi64(_mm_loadl_epi64((const void *)p));
	case CQ_E_S4:
		return _mm256_cvtepi32_epi64(_mm_loadu_si128((const void *)p));
	}
	return _mm256_cvtepu32_epi64(_mm_loadu_si128((const void *)p));
}

/* Adds elements times both digits, which are signed when the elements are. */
AVX2 INLINE void add4(int element, __m256i *a, __m256i *b, const uint8_t *p, __m256i low, __m256i high)
{
	__m256i x = widened4(element, p);
	*a = _mm256_add_epi64(*a, element == CQ_E_U4 ? _mm256_mul_epu32(x, low) : _mm256_mul_epi32(x, low));
	*b = _mm256_add_epi64(*b, element == CQ_E_U4 ? _mm256_mul_epu32(x, high) : _mm256_mul_epi32(x, high));
}

AVX2 INLINE uint64_t sum_avx2(int element, size_t size, uint64_t s, const uint8_t *p, size_t n)
{
	__m256i carry = _mm256_set1_epi64x(element == CQ_E_U4 ? 0 : 0x80000000); /* carry of a lowest digit below 0 */
	while (n >= 64 * size) {
		size_t rows = n / (16 * size) < MOST_ROWS ? n / (16 * size) : MOST_ROWS;
		__m256i a[4] = {{0}, {0}, {0}, {0}}, b[4] = {{0}, {0}, {0}, {0}};
		uint64_t of_lane[16];
		s *= powers[rows].whole;
		n -= rows * 16 * size;
		for (; rows-- > 0; p += 16 * size) {
			__m256i low = _mm256_set1_epi64x((long long)powers[rows].whole),
				high = _mm256_srli_epi64(_mm256_add_epi64(low, carry), 32);
			add4(element, a + 0, b + 0, p, low, high);
			add4(element, a + 1, b + 1, p + 4 * size, low, high);
			add4(element, a + 2, b + 2, p + 8 * size, low, high);
			add4(element, a + 3, b + 3, p + 12 * size, low, high);
		}
		_mm256_storeu_si256((void *)of_lane, _mm256_add_epi64(a[0], _mm256_slli_epi64(b[0], 32)));
		_mm256_storeu_si256((void *)(of_lane + 4), _mm256_add_epi64(a[1], _mm256_slli_epi64(b[1], 32)));
		_mm256_storeu_si256((void *)(of_lane + 8), _mm256_add_epi64(a[2], _mm256_slli_epi64(b[2], 32)));
		_mm256_storeu_si256((void *)(of_lane + 12), _mm256_add_epi64(a[3], _mm256_slli_epi64(b[3], 32)));
		for (int i = 0; i < 16; i++)
			s += of_lane[i] * lanes[16 + i];
	}
	_mm256_zeroupper();
	return sums_plain[element](s, p, n);
}

/* Eight elements. */
AVX512 INLINE __m512i widened8(int element, const uint8_t *p)
{
	switch (element) {
	case CQ_E_S1:
		return _mm512_cvtepi8_epi64(_mm_loadl_epi64((const void *)p));
	case CQ_E_U1:
		return _mm512_cvtepu8_epi64(_mm_loadl_epi64((const void *)p));
	case CQ_E_S2:
		return _mm512_cvtepi16_epi64(_mm_loadu_si128((const void *)p));
	case CQ_E_U2:
		return _mm512_cvtepu16_epi64(_mm_loadu_si128((const void *)p));
	case CQ_E_S4:
		return _mm512_cvtepi32_epi64(_mm256_loadu_si256((const void *)p));
	case CQ_E_U4:
		return _mm512_cvtepu32_epi64(_mm256_loadu_si256((const void *)p));
	}
	return _mm512_loadu_si512(p);
}

/* Multiplies elements by digits and adds the products. The lowest 52 bits of each product count. */
AVX512 INLINE void add8(int element, __m512i *a, __m512i *b, const uint8_t *p, size_t power)
{
	__m512i x = widened8(element, p);
	if (element == CQ_E_8) {
		*a = _mm512_add_epi64(*a, _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)powers[power].whole)));
		return;
	}
	*a = _mm512_madd52lo_epu64(*a, x, _mm512_set1_epi64((long long)powers[power].low));
	*b = _mm512_madd52lo_epu64(*b, x, _mm512_set1_epi64((long long)powers[power].high));
}

/* The sum in each lane, times the lane's weight. With 128 rows, digits of 12 bits and elements of 32 bits the sum of
 * the low digits is below 2^51, so its lowest 52 bits include the sign. */
AVX512 INLINE __m512i weighed(int element, __m512i a, __m512i b, int lane)
{
	if (element != CQ_E_8)
		a = _mm512_add_epi64(_mm512_srai_epi64(_mm512_slli_epi64(a, 12), 12), _mm512_slli_epi64(b, 12));
	return _mm512_mullo_epi64(a, _mm512_load_si512(lanes + lane));
}

/* Folds four blocks of 64 bytes like crc_clmul. */
AVX512 INLINE __m512i fold_onto(__m512i x, __m512i k, __m512i y)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00), _mm512_clmulepi64_epi128(x, k, 0x11), y,
		0x96);
}

AVX512 INLINE __m512i load64(const uint8_t *p)
{
	return _mm512_loadu_si512(p);
}

/* Prefetch distance; the address may lie beyond the end. */
#define AHEAD_BYTES 2048

/* The CRC and the sum in one pass: each keeps the processor busy while the other waits. blocks > 0. */
AVX512 INLINE cq_crc_and_sum both_avx512(int element, size_t size, cq_crc_and_sum h, const uint8_t *p, size_t blocks)
{
	const size_t rows_per_block = BLOCK_BYTES / (32 * size);
	__m512i far = _mm512_broadcast_i32x4(load16((const uint8_t *)fold256)),
		near = _mm512_broadcast_i32x4(load16((const uint8_t *)fold64));
	__m512i r = _mm512_zextsi128_si512(_mm_cvtsi64_si128((long long)(h.crc ^ ones)));
	__m512i c = _mm512_xor_si512(load64(p), r), d = load64(p + 64), e = load64(p + 128), f = load64(p + 192);
	uint8_t last[16];
	while (blocks > 0) {
		size_t k = blocks * rows_per_block < MOST_ROWS / 2 ? blocks * rows_per_block : MOST_ROWS / 2;
		__m512i a[4] = {{0}, {0}, {0}, {0}}, b[4] = {{0}, {0}, {0}, {0}};
		h.sum *= powers[2 * k].whole;
		while (k > 0) {
			for (size_t i = 0; i < rows_per_block; i++, p += 32 * size) {
				k--;
				add8(element, a + 0, b + 0, p, 2 * k);
				add8(element, a + 1, b + 1, p + 8 * size, 2 * k);
				add8(element, a + 2, b + 2, p + 16 * size, 2 * k);
				add8(element, a + 3, b + 3, p + 24 * size, 2 * k);
			}
			if (--blocks == 0)
				break;
			for (int i = 0; i < BLOCK_BYTES; i += 64)
				_mm_prefetch((const char *)p + AHEAD_BYTES + i, _MM_HINT_T0);
			c = fold_onto(c, far, load64(p));
			d = fold_onto(d, far, load64(p + 64));
			e = fold_onto(e, far, load64(p + 128));
			f = fold_onto(f, far, load64(p + 192));
		}
		a[0] = _mm512_add_epi64(weighed(element, a[0], b[0], 0), weighed(element, a[1], b[1], 8));
		a[2] = _mm512_add_epi64(weighed(element, a[2], b[2], 16), weighed(element, a[3], b[3], 24));
		h.sum += (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(a[0], a[2]));
	}
	f = fold_onto(fold_onto(fold_onto(c, near, d), near, e), near, f);
	fold_end(last, _mm512_castsi512_si128(f), _mm512_extracti32x4_epi32(f, 1), _mm512_extracti32x4_epi32(f, 2),
		_mm512_extracti32x4_epi32(f, 3));
	_mm256_zeroupper();
	h.crc = crc_table(0, last, sizeof last) ^ ones;
	return h;
}

#define SUM_AVX2(name, element, size) \
	AVX2 static uint64_t sum_##name##_avx2(uint64_t s, const uint8_t *p, size_t n) \
	{ \
		return sum_avx2(element, size, s, p, n); \
	}

SUM_AVX2(s1, CQ_E_S1, 1)
SUM_AVX2(u1, CQ_E_U1, 1)
SUM_AVX2(s2, CQ_E_S2, 2)
SUM_AVX2(u2, CQ_E_U2, 2)
SUM_AVX2(s4, CQ_E_S4, 4)
SUM_AVX2(u4, CQ_E_U4, 4)

static const sum_by sums_avx2[] = {NULL, sum_s1_avx2, sum_u1_avx2, sum_s2_avx2, sum_u2_avx2, sum_s4_avx2, sum_u4_avx2,
	sum_8_plain};

#define BOTH_AVX512(name, element, size) \
	AVX512 static cq_crc_and_sum both_##name##_avx512(cq_crc_and_sum h, const uint8_t *p, size_t blocks) \
	{ \
		return both_avx512(element, size, h, p, blocks); \
	}

BOTH_AVX512(s1, CQ_E_S1, 1)
BOTH_AVX512(u1, CQ_E_U1, 1)
BOTH_AVX512(s2, CQ_E_S2, 2)
BOTH_AVX512(u2, CQ_E_U2, 2)
BOTH_AVX512(s4, CQ_E_S4, 4)
BOTH_AVX512(u4, CQ_E_U4, 4)
BOTH_AVX512(8, CQ_E_8, 8)

static const both_by boths_avx512[] = {
	NULL, both_s1_avx512, both_u1_avx512, both_s2_avx512, both_u2_avx512, both_s4_avx512, both_u4_avx512,
		both_8_avx512};

#endif

/* Chooses the widest vectors that the processor has for the sum, and prepares their tables. */
static void sum_prepare(void)
{
#if defined(__x86_64__)
	powers_fill();
	if (__builtin_cpu_supports("avx2"))
		sums = sums_avx2;
	if (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("vpclmulqdq") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512ifma"))
		boths = boths_avx512;
#endif
}

/* Minimum length for which one pass for both is faster than two. */
#define LONG_BYTES 512
/* Data that must be read twice is processed in pieces that stay in the first-level cache. */
#define PIECE_BYTES ((size_t)16 << 10)

cq_crc_and_sum cq_crc_with_sum(int element, cq_crc_and_sum h, const void *from, size_t n)
{
	const uint8_t *p = from;
	if (n < SHORT_BYTES) {
		h.crc = cq_crc(h.crc, p, n);
		h.sum = sums_plain[element](h.sum, p, n);
		return h;
	}
	if (boths != NULL && n >= LONG_BYTES) {
		size_t k = -(uintptr_t)p % 64;
		if (n >= PIECE_BYTES && k % 8 == 0) { /* vectors that cross cache lines take longer */
			h = cq_crc_with_sum(element, h, p, k);
			p += k;
			n -= k;
		}
		h = boths[element](h, p, n / BLOCK_BYTES);
		p += n / BLOCK_BYTES * BLOCK_BYTES;
		n %= BLOCK_BYTES;
	}
	for (size_t k; n > 0; p += k, n -= k) {
		k = n < PIECE_BYTES ? n : PIECE_BYTES;
		h.crc = cq_crc(h.crc, p, k);
		h.sum = sums[element](h.sum, p, k);
	}
	return h;
}

int cq_hash_prepare(int algorithm, int most)
{
	sum_prepare();
	return crc_prepare(algorithm, most);
}
