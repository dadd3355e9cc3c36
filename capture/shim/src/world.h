/* What the program takes for MPI_COMM_WORLD. In the build for simulator ranks (-DCQ_SIM=1) it is a communicator of the
 * program's ranks alone, and each wrapper puts it in the place of MPI_COMM_WORLD; else the two are the same. */
#ifndef COMMQ_WORLD_H
#define COMMQ_WORLD_H

#if CQ_SIM

typedef struct {
	MPI_Comm app;     /* MPI_COMM_WORLD itself until the ranks are told apart, and in processes that were spawned */
	MPI_Fint world_f, app_f;
	MPI_Comm channel; /* a duplicate of the real MPI_COMM_WORLD */
	int split;        /* app and channel are there */
	int apps, sims;   /* how many ranks are the program's, and how many simulator ranks */
	int self;         /* this rank's number among those of its kind */
	int *ranks;       /* on channel: of the program's ranks, then of the simulators */
	int derived;      /* in Open MPI the keyval of what app and its duplicates have */
	int ours;         /* MPI_Init was called here, for a program that has sessions and no MPI_Init yet */
	int late;         /* a session was opened, so that the real MPI_Finalize comes when the program exits */
	int finalized;    /* the program has called MPI_Finalize, which is late */
} cq_world_state;

extern cq_world_state cq_world __attribute__((visibility("hidden")));

enum { CQ_WORLD_APP = 0, CQ_WORLD_SIM = 1 };

#pragma GCC visibility push(hidden)

/* Tells the program's ranks from simulator ranks; every process of the job calls it once, after PMPI_Init. Returns this
 * rank's role. Without simulator ranks, and in a process that was spawned, nothing is split. */
int cq_world_meet(int role);
/* Gives up what cq_world_meet has made, before PMPI_Finalize. */
void cq_world_part(void);
#if CQ_MPI4
/* Whether the program opens a session with nothing begun before: then cq_world_begin begins all. */
int cq_world_absent(void);
void cq_world_begin(void);
/* A session was opened: from now on MPI_Finalize is late. */
void cq_world_late(void);
#endif
/* Whether the program's MPI_Init is done already; and whether its MPI_Finalize is to be late. */
int cq_world_begun(void);
int cq_world_stays(void);

#pragma GCC visibility pop

#define CQ_WORLD (cq_world.app)
#define CQ_AS_APP(c) ((c) == MPI_COMM_WORLD ? cq_world.app : (c))
#define CQ_BEGUN() cq_world_begun()
#define CQ_STAYS() cq_world_stays()
#define CQ_IN_APP(c) \
	do { \
		if (CQ_UNLIKELY((c) == MPI_COMM_WORLD)) \
			(c) = cq_world.app; \
	} while (0)
#define CQ_IN_APP_F(c) \
	do { \
		if (CQ_UNLIKELY(*(c) == cq_world.world_f)) \
			(c) = &cq_world.app_f; \
	} while (0)

#else

#define CQ_WORLD MPI_COMM_WORLD
#define CQ_AS_APP(c) (c)
#define CQ_BEGUN() 0
#define CQ_STAYS() 0
#define CQ_IN_APP(c) ((void)0)
#define CQ_IN_APP_F(c) ((void)0)

#endif

#endif
