/* Hashes of bytes, without MPI; see hash.c. */
#ifndef COMMQ_HASH_H
#define COMMQ_HASH_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Elements of the linear sum: integers of 1, 2, 4, 8 bytes, sign- or zero-extended to 64 bits. */
enum { CQ_E_NONE, CQ_E_S1, CQ_E_U1, CQ_E_S2, CQ_E_U2, CQ_E_S4, CQ_E_U4, CQ_E_8 };

/* The base of the linear sum: odd, and 5 mod 8, so that its powers repeat only after 2^62. */
#define CQ_SUM_BASE 0x9e3779b97f4a7c15u

/* Implementations of the CRC; all give the same values. */
enum { CQ_BY_TABLE, CQ_BY_CLMUL, CQ_BY_ISAL };

/* Prepares for an algorithm (CQ_ALGORITHM_* of spool.h) and chooses the best CRC implementation up to most; returns
 * the choice. */
int cq_hash_prepare(int algorithm, int most);
/* Extends a CRC: seed is the CRC of the preceding bytes (0: of nothing), and n bytes follow. */
uint64_t cq_crc(uint64_t seed, const void *p, size_t n);
typedef struct {
	uint64_t crc, sum;
} cq_crc_and_sum;

/* Extends both values: h covers the preceding bytes (0, 0: nothing), and n bytes of whole elements follow. */
cq_crc_and_sum cq_crc_with_sum(int element, cq_crc_and_sum h, const void *p, size_t n);

#pragma GCC visibility pop

#endif
