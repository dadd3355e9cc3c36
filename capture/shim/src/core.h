/* What all parts of the shim share: the state of the process and of a thread, clocks, and the inline path that every
 * recorded call takes. Names: cq_ for ours, CQ_ for macros; a "key" is a handle as a 64-bit number. */
#ifndef COMMQ_CORE_H
#define COMMQ_CORE_H

#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "calls_gen.h"
#include "pages.h"
#include "spool.h"

#if defined(OPEN_MPI)
#define CQ_OPENMPI 1
#define CQ_MPICH 0
#define CQ_LIBRARY "Open MPI"
#define CQ_SONAMES {"libmpi.so.40", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40"}
#elif defined(MPICH_VERSION)
#define CQ_OPENMPI 0
#define CQ_MPICH 1
#define CQ_LIBRARY "MPICH"
#define CQ_SONAMES {"libmpich.so.12", "libmpichfort.so.12", "libmpi.so.12"}
#else
#error "commq: the shim knows Open MPI and MPICH; this mpi.h is of neither"
#endif
/* The functions of MPI 4 that Open MPI has from version 5 on. */
#if CQ_MPICH || OMPI_MAJOR_VERSION >= 5
#define CQ_MPI4 1
#else
#define CQ_MPI4 0
#endif
/* The functions with counts of type MPI_Count, MPI_X_c: neither Open MPI 4 nor 5 has them. */
#if MPI_VERSION >= 4
#define CQ_LARGE 1
#else
#define CQ_LARGE 0
#endif
/* Open MPI's extension with the persistent collectives, MPIX_X_init. */
#if CQ_OPENMPI && defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define CQ_PCOLL 1
#else
#define CQ_PCOLL 0
#endif

#define CQ_LIKELY(x) __builtin_expect(!!(x), 1)
#define CQ_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CQ_EXPORT __attribute__((visibility("default")))
#define CQ_COLD __attribute__((cold, noinline))
#define CQ_HOT static inline __attribute__((always_inline))
#define CQ_TLS __thread __attribute__((tls_model("initial-exec")))

#ifndef CQ_SIM
#define CQ_SIM 0
#endif

#if CQ_SIM && CQ_OPENMPI
/* Removed from mpi.h, but programs that were compiled with an older one still call them. */
#undef MPI_Errhandler_create
#undef MPI_Errhandler_get
#undef MPI_Errhandler_set
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
int MPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
int PMPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
int PMPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);
int PMPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
#endif

#include "fns_gen.h"
#include "world.h"

/* Virtual time, where there are simulator ranks; see sim.c. Else what is in CQ_VIRTUAL is not there. */
#if CQ_SIM
#define CQ_VIRTUAL(...) __VA_ARGS__

/* Ranks of a communicator's (remote) group in MPI_COMM_WORLD; -1: outside. */
typedef struct {
	int holders; /* the communicator, and receives that are pending on it */
	int n;
	int outside; /* members that are none of the program's ranks: spawned processes */
	int same;    /* the ranks are the same: no list */
	size_t bytes;
	int list[];
} cq_sim_ranks;

typedef struct cq_sim_pending cq_sim_pending;

/* A thread's virtual clock, and what its call in progress does. */
typedef struct {
	int64_t now;      /* ps */
	uint64_t counted; /* ns of the compute time since the last record that are in it already */
	int64_t bytes;    /* of what the call sends */
	int sends;        /* CQ_SENDS_* */
	int collective;   /* CQ_K_* + 1; 0: none */
	int counted_new;  /* a communicator is being made by an operation that is counted on its parent */
	MPI_Request made; /* the request that the call has made */
	uint32_t message; /* serial of the message of an mrecv or imrecv */
	int64_t arrives;  /* the latest of what the call has completed */
	cq_sim_pending *ended, **ended_end; /* requests that the call has completed */
} cq_virtual;

enum { CQ_SENDS_NOT = 0, CQ_SENDS = 1, CQ_SENDS_LATER = 2, CQ_SENDS_PARTS = 3 };

#else
#define CQ_VIRTUAL(...)
#endif

/* A handle as a number. Valid handles are never 0. */
#if CQ_OPENMPI
#define CQ_KEY(h) ((uint64_t)(uintptr_t)(h))
#else
#define CQ_KEY(h) ((uint64_t)(uint32_t)(h))
#endif

/* Files are pointers in both. */
#define CQ_FILE_KEY(h) ((uint64_t)(uintptr_t)(h))

/* Whether a datatype's handle means the same for ever. MPICH's Fortran module makes a type for each array section that it is
 * given and frees it by the PMPI name, so that handles of derived types change their meaning unseen. */
#if CQ_OPENMPI
#define CQ_TYPE_FIXED(h) 1
#else
#define CQ_TYPE_FIXED(h) ((uint32_t)(h) >> 30 == 1)
#endif

typedef struct {
	uint64_t key; /* 0: freed */
	uint64_t instance; /* collective operations so far */
	int32_t number;
	int32_t rank, size, remote; /* remote: size of the remote group; 0 in an intracommunicator */
	int sources_n, destinations_n; /* neighbours in the topology; 0 without one */
	const int *sources, *destinations; /* their ranks, in the order that collectives have them; some may be MPI_PROC_NULL */
	int *neighbors; /* the pages the lists are in where they are long; else NULL */
	size_t neighbors_bytes;
	int *room; /* where short lists are */
	size_t room_bytes;
	void *spare; /* the next entry that can be used again */
	CQ_VIRTUAL(uint64_t sim_key; cq_sim_ranks *ranks;)
} cq_comm;

/* How a datatype's elements lie in memory. */
typedef struct {
	int64_t bytes;  /* payload of one element */
	int64_t lower;  /* its first byte, from where the buffer begins: the true lower bound */
	int64_t extent;
	int64_t span;   /* its true extent */
	int32_t parts[4]; /* MPI_Type_get_envelope */
	uint8_t known;
	uint8_t in_order; /* the bytes of an element lie there as they are sent, without gaps */
	uint8_t element;  /* CQ_E_* of hash.h: what payload_sum adds up */
	uint8_t spare[5];
} cq_shape;

typedef struct {
	uint64_t key; /* 0: freed */
	int64_t bytes;
	int32_t number;
	int32_t gap;
	cq_shape shape; /* where payloads are hashed */
	void *spare; /* the next entry that can be used again */
} cq_type;

/* A window or a file. */
typedef struct {
	int32_t number; /* the process's own; -1: not known */
	int32_t comm;   /* the number of its communicator */
	uint32_t split; /* of a file: serial of the split collective that has begun; 0: none */
} cq_object;

/* A buffer that a call named, to be hashed later: of a receive, or of the starts of a persistent send or collective. */
typedef struct cq_posted cq_posted;
struct cq_posted {
	const void *buf;
	int64_t count;
	MPI_Datatype type; /* null where the bytes lie in order */
	MPI_Datatype of;   /* the program's, which may be gone */
	cq_shape shape;
	int receive, owned; /* owned: type is to be freed with it */
	cq_posted *next; /* a collective's next part; in the list of free ones */
};

/* A map from keys to pointers: open addressing, in anonymous memory. */
typedef struct {
	uint64_t *keys;
	void **values;
	uint64_t mask; /* slots - 1 */
	uint64_t used; /* slots that are not empty, the removed ones among them */
} cq_map;

/* What is known of an outstanding request (or matched message). */
enum {
	CQ_R_RECV = 1,       /* its completion has a status worth having */
	CQ_R_PERSISTENT = 2,
	CQ_R_PROC_NULL = 4,  /* the receive was posted to MPI_PROC_NULL */
	CQ_R_IO = 64,        /* I/O: of its completion's status the bytes count, source and tag do not */
};

typedef struct {
	uint32_t serial; /* 0: none outstanding; of the active start for a persistent one */
	uint32_t what;   /* CQ_R_* */
	uint32_t template_; /* serial of the *_init call of a persistent request; else 0 */
	uint32_t next;   /* node + 1 of the next request of the same handle value; 0: none */
} cq_req;

typedef struct {
	uint64_t key;
	cq_req first; /* the oldest; serial and template_ 0: there is none */
	uint32_t last; /* node + 1 of the youngest; 0: first is the only one */
	uint32_t spare;
} cq_reqslot;

/* Requests by handle: several outstanding ones can share a handle value (both libraries give one and the same completed
 * request for many eager sends), so each slot is a queue. A slot keeps its key when its queue is empty, because the
 * libraries use the same few values again and again. */
typedef struct {
	cq_reqslot *slots; /* mask + 1, and one for what there is no memory for */
	uint64_t mask;
	uint64_t used;
	cq_req *nodes;
	uint32_t nodes_cap, nodes_used, nodes_free; /* nodes_free: node + 1 */
	/* With MPI_THREAD_MULTIPLE each thread has tables of its own. Their lock is the owner's cache line as long as no other
	 * thread completes what the owner has made. */
	uint32_t lock;
	uint32_t live; /* entries that are not idle; read without the lock */
} cq_reqtab;

/* Scratch memory of a thread that only grows. */
typedef struct {
	void *p;
	size_t bytes;
} cq_scratch;

/* A call site in a thread's cache: of a return address, or, with more frames, of a path (key is its address in memory). */
typedef struct {
	uint64_t key; /* 0: empty */
	uint32_t number;
	uint32_t spare;
} cq_site_slot;

/* What is known of a return address behind which other frames come before the program's; see sites.c. */
typedef struct {
	const void *site; /* NULL: empty */
	int64_t away;     /* one frame: where the program's return address is, from the stack pointer at the call */
	int32_t sure;     /* one frame: how often it was there */
	int32_t at, lead; /* several frames: index of site in a backtrace, and of the program's first frame */
	int32_t spare;
} cq_hop;

typedef struct cq_thread cq_thread;
struct cq_thread {
	uint8_t *next, *end; /* the free slots of the window */
	cq_call *call;       /* slot of the call in progress, or of the last one */
	uint64_t t0, t1;     /* of the call in progress */
	uint64_t last;       /* tick where the last interval ended */
	uint64_t shorts;     /* ticks in short intervals since the CPU clock was read */
	int64_t cpu;         /* the CPU clock then, ns */
	uint64_t gathered;   /* compute ns before failed polls since the last record */
	uint64_t wide;       /* compute ns that did not fit the CALL slot */
	uint64_t polls, poll_ticks; /* since the last record */
	uint64_t due;        /* CQ_DUE_*: what is to be done at the end of the call */
	const void *site;    /* where the call in progress returns to */
	const void *cfa;     /* the stack pointer there before the call */
	cq_comm *comm;       /* last used */
	cq_type *type;       /* last used */
	/* The rest is cold. */
	cq_header *head;
	int fd;
	uint64_t file_dev, file_ino; /* what fd was opened on: a program can close it, and then open a file of its own there */
	int dead;            /* nothing more can be written */
	int buffered;        /* sink is write(2), or none, see counted */
	int counted;         /* slots are only counted (COMMQ_SINK=null) */
	int closing;         /* the file is being closed, by the thread that ends or by who ends the process */
	int number;
	uint8_t *window;     /* first byte of the mapped window, or the buffer */
	size_t window_bytes;
	uint8_t *held;       /* an earlier window that holds the slot of the call in progress */
	size_t held_bytes;
	int64_t window_off;  /* where the window begins in the file */
	int64_t size;        /* of the file as allocated */
	int64_t call_off;    /* buffered: where call stands in the file once it has left the buffer; else 0 */
	uint64_t polls_all;
	cq_scratch keys, statuses, infos, indices, blob, packed, hashes;
	cq_req claim;        /* MPI_THREAD_MULTIPLE: the request of a test in progress, see cq_claim */
	int claims;          /* how many are in infos */
	int no_statuses;     /* there was no memory for the statuses of the call in progress */
	uint32_t serial, serial_end; /* MPI_THREAD_MULTIPLE: numbers set aside for this thread */
	cq_reqtab own_tables[2]; /* MPI_THREAD_MULTIPLE: requests, messages */
	cq_thread *active;   /* next of the threads that have not ended */
	cq_comm *comms[8];   /* used before, by the hash of their handles; NULL: none */
	cq_type *types[8];
	uint32_t busy;       /* someone moves or writes out the buffer */
	uint64_t flushed;    /* tick when it was written out last */
	int signalled;       /* a signal handler has made cq_current NULL */
	int perf_fd[2];      /* counters of instructions and cycles; -1: none */
	void *perf_page[2];
	uint64_t perf_id;
	int64_t count_base[2]; /* the counters where the last interval ended; CQ_NULL64: not known */
	int64_t count[2];    /* instructions and cycles since the last record; CQ_NULL64: not known */
	uint64_t count_reads;
	cq_posted in;        /* what the call in progress receives into, or makes a persistent send of */
	uint64_t regions[64]; /* stretches of memory, by their number + 1, where there are payloads and no GPU's memory */
	cq_thread *link;     /* next thread of the process */
	CQ_VIRTUAL(cq_virtual vt; int streamed; uint8_t room[72];) /* streamed: the records go to a simulator rank; room for an event before them */
	cq_header own;       /* the header when it is not mapped */
	cq_call trash;       /* where slots go when dead, and the copy of a CALL slot that has left the buffer */
	cq_hop hops[256];
	cq_site_slot sites[1024];
};

/* COUNTS, TIMED and DROP stay due for ever. Other threads and signal handlers may set MARK and FLUSH. */
enum { CQ_DUE_CLOCK = 1, CQ_DUE_REWRITE = 2, CQ_DUE_DROP = 4, CQ_DUE_COUNTS = 8, CQ_DUE_TIMED = 16, CQ_DUE_MARK = 32, CQ_DUE_FLUSH = 64 };
enum { CQ_NEW = 0, CQ_ON = 1, CQ_OFF = 2 };

typedef struct {
	int state;
	int resolved;
	int locked; /* MPI_THREAD_MULTIPLE */
	int tsc;
	uint64_t short_ticks; /* intervals up to this are measured by ticks alone, and nothing else is done in them */
	uint64_t cpu_ticks;   /* those that are longer end with a read of the CPU clock */
	uint64_t flush_ticks; /* how long records may be only in a buffer */
	uint64_t mult;        /* ns = ticks * mult >> 32 for compute times; 0 with COMMQ_CLOCK=none */
	uint64_t scale;       /* the same, always */
	int64_t cpu_read_ns;  /* cost of one read of the CPU clock */
	int clock;            /* CQ_CLOCK_* */
	int f_base;           /* what Fortran's indices begin with */
	int isendrecv_status; /* the status of an MPI_Isendrecv says what was received */
	int status_fields;    /* bytes and cancellation can be read from the status' own fields */
	int rank, size, thread_level;
	int force_write, count_only; /* COMMQ_SINK=write, null */
	uint64_t limit;       /* COMMQ_MAX_SPOOL, bytes per file; 0: none */
	int counters;         /* CQ_COUNTERS_* */
	cq_thread *first;     /* whose header has the marks; its memory is never given back */
	int handles_signal;   /* SIGUSR1 is ours */
	int mark_pending;     /* a mark that no thread has recorded yet */
	uint64_t mark_tick;
	int stack; /* frames of a call site; 0: none */
	const void *init_site, *init_cfa; /* of MPI_Init */
	int threads;
	uint32_t serials;
	uint32_t lock;
	int32_t comms_made, types_made;
	uint64_t job;
	pthread_key_t exit_key;
	int has_exit_key;
	int pid; /* a child that was made without fork handlers has another one */
	int hash;   /* CQ_ALGORITHM_*: payloads are hashed */
	int verify; /* received ones too */
	MPI_Comm pack_comm; /* for MPI_Pack: an error on it is returned */
	int has_pack_comm;
	cq_map posted; /* by serial + 2 */
	cq_posted *posted_free;
	cq_map comms, types, windows, files;
	void *spare_objects; /* entries of windows and files that are gone */
	cq_comm *spare_comms; /* of communicators and datatypes that the program has freed */
	cq_type *spare_types;
	int32_t windows_made, files_made;
	cq_comm none_comm;
	cq_type none_type;
	cq_reqtab requests, messages;
	cq_thread *list, *active; /* all threads, and those that have not ended */
	MPI_Group world_group;
	int has_world_group;
	int users;    /* MPI_Init and sessions that have not ended */
	int sessions; /* recording was started by MPI_Session_init */
	int starting; /* an MPI_Session_init has begun to start recording */
	MPI_Comm clock_comm; /* a duplicate of MPI_COMM_WORLD where there are several hosts */
	int hosts, host_number;
	int *leaders; /* lowest rank of each host */
	char *pool;
	size_t pool_left;
	int finalizing;
	uint64_t init_tick; /* entry of MPI_Init */
	uint64_t clock0_tick;
	int64_t clock0_ns, realtime_ns;
	int64_t offset_ns, offset_error_ns, offset_at_ns;
	char spool[3072];
	char host[64], boot[64], library[512], program[256];
} cq_state;

extern cq_state cq __attribute__((visibility("hidden")));
/* The thread when it may record; NULL inside a recorded call, which is the depth guard, and where nothing is recorded. */
extern CQ_TLS cq_thread *cq_current __attribute__((visibility("hidden")));

#pragma GCC visibility push(hidden)

#if CQ_SIM
extern int cq_sim_on; /* times are virtual */
int cq_sim_begin(void);
void cq_sim_thread(cq_thread *t);
void cq_sim_compute(cq_thread *t, uint64_t compute);
void cq_sim_sends(cq_thread *t);
void cq_sim_close(cq_thread *t, int err);
void cq_sim_resume(cq_thread *t);
void cq_sim_leaving(cq_thread *t);
void cq_sim_records(cq_thread *t, const void *p, size_t n, int64_t off);
void cq_sim_comm(cq_thread *t, cq_comm *m, MPI_Comm like, int32_t parent, uint64_t instance, int key);
void cq_sim_comm_end(cq_comm *m);
void cq_sim_sync(void);
void cq_sim_leave(cq_thread *t);
void cq_sim_quit(void);
void cq_sim_rest(uint64_t idle_ns);
void cq_sim_child(void);
/* The return of the call in progress, as the records have it. */
#define CQ_T1(t) CQ_AT(t, (t)->t1)
/* Now, where times are virtual, else a tick. */
#define CQ_AT(t, tick) (cq_sim_on ? (uint64_t)(t)->vt.now : (tick))
#else
#define CQ_T1(t) ((t)->t1)
#define CQ_AT(t, tick) (tick)
#endif

cq_thread *cq_enter_slow(const void *cfa);
void cq_due(cq_thread *t, uint64_t bits);
void *cq_take_slow(cq_thread *t);
uint64_t cq_long_gap(cq_thread *t, uint64_t *now, uint64_t gap);
void cq_long_call(cq_thread *t);
void cq_polled_long(cq_thread *t);
void cq_extra(cq_thread *t, int err);
cq_comm *cq_comm_find(cq_thread *t, MPI_Comm h);
cq_type *cq_type_find(cq_thread *t, MPI_Datatype h);
void cq_comm_known(cq_thread *t, MPI_Comm h, int kind);
void cq_comm_drop(uint64_t key);
void cq_comm_name(cq_thread *t, MPI_Comm h, const char *name, size_t n);
void cq_type_drop(uint64_t key);
int32_t cq_object_add(cq_map *m, int32_t *made, uint64_t key, int32_t comm);
cq_object cq_object_get(cq_map *m, uint64_t key);
cq_object cq_object_drop(cq_map *m, uint64_t key);
uint32_t cq_object_split(cq_map *m, uint64_t key, int begin);
cq_type *cq_type_seen(MPI_Datatype h);
int cq_envelope(MPI_Datatype h, int *n);
void *cq_pool_get(size_t bytes);
int cq_map_put(cq_map *m, uint64_t key, void *value);
void *cq_map_get(const cq_map *m, uint64_t key);
void *cq_map_remove(cq_map *m, uint64_t key);
void cq_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cq_hash_begin(void);
void cq_hash_end(void);
int32_t cq_comm_define(cq_thread *t, MPI_Comm h, MPI_Comm like, int kind, int32_t parent, uint64_t instance, int key);
void *cq_scratch_get(cq_scratch *s, size_t bytes);
int cq_op_code(MPI_Op op);
int cq_reqtab_init(cq_reqtab *q);
cq_reqslot *cq_req_slot_slow(cq_reqtab *q, uint64_t key);
cq_reqtab *cq_req_hold(cq_reqtab *q, uint64_t key, cq_reqslot **s);
void cq_req_release(cq_reqtab *q);
void cq_req_put_back(cq_reqtab *q, uint64_t key, cq_req r);
cq_req cq_req_end(cq_reqtab *q, uint64_t key);
void cq_claim(cq_thread *t, const uint64_t *keys, int n);
void cq_tables_leave(cq_thread *t);
uint32_t cq_serial_set_aside(void);
void cq_req_push(cq_reqtab *q, cq_reqslot *s, cq_req r);
void cq_req_pop_more(cq_reqtab *q, cq_reqslot *s);
uint32_t cq_req_add_locked(cq_reqtab *q, uint64_t key, uint32_t what);
cq_req cq_req_take_locked(cq_reqtab *q, uint64_t key);
cq_thread *cq_self(void);
int64_t cq_status_bytes_slow(const MPI_Status *st);
int cq_status_cancelled_slow(const MPI_Status *st);
void cq_lock_slow(void);
void cq_spin(uint32_t *lock);
void cq_resolve(void);
void cq_world_define(cq_thread *t);
void cq_clock_offsets_begin(const void *hellos, size_t stride);
void cq_clock_offsets_end(void);
void cq_init_starts(int id);
uint32_t cq_site_slow(cq_thread *t);
/* Gets ready to find cq.stack frames; 0 when libunwind, which that needs, is not there. */
int cq_sites_init(void);
void cq_init_after(int id, int err);
void cq_abort_before(cq_thread *t);
void cq_finalize_before(cq_thread *t);
void cq_finalize_after(cq_thread *t, int err);
#if CQ_MPI4
void cq_session_starts(const void *site, const void *cfa);
void cq_session_after(cq_thread *t, int err, const MPI_Session *session);
int cq_session_ends(void);
void cq_session_end_after(cq_thread *t, int err, int last);
#endif

/* It is inlined into the wrapper, so that the return address and the stack are the wrapper's. The stack tells a call from
 * inside MPI (which is deeper) from one after a call that never returned, because something jumped out of it. */
CQ_HOT cq_thread *cq_enter(void)
{
	cq_thread *t = cq_current;
	if (CQ_LIKELY(t != NULL))
		cq_current = NULL;
	else if ((t = cq_enter_slow(__builtin_dwarf_cfa())) == NULL)
		return NULL;
	t->site = __builtin_return_address(0);
	t->cfa = __builtin_dwarf_cfa();
	return t;
}

CQ_HOT void cq_init_before(int id)
{
	cq.init_site = __builtin_return_address(0);
	cq.init_cfa = __builtin_dwarf_cfa();
	cq_init_starts(id);
}

CQ_HOT void cq_leave(cq_thread *t)
{
	cq_current = t;
}

CQ_HOT uint64_t cq_monotonic(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

CQ_HOT uint64_t cq_tick(void)
{
#if defined(__x86_64__)
	if (CQ_LIKELY(cq.tsc))
		return __rdtsc();
	return cq_monotonic();
#elif defined(__aarch64__)
	uint64_t v;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return cq_monotonic();
#endif
}

CQ_HOT uint64_t cq_ticks_ns(uint64_t ticks, uint64_t mult)
{
	return (uint64_t)(((unsigned __int128)ticks * mult) >> 32);
}

/* A free slot. It may hold anything: the caller sets every field that is read. */
CQ_HOT void *cq_take(cq_thread *t)
{
	uint8_t *p = t->next;
	if (CQ_UNLIKELY(p == t->end))
		return cq_take_slow(t);
	t->next = p + CQ_SLOT_BYTES;
	return p;
}

CQ_HOT uint64_t cq_hash(uint64_t key)
{
	key *= 0x9e3779b97f4a7c15u;
	return key ^ (key >> 32);
}

/* The number of the call site. */
CQ_HOT uint32_t cq_site(cq_thread *t)
{
	uint64_t key = (uint64_t)(uintptr_t)t->site;
	cq_site_slot *s = &t->sites[cq_hash(key) % (sizeof t->sites / sizeof t->sites[0])];
	return CQ_LIKELY(s->key == key) ? s->number : cq_site_slow(t);
}

/* The CALL slot of a call that is about to be made; its kind is still 0. */
CQ_HOT cq_call *cq_open(cq_thread *t, int id)
{
	uint32_t site = cq_site(t); /* a site seen for the first time is defined before the slot */
	cq_call *c = cq_take(t);
	t->call = c;
	c->call = (uint16_t)id;
	c->t1 = 0;
	c->site = site;
	return c;
}

/* Compute time since the last MPI call; sets the entry time. */
CQ_HOT uint64_t cq_gap(cq_thread *t)
{
	uint64_t now = cq_tick(), gap = now - t->last, ns;
	if (CQ_LIKELY(gap <= cq.short_ticks)) {
		t->shorts += gap;
		ns = cq_ticks_ns(gap, cq.mult);
	} else {
		ns = cq_long_gap(t, &now, gap);
	}
	t->t0 = now;
	return ns + t->gathered;
}

CQ_HOT void cq_stamp(cq_thread *t, cq_call *c, uint64_t compute)
{
	t->gathered = 0;
	CQ_VIRTUAL(cq_sim_compute(t, compute); t->vt.counted = 0;)
	if (CQ_UNLIKELY(compute >= UINT32_MAX)) {
		t->wide = compute;
		compute = UINT32_MAX;
	}
	c->compute_ns = (uint32_t)compute;
	c->t0 = t->t0;
	CQ_VIRTUAL(c->t0 = cq_sim_on ? (uint64_t)t->vt.now : t->t0;)
}

CQ_HOT void cq_barrier(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The last thing before the call: times, then the kind, so that a kill leaves a whole slot or none. Slots may have been taken
 * since the CALL slot was, and have moved it. */
CQ_HOT void cq_go(cq_thread *t, cq_call *c)
{
	c = t->call;
	cq_stamp(t, c, cq_gap(t));
	cq_barrier();
	*(volatile uint8_t *)&c->kind = CQ_CALL;
}

/* The first thing after the call. */
CQ_HOT void cq_back(cq_thread *t)
{
	uint64_t now = cq_tick(), d = now - t->t0;
	t->t1 = now;
	if (CQ_LIKELY(d <= cq.short_ticks)) {
		t->shorts += d;
		t->last = now;
	} else {
		cq_long_call(t);
	}
}

/* The last thing of a recorded call. */
CQ_HOT void cq_close(cq_thread *t, int err)
{
	CQ_VIRTUAL(cq_sim_close(t, err);)
	if (CQ_UNLIKELY((t->polls | t->wide | (uint64_t)err | t->due) != 0))
		cq_extra(t, err);
	cq_barrier();
	*(volatile uint64_t *)&t->call->t1 = CQ_T1(t);
	CQ_VIRTUAL(cq_sim_resume(t);)
	cq_leave(t);
}

CQ_HOT void cq_lock(void)
{
	if (CQ_UNLIKELY(cq.locked))
		cq_lock_slow();
}

CQ_HOT void cq_unlock(void)
{
	if (CQ_UNLIKELY(cq.locked))
		__atomic_store_n(&cq.lock, 0, __ATOMIC_RELEASE);
}

CQ_HOT cq_comm *cq_comm_of(cq_thread *t, MPI_Comm h)
{
	cq_comm *m = t->comm;
	return CQ_LIKELY(m->key == CQ_KEY(h)) ? m : cq_comm_find(t, h);
}

CQ_HOT cq_type *cq_type_of(cq_thread *t, MPI_Datatype h)
{
	cq_type *y = t->type;
	return CQ_LIKELY(y->key == CQ_KEY(h) && CQ_TYPE_FIXED(h)) ? y : cq_type_find(t, h);
}

/* The queue of a handle value; made when it is not there yet. */
CQ_HOT cq_reqslot *cq_req_slot(cq_reqtab *q, uint64_t key)
{
	cq_reqslot *s = &q->slots[cq_hash(key) & q->mask];
	return CQ_LIKELY(s->key == key) ? s : cq_req_slot_slow(q, key);
}

CQ_HOT uint32_t cq_serial(void)
{
	if (CQ_UNLIKELY(cq.locked))
		return cq_serial_set_aside();
	return ++cq.serials;
}

CQ_HOT uint32_t cq_req_add_at(cq_reqtab *q, cq_reqslot *s, uint32_t what)
{
	uint32_t serial = cq_serial();
	cq_req r = {serial, what, 0, 0};
	if (what & CQ_R_PERSISTENT) {
		r.serial = 0;
		r.template_ = serial;
	}
	if (CQ_LIKELY((s->first.serial | s->first.template_) == 0))
		s->first = r;
	else
		cq_req_push(q, s, r);
	return serial;
}

CQ_HOT cq_req cq_req_take_at(cq_reqtab *q, cq_reqslot *s)
{
	cq_req r = s->first;
	s->first.serial = 0;
	if (CQ_UNLIKELY(s->last != 0))
		cq_req_pop_more(q, s);
	return r;
}

/* Notes a request (or message) that a call has made; returns its serial. */
CQ_HOT uint32_t cq_req_add(cq_reqtab *q, uint64_t key, uint32_t what)
{
	if (CQ_UNLIKELY(cq.locked))
		return cq_req_add_locked(q, key, what);
	return cq_req_add_at(q, cq_req_slot(q, key), what);
}

/* The oldest request of a handle value, taken out because it is complete; serial 0: not known or not active. */
CQ_HOT cq_req cq_req_take(cq_reqtab *q, uint64_t key)
{
	if (CQ_UNLIKELY(cq.locked))
		return cq_req_take_locked(q, key);
	return cq_req_take_at(q, cq_req_slot(q, key));
}

/* PMPI_Get_elements_x and PMPI_Test_cancelled of a status, by its fields where cq_init_after has seen that they mean that. */
CQ_HOT int64_t cq_status_bytes(const MPI_Status *st)
{
	if (CQ_UNLIKELY(!cq.status_fields))
		return cq_status_bytes_slow(st);
#if CQ_OPENMPI
	return (int64_t)st->_ucount;
#else
	return (int64_t)((uint64_t)(uint32_t)st->count_lo | (uint64_t)((uint32_t)st->count_hi_and_cancelled >> 1) << 32);
#endif
}

CQ_HOT int cq_status_cancelled(const MPI_Status *st)
{
	if (CQ_UNLIKELY(!cq.status_fields))
		return cq_status_cancelled_slow(st);
#if CQ_OPENMPI
	return st->_cancelled != 0;
#else
	return st->count_hi_and_cancelled & 1;
#endif
}

#pragma GCC visibility pop

#endif
