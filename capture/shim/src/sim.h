/* Simulator ranks (docs/method/simulator-ranks.md): what the ranks of the program, the simulator ranks and the commq process
 * beside each of them say to each other. Only the build with -DCQ_SIM has it.
 *
 * A job has n ranks of the program and m simulator ranks. They meet on cq_world.channel, a duplicate of the real MPI_COMM_WORLD.
 * Rank r of the program talks to simulator r mod m about what it sends and records, and about an instance of a collective to
 * the simulator that the communicator's key says (key mod m), so that all who take part say it to one. A message to a
 * simulator is one cq_sim_event, RECORDS with bytes behind it; a message to a rank is up to CQ_SIM_MANY of them. A simulator
 * rank passes them on to its commq process (commq simrank) through a pipe as they are, and what that answers to the ranks
 * named in it. The Go twin is capture/simrank/event.go; a test compares the two. */
#ifndef COMMQ_SIM_H
#define COMMQ_SIM_H

#include <stdint.h>

#define CQ_SIM_VERSION 1
#define CQ_SIM_TAG 7
#define CQ_SIM_MANY 32
#define CQ_SIM_DATA 65536 /* RECORDS: bytes that follow, at most */

enum {
	/* from the program's ranks */
	CQ_SIM_HELLO = 1,   /* the first of each rank to its own simulator; n: the job, bytes: CQ_SIM_VERSION, peer: ranks of the program */
	CQ_SIM_SENT = 2,    /* a message was sent */
	CQ_SIM_ENTERED = 3, /* a collective was entered */
	CQ_SIM_RECORDS = 4, /* bytes of a file of records: those that follow belong at n in the file of thread peer */
	CQ_SIM_SYNC = 5,    /* to be answered when what came before is written */
	CQ_SIM_LEFT = 6,    /* nothing more comes from this rank; peer: CQ_ENDED_*, time_ps: the last of its times; n, bytes, received: see
	                     * docs/method/simulator-ranks.md: matches out of virtual-time order, of how many by choice, and nonblocking
	                     * collectives that completed early */
	/* to them */
	CQ_SIM_ARRIVES = 17, /* the event of a message: time_ps is t_x, delay_ps Delta */
	CQ_SIM_LEAVES = 18,  /* time_ps: when everyone leaves the collective */
	CQ_SIM_SYNCED = 19,
	CQ_SIM_GONE = 20,    /* the simulator cannot go on: nobody waits for it, and nothing more is recorded */
};

enum { CQ_SIM_ROOT = 1 }; /* flags: this rank is the root of the collective */

typedef struct {
	uint16_t kind;  /* CQ_SIM_* */
	uint16_t call;  /* ENTERED: id of the blocking form in schema/calls.csv */
	int32_t rank;   /* of the program: who says it; to them: whom it is for */
	int32_t peer;   /* SENT: to whom, rank of the program; ARRIVES: from whom; ENTERED: how many take part */
	int32_t tag;    /* SENT, ARRIVES */
	uint32_t flags; /* CQ_SIM_ROOT */
	int32_t spare;
	uint64_t key;     /* of the communicator: the same on all its members, and no other's */
	uint64_t n;       /* ENTERED, LEAVES: tells this operation from others on the communicator */
	int64_t time_ps;  /* SENT: t_x, the virtual time at the start of the send; ENTERED: at entry */
	int64_t delay_ps; /* ARRIVES */
	int64_t bytes;    /* SENT: payload; ENTERED: of the send argument (COLL slot's sbytes, also where that is CQ_NULL64); RECORDS: how many follow */
	int64_t received; /* ENTERED: of the receive argument (rbytes) */
} cq_sim_event;

_Static_assert(sizeof(cq_sim_event) == 72, "event");

#endif
