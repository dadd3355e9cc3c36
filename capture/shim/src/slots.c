/* Slots that several recorders write. */
#include "spooling.h"

void cq_def_put(cq_thread *t, int what, int64_t id, const void *payload, size_t bytes)
{
	cq_def *d = cq_take(t);
	memset(d, 0, sizeof *d);
	d->what = (uint16_t)what;
	d->bytes = (uint32_t)bytes;
	d->id = id;
	d->kind = CQ_DEF;
	for (size_t at = 0; at < bytes; at += sizeof((cq_blob *)0)->data) {
		cq_blob *b = cq_take(t);
		size_t n = bytes - at < sizeof b->data ? bytes - at : sizeof b->data;
		memset(b, 0, sizeof *b);
		b->n = (uint16_t)n;
		memcpy(b->data, (const uint8_t *)payload + at, n);
		b->kind = CQ_BLOB;
	}
}

void cq_wide_put(cq_thread *t, int what, int64_t value)
{
	cq_wide *w = cq_take(t);
	memset(w, 0, sizeof *w);
	w->what = (uint16_t)what;
	w->value = value;
	w->kind = CQ_WIDE;
}

void cq_instance_put(cq_thread *t, uint64_t instance, int64_t rbytes)
{
	cq_coll *s = cq_take(t);
	memset(s, 0, sizeof *s);
	s->op = 0xffff;
	s->rdtype = CQ_NULL32;
	s->instance = instance;
	s->rcount = s->sbytes = CQ_NULL64;
	s->rbytes = rbytes;
	s->kind = CQ_COLL;
}

void cq_label_put(cq_thread *t, const char *s, size_t n)
{
	cq_def_put(t, CQ_DEF_LABEL, 0, s, n < CQ_LABEL_BYTES ? n : CQ_LABEL_BYTES);
}
