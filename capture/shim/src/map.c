#include "map.h"

#include "pages.h"

#define GONE 1u /* the key of a removed entry; no handle has this value */

static void map_put_raw(cq_map *m, uint64_t key, void *value)
{
	uint64_t i = cq_hash_key(key) & m->mask;
	while (m->keys[i] != 0)
		i = (i + 1) & m->mask;
	m->keys[i] = key;
	m->values[i] = value;
	m->used++;
}

static int map_grow(cq_map *m)
{
	cq_map old = *m;
	uint64_t live = 0, slots = 1024;
	for (uint64_t i = 0; old.keys != NULL && i <= old.mask; i++)
		live += old.keys[i] > GONE;
	while (slots < live * 4)
		slots *= 2;
	m->keys = cq_pages(slots * sizeof *m->keys);
	m->values = cq_pages(slots * sizeof *m->values);
	if (m->keys == NULL || m->values == NULL) {
		*m = old;
		return 0;
	}
	m->mask = slots - 1;
	m->used = 0;
	for (uint64_t i = 0; old.keys != NULL && i <= old.mask; i++) {
		if (old.keys[i] > GONE)
			map_put_raw(m, old.keys[i], old.values[i]);
	}
	if (old.keys != NULL) {
		cq_pages_free(old.keys, (old.mask + 1) * sizeof *old.keys);
		cq_pages_free(old.values, (old.mask + 1) * sizeof *old.values);
	}
	return 1;
}

int cq_map_put(cq_map *m, uint64_t key, void *value)
{
	if ((m->keys == NULL || m->used * 2 > m->mask) && !map_grow(m) && (m->keys == NULL || m->used >= m->mask))
		return 0;
	map_put_raw(m, key, value);
	return 1;
}

static int64_t map_index(const cq_map *m, uint64_t key)
{
	if (m->keys == NULL)
		return -1;
	for (uint64_t i = cq_hash_key(key) & m->mask; m->keys[i] != 0; i = (i + 1) & m->mask) {
		if (m->keys[i] == key)
			return (int64_t)i;
	}
	return -1;
}

void *cq_map_get(const cq_map *m, uint64_t key)
{
	int64_t i = map_index(m, key);
	return i < 0 ? NULL : m->values[i];
}

void *cq_map_remove(cq_map *m, uint64_t key)
{
	int64_t i = map_index(m, key);
	if (i < 0)
		return NULL;
	m->keys[i] = GONE;
	return m->values[i];
}
