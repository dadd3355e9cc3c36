/* Where records go: a file per thread, mapped in windows that grow, or written through a buffer where the file system can
 * neither fallocate nor map. Nothing here allocates from the heap. */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_BYTES ((size_t)1 << 20)
#define CHUNK_BYTES ((size_t)16 << 20)
#define LEAST_BYTES ((size_t)64 << 10)
#define TINY_BYTES ((size_t)8 << 10)
#define BUFFER_BYTES ((size_t)1 << 20)
#define COUNT_BYTES ((size_t)64 << 10)
#define STREAM_BYTES ((size_t)64 << 10)
#define LIMITED (-1) /* among errnos: the file is as long as COMMQ_MAX_SPOOL says */

/* A file system without fallocate or shared mappings says one of these. */
static int unsupported(int e)
{
	return e == EOPNOTSUPP || e == ENOSYS || e == EINVAL || e == ENODEV || e == EPERM;
}

/* Whether a file may be so long: beyond its limit there is a signal, which is not the program's. */
static int too_long(int64_t end)
{
	struct rlimit r;
	return getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur != RLIM_INFINITY && (uint64_t)end > r.rlim_cur;
}

/* Whether fd is still our file: the program can have closed it and opened one of its own. */
static int ours(const cq_thread *t)
{
	struct stat s;
	CQ_VIRTUAL(if (t->streamed) return 1;)
	return t->fd >= 0 && fstat(t->fd, &s) == 0 && s.st_dev == t->file_dev && s.st_ino == t->file_ino;
}

static int allocate(int fd, int64_t off, size_t bytes)
{
	if (too_long(off + (int64_t)bytes))
		return EFBIG;
	while (fallocate(fd, 0, off, (off_t)bytes) != 0) {
		if (errno != EINTR)
			return errno;
	}
	return 0;
}

/* Writes n bytes at off, or as many of them as there is room for: *done. */
static int write_most(int fd, const void *p, size_t n, int64_t off, size_t *done)
{
	const char *b = p;
	int long_ = too_long(off + (int64_t)n);
	*done = 0;
	while (long_ && n > 0 && too_long(off + (int64_t)n))
		n = n / CQ_SLOT_BYTES * CQ_SLOT_BYTES == n ? n - CQ_SLOT_BYTES : n / CQ_SLOT_BYTES * CQ_SLOT_BYTES;
	while (*done < n) {
		ssize_t w = pwrite(fd, b + *done, n - *done, off + (int64_t)*done);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? errno : ENOSPC;
		*done += (size_t)w;
	}
	return long_ ? EFBIG : 0;
}

static int write_all(int fd, const void *p, size_t n, int64_t off)
{
	size_t done;
	return write_most(fd, p, n, off, &done);
}

/* The same of a thread's records, which a simulator rank may get; before p there is room for an event. */
static int put_most(cq_thread *t, const void *p, size_t n, int64_t off, size_t *done)
{
#if CQ_SIM
	if (t->streamed) {
		cq_sim_records(t, p, n, off);
		*done = n;
		return 0;
	}
#endif
	return write_most(t->fd, p, n, off, done);
}

static int put(cq_thread *t, const void *p, size_t n, int64_t off)
{
	size_t done;
	return put_most(t, p, n, off, &done);
}

/* Whether a CALL slot is in use: also before its kind is set, when a call has slots of before it is made. */
static int in_progress(const cq_thread *t)
{
	return t->call != NULL && t->call != &t->trash && t->call->t1 == 0;
}

static int within(const void *p, const uint8_t *base, size_t bytes)
{
	return base != NULL && (const uint8_t *)p >= base && (const uint8_t *)p < base + bytes;
}

void cq_clock_pair(uint64_t *tick, int64_t *ns)
{
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < 5; i++) {
		uint64_t a = cq_tick(), m = cq_monotonic(), b = cq_tick();
		if (b - a < best) {
			best = b - a;
			*tick = a + (b - a) / 2;
			*ns = (int64_t)m;
		}
	}
}

void cq_head_clock(cq_thread *t)
{
	uint64_t tick;
	int64_t ns;
	cq_clock_pair(&tick, &ns);
	CQ_VIRTUAL(if (cq_sim_on) { tick = (uint64_t)t->vt.now; ns = t->vt.now / 1000; })
	t->head->clock1_tick = tick;
	t->head->clock1_ns = ns;
}

/* Puts a DEF slot and its payload. */
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

void cq_clock_def(cq_thread *t)
{
	struct {
		uint64_t tick;
		int64_t ns;
	} pair;
	cq_head_clock(t);
	pair.tick = t->head->clock1_tick;
	pair.ns = t->head->clock1_ns;
	cq_def_put(t, CQ_DEF_CLOCK, 0, &pair, sizeof pair);
}

/* Slots used so far. */
static uint64_t slots_used(const cq_thread *t)
{
	return (uint64_t)(t->window_off + (t->next - t->window) - CQ_HEADER_BYTES) / CQ_SLOT_BYTES;
}

/* Nothing more can be written: the call in progress is taken back, later ones go to the trash and are counted. */
static void die(cq_thread *t, int e)
{
	if (in_progress(t))
		t->call->kind = CQ_END;
	if (e == LIMITED)
		t->head->limited = 1;
	else
		cq_complain("write", e, "recording stops there and the program goes on");
	t->head->slots = slots_used(t);
	t->dead = 1;
	t->call = &t->trash;
	cq_due(t, CQ_DUE_DROP);
	t->next = t->end = t->window;
}

/* Maps [off, off + bytes) of the file, allocated before, as the next window. */
static int window_map(cq_thread *t, size_t bytes)
{
	void *p = cq_file_pages(bytes, PROT_READ | PROT_WRITE, t->fd, t->size);
	if (p == NULL)
		return errno;
	t->window = p;
	t->window_bytes = bytes;
	t->window_off = t->size;
	t->size += (int64_t)bytes;
	t->next = p;
	t->end = t->next + bytes;
	return 0;
}

/* Lets go of the window that is full, unless the call in progress has its slot there. */
static void window_leave(cq_thread *t)
{
	int here = in_progress(t) && within(t->call, t->window, t->window_bytes);
	int there = in_progress(t) && within(t->call, t->held, t->held_bytes);
	if (!here && !there)
		t->call = &t->trash; /* it is over, and its window may go */
	if (t->held != NULL && !there) {
		cq_pages_free(t->held, t->held_bytes);
		t->held = NULL;
	}
	if (here) {
		t->held = t->window;
		t->held_bytes = t->window_bytes;
	} else {
		cq_pages_free(t->window, t->window_bytes);
	}
	t->window = t->next = t->end = NULL;
}

/* How many of so many bytes at the end of a mapped file its limit allows, in pages. */
static size_t within_limit(int64_t size, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (cq.limit != 0 && (uint64_t)size + bytes > cq.limit)
		bytes = cq.limit > (uint64_t)size ? (size_t)(cq.limit - (uint64_t)size) : 0;
	return bytes & ~(page - 1);
}

/* Allocates *bytes at the end of the file, or fewer where there is no room, but least. */
static int allocate_most(cq_thread *t, size_t *bytes, size_t least)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int e;
	while (((e = allocate(t->fd, t->size, *bytes)) == ENOSPC || e == EFBIG || e == EDQUOT) && *bytes > least)
		*bytes = (*bytes / 2 + page - 1) & ~(page - 1);
	return e;
}

static int grow_mapped(cq_thread *t)
{
	size_t bytes = within_limit(t->size, (size_t)t->size < CHUNK_BYTES ? (size_t)t->size : CHUNK_BYTES);
	if (bytes == 0)
		return LIMITED;
	if (!ours(t))
		return EBADF;
	int e = allocate_most(t, &bytes, LEAST_BYTES);
	if (e != 0)
		return e;
	window_leave(t);
	cq_due(t, CQ_DUE_CLOCK);
	return window_map(t, bytes);
}

/* The buffer may be used as far as the file may grow. */
static void buffer_end(cq_thread *t)
{
	size_t bytes = t->window_bytes;
	if (!t->counted && CQ_FILED(t) && cq.limit != 0 && (uint64_t)t->window_off + bytes > cq.limit)
		bytes = cq.limit > (uint64_t)t->window_off ? (size_t)(cq.limit - (uint64_t)t->window_off) : 0;
	t->end = t->window + bytes / CQ_SLOT_BYTES * CQ_SLOT_BYTES;
}

/* Calls in the buffer from a place on. */
static uint64_t calls_from(const cq_thread *t, const uint8_t *p)
{
	uint64_t n = 0;
	for (; p < t->next; p += CQ_SLOT_BYTES)
		n += ((const cq_call *)(const void *)p)->kind == CQ_CALL;
	return n;
}

/* The file ends behind the last whole call of those in the buffer that were written: the others are dropped. */
static void keep_written(cq_thread *t, size_t written)
{
	const uint8_t *cut = t->window;
	for (const uint8_t *p = t->window + CQ_SLOT_BYTES; p <= t->next && p <= t->window + written; p += CQ_SLOT_BYTES) {
		if (p == t->next || ((const cq_call *)(const void *)p)->kind == CQ_CALL)
			cut = p;
	}
	if (in_progress(t) && within(t->call, t->window, t->window_bytes) && cut > (uint8_t *)t->call)
		cut = (uint8_t *)t->call;
	t->head->dropped += calls_from(t, cut);
	if (in_progress(t) && t->call->kind == CQ_CALL)
		t->head->dropped--; /* it counts itself when it returns */
	t->next = t->window + (cut - t->window);
}

/* The buffer cannot be written out, or not all of it. */
static void die_buffered(cq_thread *t, int e, size_t written)
{
	int64_t good;
	if (t->call_off != 0) { /* the call in progress fills the buffer and more */
		good = t->call_off;
		t->next = t->window;
		t->window_off = good;
	} else {
		keep_written(t, written);
		good = t->window_off + (t->next - t->window);
	}
	t->call_off = 0;
	__atomic_and_fetch(&t->due, ~(uint64_t)CQ_DUE_REWRITE, __ATOMIC_RELAXED);
	die(t, e);
	t->window_off = good;
	if (e != EBADF && ftruncate(t->fd, good) == 0)
		(void)put(t, t->head, sizeof *t->head, 0);
}

/* The buffer moves on: what is before to has been written. */
static void buffer_move(cq_thread *t, uint8_t *to)
{
	size_t left = (size_t)(t->next - to);
	t->window_off += to - t->window;
	memmove(t->window, to, left);
	memset(t->window + left, 0, (size_t)(t->next - t->window) - left); /* a slot is nothing until its kind is set */
	t->next = t->window + left;
	buffer_end(t);
	t->flushed = cq_tick();
}

/* Writes the buffer out, but keeps the call in progress in it; a call that is larger than the buffer leaves it too, and its
 * CALL slot is then rewritten in the file when it returns. */
static void grow_buffered(cq_thread *t)
{
	uint8_t *to = t->next;
	size_t written = 0;
	int keep = in_progress(t) && within(t->call, t->window, t->window_bytes), e = 0;
	CQ_VIRTUAL(if (t->call_off != 0 || (keep && (uint8_t *)t->call == t->window)) cq_sim_leaving(t);)
	if (keep && (uint8_t *)t->call > t->window) {
		to = (uint8_t *)t->call;
	} else if (keep) {
		t->call_off = t->window_off;
		t->trash = *t->call;
		cq_due(t, CQ_DUE_REWRITE);
	}
	if (t->counted)
		t->head->calls += calls_from(t, t->window) - (keep && to == (uint8_t *)t->call && t->call->kind == CQ_CALL);
	else
		e = ours(t) ? put_most(t, t->window, (size_t)(to - t->window), t->window_off, &written) : EBADF;
	if (e != 0) {
		die_buffered(t, e, written);
		return;
	}
	buffer_move(t, to);
	if (t->call_off == 0)
		t->call = keep ? (cq_call *)t->window : &t->trash;
	else
		t->call = &t->trash;
	if (t->next >= t->end) /* COMMQ_MAX_SPOOL */
		die_buffered(t, LIMITED, (size_t)(t->next - t->window));
}

/* Whoever moves the buffer or writes it out holds it: its thread, another one that ends the process, a signal handler. */
static void hold(cq_thread *t)
{
	cq_spin(&t->busy);
}

/* The same, but it gives up: the thread that exits may have been interrupted while it moved its buffer. */
static int hold_soon(cq_thread *t)
{
	for (int i = 0; __atomic_exchange_n(&t->busy, 1, __ATOMIC_ACQUIRE) != 0; i++) {
		if (i == 10000)
			return 0;
		sched_yield();
	}
	return 1;
}

static void release(cq_thread *t)
{
	__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
}

void *cq_take_slow(cq_thread *t)
{
	int before = errno;
	if (!t->dead && t->buffered) {
		hold(t);
		grow_buffered(t);
		release(t);
	} else if (!t->dead) {
		int e = grow_mapped(t);
		if (e != 0)
			die(t, e);
	}
	errno = before;
	if (t->dead)
		return &t->trash;
	uint8_t *p = t->next;
	t->next += CQ_SLOT_BYTES;
	return p;
}

void cq_rewrite(cq_thread *t)
{
	t->trash.t1 = CQ_T1(t);
	if (!t->counted && ours(t))
		(void)put(t, &t->trash, sizeof t->trash, t->call_off);
	t->call_off = 0;
}

static int open_mapped(cq_thread *t)
{
	size_t bytes = within_limit(0, FIRST_BYTES);
	int e = allocate_most(t, &bytes, TINY_BYTES);
	if (e != 0)
		return e;
	long page = sysconf(_SC_PAGESIZE);
	void *head = cq_file_pages((size_t)page, PROT_READ | PROT_WRITE, t->fd, 0);
	if (head == NULL)
		return errno;
	t->head = head;
	e = window_map(t, bytes);
	if (e != 0) {
		cq_pages_free(head, (size_t)page);
		t->head = &t->own;
		return e;
	}
	t->next += CQ_HEADER_BYTES;
	return 0;
}

static int open_buffered(cq_thread *t)
{
	if (ftruncate(t->fd, 0) != 0)
		return errno;
	int e = write_all(t->fd, &t->own, sizeof t->own, 0);
	if (e != 0)
		return e;
	size_t bytes = cq.count_only ? COUNT_BYTES : BUFFER_BYTES;
	void *p = cq_pages(bytes);
	if (p == NULL)
		return errno;
	t->buffered = 1;
	t->counted = cq.count_only;
	t->head = &t->own;
	t->window = t->next = p;
	t->window_bytes = bytes;
	t->window_off = CQ_HEADER_BYTES;
	t->flushed = cq_tick();
	cq_due(t, CQ_DUE_TIMED);
	buffer_end(t);
	return 0;
}

#if CQ_SIM
/* The records go to a simulator rank, whose commq process writes the file; COMMQ_MAX_SPOOL does not bound it. */
static int open_streamed(cq_thread *t)
{
	size_t room = 128;
	uint8_t *p = cq_pages(STREAM_BYTES);
	if (p == NULL)
		return errno;
	t->fd = INT32_MAX; /* of no file */
	t->streamed = t->buffered = 1;
	t->counted = cq.count_only;
	t->own.limit = 0;
	t->head = &t->own;
	t->window = t->next = p + room;
	t->window_bytes = STREAM_BYTES - room;
	t->window_off = CQ_HEADER_BYTES;
	t->end = t->window + t->window_bytes;
	t->flushed = cq_tick();
	cq_due(t, CQ_DUE_TIMED);
	return put(t, &t->own, sizeof t->own, 0);
}
#endif

/* Creates the thread's file with the header in t->own; an errno on failure, and then nothing is left behind. */
int cq_sink_open(cq_thread *t)
{
	char path[sizeof cq.spool + 64];
	CQ_VIRTUAL(if (cq_sim_on) return open_streamed(t);)
	int n = snprintf(path, sizeof path, "%s/%016llx.%d.%d.cqs", cq.spool, (unsigned long long)cq.job, cq.rank, t->number);
	if (n < 0 || (size_t)n >= sizeof path)
		return ENAMETOOLONG;
	t->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (t->fd < 0)
		return errno;
	t->head = &t->own;
	struct stat s;
	if (fstat(t->fd, &s) == 0) {
		t->file_dev = s.st_dev;
		t->file_ino = s.st_ino;
	}
	int e = cq.force_write || cq.count_only ? EOPNOTSUPP : open_mapped(t);
	if (e == 0)
		*t->head = t->own;
	else if (unsupported(e))
		e = open_buffered(t);
	if (e != 0) {
		close(t->fd);
		unlink(path);
		t->fd = -1;
	}
	return e;
}

/* Writes what is in the buffer and the header, and changes nothing: the thread goes on as if it had not been. It may be in the
 * middle of a slot, which is then nothing yet, or of a call, which is written as not returned. */
static int write_out(cq_thread *t, size_t *written)
{
	int e = 0;
	uint64_t earlier = t->head->calls;
	*written = 0;
	t->flushed = cq_tick();
	if (t->counted)
		t->head->calls += calls_from(t, t->window);
	if (!t->dead && !t->counted)
		e = put_most(t, t->window, (size_t)(__atomic_load_n(&t->next, __ATOMIC_RELAXED) - t->window), t->window_off, written);
	if (e == 0 && !t->dead)
		t->head->slots = slots_used(t);
	(void)put(t, t->head, sizeof *t->head, 0);
	t->head->calls = earlier;
	return e;
}

/* Writes what is still in memory and the header; the thread can record on. Only the thread itself may find out here that
 * there is no room. */
void cq_sink_flush(cq_thread *t)
{
	size_t written;
	if (!t->buffered || !hold_soon(t))
		return;
	if (t->fd >= 0 && ours(t)) {
		int e = write_out(t, &written);
		if (e != 0 && t == cq_self())
			die_buffered(t, e, written);
	}
	release(t);
}

/* The same from a signal handler, for any thread. A buffer that someone is at is left to its thread: see CQ_DUE_FLUSH. */
void cq_sink_flush_now(cq_thread *t)
{
	size_t written;
	CQ_VIRTUAL(if (t->streamed) return;) /* MPI is not for signal handlers */
	if (!t->buffered || __atomic_exchange_n(&t->busy, 1, __ATOMIC_ACQUIRE) != 0)
		return;
	if (t->fd >= 0 && ours(t))
		(void)write_out(t, &written);
	release(t);
}

/* Counts what was used, for the header. */
void cq_sink_count(cq_thread *t)
{
	if (t->dead)
		return;
	t->head->slots = slots_used(t);
}

/* Flushes, cuts the file to what was used and closes it. The thread's later calls go to the trash. */
void cq_sink_close(cq_thread *t)
{
	int64_t used = t->window_off + (t->next - t->window);
	if (t->fd < 0)
		return;
	cq_sink_flush(t);
	int held = hold_soon(t); /* a signal handler must not write into what is opened in the file's place */
	if (ours(t)) {
		if (!t->buffered && !t->dead && ftruncate(t->fd, used) != 0)
			used = 0; /* the zeros at the end stay, which a reader expects after a crash anyway */
		if (CQ_FILED(t))
			close(t->fd);
	}
	t->own = *t->head;
	t->head = &t->own;
	t->fd = -1;
	if (held)
		release(t);
	t->dead = 1;
	t->next = t->end = t->window;
	t->call = &t->trash;
}

/* The thread ends: the file is closed and the memory given back, as far as no call is in progress in it. */
void cq_sink_leave(cq_thread *t)
{
	cq_header *head = t->head;
	if (t->fd < 0 || in_progress(t))
		return;
	cq_sink_close(t);
	cq_due(t, CQ_DUE_DROP);
	cq_pages_free(t->window, t->window_bytes);
	if (t->held != NULL)
		cq_pages_free(t->held, t->held_bytes);
	if (head != &t->own)
		cq_pages_free(head, (size_t)sysconf(_SC_PAGESIZE));
	t->window = t->held = t->next = t->end = NULL;
}

/* In a forked child: the file belongs to the parent. */
void cq_sink_disown(cq_thread *t)
{
	t->head = &t->own;
	t->fd = -1;
	t->dead = 1;
	t->due = 0;
	t->busy = 0;
	t->call_off = 0;
	t->next = t->end = t->window;
	t->call = &t->trash;
}
