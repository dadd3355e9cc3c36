/* The state of the process and of its threads, shared by all layers above: data, with its locks and memory. The
 * layers above fill it in. */
#ifndef COMMQ_STATE_H
#define COMMQ_STATE_H

#include <pthread.h>

#include "hooks.h"
#include "library.h"
#include "lock.h"
#include "map.h"
#include "pages.h"
#include "print.h"
#include "spool.h"

struct cq_comm {
	uint64_t key; /* 0: freed */
	uint64_t instance; /* collective operations so far */
	int32_t number;
	int32_t rank, size, remote; /* remote: size of the remote group; 0 in an intracommunicator */
	int sources_n, destinations_n; /* neighbours in the topology; 0 without one */
	/* their ranks, in the order of collectives' arguments; some may be MPI_PROC_NULL */
	const int *sources, *destinations;
	int *neighbors; /* the pages of long lists; else NULL */
	size_t neighbors_bytes;
	int *room; /* memory for short lists */
	size_t room_bytes;
	void *spare; /* the next entry in the list of spare ones */
	uint64_t hook_key; /* the hooks' own */
	void *hook_data;
};

/* The memory layout of a datatype's elements. */
typedef struct {
	int64_t bytes;  /* payload of one element */
	int64_t lower;  /* offset of its first byte in the buffer: the true lower bound */
	int64_t extent;
	int64_t span;   /* its true extent */
	int32_t parts[4]; /* MPI_Type_get_envelope */
	uint8_t known;
	uint8_t in_order; /* the bytes of an element lie in the order of sending, without gaps */
	uint8_t element;  /* CQ_E_* of hash.h: how payload_sum adds it up */
	uint8_t spare[5];
} cq_shape;

typedef struct {
	uint64_t key; /* 0: freed */
	int64_t bytes;
	int32_t number;
	int32_t gap;
	cq_shape shape; /* set if payloads are hashed */
	void *spare; /* the next entry in the list of spare ones */
} cq_type;

/* A window or a file. */
typedef struct {
	int32_t number; /* in the process; -1: not known */
	int32_t comm;   /* the number of its communicator */
	uint32_t split; /* of a file: serial of the split collective in progress; 0: none */
} cq_object;

/* A buffer to hash after the call that names it: of a receive, or of a persistent send or collective. */
typedef struct cq_posted cq_posted;
struct cq_posted {
	const void *buf;
	int64_t count;
	MPI_Datatype type; /* null if the bytes lie in order */
	MPI_Datatype of;   /* the program's type, which it may have freed */
	cq_shape shape;
	int receive, owned; /* owned: free type with the entry */
	cq_posted *next; /* a collective's next part; in the list of spare entries */
};

/* Flags of an outstanding request (or matched message). */
enum {
	CQ_R_RECV = 1,       /* the status of its completion is recorded */
	CQ_R_PERSISTENT = 2,
	CQ_R_PROC_NULL = 4,  /* the receive was posted to MPI_PROC_NULL */
	CQ_R_IO = 64,        /* I/O: only the status's bytes count, not source and tag */
};

typedef struct {
	uint32_t serial; /* 0: none outstanding; of the active start for a persistent one */
	uint32_t what;   /* CQ_R_* */
	uint32_t template_; /* serial of the *_init call of a persistent request; else 0 */
	uint32_t next;   /* node + 1 of the next request with the same handle value; 0: none */
} cq_req;

typedef struct {
	uint64_t key;
	cq_req first; /* the oldest; serial and template_ 0: there is none */
	uint32_t last; /* node + 1 of the youngest; 0: first is the only one */
	uint32_t spare;
} cq_reqslot;

/* Requests by handle. Several outstanding ones can share a handle value (both libraries return the same completed
 * request for many eager sends), so each slot is a queue. A slot keeps its key when its queue is empty, because the
 * libraries reuse the same few values. */
typedef struct {
	cq_reqslot *slots; /* mask + 1, and one for requests when memory runs out */
	uint64_t mask;
	uint64_t used;
	cq_req *nodes;
	uint32_t nodes_cap, nodes_used, nodes_free; /* nodes_free: node + 1 */
	/* With MPI_THREAD_MULTIPLE each thread has its own tables. Their lock stays in the owner's cache as long as no
	 * other thread completes the owner's requests. */
	uint32_t lock;
	uint32_t live; /* entries that are not idle; read without the lock */
} cq_reqtab;

/* Scratch memory of a thread, which only grows. */
typedef struct {
	void *p;
	size_t bytes;
} cq_scratch;

/* A call site in a thread's cache: of a return address, or, with several frames, of a path (key is its address in
 * memory). */
typedef struct {
	uint64_t key; /* 0: empty */
	uint32_t number;
	uint32_t spare;
} cq_site_slot;

/* How to get from a return address in the MPI library to the program's frame; see sites.c. */
typedef struct {
	const void *site; /* NULL: empty */
	int64_t away;     /* one frame: offset of the program's return address from the stack pointer at the call */
	int32_t sure;     /* one frame: how often it was found there */
	int32_t at, lead; /* several frames: index of site in a backtrace, and of the program's first frame */
	int32_t spare;
} cq_hop;

enum { CQ_PATH_BYTES = 3136 };

struct cq_thread {
	uint8_t *next, *end; /* the free slots of the window, up to where the next SUM slot is due */
	cq_call *call;       /* slot of the call in progress, or of the last one */
	uint64_t t0, t1;     /* of the call in progress */
	uint64_t last;       /* tick where the last interval ended */
	uint64_t shorts;     /* ticks in short intervals since the CPU clock was read */
	int64_t cpu;         /* the CPU clock then, ns */
	uint64_t gathered;   /* compute ns before failed polls since the last record */
	uint64_t wide;       /* compute ns that did not fit the CALL slot */
	uint64_t polls, poll_ticks; /* since the last record */
	uint64_t pending;    /* CQ_PENDING_*: work for the end of the call */
	const void *site;    /* return address of the call in progress */
	const void *cfa;     /* the stack pointer there before the call */
	cq_comm *comm;       /* last used */
	cq_type *type;       /* last used */
	/* The rest is cold. */
	cq_header *head;
	int fd;
	/* identifies the file behind fd: a program may close it, and then open its own under that number */
	uint64_t file_dev, file_ino;
	int dead;            /* writing has become impossible */
	int buffered;        /* records are written by write(2), streamed, or counted; else the file is mapped */
	int counted;         /* slots are only counted (COMMQ_SINK=null) */
	int streamed;        /* records go to the hooks, not into a file */
	int packs;           /* full windows become blocks of the file (COMMQ_SINK=packed, the default) */
	int odd;             /* packs: the window is the second one */
	uint8_t *windows;    /* packs: both of them */
	uint8_t *packer;     /* packs: pages for a cq_packer and a block */
	int64_t blocks_end;  /* packs: the end of the file */
	int closing;         /* the file is being closed, by the thread that ends or by the one that ends the process */
	int number;
	char path[CQ_PATH_BYTES]; /* not on the stack, which may be small; see cq_sink_path */
	uint8_t *window;     /* first byte of the mapped window, or the buffer */
	size_t window_bytes;
	uint8_t *full;       /* the end of the window's free slots */
	uint8_t *held;       /* an earlier window that holds the slot of the call in progress */
	size_t held_bytes;
	int64_t held_off;    /* its offset in the file */
	int64_t window_off;  /* offset of the window in the file */
	int64_t size;        /* of the file as allocated */
	int64_t call_off;    /* buffered, packs: offset of call among the slots once it has left the window; else 0 */
	int64_t summed;      /* slots that SUM slots cover */
	uint32_t sums;       /* SUM slots so far */
	uint32_t sum_flags;  /* CQ_SUM_*, of the next SUM slot */
	volatile int growing; /* the thread is in cq_take_slow */
	uint64_t polls_all;
	cq_scratch keys, statuses, infos, indices, blob, packed, hashes;
	cq_req claim;        /* MPI_THREAD_MULTIPLE: the request of a test in progress, see cq_claim */
	int claims;          /* number of requests in infos */
	int no_statuses;     /* memory ran out for the statuses of the call in progress */
	uint32_t serial, serial_end; /* MPI_THREAD_MULTIPLE: numbers set aside for this thread */
	cq_reqtab own_tables[2]; /* MPI_THREAD_MULTIPLE: requests, messages */
	cq_thread *active;   /* next of the threads that have not ended */
	cq_comm *comms[8];   /* used before, by the hash of their handles; NULL: none */
	cq_type *types[8];
	uint32_t busy;       /* the buffer is being moved or written out */
	uint64_t flushed;    /* tick of the last time it was written out */
	int signalled;       /* a signal handler has made cq_current NULL */
	int perf_fd[2];      /* counters of instructions and cycles; -1: none */
	void *perf_page[2];
	uint64_t perf_id;
	int64_t count_base[2]; /* the counters where the last interval ended; CQ_NULL64: not known */
	int64_t count[2];    /* instructions and cycles since the last record; CQ_NULL64: not known */
	uint64_t count_reads;
	cq_posted in;        /* the buffer of the receive, or persistent send, in progress */
	uint64_t regions[64]; /* stretches of memory that hold payloads and are not a GPU's, by number + 1 */
	cq_thread *link;     /* next thread of the process */
	void *hook_data;     /* the hooks' own */
	uint8_t room[CQ_RECORD_ROOM]; /* for the hook that takes the records: own must follow */
	cq_header own;       /* the header when it is not mapped */
	cq_call trash;       /* slots go here when dead; also the copy of a CALL slot that has left the buffer */
	cq_hop hops[256];
	cq_site_slot sites[1024];
};

/* Work for the end of a call. COUNTS, TIMED and DROP stay set. Other threads and signal handlers may set MARK and
 * FLUSH. */
enum {
	CQ_PENDING_CLOCK = 1,
	CQ_PENDING_REWRITE = 2,
	CQ_PENDING_DROP = 4,
	CQ_PENDING_COUNTS = 8,
	CQ_PENDING_TIMED = 16,
	CQ_PENDING_MARK = 32,
	CQ_PENDING_FLUSH = 64,
};
enum { CQ_NEW = 0, CQ_ON = 1, CQ_OFF = 2 };

typedef struct {
	int state;
	int resolved;
	int locked; /* MPI_THREAD_MULTIPLE */
	int tsc;
	uint64_t short_ticks; /* intervals up to this are timed by ticks alone, and nothing else happens in them */
	uint64_t cpu_ticks;   /* longer ones end with a read of the CPU clock */
	uint64_t flush_ticks; /* how long records may stay in a buffer */
	uint64_t mult;        /* ns = ticks * mult >> 32 for compute times; 0 with COMMQ_CLOCK=none */
	uint64_t scale;       /* the same, whatever COMMQ_CLOCK is */
	int64_t cpu_read_ns;  /* cost of one read of the CPU clock */
	int clock;            /* CQ_CLOCK_* */
	int f_base;           /* the lowest index in Fortran */
	int isendrecv_status; /* the status of an MPI_Isendrecv has the received message */
	int status_fields;    /* bytes and cancellation can be read from the status's own fields */
	int rank, size, thread_level;
	int force_write, count_only, pack; /* COMMQ_SINK=write, null, packed or nothing */
	uint64_t limit;       /* COMMQ_MAX_SPOOL, bytes per file; 0: none */
	int counters;         /* CQ_COUNTERS_* */
	cq_thread *first;     /* its header has the marks; its memory is never freed */
	int handles_signal;   /* SIGUSR1 has our handler */
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
	int pid; /* differs in a child made without fork handlers */
	int hash;   /* CQ_ALGORITHM_*: payloads are hashed */
	int verify; /* received ones too */
	MPI_Comm pack_comm; /* for MPI_Pack: returns errors */
	int has_pack_comm;
	cq_map posted; /* by serial + 2 */
	cq_posted *posted_free;
	cq_map comms, types, windows, files;
	void *spare_objects; /* entries of freed windows and files */
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
	MPI_Comm clock_comm; /* a duplicate of MPI_COMM_WORLD, if there are several hosts */
	int common_clock;    /* times are the same on all hosts */
	int hosts, host_number;
	int *leaders; /* lowest rank of each host */
	char *pool;
	size_t pool_left;
	int finalizing;
	uint64_t init_tick; /* entry of MPI_Init */
	uint64_t clock0_tick;
	int64_t clock0_ns, realtime_ns;
	int64_t offset_ns, offset_error_ns, offset_at_ns;
	char spool[CQ_PATH_BYTES - 64]; /* absolute */
	char host[64], boot[64], library[512], program[256];
	uint8_t cores[512]; /* as in cq_header */
	int complained; /* a failure of the spool was reported */
} cq_state;

extern cq_state cq __attribute__((visibility("hidden")));
/* The thread if it may record; NULL if nothing is recorded, and inside a recorded call, which guards against
 * nesting. */
extern CQ_TLS cq_thread *cq_current __attribute__((visibility("hidden")));
/* The calling thread, also inside a recorded call; NULL if it has not recorded yet. */
extern CQ_TLS cq_thread *cq_mine __attribute__((visibility("hidden")));
/* The calling thread is starting to record, or has failed to start: none of its calls is recorded. */
extern CQ_TLS int cq_opening __attribute__((visibility("hidden")));

#pragma GCC visibility push(hidden)

void cq_lock_slow(void);
/* Sets work for the end of a thread's call. Other threads and signal handlers may call it. */
void cq_set_pending(cq_thread *t, uint64_t bits);
/* Tests and clears it. */
int cq_take_pending(cq_thread *t, uint64_t bits);
/* Reports whether the thread's call in progress has not returned. */
int cq_in_call(const cq_thread *t);
/* Memory that never moves and is never freed, because threads remember the last entry they used; under cq_lock. */
void *cq_pool_get(size_t bytes);
/* At least so many bytes of scratch memory; NULL if memory runs out. */
void *cq_scratch_get(cq_scratch *s, size_t bytes);
/* Reports an error (an errno) of the spool and its outcome, once per process. */
void cq_complain(const char *doing, int e, const char *outcome);

CQ_HOT void cq_lock(void)
{
	if (CQ_UNLIKELY(cq.locked))
		cq_lock_slow();
}

CQ_HOT void cq_unlock(void)
{
	if (CQ_UNLIKELY(cq.locked))
		cq_unspin(&cq.lock);
}

#pragma GCC visibility pop

#endif
