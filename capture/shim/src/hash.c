/* Hashes of bytes: CRC-64/XZ (ECMA-182, reflected), CRC-32 (that of zlib), and a sum of integers that is linear mod 2^64.
 * docs/method/payload-hashes.md says what they are good for. CRCs are computed by ISA-L where it is installed, else by
 * carry-less multiplication, else by tables: each gives the same values. */
#include "hash.h"

#include <dlfcn.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "spool.h"

/* Payloads shorter than this are done by table: the others need some ns before they begin. */
#define SHORT_BYTES 64

typedef uint64_t (*isal64)(uint64_t seed, const unsigned char *p, uint64_t n);
typedef uint32_t (*isal32)(uint32_t seed, const unsigned char *p, uint64_t n);

static uint64_t tables[16][256];
static uint64_t polynomial, ones; /* reflected; the bits of the register */
static uint64_t fold64[2], fold16[2]; /* what multiplies a block's low and high half to move it 64, 16 bytes on */
static isal64 by_isal64;
static isal32 by_isal32;
static uint64_t (*of_long)(uint64_t r, const uint8_t *p, size_t n); /* from register to register */

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

/* Sixteen bytes at a time: what each leaves in the register when the others have passed. */
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

/* x^n mod the polynomial, its highest coefficient (of x^63) in bit 0. */
static uint64_t power_of_x(int n)
{
	int width = ones == UINT32_MAX ? 32 : 64;
	uint64_t r = (uint64_t)1 << (width - 1);
	for (int i = 0; i < n; i++)
		r = times_x(r);
	return r << (64 - width);
}

/* The product of two reflected 64-bit polynomials comes out times x, hence one less in the exponent. */
static void folds_fill(void)
{
	fold64[0] = power_of_x(512 + 63);
	fold64[1] = power_of_x(512 - 1);
	fold16[0] = power_of_x(128 + 63);
	fold16[1] = power_of_x(128 - 1);
}

CLMUL static inline __m128i fold(__m128i x, __m128i k)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11));
}

CLMUL static inline __m128i load16(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Four blocks of 16 bytes are moved on over the next 64 bytes until few are left; what they are then goes through the table. */
CLMUL static uint64_t crc_clmul(uint64_t r, const uint8_t *p, size_t n)
{
	uint8_t last[16];
	__m128i far = load16((const uint8_t *)fold64), near = load16((const uint8_t *)fold16);
	__m128i a = _mm_xor_si128(load16(p), _mm_cvtsi64_si128((long long)r));
	__m128i b = load16(p + 16), c = load16(p + 32), d = load16(p + 48);
	for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
		a = _mm_xor_si128(fold(a, far), load16(p));
		b = _mm_xor_si128(fold(b, far), load16(p + 16));
		c = _mm_xor_si128(fold(c, far), load16(p + 32));
		d = _mm_xor_si128(fold(d, far), load16(p + 48));
	}
	b = _mm_xor_si128(b, fold(a, near));
	c = _mm_xor_si128(c, fold(b, near));
	d = _mm_xor_si128(d, fold(c, near));
	_mm_storeu_si128((__m128i *)(void *)last, d);
	return crc_table(crc_table(0, last, sizeof last), p, n);
}

#endif

/* ISA-L 2.30 leaves the upper halves of the vector registers as they were used. A program compiled for SSE, as most are,
 * would run far slower from there on, without a call in sight (NAS CG: by half). */
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

/* Whether the ways chosen agree with the table, which is as good as the definition. */
static int agrees(void)
{
	uint8_t bytes[211];
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 73 + 5);
	return cq_crc(3, bytes, sizeof bytes) == (crc_table(3 ^ ones, bytes, sizeof bytes) ^ ones);
}

int cq_crc_prepare(int algorithm, int most)
{
	polynomial = algorithm == CQ_ALGORITHM_CRC32 ? 0xedb88320u : 0xc96c5795d7870f42u;
	ones = algorithm == CQ_ALGORITHM_CRC32 ? UINT32_MAX : UINT64_MAX;
	tables_fill();
#if defined(__x86_64__)
	has_avx = __builtin_cpu_supports("avx");
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
		folds_fill();
		of_long = crc_clmul;
		if (agrees())
			return CQ_BY_CLMUL;
		of_long = crc_table;
	}
#endif
	return CQ_BY_TABLE;
}

/* The sum. Lanes hold every 32nd element's Horner value; each step multiplies by the base's 32nd power. */

#define LANES 32
typedef uint64_t lane8 __attribute__((vector_size(64)));

#define B1 ((uint64_t)CQ_SUM_BASE)
#define B2 (B1 * B1)
#define B4 (B2 * B2)
#define B8 (B4 * B4)
#define B16 (B8 * B8)

static uint64_t lanes_end(const lane8 *a)
{
	uint64_t s = 0;
	for (int i = 0; i < LANES; i++)
		s = s * B1 + a[i / 8][i % 8];
	return s;
}

#define SUM(name, type, wide, attributes) \
	attributes static uint64_t name(uint64_t s, const uint8_t *p, size_t n) \
	{ \
		typedef type elements __attribute__((vector_size(8 * sizeof(type)), aligned(1), may_alias)); \
		typedef wide widened __attribute__((vector_size(64))); \
		const size_t step = 8 * sizeof(type); \
		if (n >= 8 * step) { \
			lane8 a[4] = {{0}, {0}, {0}, {0, 0, 0, 0, 0, 0, 0, s}}; \
			for (; n >= 4 * step; p += 4 * step, n -= 4 * step) { \
				for (int i = 0; i < 4; i++) \
					a[i] = a[i] * (B16 * B16) + (lane8)__builtin_convertvector(*(const elements *)(const void *)(p + i * step), widened); \
			} \
			s = lanes_end(a); \
		} \
		for (; n >= sizeof(type); p += sizeof(type), n -= sizeof(type)) { \
			type x; \
			memcpy(&x, p, sizeof x); \
			s = s * B1 + (uint64_t)(wide)x; \
		} \
		return s; \
	}

#define SUMS(suffix, attributes) \
	SUM(sum_s1_##suffix, int8_t, int64_t, attributes) \
	SUM(sum_u1_##suffix, uint8_t, uint64_t, attributes) \
	SUM(sum_s2_##suffix, int16_t, int64_t, attributes) \
	SUM(sum_u2_##suffix, uint16_t, uint64_t, attributes) \
	SUM(sum_s4_##suffix, int32_t, int64_t, attributes) \
	SUM(sum_u4_##suffix, uint32_t, uint64_t, attributes) \
	SUM(sum_8_##suffix, uint64_t, uint64_t, attributes) \
	static uint64_t (*const sums_##suffix[])(uint64_t, const uint8_t *, size_t) = { \
		NULL, sum_s1_##suffix, sum_u1_##suffix, sum_s2_##suffix, sum_u2_##suffix, sum_s4_##suffix, sum_u4_##suffix, sum_8_##suffix};

SUMS(plain, )
#if defined(__x86_64__)
SUMS(avx2, __attribute__((target("avx2"))))
SUMS(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))))
#endif

uint64_t cq_sum(int element, uint64_t s, const void *p, size_t n)
{
	if (n < SHORT_BYTES) /* too few for lanes */
		return sums_plain[element](s, p, n);
#if defined(__x86_64__)
	static int width; /* the same whoever finds it out first */
	int w = __atomic_load_n(&width, __ATOMIC_RELAXED);
	if (w == 0) {
		/* Processors with VPCLMULQDQ do not slow down for wide vectors. */
		w = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("vpclmulqdq") ? 3 :
			__builtin_cpu_supports("avx2") ? 2 : 1;
		__atomic_store_n(&width, w, __ATOMIC_RELAXED);
	}
	if (w == 3)
		return sums_avx512[element](s, p, n);
	if (w == 2)
		return sums_avx2[element](s, p, n);
#endif
	return sums_plain[element](s, p, n);
}
