/* The file behind a thread's records: packed (packed.c), mapped in windows that grow, or written through a buffer if the
 * file system cannot fallocate or map. In the build for simulator ranks records can go to the hooks instead. Nothing here
 * allocates from the heap. */
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
#define SUFFIX "cqs"

/* A file system without fallocate or shared mappings returns one of these errors. */
static int unsupported(int e)
{
	return e == EOPNOTSUPP || e == ENOSYS || e == EINVAL || e == ENODEV || e == EPERM;
}

/* Reports whether a file would exceed the process's limit on file sizes: beyond it the kernel sends a signal that the
 * program does not expect. */
static int too_long(int64_t end)
{
	struct rlimit r;
	return getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur != RLIM_INFINITY && (uint64_t)end > r.rlim_cur;
}

int cq_sink_owns(const cq_thread *t)
{
	struct stat s;
	if (t->streamed)
		return 1;
	return t->fd >= 0 && fstat(t->fd, &s) == 0 && s.st_dev == t->file_dev && s.st_ino == t->file_ino;
}

int cq_sink_allocate(int fd, int64_t off, size_t bytes)
{
	if (too_long(off + (int64_t)bytes))
		return EFBIG;
	while (fallocate(fd, 0, off, (off_t)bytes) != 0) {
		if (errno != EINTR)
			return errno;
	}
	return 0;
}

/* Writes n bytes at off, or as many as fit; sets *done to their number. */
static int write_most(int fd, const void *p, size_t n, int64_t off, size_t *done)
{
	const char *b = p;
	int too_big = too_long(off + (int64_t)n);
	*done = 0;
	while (too_big && n > 0 && too_long(off + (int64_t)n))
		n = n / CQ_SLOT_BYTES * CQ_SLOT_BYTES == n ? n - CQ_SLOT_BYTES : n / CQ_SLOT_BYTES * CQ_SLOT_BYTES;
	while (*done < n) {
		ssize_t w = pwrite(fd, b + *done, n - *done, off + (int64_t)*done);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? errno : ENOSPC;
		*done += (size_t)w;
	}
	return too_big ? EFBIG : 0;
}

int cq_sink_write(int fd, const void *p, size_t n, int64_t off)
{
	size_t done;
	return write_most(fd, p, n, off, &done);
}

/* The same for a thread's records, which may go to the hooks; the memory before p is reserved for them. */
static int put_most(cq_thread *t, const void *p, size_t n, int64_t off, size_t *done)
{
	if (t->streamed && cq_hooks != NULL) {
		cq_hooks->records(t, p, n, off);
		*done = n;
		return 0;
	}
	return write_most(t->fd, p, n, off, done);
}

static int put(cq_thread *t, const void *p, size_t n, int64_t off)
{
	size_t done;
	return put_most(t, p, n, off, &done);
}

/* Writing has become impossible: takes the call in progress back; later calls go to the trash and are counted. */
static void die(cq_thread *t, int e)
{
	if (cq_in_progress(t))
		t->call->kind = CQ_END;
	if (e == LIMITED)
		t->head->limited = 1;
	else
		cq_complain("write", e, "recording stops and the program goes on");
	t->head->slots = cq_slots_used(t);
	t->head->check = 0; /* it is of the header as it was before */
	t->dead = 1;
	t->call = &t->trash;
	cq_set_pending(t, CQ_PENDING_DROP);
	t->next = t->end = t->full = t->window;
}

/* Maps the next allocated bytes of the file as the next window. */
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
	t->full = t->next + bytes;
	cq_sum_due(t);
	return 0;
}

/* Unmaps the full window, unless the call in progress has its slot in it. */
static void window_leave(cq_thread *t)
{
	int here = cq_in_progress(t) && cq_within(t->call, t->window, t->window_bytes);
	int there = cq_in_progress(t) && cq_within(t->call, t->held, t->held_bytes);
	if (!here && !there)
		t->call = &t->trash; /* the call has returned, so its window may go */
	if (t->held != NULL && !there) {
		cq_pages_free(t->held, t->held_bytes);
		t->held = NULL;
	}
	if (here) {
		t->held = t->window;
		t->held_bytes = t->window_bytes;
		t->held_off = t->window_off;
	} else {
		cq_pages_free(t->window, t->window_bytes);
	}
	t->window = t->next = t->end = t->full = NULL;
}

/* How many of the given bytes COMMQ_MAX_SPOOL still allows at the end of a mapped file, in whole pages. */
static size_t within_limit(int64_t size, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (cq.limit != 0 && (uint64_t)size + bytes > cq.limit)
		bytes = cq.limit > (uint64_t)size ? (size_t)(cq.limit - (uint64_t)size) : 0;
	return bytes & ~(page - 1);
}

/* Allocates *bytes at the end of the file, or fewer if space is short, but at least least or a page. */
static int allocate_most(cq_thread *t, size_t *bytes, size_t least)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int e;
	while (((e = cq_sink_allocate(t->fd, t->size, *bytes)) == ENOSPC || e == EFBIG || e == EDQUOT) && *bytes > least) {
		size_t half = (*bytes / 2 + page - 1) & ~(page - 1);
		if (half == *bytes) /* one page, which may be larger than least */
			break;
		*bytes = half;
	}
	return e;
}

static int grow_mapped(cq_thread *t)
{
	size_t bytes = within_limit(t->size, (size_t)t->size < CHUNK_BYTES ? (size_t)t->size : CHUNK_BYTES);
	if (bytes == 0)
		return LIMITED;
	if (!cq_sink_owns(t))
		return EBADF;
	int e = allocate_most(t, &bytes, LEAST_BYTES);
	if (e != 0)
		return e;
	window_leave(t);
	cq_set_pending(t, CQ_PENDING_CLOCK);
	return window_map(t, bytes);
}

/* Sets the end of the buffer: it may fill as far as the file may grow. */
static void buffer_end(cq_thread *t)
{
	size_t bytes = t->window_bytes;
	if (!t->counted && !t->streamed && cq.limit != 0 && (uint64_t)t->window_off + bytes > cq.limit)
		bytes = cq.limit > (uint64_t)t->window_off ? (size_t)(cq.limit - (uint64_t)t->window_off) : 0;
	t->full = t->window + bytes / CQ_SLOT_BYTES * CQ_SLOT_BYTES;
	cq_sum_due(t);
}

/* The number of calls in the buffer from p on. */
static uint64_t calls_from(const cq_thread *t, const uint8_t *p)
{
	uint64_t n = 0;
	for (; p < t->next; p += CQ_SLOT_BYTES)
		n += ((const cq_call *)(const void *)p)->kind == CQ_CALL;
	return n;
}

/* Ends the file behind the last complete call among the written bytes of the buffer; later calls are dropped. */
static void keep_written(cq_thread *t, size_t written)
{
	const uint8_t *cut = t->window;
	for (const uint8_t *p = t->window + CQ_SLOT_BYTES; p <= t->next && p <= t->window + written; p += CQ_SLOT_BYTES) {
		if (p == t->next || ((const cq_call *)(const void *)p)->kind == CQ_CALL)
			cut = p;
	}
	if (cq_in_progress(t) && cq_within(t->call, t->window, t->window_bytes) && cut > (uint8_t *)t->call)
		cut = (uint8_t *)t->call;
	t->head->dropped += calls_from(t, cut);
	if (cq_in_progress(t) && t->call->kind == CQ_CALL)
		t->head->dropped--; /* it is counted when it returns */
	t->next = t->window + (cut - t->window);
}

/* Handles a buffer that could not be written out, or only in part. */
static void die_buffered(cq_thread *t, int e, size_t written)
{
	int64_t good;
	if (t->call_off != 0) { /* the call in progress exceeds the buffer */
		good = t->call_off;
		t->next = t->window;
		t->window_off = good;
	} else {
		keep_written(t, written);
		good = t->window_off + (t->next - t->window);
	}
	t->call_off = 0;
	__atomic_and_fetch(&t->pending, ~(uint64_t)CQ_PENDING_REWRITE, __ATOMIC_RELAXED);
	die(t, e);
	t->window_off = good;
	if (e != EBADF && ftruncate(t->fd, good) == 0)
		(void)put(t, t->head, sizeof *t->head, 0);
}

/* Moves the buffer on; the bytes before to have been written. */
static void buffer_move(cq_thread *t, uint8_t *to)
{
	size_t left = (size_t)(t->next - to);
	t->window_off += to - t->window;
	memmove(t->window, to, left);
	memset(t->window + left, 0, (size_t)(t->next - t->window) - left); /* a slot is empty until its kind is set */
	t->next = t->window + left;
	buffer_end(t);
	t->flushed = cq_tick();
}

/* Writes the buffer out, but keeps the call in progress in it. A call larger than the buffer leaves it as well, and
 * its CALL slot is rewritten in the file when it returns. */
static void grow_buffered(cq_thread *t)
{
	uint8_t *to = t->next;
	size_t written = 0;
	int keep = cq_in_progress(t) && cq_within(t->call, t->window, t->window_bytes), e = 0;
	if (cq_hooks != NULL && (t->call_off != 0 || (keep && (uint8_t *)t->call == t->window)))
		cq_hooks->call_leaves_buffer(t);
	if (keep && (uint8_t *)t->call > t->window) {
		to = (uint8_t *)t->call;
	} else if (keep) {
		t->call_off = t->window_off;
		t->trash = *t->call;
		cq_set_pending(t, CQ_PENDING_REWRITE);
	}
	if (t->counted) {
		t->head->calls += calls_from(t, t->window) - (keep && to == (uint8_t *)t->call && t->call->kind == CQ_CALL);
		cq_packed_count(t, to);
	} else {
		e = cq_sink_owns(t) ? put_most(t, t->window, (size_t)(to - t->window), t->window_off, &written) : EBADF;
	}
	if (t->dead) /* this is a child that was forked meanwhile */
		return;
	if (e != 0) {
		die_buffered(t, e, written);
		return;
	}
	buffer_move(t, to);
	if (t->call_off == 0)
		t->call = keep ? (cq_call *)t->window : &t->trash;
	else
		t->call = &t->trash;
	if (t->next >= t->full) /* COMMQ_MAX_SPOOL */
		die_buffered(t, LIMITED, (size_t)(t->next - t->window));
}

/* Holds the buffer while it is moved or written out: by its thread, by another one that ends the process, or by a
 * signal handler. */
static void hold_buffer(cq_thread *t)
{
	cq_spin(&t->busy);
}

/* The same, but gives up after a while: the exiting thread may have been interrupted while it moved its buffer. */
static int try_hold(cq_thread *t)
{
	for (int i = 0; __atomic_exchange_n(&t->busy, 1, __ATOMIC_ACQUIRE) != 0; i++) {
		if (i == 10000)
			return 0;
		sched_yield();
	}
	return 1;
}

static void release_buffer(cq_thread *t)
{
	__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
}

/* Makes room for a slot if there is none; on failure the thread is dead. */
static void make_room(cq_thread *t)
{
	int before = errno;
	if (t->dead || t->next != t->full)
		return;
	if (t->buffered) {
		hold_buffer(t);
		grow_buffered(t);
		release_buffer(t);
	} else {
		int e = t->packs ? cq_packed_grow(t) : grow_mapped(t);
		if (e != 0 && !t->dead) /* dead: forked meanwhile */
			die(t, e);
	}
	errno = before;
}

/* Puts a SUM slot behind the records, if there is something for it to cover. */
static void put_sum(cq_thread *t)
{
	cq_sum sum;
	int due = !t->dead && cq_sum_make(t, &sum);
	make_room(t);
	if (due && !t->dead)
		cq_sum_write(t, &sum);
}

void *cq_take_slow(cq_thread *t)
{
	t->growing = 1;
	cq_barrier();
	put_sum(t);
	make_room(t);
	cq_barrier();
	t->growing = 0;
	if (t->dead)
		return &t->trash;
	cq_sum_due(t);
	uint8_t *p = t->next;
	t->next += CQ_SLOT_BYTES;
	return p;
}

void cq_rewrite(cq_thread *t)
{
	t->trash.t1 = cq_time(t, t->t1);
	if (t->packs)
		cq_def_put(t, CQ_DEF_RETURN, (t->call_off - CQ_HEADER_BYTES) / CQ_SLOT_BYTES, &t->trash, sizeof t->trash);
	else if (!t->counted && cq_sink_owns(t))
		(void)put(t, &t->trash, sizeof t->trash, t->call_off);
	t->call_off = 0;
}

int cq_sink_map_header(cq_thread *t)
{
	void *head = cq_file_pages((size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, t->fd, 0);
	if (head == NULL)
		return errno;
	t->head = head;
	return 0;
}

static int open_mapped(cq_thread *t)
{
	size_t bytes = within_limit(0, FIRST_BYTES);
	int e = allocate_most(t, &bytes, TINY_BYTES);
	if (e == 0)
		e = cq_sink_map_header(t);
	if (e != 0)
		return e;
	e = window_map(t, bytes);
	if (e != 0) {
		cq_pages_free(t->head, (size_t)sysconf(_SC_PAGESIZE));
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
	int e = cq_sink_write(t->fd, &t->own, sizeof t->own, 0);
	if (e != 0)
		return e;
	size_t bytes = cq.count_only ? COUNT_BYTES : BUFFER_BYTES;
	void *p = cq_pages(bytes);
	if (p == NULL)
		return errno;
	t->buffered = 1;
	t->counted = cq.count_only;
	if (t->counted)
		(void)cq_packed_open_counted(t); /* without memory for it the bytes are not told */
	t->head = &t->own;
	t->window = t->next = p;
	t->window_bytes = bytes;
	t->window_off = CQ_HEADER_BYTES;
	t->flushed = cq_tick();
	cq_set_pending(t, CQ_PENDING_TIMED);
	buffer_end(t);
	return 0;
}

/* Opens a thread whose records go to the hooks. They write the file elsewhere, so COMMQ_MAX_SPOOL does not limit it.
 */
static int open_streamed(cq_thread *t)
{
	size_t room = 128;
	uint8_t *p = cq_pages(STREAM_BYTES);
	if (p == NULL)
		return errno;
	t->fd = INT32_MAX; /* not a file */
	t->streamed = t->buffered = 1;
	t->counted = cq.count_only;
	t->own.limit = 0;
	t->head = &t->own;
	t->window = t->next = p + room;
	t->window_bytes = STREAM_BYTES - room;
	t->window_off = CQ_HEADER_BYTES;
	t->own.sums = 0;
	t->end = t->full = t->window + t->window_bytes;
	t->flushed = cq_tick();
	cq_set_pending(t, CQ_PENDING_TIMED);
	return put(t, &t->own, sizeof t->own, 0);
}

const char *cq_sink_path(cq_thread *t, const char *suffix)
{
	int n = snprintf(t->path, sizeof t->path, "%s/%016llx.%d.%d.%s", cq.spool, (unsigned long long)cq.job, cq.rank,
		t->number, suffix);
	if (n > 0 && (size_t)n < sizeof t->path)
		return t->path;
	errno = ENAMETOOLONG;
	return NULL;
}

/* A program that has closed stdin, stdout or stderr opens them again by their numbers, or still writes there: they must
 * not become files of the records. */
int cq_sink_create(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), e = errno;
	close(fd);
	if (above < 0)
		unlink(path);
	errno = e;
	return above;
}

int cq_sink_open(cq_thread *t)
{
	if (cq_hooks != NULL && cq_hooks->takes_records())
		return open_streamed(t);
	const char *path = cq_sink_path(t, SUFFIX);
	t->fd = path != NULL ? cq_sink_create(path) : -1;
	if (t->fd < 0)
		return errno;
	t->head = &t->own;
	struct stat s;
	if (fstat(t->fd, &s) == 0) {
		t->file_dev = s.st_dev;
		t->file_ino = s.st_ino;
	}
	int e = cq.force_write || cq.count_only ? EOPNOTSUPP : ENOSPC;
	if (e == ENOSPC && cq.pack)
		e = cq_packed_open(t);
	if (e != 0 && e != EOPNOTSUPP) /* without windows, or with too little space for them */
		e = open_mapped(t);
	if (e == 0) {
		*t->head = t->own;
		cq_sum_due(t);
	} else if (unsupported(e)) {
		e = open_buffered(t);
	}
	if (e != 0) {
		close(t->fd);
		unlink(cq_sink_path(t, SUFFIX));
		t->fd = -1;
	}
	return e;
}

/* Writes the buffer and the header and changes nothing else: the thread continues as before. It may be in the middle
 * of a slot, which is still empty, or of a call, which is written as not returned. */
static int write_out(cq_thread *t, size_t *written)
{
	int e = 0;
	uint64_t earlier = t->head->calls, blocks = t->head->blocks;
	*written = 0;
	t->flushed = cq_tick();
	if (t->counted) {
		t->head->calls += calls_from(t, t->window);
		cq_packed_count(t, __atomic_load_n(&t->next, __ATOMIC_RELAXED));
	}
	if (!t->dead && !t->counted)
		e = put_most(t, t->window, (size_t)(__atomic_load_n(&t->next, __ATOMIC_RELAXED) - t->window), t->window_off,
			written);
	if (e == 0 && !t->dead)
		t->head->slots = cq_slots_used(t);
	(void)put(t, t->head, sizeof *t->head, 0);
	t->head->calls = earlier;
	t->head->blocks = blocks;
	return e;
}

/* Only the thread itself may discover here that space has run out. */
void cq_sink_flush(cq_thread *t)
{
	size_t written;
	if (!t->buffered || !try_hold(t))
		return;
	if (t->fd >= 0 && cq_sink_owns(t)) {
		int e = write_out(t, &written);
		if (e != 0 && t == cq_mine)
			die_buffered(t, e, written);
	}
	release_buffer(t);
}

void cq_sink_flush_now(cq_thread *t)
{
	size_t written;
	if (!t->buffered || t->streamed || __atomic_exchange_n(&t->busy, 1, __ATOMIC_ACQUIRE) != 0)
		return;
	if (t->fd >= 0 && cq_sink_owns(t))
		(void)write_out(t, &written);
	release_buffer(t);
}

/* The file ends: the last SUM slot, if there is room for it, and the checksum of the header. Only the thread itself
 * knows that its last slots are complete. If a signal handler that calls exit has interrupted cq_take_slow, the buffer
 * is held and its state incomplete: the file then ends as that of a process that was killed. */
static void end_sums(cq_thread *t)
{
	if (t != cq_mine || t->head->sums == 0 || t->growing)
		return;
	int64_t all = (int64_t)cq_slots_used(t);
	/* a window held by a call larger than the window is covered first, the one that it went on in after that */
	for (int i = 0; i < 2 && t->summed < all && t->next != t->full; i++)
		put_sum(t);
	if (!t->dead) {
		t->head->slots = cq_slots_used(t);
		t->head->summed = (uint64_t)t->summed;
	}
	if (!t->counted)
		cq_header_sum(t->head);
}

void cq_sink_close(cq_thread *t)
{
	if (t->fd < 0)
		return;
	if (cq_sink_owns(t))
		end_sums(t);
	int64_t used = t->window_off + (t->next - t->window);
	cq_sink_flush(t);
	int held = try_hold(t); /* prevents a signal handler from writing to a file opened under the same number */
	if (cq_sink_owns(t)) {
		if (t->packs && t == cq_mine)
			cq_packed_close(t);
		else if (!t->packs && !t->buffered && !t->dead && ftruncate(t->fd, used) != 0)
			used = 0; /* keeps the zeros at the end; readers expect them after a crash anyway */
		if (!t->streamed)
			close(t->fd);
	}
	t->own = *t->head;
	t->head = &t->own;
	t->fd = -1;
	if (held)
		release_buffer(t);
	t->dead = 1;
	t->next = t->end = t->full = t->window;
	t->call = &t->trash;
}

void cq_sink_leave(cq_thread *t)
{
	cq_header *head = t->head;
	if (t->fd < 0 || cq_in_progress(t))
		return;
	cq_sink_close(t);
	cq_set_pending(t, CQ_PENDING_DROP);
	if (!t->packs)
		cq_pages_free(t->window, t->window_bytes);
	cq_packed_free(t);
	if (t->held != NULL)
		cq_pages_free(t->held, t->held_bytes);
	if (head != &t->own)
		cq_pages_free(head, (size_t)sysconf(_SC_PAGESIZE));
	t->window = t->held = t->next = t->end = t->full = NULL;
}

void cq_sink_disown(cq_thread *t)
{
	cq_packed_disown(t);
	t->head = &t->own;
	t->fd = -1;
	t->dead = 1;
	t->pending = 0;
	t->busy = 0;
	t->call_off = 0;
	t->next = t->end = t->full = t->window;
	t->call = &t->trash;
}

void cq_sink_flush_old(cq_thread *t, uint64_t now)
{
	int e = errno;
	if (t->buffered && !t->dead && now - t->flushed > cq.flush_ticks)
		cq_sink_flush(t);
	errno = e;
}
