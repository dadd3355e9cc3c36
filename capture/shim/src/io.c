/* Files: MPI-IO. */
#include "recorders.h"

static void io_put(cq_thread *t, int32_t file, int64_t offset, int64_t bytes)
{
	cq_io *s = cq_take(t);
	memset(s, 0, sizeof *s);
	s->file = file;
	s->offset = offset;
	s->bytes = bytes;
	s->kind = CQ_IO;
}

static cq_call *file_open(cq_thread *t, int id, cq_object f)
{
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->comm = f.comm;
	return c;
}

/* Reads and writes. The status of the call, or of its completion, gives the bytes moved. */

void cq_io_begin(cq_thread *t, int id, cq_transfer *a)
{
	cq_object f = cq_object_get(&cq.files, CQ_FILE_KEY(a->file));
	int32_t type = cq_type_of(t, a->type)->number;
	cq_call *c = file_open(t, id, f);
	c->dtype = type;
	c->count = a->count;
	c->buf = cq_address(a->buf);
	a->number = f.number;
	cq_mpi_begins(t);
}

static int64_t offset_of(const cq_transfer *a)
{
	return a->has_offset ? a->offset : CQ_NULL64;
}

void cq_io_end(cq_thread *t, int err, const cq_transfer *a, const MPI_Status *st)
{
	cq_mpi_ends(t);
	int64_t bytes = err == MPI_SUCCESS ? cq_status_bytes(st) : CQ_NULL64;
	io_put(t, a->number, offset_of(a), bytes >= 0 ? bytes : CQ_NULL64);
	cq_close(t, err);
}

void cq_io_request_end(cq_thread *t, int err, const cq_transfer *a, MPI_Request r)
{
	cq_mpi_ends(t);
	io_put(t, a->number, offset_of(a), CQ_NULL64);
	if (err == MPI_SUCCESS)
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), CQ_R_IO);
	cq_close(t, err);
}

/* Split collectives. A file has at most one in progress; it gets a serial like a request. */

void cq_io_split_end(cq_thread *t, int err, const cq_transfer *a)
{
	cq_mpi_ends(t);
	io_put(t, a->number, offset_of(a), CQ_NULL64);
	if (err == MPI_SUCCESS)
		t->call->req = cq_object_split(&cq.files, CQ_FILE_KEY(a->file), 1);
	cq_close(t, err);
}

int32_t cq_io_end_begin(cq_thread *t, int id, MPI_File file)
{
	cq_object f = cq_object_get(&cq.files, CQ_FILE_KEY(file));
	uint32_t serial = cq_object_split(&cq.files, CQ_FILE_KEY(file), 0);
	cq_call *c = file_open(t, id, f);
	c->req = serial;
	cq_mpi_begins(t);
	return f.number;
}

void cq_io_end_end(cq_thread *t, int err, int32_t number, const MPI_Status *st)
{
	cq_mpi_ends(t);
	if (err == MPI_SUCCESS)
		t->call->count = cq_status_bytes(st);
	else
		t->call->flags |= CQ_F_NO_STATUS;
	io_put(t, number, CQ_NULL64, CQ_NULL64);
	cq_close(t, err);
}

/* Other calls on files. */

int32_t cq_file_begin(cq_thread *t, int id, MPI_File file)
{
	cq_object f = cq_object_get(&cq.files, CQ_FILE_KEY(file));
	file_open(t, id, f);
	cq_mpi_begins(t);
	return f.number;
}

int32_t cq_file_close_begin(cq_thread *t, int id, MPI_File file)
{
	cq_object f = cq_object_drop(&cq.files, CQ_FILE_KEY(file));
	file_open(t, id, f);
	cq_mpi_begins(t);
	return f.number;
}

void cq_file_end(cq_thread *t, int err, int32_t number)
{
	cq_mpi_ends(t);
	io_put(t, number, CQ_NULL64, CQ_NULL64);
	cq_close(t, err);
}

void cq_file_open_end(cq_thread *t, int err, MPI_File made, uint64_t instance, const char *name, size_t n)
{
	cq_mpi_ends(t);
	t->call->count = -1;
	if (err == MPI_SUCCESS)
		t->call->count = cq_object_add(&cq.files, &cq.files_made, CQ_FILE_KEY(made), t->call->comm);
	cq_instance_put(t, instance, CQ_NULL64);
	cq_label_put(t, name, n);
	cq_close(t, err);
}

void cq_file_delete_end(cq_thread *t, int err, const char *name, size_t n)
{
	cq_mpi_ends(t);
	cq_label_put(t, name, n);
	cq_close(t, err);
}
