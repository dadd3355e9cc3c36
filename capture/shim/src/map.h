/* Maps from 64-bit keys to pointers: open addressing, in anonymous memory. Nothing here locks. */
#ifndef COMMQ_MAP_H
#define COMMQ_MAP_H

#include <stdint.h>

#include "compiler.h"

/* The zero value is an empty map. Keys 0 and 1 are reserved. */
typedef struct {
	uint64_t *keys;
	void **values;
	uint64_t mask; /* slots - 1 */
	uint64_t used; /* slots that are not empty, including those of removed entries */
} cq_map;

CQ_HOT uint64_t cq_hash_key(uint64_t key)
{
	key *= 0x9e3779b97f4a7c15u;
	return key ^ (key >> 32);
}

#pragma GCC visibility push(hidden)

/* Adds a key that is not in the map; returns 0 when there is no memory. */
int cq_map_put(cq_map *m, uint64_t key, void *value);
/* NULL when the key is not in the map. */
void *cq_map_get(const cq_map *m, uint64_t key);
/* Removes a key and returns its value; NULL when it was not in the map. */
void *cq_map_remove(cq_map *m, uint64_t key);

#pragma GCC visibility pop

#endif
