/* Instructions and cycles between calls, from perf_event_open, or synthetic values for tests. */
#include "counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INSTRUCTIONS, CYCLES, COUNTERS };

static int event_open(uint64_t config, int group)
{
	struct perf_event_attr a;
	memset(&a, 0, sizeof a);
	a.size = sizeof a;
	a.type = PERF_TYPE_HARDWARE;
	a.config = config;
	a.exclude_kernel = a.exclude_hv = 1;
	a.pinned = group < 0; /* counts all the time or not at all, so nothing is extrapolated */
	a.read_format = PERF_FORMAT_GROUP;
	return (int)syscall(SYS_perf_event_open, &a, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static int perf_open(cq_thread *t)
{
	static const uint64_t configs[COUNTERS] = {PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES};
	for (int i = 0; i < COUNTERS; i++) {
		t->perf_fd[i] = event_open(configs[i], i == 0 ? -1 : t->perf_fd[0]);
		if (t->perf_fd[i] < 0)
			return errno;
		t->perf_page[i] = cq_file_pages((size_t)sysconf(_SC_PAGESIZE), PROT_READ, t->perf_fd[i], 0);
	}
	return ioctl(t->perf_fd[0], PERF_EVENT_IOC_ID, &t->perf_id) != 0 ? errno : 0;
}

#if defined(__x86_64__)
/* Reads one counter in user space, as the kernel's header describes; returns 0 if no hardware counter is assigned to
 * it now. */
static int rdpmc_one(const volatile struct perf_event_mmap_page *p, int64_t *value)
{
	uint32_t seq, index;
	int64_t v;
	if (p == NULL)
		return 0;
	do {
		seq = p->lock;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		index = p->index;
		if (!p->cap_user_rdpmc || index == 0)
			return 0;
		v = (int64_t)__builtin_ia32_rdpmc((int)index - 1);
		v = (int64_t)((uint64_t)v << (64 - p->pmc_width)) >> (64 - p->pmc_width);
		v += p->offset;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (p->lock != seq);
	*value = v;
	return 1;
}
#else
static int rdpmc_one(const volatile struct perf_event_mmap_page *p, int64_t *value)
{
	(void)p;
	(void)value;
	return 0;
}
#endif

/* Reads by system call. The program may have closed our file and opened its own under that number, so the id is
 * checked: only ours has it. */
static int read_group(const cq_thread *t, int64_t *values)
{
	uint64_t id = 0, got[1 + COUNTERS];
	if (ioctl(t->perf_fd[0], PERF_EVENT_IOC_ID, &id) != 0 || id != t->perf_id)
		return 0;
	if (read(t->perf_fd[0], got, sizeof got) != (ssize_t)sizeof got || got[0] != COUNTERS)
		return 0;
	for (int i = 0; i < COUNTERS; i++)
		values[i] = (int64_t)got[1 + i];
	return 1;
}

/* Test values: the r-th read of a thread, from 0, gives 5 r^2 instructions and 3 r^2 + r cycles. */
static void fake(cq_thread *t, int64_t *values)
{
	int64_t r = (int64_t)t->count_reads++;
	values[INSTRUCTIONS] = 5 * r * r;
	values[CYCLES] = 3 * r * r + r;
}

static int read_all(cq_thread *t, int64_t *values)
{
	if (cq.counters == CQ_COUNTERS_FAKE) {
		fake(t, values);
		return 1;
	}
	for (int i = 0; i < COUNTERS; i++) {
		if (!rdpmc_one(t->perf_page[i], &values[i]))
			return t->perf_fd[0] >= 0 && read_group(t, values);
	}
	return 1;
}

void cq_count_begin(cq_thread *t)
{
	if (!read_all(t, t->count_base))
		t->count_base[0] = t->count_base[1] = CQ_NULL64;
}

void cq_count_end(cq_thread *t)
{
	int64_t now[COUNTERS];
	int good = t->count_base[0] != CQ_NULL64 && read_all(t, now);
	for (int i = 0; i < COUNTERS; i++) {
		if (!good)
			t->count[i] = CQ_NULL64;
		else if (t->count[i] != CQ_NULL64)
			t->count[i] += now[i] - t->count_base[i];
	}
}

void cq_count_open(cq_thread *t)
{
	t->perf_fd[0] = t->perf_fd[1] = -1;
	if (cq.counters == CQ_COUNTERS_NONE)
		return;
	if (cq.counters == CQ_COUNTERS_PERF && perf_open(t) != 0)
		cq_count_close(t);
	cq_set_pending(t, CQ_PENDING_COUNTS);
	cq_count_begin(t);
}

void cq_count_close(cq_thread *t)
{
	uint64_t id;
	int ours = t->perf_fd[0] >= 0 && (t->perf_id == 0 || (ioctl(t->perf_fd[0], PERF_EVENT_IOC_ID, &id) == 0 &&
		id == t->perf_id));
	for (int i = 0; i < COUNTERS; i++) {
		if (t->perf_page[i] != NULL)
			cq_pages_free(t->perf_page[i], (size_t)sysconf(_SC_PAGESIZE));
		if (ours && t->perf_fd[i] >= 0)
			close(t->perf_fd[i]);
		t->perf_page[i] = NULL;
		t->perf_fd[i] = -1;
	}
}

int cq_count_try(void)
{
	cq_thread t;
	int64_t values[COUNTERS];
	memset(&t, 0, sizeof t);
	t.perf_fd[0] = t.perf_fd[1] = -1;
	int e = perf_open(&t);
	if (e == 0 && !read_group(&t, values))
		e = ENODEV;
	cq_count_close(&t);
	return e;
}
