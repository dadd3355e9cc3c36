/* Simulator ranks (docs/method/simulator-ranks.md): the messages between the ranks of the program, the simulator ranks,
 * and the commq process beside each of them.
 *
 * A job has n ranks of the program and m simulator ranks. They meet on cq_world.channel, a duplicate of the real
 * MPI_COMM_WORLD. Rank r of the program sends its messages and records to simulator r mod m, and those about an
 * instance of a collective to simulator (key of the communicator) mod m, so that all members use the same one. A
 * message to a simulator is one cq_sim_event, for RECORDS with bytes behind it; a message to a rank is up to
 * CQ_SIM_MANY events. A simulator rank passes events on to its commq process (commq simrank) through a pipe, unchanged,
 * and the answers to the ranks named in them. The Go twin is capture/simrank/event.go; a test compares the two. */
#ifndef COMMQ_SIM_H
#define COMMQ_SIM_H

#include <stdint.h>

#define CQ_SIM_VERSION 1
#define CQ_SIM_TAG 7
#define CQ_SIM_MANY 32
#define CQ_SIM_DATA 65536 /* RECORDS: maximum number of bytes that follow */

enum {
	/* from the program's ranks */
	/* the first of each rank to its own simulator; n: the job, bytes: CQ_SIM_VERSION, peer: ranks of the program */
	CQ_SIM_HELLO = 1,
	CQ_SIM_SENT = 2,    /* a message was sent */
	CQ_SIM_ENTERED = 3, /* a collective was entered */
	CQ_SIM_RECORDS = 4, /* bytes of records: they belong at offset n in the file of thread peer */
	CQ_SIM_SYNC = 5,    /* answered when all records before it are written */
	/* Last event of this rank; peer: CQ_ENDED_*, time_ps: the last of its times; n, bytes, received: matches out of
	 * virtual-time order, matches by choice, and nonblocking collectives that completed early, see
	 * docs/method/simulator-ranks.md. */
	CQ_SIM_LEFT = 6,
	/* to them */
	CQ_SIM_ARRIVES = 17, /* the event of a message: time_ps is t_x, delay_ps Delta */
	CQ_SIM_LEAVES = 18,  /* time_ps: when all ranks leave the collective */
	CQ_SIM_SYNCED = 19,
	CQ_SIM_GONE = 20,    /* the simulator cannot continue: no rank waits for it, and nothing more is recorded */
};

enum { CQ_SIM_ROOT = 1 }; /* flags: this rank is the root of the collective */

typedef struct {
	uint16_t kind;  /* CQ_SIM_* */
	uint16_t call;  /* ENTERED: id of the blocking form in schema/calls.csv */
	int32_t rank;   /* of the program: the sender; in answers the receiver */
	int32_t peer;   /* SENT: destination, rank of the program; ARRIVES: source; ENTERED: number of participants */
	int32_t tag;    /* SENT, ARRIVES */
	uint32_t flags; /* CQ_SIM_ROOT */
	int32_t spare;
	uint64_t key;     /* of the communicator: equal on all its members, and unique */
	uint64_t n;       /* ENTERED, LEAVES: number of the operation on the communicator */
	int64_t time_ps;  /* SENT: t_x, the virtual time at the start of the send; ENTERED: at entry */
	int64_t delay_ps; /* ARRIVES */
	/* SENT: payload; ENTERED: of the send argument (COLL slot's sbytes, also where that is CQ_NULL64); RECORDS: how
	 * many follow */
	int64_t bytes;
	int64_t received; /* ENTERED: of the receive argument (rbytes) */
} cq_sim_event;

_Static_assert(sizeof(cq_sim_event) == 72, "event");

#endif
