/* Completions of requests, and other calls on requests. */
#include "recorders.h"

/* Several completed requests, two to a slot. */
typedef struct {
	cq_thread *t;
	cq_done slot;
} done_list;

static void done_flush(done_list *l)
{
	if (l->slot.n == 0)
		return;
	cq_done *d = cq_take(l->t);
	*d = l->slot;
	memset(&l->slot, 0, sizeof l->slot);
}

static cq_done_entry done_entry(cq_req r, const MPI_Status *st)
{
	cq_done_entry e = {r.serial, CQ_NULL32, CQ_NULL32, 0, CQ_NULL64};
	if (st == NULL) {
		e.flags = r.what & (CQ_R_RECV | CQ_R_IO) ? CQ_F_NO_STATUS : 0;
	} else if (r.what & CQ_R_IO) {
		e.bytes = cq_status_bytes(st); /* only this field is known to be set */
	} else if (cq_status_cancelled(st)) {
		e.flags = CQ_F_CANCELLED;
	} else if (r.what & CQ_R_PROC_NULL) {
		e.flags = CQ_F_PROC_NULL;
		if (r.what & CQ_R_RECV)
			e.bytes = 0;
	} else if (r.what & CQ_R_RECV) {
		e.source = cq_rank_or_null(st->MPI_SOURCE);
		e.tag = cq_tag_or_null(st->MPI_TAG);
		e.bytes = cq_status_bytes(st);
	}
	return e;
}

/* Reports whether a call of the program has written statuses and indices: Open MPI's Fortran functions do not where they
 * fail. */
static int has_written(int err, int fortran)
{
	return err == MPI_SUCCESS || !fortran || !CQ_OPENMPI;
}

void cq_completion_failed(cq_call *c, int err, int fortran, cq_req r, const MPI_Status *st)
{
	if ((r.what & (CQ_R_RECV | CQ_R_PROC_NULL)) != CQ_R_RECV || !has_written(err, fortran) ||
		cq_class_of(err) != MPI_ERR_TRUNCATE) {
		c->flags |= CQ_F_NO_STATUS;
		return;
	}
	c->peer = cq_rank_or_null(st->MPI_SOURCE);
	c->tag = cq_tag_or_null(st->MPI_TAG);
}

/* How a request ended whose call failed: the statuses tell if the call's error is MPI_ERR_IN_STATUS, else nothing does. */
static uint32_t flags_of_error(int err, const MPI_Status *st)
{
	if (err == MPI_SUCCESS || st == NULL || cq_class_of(err) != MPI_ERR_IN_STATUS)
		return 0;
	if (st->MPI_ERROR == MPI_SUCCESS)
		return CQ_F_NO_ERROR;
	return cq_class_of(st->MPI_ERROR) == MPI_ERR_TRUNCATE ? CQ_F_TRUNCATED : 0;
}

/* Adds a request that a call completed which returned err. */
static void done_put(done_list *l, int err, cq_req r, const MPI_Status *st)
{
	if (r.serial == 0)
		return;
	uint32_t how = flags_of_error(err, st);
	int has_status = err == MPI_SUCCESS || how == CQ_F_NO_ERROR;
	cq_verify(l->t, r, has_status ? st : NULL);
	l->slot.kind = CQ_DONE;
	cq_done_entry *e = &l->slot.done[l->slot.n++];
	*e = done_entry(r, has_status || how == CQ_F_TRUNCATED ? st : NULL);
	e->flags |= how;
	if (how == CQ_F_TRUNCATED)
		e->bytes = CQ_NULL64;
	if (l->slot.n == 2)
		done_flush(l);
}

/* Takes the i-th request of an array, which has completed. */
static cq_req take_claimed(cq_thread *t, int i, uint64_t key)
{
	cq_req *claimed = t->infos.p, r = {0, 0, 0, 0};
	if (!cq.locked)
		return cq_req_take(&cq.requests, key);
	if (i >= t->claims)
		return r;
	r = claimed[i];
	claimed[i].serial = 0;
	return r;
}

/* Puts back the requests that were taken before the call and have not completed. */
static void put_back_claimed(cq_thread *t, const uint64_t *keys)
{
	const cq_req *claimed = t->infos.p;
	for (int i = t->claims - 1; i >= 0; i--) {
		if (claimed[i].serial != 0)
			cq_req_put_back(&cq.requests, keys[i], claimed[i]);
	}
	t->claims = 0;
}

/* Waitany and Testany. */

static uint64_t key_of(cq_array a, int i)
{
	return a.fortran ? CQ_KEY(CQ_REQUEST(((const MPI_Fint *)a.p)[i])) : CQ_KEY(((const MPI_Request *)a.p)[i]);
}

static int is_null(cq_array a, int i)
{
	return key_of(a, i) == CQ_KEY(MPI_REQUEST_NULL);
}

static void any_record(cq_thread *t, cq_call *c, int index, const uint64_t *keys, const MPI_Status *st)
{
	if (index == MPI_UNDEFINED || index < 0 || keys == NULL)
		return;
	cq_req r = take_claimed(t, index, keys[index]);
	c->req = r.serial;
	cq_record_completion(c, r, st);
	cq_verify(t, r, st);
}

/* After an error: the completed request is now null, and MPI may reuse its handle. */
static void any_failed(cq_thread *t, cq_call *c, int err, cq_array a, const uint64_t *keys, const MPI_Status *st)
{
	for (int i = 0; keys != NULL && i < a.n; i++) {
		if (keys[i] == CQ_KEY(MPI_REQUEST_NULL) || !is_null(a, i))
			continue;
		cq_req r = take_claimed(t, i, keys[i]);
		c->req = r.serial;
		cq_completion_failed(c, err, a.fortran, r, st);
		cq_verify(t, r, NULL);
		return;
	}
}

void cq_waitany_begin(cq_thread *t, int id)
{
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	cq_mpi_begins(t);
}

void cq_waitany_end(cq_thread *t, int err, int index, cq_array a, const uint64_t *keys, const MPI_Status *st)
{
	cq_mpi_ends(t);
	if (err == MPI_SUCCESS)
		any_record(t, t->call, index, keys, st);
	else
		any_failed(t, t->call, err, a, keys, st);
	put_back_claimed(t, keys);
	cq_close(t, err);
}

void cq_any_end(cq_thread *t, int id, int err, uint64_t compute, int flag, int index, cq_array a, const uint64_t *keys,
	const MPI_Status *st)
{
	cq_mpi_ends(t);
	if (!flag && err == MPI_SUCCESS) {
		put_back_claimed(t, keys);
		cq_poll_failed(t, compute);
		return;
	}
	cq_call *c = cq_poll_open(t, id, compute);
	if (err == MPI_SUCCESS)
		any_record(t, c, index, keys, st);
	else
		any_failed(t, c, err, a, keys, st);
	put_back_claimed(t, keys);
	cq_close(t, err);
}

/* Waitall and Testall. */

/* Reports whether MPI refused a call for its arguments. Such a call completes nothing. */
static int is_refused(int err)
{
	int class = cq_class_of(err);
	return class == MPI_ERR_ARG || class == MPI_ERR_REQUEST || class == MPI_ERR_COUNT;
}

/* After an error some requests of the array are complete and some are not. The handle of a persistent one tells nothing.
 */
static int is_completed(int err, cq_array a, int i, cq_req r, const MPI_Status *st)
{
	if (err == MPI_SUCCESS)
		return 1;
	if (st != NULL && st->MPI_ERROR == MPI_ERR_PENDING)
		return 0;
	if (r.what & CQ_R_PERSISTENT)
		return !is_refused(err);
	return is_null(a, i);
}

/* Takes the requests before the call: the call is certain to complete them, and MPI may give their handles to another
 * thread's requests before it returns. */
void cq_waitall_begin(cq_thread *t, int id, cq_array a)
{
	const uint64_t *keys = cq_request_keys(t, a);
	uint32_t lowest = UINT32_MAX, highest = 0;
	int64_t n = 0;
	if (!cq.locked)
		cq_claim(t, keys, a.n);
	const cq_req *r = t->infos.p;
	for (int i = 0; i < t->claims; i++) {
		if (r[i].serial == 0)
			continue;
		lowest = r[i].serial < lowest ? r[i].serial : lowest;
		highest = r[i].serial > highest ? r[i].serial : highest;
		n++;
	}
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	if (n > 0) { /* lets a reader see what a call waits for that never returns */
		c->req = lowest;
		c->tag = (int32_t)highest;
		c->count = n;
	}
	cq_mpi_begins(t);
}

void cq_waitall_end(cq_thread *t, int err, cq_array a, const MPI_Status *st)
{
	done_list l = {t, {0}};
	cq_req *r = t->infos.p;
	cq_mpi_ends(t);
	st = has_written(err, a.fortran) ? cq_statuses_result(t, st) : NULL;
	t->call->req = 0;
	t->call->tag = CQ_NULL32;
	t->call->count = CQ_NULL64;
	for (int i = 0; i < t->claims; i++) {
		const MPI_Status *s = st != NULL ? st + i : NULL;
		if (CQ_UNLIKELY(!is_completed(err, a, i, r[i], s)))
			continue;
		done_put(&l, err, r[i], s);
		r[i].serial = 0;
	}
	if (CQ_UNLIKELY(err != MPI_SUCCESS))
		put_back_claimed(t, t->keys.p);
	t->claims = 0;
	done_flush(&l);
	cq_close(t, err);
}

void cq_testall_end(cq_thread *t, int id, int err, uint64_t compute, int flag, cq_array a, const uint64_t *keys,
	const MPI_Status *st)
{
	done_list l = {t, {0}};
	cq_mpi_ends(t);
	st = has_written(err, a.fortran) ? cq_statuses_result(t, st) : NULL;
	if (!flag && err == MPI_SUCCESS) {
		put_back_claimed(t, keys);
		cq_poll_failed(t, compute);
		return;
	}
	cq_poll_open(t, id, compute);
	for (int i = 0; keys != NULL && i < a.n; i++) {
		const MPI_Status *s = st != NULL ? st + i : NULL;
		cq_req r = take_claimed(t, i, keys[i]);
		if (CQ_UNLIKELY(!is_completed(err, a, i, r, s))) {
			if (r.serial != 0)
				cq_req_put_back(&cq.requests, keys[i], r);
			continue;
		}
		done_put(&l, err, r, s);
	}
	put_back_claimed(t, keys);
	done_flush(&l);
	cq_close(t, err);
}

/* Waitsome and Testsome. */

static void some_record(cq_thread *t, int err, int n, const int *indices, int base, const uint64_t *keys,
	const MPI_Status *st)
{
	done_list l = {t, {0}};
	for (int i = 0; n != MPI_UNDEFINED && keys != NULL && i < n; i++) {
		done_put(&l, err, take_claimed(t, indices[i] - base, keys[indices[i] - base]), st != NULL ? st + i : NULL);
	}
	done_flush(&l);
}

/* Reports whether outcount is valid: it is for errors that the statuses report. */
static int outcount_is_valid(int err)
{
	int class = cq_class_of(err);
	return class == MPI_SUCCESS || class == MPI_ERR_IN_STATUS;
}

void cq_waitsome_end(cq_thread *t, int err, int n, const int *indices, int base, const uint64_t *keys,
	const MPI_Status *st)
{
	cq_mpi_ends(t);
	st = cq_statuses_result(t, st);
	if (has_written(err, base == 1) && outcount_is_valid(err))
		some_record(t, err, n, indices, base, keys, st);
	put_back_claimed(t, keys);
	cq_close(t, err);
}

void cq_testsome_end(cq_thread *t, int id, int err, uint64_t compute, int n, const int *indices, int base,
	const uint64_t *keys, const MPI_Status *st)
{
	cq_mpi_ends(t);
	st = cq_statuses_result(t, st);
	if (err == MPI_SUCCESS && n == 0) {
		put_back_claimed(t, keys);
		cq_poll_failed(t, compute);
		return;
	}
	cq_poll_open(t, id, compute);
	if (has_written(err, base == 1) && outcount_is_valid(err))
		some_record(t, err, n, indices, base, keys, st);
	put_back_claimed(t, keys);
	cq_close(t, err);
}

void cq_get_status_end(cq_thread *t, int id, int err, uint64_t compute, int flag, MPI_Request request,
	const MPI_Status *st)
{
	cq_mpi_ends(t);
	if (!flag && err == MPI_SUCCESS) {
		cq_poll_failed(t, compute);
		return;
	}
	cq_call *c = cq_poll_open(t, id, compute);
	if (err == MPI_SUCCESS) {
		cq_req r = cq_req_peek(request);
		c->req = r.serial;
		cq_record_completion(c, r, st);
	}
	cq_close(t, err);
}

/* Reports whether the thread records, so that it knows requests. */
static int is_recording(void)
{
	const cq_thread *t = cq_mine;
	return cq.state == CQ_ON && t != NULL && !t->closing && !t->growing;
}

/* Forgets a request that ends without a record. Not a send: libraries return the same completed request for many of
 * them, so its handle may also be that of others. */
static void end_unseen(uint64_t key)
{
	cq_reqslot *s;
	if (key == CQ_KEY(MPI_REQUEST_NULL))
		return;
	cq_reqtab *held = cq_req_hold(&cq.requests, key, &s);
	cq_req r = s->first;
	cq_req_release(held);
	if ((r.serial | r.template_) == 0 || (r.what & (CQ_R_RECV | CQ_R_PERSISTENT)) == 0 || (r.what & CQ_R_PROC_NULL))
		return;
	cq_req_end(&cq.requests, key);
	if (cq.hash != CQ_ALGORITHM_NONE)
		cq_buffer_forget(r.template_ != 0 ? r.template_ : r.serial);
}

void cq_request_freed_unseen(MPI_Request request)
{
	if (is_recording())
		end_unseen(CQ_KEY(request));
}

/* The thread's own scratch memory belongs to the call in progress. */
cq_unseen cq_unseen_begin(cq_array a)
{
	cq_unseen u = {.n = is_recording() && a.n > 0 ? a.n : 0};
	if (u.n > (int)(sizeof u.few / sizeof *u.few) && (u.keys = cq_pages((size_t)u.n * sizeof *u.keys)) == NULL)
		u.n = 0;
	uint64_t *keys = u.keys != NULL ? u.keys : u.few;
	for (int i = 0; i < u.n; i++)
		keys[i] = key_of(a, i);
	return u;
}

void cq_unseen_end(cq_unseen *u, cq_array a)
{
	const uint64_t *keys = u->keys != NULL ? u->keys : u->few;
	for (int i = 0; i < u->n; i++) {
		if (is_null(a, i))
			end_unseen(keys[i]);
	}
	if (u->keys != NULL)
		cq_pages_free(u->keys, (size_t)u->n * sizeof *u->keys);
}

/* MPI_Cancel. */
void cq_request_begin(cq_thread *t, int id, MPI_Request request)
{
	uint32_t serial = request == MPI_REQUEST_NULL ? 0 : cq_req_peek(request).serial;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->req = serial;
	cq_mpi_begins(t);
}

void cq_request_free_begin(cq_thread *t, int id, MPI_Request request)
{
	cq_req r = cq_req_end(&cq.requests, CQ_KEY(request));
	if (cq.hash != CQ_ALGORITHM_NONE)
		cq_buffer_forget(r.template_ != 0 ? r.template_ : r.serial);
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->req = r.serial != 0 ? r.serial : r.template_;
	cq_mpi_begins(t);
}

/* The serial of the call that made a persistent request; 0 if it was not recorded. */
uint32_t cq_template_of(MPI_Request request)
{
	return request == MPI_REQUEST_NULL ? 0 : cq_req_peek(request).template_;
}

void cq_start_begin(cq_thread *t, int id, const void *requests, int n, int fortran)
{
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	if (CQ_UNLIKELY(cq.hash != CQ_ALGORITHM_NONE))
		cq_starts_hash(t, requests, n, fortran);
	cq_mpi_begins(t);
}

/* Gives a started request a new serial. template_ is 0 in the result if its constructor was not recorded. */
static cq_req start(MPI_Request request)
{
	cq_req r = {0, 0, 0, 0};
	cq_reqslot *s;
	cq_reqtab *held = cq_req_hold(&cq.requests, CQ_KEY(request), &s);
	if (s->first.template_ != 0) {
		s->first.serial = cq_serial();
		r = s->first;
	}
	cq_req_release(held);
	return r;
}

void cq_start_end(cq_thread *t, int err, const void *requests, int n, int fortran)
{
	cq_start slot;
	memset(&slot, 0, sizeof slot);
	cq_mpi_ends(t);
	for (int i = 0; err == MPI_SUCCESS && i < n; i++) {
		cq_req r = start(fortran ? CQ_REQUEST(((const MPI_Fint *)requests)[i]) : ((const MPI_Request *)requests)[i]);
		if (r.template_ == 0)
			continue;
		if (t->call->call == CQ_Start)
			t->call->req = r.serial;
		if (CQ_UNLIKELY(cq.hash != CQ_ALGORITHM_NONE))
			cq_start_hash_put(t, i, r.serial);
		slot.start[slot.n].req = r.serial;
		slot.start[slot.n++].template_ = r.template_;
		slot.kind = CQ_START;
		if (slot.n == 7) {
			*(cq_start *)cq_take(t) = slot;
			memset(&slot, 0, sizeof slot);
		}
	}
	if (slot.n != 0)
		*(cq_start *)cq_take(t) = slot;
	cq_close(t, err);
}
