/* Packing slots. A slot is predicted from the last one in the same context: of the same kind and after the same
 * call; of the same function, call site and peer if it is a call. What is left is written in as few bytes as it
 * takes. A call's times are those since the last call returned, and its compute time is predicted as all of the
 * time since then.
 *
 * A packed slot has a header, which is a number; the slot's key, two bytes, if it is not the one that followed last
 * time; of a call, how its compute time differs from the prediction; and the differences of the words that are not
 * as predicted. The lowest bit of the header tells that there is a key, the others which words follow. Two of these
 * are rare and the highest, so that a header usually takes a byte: that a call's times, which change with every
 * call, are as predicted; and that the last two words of another slot are not. The Go twin is
 * capture/spool/unpack.go. */
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
static inline uint16_t call_key(const uint64_t slot[CQ_PACK_WORDS])
{
	uint32_t x = (uint32_t)(slot[0] & 0xffff) * 31 + (uint32_t)(slot[7] >> 32) * 131 + (uint32_t)(slot[3] >> 32) * 17;
	return (uint16_t)(x * 2654435761u >> 17 | CQ_PACK_CALLS);
}

/* The key of another slot: its kind and the key before it. */
static inline uint16_t other_key(const cq_packer *p, const uint64_t slot[CQ_PACK_WORDS])
{
	return (uint16_t)((p->key * 7 + kind_of(slot) * 29 + 1) & (CQ_PACK_CALLS - 1));
}

static inline uint32_t context_of(const cq_packer *p, uint32_t key)
{
	return (key ^ p->call_key * 40503u) * 2654435761u >> (32 - CQ_PACK_CONTEXT_BITS);
}

/* Writes a header as put does, of a byte, or of two if rare is not 0. */
static inline void put_header(uint8_t *out, unsigned words, unsigned told, unsigned rare)
{
	unsigned x = words << 1 | told;
	if (rare == 0) {
		out[0] = (uint8_t)(x << 1 | 1);
		return;
	}
	x |= rare << 7;
	out[0] = (uint8_t)(x << 2 | 2);
	out[1] = (uint8_t)(x >> 6);
}

static inline uint8_t *pack_slot(cq_packer *p, const uint64_t slot[CQ_PACK_WORDS], uint32_t scale, uint8_t *out)
{
	const uint32_t low = UINT32_MAX;
	const int call = kind_of(slot) == CQ_CALL;
	uint16_t key = call ? call_key(slot) : other_key(p, slot), *next = &p->next[p->context];
	uint64_t *last = p->last[p->context = context_of(p, key)], predicted[CQ_PACK_WORDS];
	unsigned mask = 0, told = *next != key, rare; /* the header's two highest bits */
	memcpy(predicted, last, sizeof predicted);
	if (call) {
		predicted[0] = (last[0] & low) | (slot[0] & ~(uint64_t)low); /* compute time stands apart */
		predicted[1] = p->returned;
		predicted[2] = slot[1];
		rare = (unsigned)(slot[1] == predicted[1]) | (unsigned)(slot[2] == predicted[2]) << 1;
	} else {
		rare = (unsigned)(slot[6] != predicted[6]) | (unsigned)(slot[7] != predicted[7]) << 1;
	}
	uint8_t *header = out;
	out += rare == 0 ? 1 : 2;
	if (told) {
		memcpy(out, &key, sizeof key);
		out += sizeof key;
	}
	if (call) {
		uint32_t compute = (uint32_t)((slot[1] - p->returned) * scale >> 20);
		out = put(out, (uint32_t)small((uint64_t)(int64_t)(int32_t)((uint32_t)(slot[0] >> 32) - compute)));
		p->returned = slot[2] != 0 ? slot[2] : slot[1];
		p->call_key = key;
	}
	for (int i = 0; i < CQ_PACK_WORDS; i++) {
		if (slot[i] != predicted[i]) {
			mask |= 1u << i;
			out = put(out, small(slot[i] - predicted[i]));
		}
	}
	put_header(header, call ? (mask & 1) | mask >> 3 << 1 : mask & 0x3f, told, rare);
	memcpy(last, slot, sizeof predicted);
	*next = p->key = key;
	return out;
}

size_t cq_pack(cq_packer *p, const void *slots, size_t n, uint32_t scale, uint8_t *out)
{
	uint8_t *begin = out;
	memset(p, 0, sizeof *p);
	for (size_t i = 0; i < n; i++) {
		uint64_t slot[CQ_PACK_WORDS];
		memcpy(slot, (const uint8_t *)slots + i * CQ_SLOT_BYTES, sizeof slot);
		out = pack_slot(p, slot, scale, out);
	}
	return (size_t)(out - begin);
}
