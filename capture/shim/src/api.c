/* What the program may tell the shim itself, through commq.h and commq.f90. */
#include "recorders.h"

CQ_EXPORT void commq_shim_mark(const char *name, long long bytes);
CQ_EXPORT void commq_shim_self(const void *buf, long long count, MPI_Datatype type);
CQ_EXPORT void commq_shim_self_f(const void *buf, long long count, MPI_Fint type);

void commq_shim_mark(const char *name, long long bytes)
{
	cq_thread *t = cq_enter();
	if (t == NULL)
		return;
	cq_plain_begin(t, CQ_commq_mark, MPI_COMM_NULL);
	cq_back(t);
	cq_label_put(t, name, bytes > 0 ? (size_t)bytes : 0);
	cq_close(t, MPI_SUCCESS);
}

CQ_HOT void self(cq_thread *t, const void *buf, long long count, MPI_Datatype type)
{
	if (count < 0) {
		cq_leave(t);
		return;
	}
	int32_t number = cq_type_of(t, type)->number;
	cq_call *c = cq_open(t, CQ_commq_send_to_self);
	cq_blank(c);
	c->dtype = number;
	c->count = count;
	c->buf = cq_address(buf);
	cq_go_with(t, c, buf, count, type);
	cq_end(t, MPI_SUCCESS);
}

void commq_shim_self(const void *buf, long long count, MPI_Datatype type)
{
	cq_thread *t = cq_enter();
	if (t != NULL)
		self(t, buf, count, type);
}

void commq_shim_self_f(const void *buf, long long count, MPI_Fint type)
{
	cq_thread *t = cq_enter();
	if (t != NULL)
		self(t, cq_f_buffer(buf), count, CQ_TYPE(type));
}
