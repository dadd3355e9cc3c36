/* The recorders that are not hot; see recorders.h. */
#include "recorders.h"

#include "sink.h"

void cq_wide_put(cq_thread *t, int what, int64_t value)
{
	cq_wide *w = cq_take(t);
	memset(w, 0, sizeof *w);
	w->what = (uint16_t)what;
	w->value = value;
	w->kind = CQ_WIDE;
}

/* Several completed requests: entries are gathered two to a slot. */
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
		e.bytes = cq_status_bytes(st); /* nothing else in it is known to be set */
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

static void done_put(done_list *l, cq_req r, const MPI_Status *st)
{
	if (r.serial == 0)
		return;
	cq_verify(l->t, r, st);
	l->slot.kind = CQ_DONE;
	l->slot.done[l->slot.n++] = done_entry(r, st);
	if (l->slot.n == 2)
		done_flush(l);
}

/* The i-th request of an array, which has ended. */
static cq_req take_at(cq_thread *t, int i, uint64_t key)
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

/* What was taken before the call and has not ended. */
static void keep_rest(cq_thread *t, const uint64_t *keys)
{
	const cq_req *claimed = t->infos.p;
	for (int i = t->claims - 1; i >= 0; i--) {
		if (claimed[i].serial != 0)
			cq_req_put_back(&cq.requests, keys[i], claimed[i]);
	}
	t->claims = 0;
}

/* Waitany and Testany. */

static int is_null(cq_array a, int i)
{
	if (a.fortran)
		return CQ_REQUEST(((const MPI_Fint *)a.p)[i]) == MPI_REQUEST_NULL;
	return ((const MPI_Request *)a.p)[i] == MPI_REQUEST_NULL;
}

static void any_record(cq_thread *t, cq_call *c, int index, const uint64_t *keys, const MPI_Status *st)
{
	if (index == MPI_UNDEFINED || index < 0 || keys == NULL)
		return;
	cq_req r = take_at(t, index, keys[index]);
	c->req = r.serial;
	cq_got(c, r, st);
	cq_verify(t, r, st);
}

/* After an error: the one that ended by it is null now, and its handle can come again. */
static void any_failed(cq_thread *t, cq_call *c, cq_array a, const uint64_t *keys)
{
	for (int i = 0; keys != NULL && i < a.n; i++) {
		if (keys[i] == CQ_KEY(MPI_REQUEST_NULL) || !is_null(a, i))
			continue;
		cq_req r = take_at(t, i, keys[i]);
		c->req = r.serial;
		c->flags |= CQ_F_NO_STATUS;
		cq_verify(t, r, NULL);
		return;
	}
}

void cq_waitany_begin(cq_thread *t, int id)
{
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	cq_go(t, c);
}

void cq_waitany_end(cq_thread *t, int err, int index, cq_array a, const uint64_t *keys, const MPI_Status *st)
{
	cq_back(t);
	if (err == MPI_SUCCESS)
		any_record(t, t->call, index, keys, st);
	else
		any_failed(t, t->call, a, keys);
	keep_rest(t, keys);
	cq_close(t, err);
}

void cq_any_end(cq_thread *t, int id, int err, uint64_t compute, int flag, int index, cq_array a, const uint64_t *keys, const MPI_Status *st)
{
	cq_back(t);
	if (!flag && err == MPI_SUCCESS) {
		keep_rest(t, keys);
		cq_poll_failed(t, compute);
		return;
	}
	cq_call *c = cq_poll_open(t, id, compute);
	if (err == MPI_SUCCESS)
		any_record(t, c, index, keys, st);
	else
		any_failed(t, c, a, keys);
	keep_rest(t, keys);
	cq_close(t, err);
}

/* Waitall and Testall. */

/* After an error some requests of the array are complete and some are not. */
static int completed(int err, cq_array a, int i, cq_req r, const MPI_Status *st)
{
	if (err == MPI_SUCCESS)
		return 1;
	if (st != NULL && st->MPI_ERROR == MPI_ERR_PENDING)
		return 0;
	return (r.what & CQ_R_PERSISTENT) || is_null(a, i);
}

/* The requests are taken before the call: it is certain to complete them, and their handles can be given to another
 * thread's requests before it returns. */
void cq_waitall_begin(cq_thread *t, int id, cq_array a)
{
	const uint64_t *keys = cq_keys(t, a);
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
	if (n > 0) { /* for a reader of a call that never returns */
		c->req = lowest;
		c->tag = (int32_t)highest;
		c->count = n;
	}
	cq_go(t, c);
}

void cq_waitall_end(cq_thread *t, int err, cq_array a, const MPI_Status *st)
{
	done_list l = {t, {0}};
	cq_req *r = t->infos.p;
	cq_back(t);
	st = cq_statuses_got(t, st);
	t->call->req = 0;
	t->call->tag = CQ_NULL32;
	t->call->count = CQ_NULL64;
	for (int i = 0; i < t->claims; i++) {
		const MPI_Status *s = st != NULL ? st + i : NULL;
		if (CQ_UNLIKELY(!completed(err, a, i, r[i], s)))
			continue;
		done_put(&l, r[i], s);
		r[i].serial = 0;
	}
	if (CQ_UNLIKELY(err != MPI_SUCCESS))
		keep_rest(t, t->keys.p);
	t->claims = 0;
	done_flush(&l);
	cq_close(t, err);
}

void cq_testall_end(cq_thread *t, int id, int err, uint64_t compute, int flag, cq_array a, const uint64_t *keys, const MPI_Status *st)
{
	done_list l = {t, {0}};
	cq_back(t);
	st = cq_statuses_got(t, st);
	if (!flag && err == MPI_SUCCESS) {
		keep_rest(t, keys);
		cq_poll_failed(t, compute);
		return;
	}
	cq_poll_open(t, id, compute);
	for (int i = 0; keys != NULL && i < a.n; i++) {
		if (err != MPI_SUCCESS && !is_null(a, i))
			continue;
		done_put(&l, take_at(t, i, keys[i]), st != NULL ? st + i : NULL);
	}
	keep_rest(t, keys);
	done_flush(&l);
	cq_close(t, err);
}

/* Waitsome and Testsome. */

static void some_record(cq_thread *t, int err, int n, const int *indices, int base, const uint64_t *keys, const MPI_Status *st)
{
	done_list l = {t, {0}};
	for (int i = 0; n != MPI_UNDEFINED && keys != NULL && i < n; i++) {
		const MPI_Status *s = st != NULL && (err == MPI_SUCCESS || st[i].MPI_ERROR == MPI_SUCCESS) ? st + i : NULL;
		done_put(&l, take_at(t, indices[i] - base, keys[indices[i] - base]), s);
	}
	done_flush(&l);
}

/* Whether outcount says anything: it does for errors that are in the statuses. */
static int some_valid(int err)
{
	int class = MPI_SUCCESS;
	if (err != MPI_SUCCESS)
		cq_p.Error_class(err, &class);
	return class == MPI_SUCCESS || class == MPI_ERR_IN_STATUS;
}

void cq_waitsome_end(cq_thread *t, int err, int n, const int *indices, int base, const uint64_t *keys, const MPI_Status *st)
{
	cq_back(t);
	st = cq_statuses_got(t, st);
	if (some_valid(err))
		some_record(t, err, n, indices, base, keys, st);
	keep_rest(t, keys);
	cq_close(t, err);
}

void cq_testsome_end(cq_thread *t, int id, int err, uint64_t compute, int n, const int *indices, int base, const uint64_t *keys, const MPI_Status *st)
{
	cq_back(t);
	st = cq_statuses_got(t, st);
	if (err == MPI_SUCCESS && n == 0) {
		keep_rest(t, keys);
		cq_poll_failed(t, compute);
		return;
	}
	cq_poll_open(t, id, compute);
	if (some_valid(err))
		some_record(t, err, n, indices, base, keys, st);
	keep_rest(t, keys);
	cq_close(t, err);
}

/* Calls on one request that do not complete it. */

cq_req cq_req_peek(MPI_Request request)
{
	cq_reqslot *s;
	cq_reqtab *held = cq_req_hold(&cq.requests, CQ_KEY(request), &s);
	cq_req r = s->first;
	cq_req_release(held);
	return r;
}

void cq_get_status_end(cq_thread *t, int id, int err, uint64_t compute, int flag, MPI_Request request, const MPI_Status *st)
{
	cq_back(t);
	if (!flag && err == MPI_SUCCESS) {
		cq_poll_failed(t, compute);
		return;
	}
	cq_call *c = cq_poll_open(t, id, compute);
	if (err == MPI_SUCCESS) {
		cq_req r = cq_req_peek(request);
		c->req = r.serial;
		cq_got(c, r, st);
	}
	cq_close(t, err);
}

/* Cancel, Start and Startall. */
void cq_request_begin(cq_thread *t, int id, MPI_Request request)
{
	uint32_t serial = request == MPI_REQUEST_NULL ? 0 : cq_req_peek(request).serial;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->req = serial;
	cq_go(t, c);
}

void cq_request_free_begin(cq_thread *t, int id, MPI_Request request)
{
	cq_req r = cq_req_end(&cq.requests, CQ_KEY(request));
	if (cq.hash != CQ_ALGORITHM_NONE)
		cq_unpost(r.template_ != 0 ? r.template_ : r.serial);
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->req = r.serial != 0 ? r.serial : r.template_;
	cq_go(t, c);
}

/* The serial of the call that made a persistent request; 0: none that was recorded. */
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
	cq_go(t, c);
}

/* A new serial for a started request; template_ 0 in what is returned: it was made by a call that is not recorded. */
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
	cq_back(t);
	for (int i = 0; err == MPI_SUCCESS && i < n; i++) {
		cq_req r = start(fortran ? CQ_REQUEST(((const MPI_Fint *)requests)[i]) : ((const MPI_Request *)requests)[i]);
		if (r.template_ == 0)
			continue;
		if (t->call->call == CQ_Start)
			t->call->req = r.serial;
		if (CQ_UNLIKELY(cq.hash != CQ_ALGORITHM_NONE))
			cq_started(t, i, r.serial);
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

/* Probes. */

void cq_probe_begin(cq_thread *t, int id, int source, int tag, MPI_Comm comm)
{
	int32_t number = cq_comm_of(t, comm)->number;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->flags = cq_posted_flags(source, tag);
	c->comm = number;
	c->peer = cq_rank_or_null(source);
	c->tag = cq_tag_or_null(tag);
	cq_go(t, c);
}

static void probed(cq_call *c, const MPI_Status *st)
{
	c->peer = cq_rank_or_null(st->MPI_SOURCE);
	c->tag = cq_tag_or_null(st->MPI_TAG);
	c->count = cq_status_bytes(st);
}

static uint32_t message_add(MPI_Message m)
{
	if (m == MPI_MESSAGE_NO_PROC || m == MPI_MESSAGE_NULL)
		return 0;
	return cq_req_add(&cq.messages, CQ_KEY(m), CQ_R_RECV);
}

void cq_probe_end(cq_thread *t, int err, const MPI_Status *st)
{
	cq_back(t);
	if (err == MPI_SUCCESS)
		probed(t->call, st);
	cq_close(t, err);
}

void cq_mprobe_end(cq_thread *t, int err, MPI_Message message, const MPI_Status *st)
{
	cq_back(t);
	if (err == MPI_SUCCESS) {
		probed(t->call, st);
		t->call->req = message_add(message);
	}
	cq_close(t, err);
}

void cq_iprobe_end(cq_thread *t, int id, int err, uint64_t compute, int flag, int source, int tag, MPI_Comm comm, MPI_Message message, int matched, const MPI_Status *st)
{
	cq_back(t);
	if (!flag && err == MPI_SUCCESS) {
		cq_poll_failed(t, compute);
		return;
	}
	int32_t number = cq_comm_of(t, comm)->number;
	cq_call *c = cq_poll_open(t, id, compute);
	c->flags = cq_posted_flags(source, tag);
	c->comm = number;
	if (err == MPI_SUCCESS) {
		probed(c, st);
		c->req = matched ? message_add(message) : 0;
	}
	cq_close(t, err);
}

uint32_t cq_mrecv_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, MPI_Message message)
{
	int32_t number = cq_type_of(t, type)->number;
	uint32_t serial = message == MPI_MESSAGE_NO_PROC ? 0 : cq_req_take(&cq.messages, CQ_KEY(message)).serial;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->flags = message == MPI_MESSAGE_NO_PROC ? CQ_F_PROC_NULL : 0;
	c->dtype = number;
	c->count = count;
	c->buf = cq_address(buf);
	cq_into(t, buf, count, type);
	cq_go(t, c);
	return serial;
}

void cq_mrecv_end(cq_thread *t, int err, uint32_t message, const MPI_Status *st)
{
	cq_back(t);
	cq_wide_put(t, 2, message);
	if (err == MPI_SUCCESS)
		cq_received(t, st);
	else
		t->call->flags |= CQ_F_NO_STATUS;
	if (cq.verify && err == MPI_SUCCESS && !(t->call->flags & CQ_F_PROC_NULL))
		cq_arrived(t, &t->in, cq_status_bytes(st), 0);
	cq_close(t, err);
}

void cq_imrecv_end(cq_thread *t, int err, uint32_t message, MPI_Request r)
{
	cq_back(t);
	cq_wide_put(t, 2, message);
	if (err == MPI_SUCCESS)
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), t->call->flags & CQ_F_PROC_NULL ? CQ_R_RECV | CQ_R_PROC_NULL : CQ_R_RECV);
	if (cq.verify && err == MPI_SUCCESS)
		cq_post(t, t->call->req, 1);
	cq_close(t, err);
}

/* Sends that receive as well. */

static void side_put(cq_thread *t, int err, cq_receive r, const MPI_Status *st)
{
	int32_t number = cq_type_of(t, r.type)->number;
	cq_side *s = cq_take(t);
	memset(s, 0, sizeof *s);
	s->flags = cq_posted_flags(r.source, r.tag);
	s->dtype = number;
	s->peer = cq_rank_or_null(r.source);
	s->tag = cq_tag_or_null(r.tag);
	s->count = r.count;
	s->bytes = CQ_NULL64;
	s->buf = cq_address(r.buf);
	if (err != MPI_SUCCESS) {
		s->flags |= CQ_F_NO_STATUS;
	} else if (st != NULL) {
		s->peer = cq_rank_or_null(st->MPI_SOURCE);
		s->tag = cq_tag_or_null(st->MPI_TAG);
		s->bytes = cq_status_bytes(st);
	}
	s->kind = CQ_SIDE;
}

void cq_sendrecv_end(cq_thread *t, int err, cq_receive r, const MPI_Status *st)
{
	cq_back(t);
	t->call->req = 0;
	side_put(t, err, r, st);
	cq_into(t, r.buf, r.count, r.type);
	if (cq.verify && err == MPI_SUCCESS && st->MPI_SOURCE != MPI_PROC_NULL && r.source != MPI_PROC_NULL)
		cq_arrived(t, &t->in, cq_status_bytes(st), 0);
	cq_close(t, err);
}

void cq_isendrecv_end(cq_thread *t, int err, cq_receive r, MPI_Request request)
{
	cq_back(t);
	side_put(t, err, r, NULL);
	CQ_VIRTUAL(t->vt.made = request;)
	uint32_t what = r.source == MPI_PROC_NULL ? CQ_R_RECV | CQ_R_PROC_NULL : cq.isendrecv_status ? CQ_R_RECV : 0;
	if (err == MPI_SUCCESS)
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(request), what);
	cq_into(t, r.buf, r.count, r.type);
	if (cq.verify && err == MPI_SUCCESS && (what & CQ_R_RECV))
		cq_post(t, t->call->req, 1);
	cq_close(t, err);
}

/* Communicators. */

uint64_t cq_comm_new_begin(cq_thread *t, int id, MPI_Comm parent, int counted)
{
	cq_comm *m = cq_comm_of(t, parent);
	uint64_t instance = counted ? m->instance++ : 0;
	int32_t number = m->number;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->comm = number;
	cq_go(t, c);
	return instance;
}

/* The n-th collective operation on a communicator, of a constructor; rbytes is the size of a window's memory. */
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

static void made_put(cq_thread *t, MPI_Comm made, MPI_Comm like, int kind, int counted, uint64_t instance, int key)
{
	int32_t parent = t->call->comm;
	if (counted)
		cq_instance_put(t, instance, CQ_NULL64);
	CQ_VIRTUAL(t->vt.counted_new = counted && key != -1;) /* accept and connect are counted on two communicators */
	int32_t number = cq_comm_define(t, made, like, kind, parent, instance, key);
	t->call->count = number;
}

/* The end of a constructor but for cq_close, where more is to be written. */
void cq_comm_new_made(cq_thread *t, int err, MPI_Comm made, int kind, int counted, uint64_t instance, int key)
{
	cq_back(t);
	if (err == MPI_SUCCESS)
		made_put(t, made, made, kind, counted, instance, key);
	else if (counted) /* those that follow on the communicator are counted behind it */
		cq_instance_put(t, instance, CQ_NULL64);
}

void cq_comm_new_end(cq_thread *t, int err, MPI_Comm made, int kind, int counted, uint64_t instance, int key)
{
	cq_comm_new_made(t, err, made, kind, counted, instance, key);
	cq_close(t, err);
}

void cq_comm_idup_end(cq_thread *t, int err, MPI_Comm made, MPI_Comm parent, uint64_t instance, MPI_Request r)
{
	cq_back(t);
	if (err == MPI_SUCCESS) {
		made_put(t, made, parent, 2 /* dup */, CQ_COUNTED, instance, 0);
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), 0);
	} else {
		cq_instance_put(t, instance, CQ_NULL64);
	}
	cq_close(t, err);
}

/* Init aside, a call that has at most a communicator. */
void cq_plain_begin(cq_thread *t, int id, MPI_Comm comm)
{
	int32_t number = comm == MPI_COMM_NULL ? CQ_NULL32 : cq_comm_of(t, comm)->number;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->comm = number;
	cq_go(t, c);
}

void cq_comm_free_begin(cq_thread *t, int id, MPI_Comm comm)
{
	int32_t number = cq_comm_of(t, comm)->number;
	cq_comm_drop(CQ_KEY(comm));
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->comm = number;
	cq_go(t, c);
}

void cq_comm_free_end(cq_thread *t, int err)
{
	cq_back(t);
	if (err == MPI_SUCCESS && t->call->comm != CQ_NULL32)
		cq_def_put(t, CQ_DEF_COMM_FREE, t->call->comm, NULL, 0);
	cq_close(t, err);
}

/* The length of a Fortran string without the blanks that fill it. */
size_t cq_trimmed(const char *s, size_t n)
{
	while (n > 0 && s[n - 1] == ' ')
		n--;
	return n;
}

/* A string of the program's in C; it may be NULL where the call fails. */
size_t cq_length(const char *s)
{
	return s != NULL ? strlen(s) : 0;
}

/* The text that the call carries. */
void cq_label_put(cq_thread *t, const char *s, size_t n)
{
	const size_t most = 4096;
	cq_def_put(t, CQ_DEF_LABEL, 0, s, n < most ? n : most);
}
