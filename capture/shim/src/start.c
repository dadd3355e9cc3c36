/* The start of recording: in MPI_Init, or in the first MPI_Session_init. */
#include "lifetime.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "counters.h"

static void copy_tail(char *to, size_t cap, const char *from)
{
	size_t n = strlen(from);
	if (n >= cap)
		from += n - (cap - 1);
	memcpy(to, from, strlen(from) + 1);
}

static void read_line(const char *path, char *to, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, cap - 1);
	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = 0;
	to[strcspn(to, "\n")] = 0;
}

static void identify_process(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	path[n > 0 ? n : 0] = 0;
	copy_tail(cq.program, sizeof cq.program, path);
	if (gethostname(cq.host, sizeof cq.host - 1) != 0)
		cq.host[0] = 0;
	read_line("/proc/sys/kernel/random/boot_id", cq.boot, sizeof cq.boot);
	if (sched_getaffinity(0, sizeof cq.cores, (cpu_set_t *)cq.cores) != 0)
		memset(cq.cores, 0, sizeof cq.cores); /* more cores than there are bits */
}

/* A hash of everything that distinguishes the CLOCK_MONOTONIC of two processes. */
static uint64_t host_hash(void)
{
	char line[256];
	uint64_t h = 0xcbf29ce484222325u;
	for (const char *p = cq.host; *p != 0; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3u;
	for (const char *p = cq.boot; *p != 0; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3u;
	ssize_t n = readlink("/proc/self/ns/time", line, sizeof line);
	for (ssize_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)line[i]) * 0x100000001b3u;
	return h;
}

static CQ_TLS cq_thread *second_init; /* in an MPI_Init after sessions, recorded as an ordinary call */

static void begin_start(void)
{
	cq_opening = 1; /* calls that MPI_Init makes are not the program's */
	cq_marks_begin();
	cq_clock_start();
	cq.init_tick = cq_tick();
}

/* Looks at the library before the first call goes on to it. Nothing may be asked of one of another family, because its
 * constants and statuses differ. Where handles are pointers, the wrappers pass on those of any library; where they are
 * of 4 bytes, as in MPICH, those of other libraries do not fit. */
static void look_at_library(void)
{
	cq_resolve();
	if (!cq_library_is_foreign() || cq.state != CQ_NEW)
		return;
	if (cq_first_rank())
		cq_print("commq: the shim is for %s, but the program has loaded another MPI library; %s\n", CQ_LIBRARY,
			CQ_MPICH ? "its calls cannot be passed on, so it ends: run it without commq, or name its library with --mpi, "
			"or its compiler wrapper with --mpicc" : "it runs unrecorded");
	if (CQ_MPICH)
		abort();
	cq.state = CQ_OFF;
}

/* MPI may be used again after its last session has ended. The process has then not ended well, even if it is killed
 * before the call that begins this use returns. */
static void use_begins(void)
{
	for (cq_thread *u = cq.list; cq.users == 0 && u != NULL; u = u->link) {
		if (!__atomic_load_n(&u->closing, __ATOMIC_ACQUIRE))
			u->head->ended = CQ_ENDED_NOT;
	}
}

/* The call that was to begin another use has failed. */
static void use_fails(void)
{
	for (cq_thread *u = cq.list; cq.users == 0 && u != NULL; u = u->link) {
		if (!__atomic_load_n(&u->closing, __ATOMIC_ACQUIRE))
			cq_header_end(u, CQ_ENDED_FINALIZED);
	}
}

void cq_init_starts(int id)
{
	look_at_library();
	second_init = cq.state == CQ_ON ? cq_enter() : NULL;
	if (second_init != NULL) {
		second_init->site = cq.init_site;
		second_init->cfa = cq.init_cfa;
		use_begins();
		cq_plain_begin(second_init, id, MPI_COMM_NULL);
	} else if (cq.state == CQ_NEW) {
		begin_start();
	}
}

/* A rank's message to the others at the start. */
typedef struct {
	uint64_t host;
	int32_t error;
	int32_t spare;
} hello;

static int table_init(void)
{
	cq.none_comm.number = cq.none_type.number = CQ_NULL32;
	return cq_reqtab_init(&cq.requests) && cq_reqtab_init(&cq.messages) ? 0 : ENOMEM;
}

/* Whether all ranks have memory for what they exchange. Each of them asks, whatever has failed in it before: the others
 * would wait for it. */
static int all_can(int can)
{
	int all = 0;
	cq_p.Allreduce(&can, &all, 1, MPI_INT, MPI_MIN, CQ_WORLD);
	return all;
}

/* The ranks exchange their hosts and whether each can record. The first rank that cannot reports it for all. If one
 * rank has no memory for that, nothing is exchanged: all return ENOMEM, record without clock offsets, and each reports
 * for itself. */
static int exchange_hellos(int error, int *others_fail)
{
	size_t bytes = (size_t)cq.size * sizeof(hello);
	hello me = {host_hash(), error, 0};
	hello *all = cq_pages(bytes);
	int failing = 0, first = -1;
	if (!all_can(cq_clock_offsets_room() && all != NULL)) {
		if (all != NULL)
			cq_pages_free(all, bytes);
		return ENOMEM;
	}
	cq_p.Allgather(&me, sizeof me, MPI_BYTE, all, sizeof me, MPI_BYTE, CQ_WORLD);
	for (int i = 0; i < cq.size; i++) {
		if (all[i].error != 0 && failing++ == 0)
			first = i;
	}
	if (first >= 0 && first != cq.rank)
		cq.complained = 1;
	*others_fail = failing - 1;
	cq_clock_offsets_begin(all, sizeof *all);
	cq_pages_free(all, bytes);
	return 0;
}

static void report_failure(int error, int others)
{
	const char *dir = getenv("COMMQ_SPOOL");
	const char *why = error == EPERM ? "the folder belongs to another user, or other users can write to it"
									 : strerror(error);
	if (cq.complained || error == 0)
		return;
	cq.complained = 1;
	if (cq.sessions && error == ENXIO && cq.rank == 0)
		cq_print("commq: the program uses MPI sessions, and nothing in its environment tells this launch from others: "
			"start it by commq "
			"capture, or set COMMQ_JOB to another text for each launch; it runs unrecorded\n");
	else if (cq.sessions && error == EEXIST)
		cq_print("commq: rank %d: spool %s: the records of an earlier launch with this COMMQ_JOB are there; the rank "
			"runs unrecorded\n", cq.rank, dir);
	else if (cq.sessions && error == ENXIO)
		;
	else if (dir == NULL || *dir == 0)
		cq_print("commq: COMMQ_SPOOL is not set, so nothing is recorded; start the program by commq capture or commq "
			"exec\n");
	else if (others > 0)
		cq_print("commq: rank %d and %d more: spool %s: %s; these ranks run unrecorded\n", cq.rank, others, dir,
			why);
	else
		cq_print("commq: rank %d: spool %s: %s; the rank runs unrecorded\n", cq.rank, dir, why);
}

static void record_init(cq_thread *t, int id, uint64_t t0, uint64_t t1)
{
	t->site = cq.init_site;
	t->cfa = cq.init_cfa;
	cq_call *c = cq_open(t, id);
	c->flags = 0;
	c->compute_ns = 0;
	c->t0 = cq_time(t, t0);
	c->comm = c->peer = c->tag = c->dtype = CQ_NULL32;
	c->count = CQ_NULL64;
	c->buf = 0;
	c->req = 0;
	c->kind = CQ_CALL;
	t->t1 = t1;
	cq_close(t, MPI_SUCCESS);
}

static void start_recording(int id, uint64_t t1)
{
	int others = 0, exchange = 0;
	int error = cq_settings_spool();
	cq_thread *t = NULL;
	if (cq.sessions)
		cq.job = cq_settings_job();
	else if (cq.rank == 0 && getrandom(&cq.job, sizeof cq.job, GRND_NONBLOCK) != sizeof cq.job)
		cq.job = cq.clock0_tick * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 32 ^ (uint64_t)cq.realtime_ns;
	if (!cq.sessions)
		cq_p.Bcast(&cq.job, sizeof cq.job, MPI_BYTE, 0, CQ_WORLD);
	else if (error == 0 && cq.job == 0)
		error = ENXIO;
	cq_clock_calibrate();
	cq_settings_stack();
	cq.offset_ns = cq.offset_error_ns = cq.offset_at_ns = CQ_NULL64;
	if (error == 0)
		error = table_init();
	if (cq_hooks != NULL && error == 0 && !cq.sessions)
		cq_hooks->recording_begins();
	if (error == 0)
		t = cq_thread_open(&error);
	if (!cq.sessions)
		exchange = exchange_hellos(error, &others);
	if (cq_hooks != NULL && cq_hooks->takes_records() && others >= 0) {
		t = NULL; /* the others would wait for messages that an unrecorded rank never sends */
		error = error != 0 ? error : exchange;
	}
	if (t == NULL) {
		report_failure(error, others);
		cq.state = CQ_OFF;
		if (cq_hooks != NULL)
			cq_hooks->recording_fails();
		return;
	}
	t->head->offset_init_ns = cq.offset_ns;
	t->head->offset_init_error_ns = cq.offset_error_ns;
	t->head->offset_init_at_ns = cq.offset_at_ns;
	if (cq.sessions) {
		cq.comms_made = 2;
		t->comm = &cq.none_comm;
	} else {
		cq.has_world_group = cq_p.Comm_group(CQ_WORLD, &cq.world_group) == MPI_SUCCESS;
		cq_world_define(t);
	}
	cq.has_exit_key = pthread_key_create(&cq.exit_key, cq_thread_exit) == 0;
	/* no locks: a child records nothing, and a fork in a signal handler must not wait */
	pthread_atfork(NULL, NULL, cq_stop_in_child);
	t->count[0] = t->count[1] = CQ_NULL64; /* nothing was counted before MPI_Init */
	record_init(t, id, cq.init_tick, t1);
	cq_current = NULL;
	cq.first = t; /* before a signal handler sees that recording is on */
	cq_barrier();
	cq.state = CQ_ON;
	t->count[0] = t->count[1] = 0;
	t->count_reads = 0;
	if (t->pending & CQ_PENDING_COUNTS)
		cq_count_begin(t);
	t->cpu = cq.clock == CQ_CLOCK_CPU ? cq_cpu_ns() : 0;
	t->shorts = 0;
	t->last = cq_tick();
	cq_leave(t);
}

/* Tells of functions that the library has and this shim was compiled without. */
static void tell_unrecorded(void)
{
	int lacks = (!CQ_MPI4 && cq_library_has("PMPI_Session_init")) || (!CQ_LARGE && cq_library_has("PMPI_Send_c"));
	if (lacks && cq.rank == 0)
		cq_print("commq: the program's MPI library has functions of MPI 4 whose calls are not recorded; --mpicc and the "
			"library's own wrapper compile a capture library that records them\n");
}

/* Reads the settings; reports whether this process can be recorded. */
static int prepare(void)
{
	if (!cq_library_fits()) {
		cq.state = CQ_OFF;
		if (cq.rank == 0)
			cq_print("commq: the shim is for %s, but the program runs with %.80s; it runs unrecorded\n", CQ_LIBRARY,
				cq.library);
		return 0;
	}
	cq_settings_read();
	/* a later session may have several threads even if the first had one */
	cq.locked = cq.sessions || cq.thread_level == 3;
	cq_quirks_find();
	cq.pid = getpid();
	identify_process();
	cq_hashing_begin();
	tell_unrecorded();
	return 1;
}

/* MPI_Init after sessions: from now on there is an MPI_COMM_WORLD. */
static void init_again(cq_thread *t, int err)
{
	cq_mpi_ends(t);
	if (err == MPI_SUCCESS) {
		use_begins(); /* the last session may have ended meanwhile */
		__atomic_fetch_add(&cq.users, 1, __ATOMIC_ACQ_REL);
		if (!cq.has_world_group)
			cq.has_world_group = cq_p.Comm_group(CQ_WORLD, &cq.world_group) == MPI_SUCCESS;
		if (cq_hooks == NULL) /* with simulator ranks it is known from the start */
			cq_world_define(t);
	}
	cq_close(t, err);
	if (err != MPI_SUCCESS)
		use_fails();
}

void cq_init_after(int id, int err)
{
	uint64_t t1 = cq_tick();
	if (second_init != NULL) {
		cq_thread *t = second_init;
		second_init = NULL;
		init_again(t, err);
		return;
	}
	if (err != MPI_SUCCESS || cq.state != CQ_NEW)
		return;
	cq.users = 1;
	if (cq_hooks != NULL && !cq_hooks->meet()) {
		cq.state = CQ_OFF; /* no hook takes the records */
		cq_marks_end();
		cq_opening = 0;
		return;
	}
	cq_p.Comm_rank(CQ_WORLD, &cq.rank);
	cq_p.Comm_size(CQ_WORLD, &cq.size);
	cq_p.Query_thread(&cq.thread_level);
	cq.thread_level = cq.thread_level >= MPI_THREAD_MULTIPLE ? 3 : cq.thread_level >= MPI_THREAD_SERIALIZED ? 2 :
		cq.thread_level >= MPI_THREAD_FUNNELED;
	if (!prepare())
		return;
	start_recording(id, t1);
	if (cq.state != CQ_ON)
		cq_marks_end();
	cq_opening = 0;
}

#if CQ_MPI4
/* The thread level of a session, from its info. */
static int session_level(MPI_Session s)
{
	static const char *const names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
		"MPI_THREAD_MULTIPLE"};
	char value[64] = "";
	MPI_Info info;
	int there = 0;
	if (cq_p.Session_get_info(s, &info) != MPI_SUCCESS)
		return 3;
	cq_p.Info_get(info, "thread_level", sizeof value - 1, value, &there);
	cq_p.Info_free(&info);
	for (int i = 0; there && i < 3; i++) {
		if (strcmp(value, names[i]) == 0)
			return i;
	}
	return 3;
}

/* Finds the group that replaces MPI_COMM_WORLD's; returns 0 if it cannot. */
static int find_world_group(MPI_Session s)
{
	if (cq.has_world_group)
		return 1;
	if (cq_p.Group_from_session_pset(s, "mpi://WORLD", &cq.world_group) != MPI_SUCCESS)
		return 0;
	cq.has_world_group = 1;
	return 1;
}

void cq_session_follows(cq_thread *t)
{
	use_begins();
	cq_plain_begin(t, CQ_Session_init, MPI_COMM_NULL);
}

void cq_session_starts(const void *site, const void *cfa)
{
	look_at_library();
	if (cq.state != CQ_NEW || __atomic_exchange_n(&cq.starting, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	cq.init_site = site;
	cq.init_cfa = cfa;
	begin_start();
}

static void session_again(cq_thread *t, int err, const MPI_Session *s)
{
	cq_mpi_ends(t);
	if (err == MPI_SUCCESS) {
		use_begins(); /* again: another thread may have ended the last session since */
		if (__atomic_add_fetch(&cq.users, 1, __ATOMIC_ACQ_REL) == 1)
			find_world_group(*s);
	}
	cq_requests_lock(); /* this session may have several threads */
	cq_close(t, err);
	if (err != MPI_SUCCESS)
		use_fails();
}

void cq_session_after(cq_thread *t, int err, const MPI_Session *s)
{
	uint64_t t1 = cq_tick();
	if (t != NULL) {
		session_again(t, err, s);
		return;
	}
	if (!cq_opening || cq.state != CQ_NEW) { /* not recorded, or another thread is starting */
		if (err == MPI_SUCCESS)
			__atomic_fetch_add(&cq.users, 1, __ATOMIC_ACQ_REL);
		return;
	}
	if (err != MPI_SUCCESS) {
		cq_opening = 0;
		cq.starting = 0;
		return;
	}
	__atomic_fetch_add(&cq.users, 1, __ATOMIC_ACQ_REL);
	cq.sessions = 1;
	if (!find_world_group(*s)) {
		cq.state = CQ_OFF;
		return;
	}
	cq_p.Group_rank(cq.world_group, &cq.rank);
	cq_p.Group_size(cq.world_group, &cq.size);
	cq.thread_level = session_level(*s);
	if (!prepare())
		return;
	start_recording(CQ_Session_init, t1);
	cq_opening = 0;
}
#endif
