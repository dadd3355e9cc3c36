/* Calls with which the program can tell the shim something, through commq.h and commq.f90. */
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
	cq_mpi_ends(t);
	cq_label_put(t, name, bytes > 0 ? (size_t)bytes : 0);
	cq_close(t, MPI_SUCCESS);
}

CQ_HOT void record_self(cq_thread *t, const void *buf, long long count, MPI_Datatype type)
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
	cq_mpi_begins_sending(t, buf, count, type);
	cq_end(t, MPI_SUCCESS);
}

void commq_shim_self(const void *buf, long long count, MPI_Datatype type)
{
	cq_thread *t = cq_enter();
	if (t != NULL)
		record_self(t, buf, count, type);
}

void commq_shim_self_f(const void *buf, long long count, MPI_Fint type)
{
	cq_thread *t = cq_enter();
	if (t != NULL)
		record_self(t, cq_f_buffer(buf), count, CQ_TYPE(type));
}
