/* The hooks of the recorder: how simulator ranks (sim.c) follow what is recorded and set the clock of the records. Only
 * the build for simulator ranks (-DCQ_SIM=1) has them. In the ordinary build cq_hooks is a constant NULL, so that the
 * compiler drops every test of it and a recorded call costs nothing more. In the build with simulator ranks cq_hooks is
 * never NULL, and the hooks do nothing as long as no simulator rank takes the records. Call a hook as: if (cq_hooks !=
 * NULL) cq_hooks->name(...). */
#ifndef COMMQ_HOOKS_H
#define COMMQ_HOOKS_H

#include "library.h"
#include "spool.h"

typedef struct cq_thread cq_thread;
typedef struct cq_comm cq_comm;

/* How a call sends: see cq_hook_table.sends. */
enum {
	CQ_SENDS_NOT = 0,
	CQ_SENDS = 1,       /* in the call itself */
	CQ_SENDS_LATER = 2, /* it makes a persistent request, and each MPI_Start of it sends */
	CQ_SENDS_PARTS = 3, /* the same, in partitions */
};

/* The origin of a communicator, as all its members know it. */
typedef struct {
	int kind;          /* schema.CommKind */
	int32_t parent;    /* number of the communicator that it was made from; CQ_NULL32: none */
	uint64_t instance; /* of the constructor on the parent */
	int key;           /* tag, or another number that distinguishes constructors not counted on the parent */
	int counted;       /* the constructor counts as an operation on a parent that all members share */
} cq_origin;

typedef struct {
	/* Starting and ending. */

	/* After PMPI_Init: separates the program's ranks from simulator ranks, and never returns on the latter.
	 * Returns 0 if the program turns out to have no simulator ranks; then nothing is recorded. */
	int (*meet)(void);
	/* Reports whether records go to the hooks instead of files. */
	int (*takes_records)(void);
	/* Recording begins; it ends at once if a rank cannot record. */
	void (*recording_begins)(void);
	void (*recording_fails)(void);
	/* The calling thread's records begin; returns 0 if memory runs out. */
	int (*thread_begins)(cq_thread *t);
	/* Before PMPI_Finalize. t is the thread with MPI_Finalize in progress, NULL if that is not recorded. */
	void (*finalizes)(cq_thread *t);
	/* The process aborts, exits without MPI_Finalize, or is a forked child. */
	void (*aborts)(void);
	void (*exits)(void);
	void (*forked)(void);
	/* Report whether MPI is already initialized at the program's MPI_Init, and whether its MPI_Finalize is postponed.
	 * Test and clear. */
	int (*init_is_done)(void);
	int (*finalize_is_put_off)(void);
	/* Before an MPI_Session_init called from site. Returns 1 if it was the program's first use of MPI and its record
	 * is complete. */
	int (*session_opens)(const void *site, const void *cfa);

	/* Time. */

	/* The time that records hold for a tick of this thread's clock: the current virtual time. */
	uint64_t (*time)(const cq_thread *t, uint64_t tick);
	/* Returns the entry time of the call in progress; compute is the compute time since the last record, ns. */
	uint64_t (*call_begins)(cq_thread *t, uint64_t compute);
	/* A poll failed; compute is the time since the last record, ns. */
	void (*poll_fails)(cq_thread *t, uint64_t compute);
	/* The call in progress never returns. */
	void (*call_abandoned)(cq_thread *t);
	/* The call has returned with err, and its slots are complete except for the return time. Afterwards that is set,
	 * and the program continues. */
	void (*call_ends)(cq_thread *t, int err);
	void (*call_is_closed)(cq_thread *t);
	/* Changes the clocks of a file's header, and a pair of clock readings, to virtual time. */
	void (*header)(cq_header *h);
	void (*clock_pair)(const cq_thread *t, uint64_t *tick, int64_t *ns);

	/* Announcements of what a call does. */

	/* sends: the call about to begin sends, as CQ_SENDS_*; bytes of payload. Then: the call is about to begin. */
	void (*sends)(cq_thread *t, int how, int64_t bytes);
	void (*send_begins)(cq_thread *t);
	/* The call about to begin is a collective, CQ_K_* of recorders.h. */
	void (*collective)(cq_thread *t, int kind, int persistent);
	/* The call has made a request. */
	void (*request_made)(cq_thread *t, MPI_Request r);
	/* comm_begins: a communicator has been made; ask MPI about it through like. comm_ends: it is gone; under cq_lock. */
	void (*comm_begins)(cq_thread *t, cq_comm *m, MPI_Comm like, const cq_origin *origin);
	void (*comm_ends)(cq_comm *m);

	/* Records. */

	/* Takes n bytes at p for an offset of the thread's file. The hook may overwrite CQ_RECORD_ROOM bytes before p. */
	void (*records)(cq_thread *t, const void *p, size_t n, int64_t off);
	/* The slots of a call that fills the buffer are about to leave it. */
	void (*call_leaves_buffer)(cq_thread *t);
} cq_hook_table;

enum { CQ_RECORD_ROOM = 72 };

#if CQ_SIM
extern const cq_hook_table *const cq_hooks __attribute__((visibility("hidden")));
#else
#define cq_hooks ((const cq_hook_table *)NULL)
#endif

#endif
