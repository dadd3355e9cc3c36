/* Windows that become blocks of the file: a fifth of the space, or less. The windows are mapped, so a process that is killed leaves
 * all its slots: those in the blocks, and those in the windows. spool.h has the format. */
#include <errno.h>
#include <fcntl.h>

#include "crc.h"
#include "pack.h"
#include "sink.h"

#define WINDOW_SLOTS (CQ_WINDOW_BYTES / CQ_SLOT_BYTES - 1)
#define WINDOWS_BYTES ((size_t)2 * CQ_WINDOW_BYTES)
#define PACKER_BYTES (sizeof(cq_packer) + sizeof(cq_block) + (size_t)WINDOW_SLOTS * CQ_PACK_MOST + 16)
#define SUFFIX "cqw"

/* The number of the slot at a place in the window. */
static uint64_t number_of(const cq_thread *t, const uint8_t *slot)
{
	return (uint64_t)(t->window_off + (slot - t->window) - CQ_HEADER_BYTES) / CQ_SLOT_BYTES;
}

/* Takes the window whose slots begin with the given number and of which some bytes are filled. Whoever reads the file
 * takes it for the present one as soon as its base has the number. The thread's own state changes last: a signal handler
 * that ends the process finds that of the old window. */
static void window_take(cq_thread *t, uint64_t number, size_t filled)
{
	uint8_t *window = t->windows + t->odd * (ptrdiff_t)CQ_WINDOW_BYTES, *slots = window + CQ_SLOT_BYTES;
	cq_base *base = (cq_base *)(void *)window;
	const size_t bytes = CQ_WINDOW_BYTES - CQ_SLOT_BYTES;
	memset(slots + filled, 0, bytes - filled); /* a slot is empty until its kind is set */
	base->kind = CQ_BASE;
	cq_barrier();
	__atomic_store_n(&base->number, number + 1, __ATOMIC_RELEASE);
	t->window = slots;
	t->window_bytes = bytes;
	t->window_off = CQ_HEADER_BYTES + (int64_t)number * CQ_SLOT_BYTES;
	t->next = slots + filled;
	t->full = slots + bytes;
	cq_sum_due(t);
}

static void remove_windows(cq_thread *t)
{
	const char *path = cq_sink_path(t, SUFFIX);
	if (path != NULL)
		unlink(path);
}

int cq_packed_open(cq_thread *t)
{
	if (cq.limit != 0 && cq.limit < 4 * WINDOWS_BYTES)
		return ENOSPC;
	const char *path = cq_sink_path(t, SUFFIX);
	int fd = path != NULL ? cq_sink_create(path) : -1, e;
	if (fd < 0)
		return errno;
	e = cq_sink_allocate(fd, 0, WINDOWS_BYTES);
	if (e == 0 && (t->windows = cq_file_pages(WINDOWS_BYTES, PROT_READ | PROT_WRITE, fd, 0)) == NULL)
		e = errno;
	if (e == 0 && (t->packer = cq_pages(PACKER_BYTES)) == NULL)
		e = errno;
	close(fd); /* the mapping stays */
	if (e == 0)
		e = cq_sink_allocate(t->fd, 0, CQ_HEADER_BYTES);
	if (e == 0)
		e = cq_sink_map_header(t);
	if (e != 0) {
		remove_windows(t);
		cq_packed_free(t);
		return e;
	}
	t->own.packed = 1;
	t->packs = 1;
	t->blocks_end = CQ_HEADER_BYTES;
	window_take(t, 0, 0);
	return 0;
}

/* Makes a block of the slots of the window up to a place; returns how many bytes follow its header. */
static size_t make_block(const cq_thread *t, const uint8_t *to, cq_block *b)
{
	uint8_t *packed = (uint8_t *)(b + 1);
	memset(b, 0, sizeof *b);
	memcpy(b->magic, CQ_BLOCK_MAGIC, sizeof b->magic);
	b->scale = (uint32_t)(cq.scale >> 12);
	b->first = number_of(t, t->window);
	b->n = (uint32_t)((to - t->window) / CQ_SLOT_BYTES);
	size_t bytes = cq_pack((cq_packer *)(void *)t->packer, t->window, b->n, b->scale, packed);
	for (; bytes % 4 != 0; bytes++)
		packed[bytes] = 0;
	b->bytes = (uint32_t)bytes;
	return bytes;
}

static cq_block *block_of(const cq_thread *t)
{
	return (cq_block *)(void *)(t->packer + sizeof(cq_packer));
}

/* Appends the slots of the window up to a place as a block; returns an errno or LIMITED. */
static int append_block(cq_thread *t, const uint8_t *to)
{
	cq_block *b = block_of(t);
	uint8_t *packed = (uint8_t *)(b + 1);
	size_t bytes = make_block(t, to, b);
	if (t->head->sums != 0) {
		b->crc = cq_crc32c(packed, bytes);
		b->check = cq_crc32c(b, offsetof(cq_block, check));
	}
	if (!cq_sink_owns(t))
		return EBADF;
	if (cq.limit != 0 && (uint64_t)t->blocks_end + sizeof *b + bytes + WINDOWS_BYTES > cq.limit)
		return LIMITED;
	int e = cq_sink_write(t->fd, b, sizeof *b + bytes, t->blocks_end);
	if (e != 0) {
		while (ftruncate(t->fd, t->blocks_end) != 0 && errno == EINTR)
			;
		return e;
	}
	t->blocks_end += (int64_t)(sizeof *b + bytes);
	return 0;
}

int cq_packed_grow(cq_thread *t)
{
	const uint8_t *next = t->next;
	int keep = cq_in_progress(t) && cq_within(t->call, t->window, t->window_bytes);
	const uint8_t *to = keep && (uint8_t *)t->call > t->window ? (uint8_t *)t->call : next;
	size_t left = (size_t)(next - to);
	uint64_t number = number_of(t, to);
	int e = append_block(t, to);
	if (e != 0 || t->dead) /* dead: this is a child that was forked meanwhile */
		return e;
	if (keep && left == 0) { /* the call has more slots than a window: its CALL slot follows when it returns */
		t->call_off = t->window_off;
		t->trash = *t->call;
		cq_set_pending(t, CQ_PENDING_REWRITE);
		keep = 0;
	}
	t->odd = !t->odd;
	memcpy(t->windows + t->odd * (ptrdiff_t)CQ_WINDOW_BYTES + CQ_SLOT_BYTES, to, left);
	window_take(t, number, left);
	t->call = keep ? (cq_call *)(void *)t->window : &t->trash;
	cq_set_pending(t, CQ_PENDING_CLOCK);
	return 0;
}

void cq_packed_close(cq_thread *t)
{
	if (t->dead || t->growing || cq_in_progress(t) || t->call_off != 0)
		return;
	if (t->next == t->window || append_block(t, t->next) == 0)
		remove_windows(t);
}

void cq_packed_disown(cq_thread *t)
{
	if (t->windows != NULL)
		(void)syscall(SYS_mmap, t->windows, WINDOWS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			(off_t)0);
}

void cq_packed_free(cq_thread *t)
{
	if (t->windows != NULL)
		cq_pages_free(t->windows, WINDOWS_BYTES);
	if (t->packer != NULL)
		cq_pages_free(t->packer, PACKER_BYTES);
	t->windows = t->packer = NULL;
}

int cq_packed_open_counted(cq_thread *t)
{
	t->packer = cq_pages(PACKER_BYTES);
	return t->packer != NULL ? 0 : errno;
}

void cq_packed_count(cq_thread *t, const uint8_t *to)
{
	if (t->packer != NULL)
		t->head->blocks += sizeof(cq_block) + make_block(t, to, block_of(t));
}
