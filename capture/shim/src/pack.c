/* Packing slots. A slot is predicted from the last one of the same kind, of the same call site and peer if it is a call;
 * what is left is written in as few bytes as it takes. A call's times are those since the last call returned, and its
 * compute time is predicted as all of the time since then. The Go twin is capture/spool/unpack.go. */
#include "pack.h"

#include <string.h>

/* Writes a number in 1 to 9 bytes: as many zero bits, then a one, as there are further bytes. */
static inline uint8_t *put(uint8_t *out, uint64_t x)
{
	unsigned bytes = (unsigned)(70 - __builtin_clzll(x | 1)) / 7;
	if (bytes > 8) {
		*out = 0;
		memcpy(out + 1, &x, sizeof x);
		return out + 9;
	}
	x = x << bytes | 1ull << (bytes - 1);
	memcpy(out, &x, sizeof x);
	return out + bytes;
}

/* A difference as a number that is small if the difference is, whatever its sign. */
static inline uint64_t small(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint8_t kind_of(const uint64_t slot[CQ_PACK_WORDS])
{
	return (uint8_t)(slot[0] >> 16);
}

/* The key of a call: its function, site and peer. Keys of calls have the highest bit, others do not. */
static inline uint8_t call_key(const uint64_t slot[CQ_PACK_WORDS])
{
	uint32_t x = (uint32_t)(slot[0] & 0xffff) * 31 + (uint32_t)(slot[7] >> 32) * 131 + (uint32_t)(slot[3] >> 32) * 17;
	return (uint8_t)(x ^ x >> 7) | 0x80;
}

/* Writes the words of a slot that differ from what was predicted, behind a byte that tells which. */
static inline uint8_t *put_words(uint8_t *out, uint8_t *which, const uint64_t *slot, const uint64_t *predicted)
{
	uint8_t mask = 0;
	for (int i = 0; i < CQ_PACK_WORDS; i++) {
		if (slot[i] != predicted[i]) {
			mask |= (uint8_t)(1 << i);
			out = put(out, small(slot[i] - predicted[i]));
		}
	}
	*which = mask;
	return out;
}

static inline uint8_t *pack_call(cq_packer *p, const uint64_t slot[CQ_PACK_WORDS], uint32_t scale, uint8_t *out)
{
	const uint32_t low = UINT32_MAX;
	uint64_t *last = p->last[p->key = call_key(slot)], predicted[CQ_PACK_WORDS];
	uint32_t compute = (uint32_t)((slot[1] - p->returned) * scale >> 20);
	memcpy(predicted, last, sizeof predicted);
	predicted[0] = (last[0] & low) | (slot[0] & ~(uint64_t)low); /* compute time stands apart */
	predicted[1] = p->returned;
	predicted[2] = slot[1];
	uint8_t *which = out + 1;
	out[0] = p->key;
	out = put(out + 2, (uint32_t)small((uint64_t)(int64_t)(int32_t)((uint32_t)(slot[0] >> 32) - compute)));
	out = put_words(out, which, slot, predicted);
	memcpy(last, slot, sizeof predicted);
	p->returned = slot[2] != 0 ? slot[2] : slot[1];
	return out;
}

static inline uint8_t *pack_other(cq_packer *p, const uint64_t slot[CQ_PACK_WORDS], uint8_t *out)
{
	uint64_t *last = p->last[p->key = (uint8_t)(p->key * 7 + kind_of(slot) * 29 + 1) & 0x7f];
	out[0] = p->key;
	uint8_t *end = put_words(out + 2, out + 1, slot, last);
	memcpy(last, slot, sizeof p->last[0]);
	return end;
}

size_t cq_pack(cq_packer *p, const void *slots, size_t n, uint32_t scale, uint8_t *out)
{
	uint8_t *begin = out;
	memset(p, 0, sizeof *p);
	for (size_t i = 0; i < n; i++) {
		uint64_t slot[CQ_PACK_WORDS];
		memcpy(slot, (const uint8_t *)slots + i * CQ_SLOT_BYTES, sizeof slot);
		out = kind_of(slot) == CQ_CALL ? pack_call(p, slot, scale, out) : pack_other(p, slot, out);
	}
	return (size_t)(out - begin);
}
