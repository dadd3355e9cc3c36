/* Windows and files. */
#include "tables.h"

static const cq_object no_object = {-1, CQ_NULL32, 0};

typedef union object_entry {
	cq_object o;
	union object_entry *next; /* the next spare entry */
} object_entry;

static cq_object object_remove(cq_map *m, uint64_t key)
{
	object_entry *e = cq_map_remove(m, key);
	if (e == NULL)
		return no_object;
	cq_object o = e->o;
	e->next = cq.spare_objects;
	cq.spare_objects = e;
	return o;
}

int32_t cq_object_add(cq_map *m, int32_t *made, uint64_t key, int32_t comm)
{
	int32_t number = -1;
	cq_lock();
	object_remove(m, key); /* an older entry whose end the shim missed */
	object_entry *e = cq.spare_objects;
	if (e != NULL)
		cq.spare_objects = e->next;
	else
		e = cq_pool_get(sizeof *e);
	if (e != NULL && cq_map_put(m, key, e)) {
		number = (*made)++;
		e->o = (cq_object){number, comm, 0};
	}
	cq_unlock();
	return number;
}

cq_object cq_object_get(cq_map *m, uint64_t key)
{
	cq_lock();
	object_entry *e = cq_map_get(m, key);
	cq_object o = e != NULL ? e->o : no_object;
	cq_unlock();
	return o;
}

cq_object cq_object_drop(cq_map *m, uint64_t key)
{
	cq_lock();
	cq_object o = object_remove(m, key);
	cq_unlock();
	return o;
}

uint32_t cq_object_split(cq_map *m, uint64_t key, int begin)
{
	uint32_t serial = 0;
	cq_lock();
	object_entry *e = cq_map_get(m, key);
	if (e != NULL) {
		serial = begin ? cq_serial() : e->o.split;
		e->o.split = begin ? serial : 0;
	}
	cq_unlock();
	return serial;
}
