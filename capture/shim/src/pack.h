/* Compressed blocks of slots: see spool.h. */
#ifndef COMMQ_PACK_H
#define COMMQ_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "spool.h"

#pragma GCC visibility push(hidden)

enum {
	CQ_PACK_CONTEXT_BITS = 11,
	CQ_PACK_CONTEXTS = 1 << CQ_PACK_CONTEXT_BITS,
	CQ_PACK_CALLS = 0x8000, /* set in the keys of calls */
	CQ_PACK_WORDS = CQ_SLOT_BYTES / 8,
	CQ_PACK_MOST = 4 + 9 * (1 + CQ_PACK_WORDS), /* bytes of a packed slot at most */
};

/* What the next slot is predicted from. */
typedef struct {
	uint64_t last[CQ_PACK_CONTEXTS][CQ_PACK_WORDS]; /* the last slot in each context */
	uint16_t next[CQ_PACK_CONTEXTS]; /* the key of the slot that came after it */
	uint64_t returned; /* when the last call did */
	uint32_t context;  /* of the last slot */
	uint16_t key;      /* of the last slot */
	uint16_t call_key; /* of the last call */
} cq_packer;

/* Packs n slots at out, which has room for CQ_PACK_MOST bytes for each; returns how many bytes they take. They are a
 * block of their own: nothing before them is needed to unpack them. scale is ns per tick, times 2^20. */
size_t cq_pack(cq_packer *p, const void *slots, size_t n, uint32_t scale, uint8_t *out);

#pragma GCC visibility pop

#endif
