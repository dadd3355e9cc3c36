/* The communicator that the program sees as MPI_COMM_WORLD. In the build for simulator ranks (-DCQ_SIM=1) it contains
 * only the program's ranks, and each wrapper replaces MPI_COMM_WORLD by it; otherwise the two are the same. */
#ifndef COMMQ_WORLD_H
#define COMMQ_WORLD_H

#if CQ_SIM

typedef struct {
	MPI_Comm app;     /* MPI_COMM_WORLD itself until the ranks' roles are known, and in spawned processes */
	MPI_Fint world_f, app_f;
	MPI_Comm channel; /* a duplicate of the real MPI_COMM_WORLD */
	int split;        /* app and channel have been made */
	int apps, sims;   /* numbers of the program's ranks and of simulator ranks */
	int self;         /* this rank's number among ranks of its kind */
	int *ranks;       /* on channel: of the program's ranks, then of the simulators */
	int derived;      /* in Open MPI the keyval that app and its duplicates have */
	int ours;         /* MPI_Init was called here, for a program that has sessions and no MPI_Init yet */
	int late;         /* a session was opened, so the real MPI_Finalize runs when the program exits */
	int finalized;    /* the program has called MPI_Finalize; the real one runs later */
} cq_world_state;

extern cq_world_state cq_world __attribute__((visibility("hidden")));

#define CQ_WORLD (cq_world.app)
#define CQ_AS_APP(c) ((c) == MPI_COMM_WORLD ? cq_world.app : (c))
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
#define CQ_IN_APP(c) ((void)0)
#define CQ_IN_APP_F(c) ((void)0)

#endif

#endif
