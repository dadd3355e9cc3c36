/* One fault per run; see planted.h. Where the fault is an order of work, the others do as much at another time, so that
 * no rank computes more than another. */
#include "planted.h"

static void imbalance_barrier(void)
{
	work(BASE + (rank == 1 ? us : 0));
	MPI_Barrier(MPI_COMM_WORLD); /* fault imbalance_barrier */
}

static void imbalance_alltoall(void)
{
	work(BASE + (rank >= ranks / 2 ? us : 0));
	MPI_Alltoall(buf, 1, MPI_DOUBLE, sum, 1, MPI_DOUBLE, MPI_COMM_WORLD); /* fault imbalance_alltoall */
}

static void imbalance_linear(void)
{
	work(BASE + rank * us);
	MPI_Allreduce(buf, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* fault imbalance_linear */
}

static void imbalance_ring(void)
{
	work(BASE + (rank == 2 ? us : 0));
	MPI_Send(buf, 16, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD); /* fault imbalance_ring */
	MPI_Recv(sum, 16, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* All in the last step. */
static void imbalance_last(void)
{
	work(BASE + (rank == 1 && step == steps - 1 ? us * steps : 0));
	MPI_Barrier(MPI_COMM_WORLD); /* fault imbalance_last */
}

/* A little more in each step. */
static void imbalance_growing(void)
{
	work(BASE + (rank == 1 ? us * 2 * step / (steps - 1) : 0));
	MPI_Barrier(MPI_COMM_WORLD); /* fault imbalance_growing */
}

/* The same rank has more to do at two lines: one cause. */
static void imbalance_everywhere(void)
{
	work(BASE + (rank == 1 ? us * 3 / 5 : 0));
	MPI_Allreduce(buf, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* fault imbalance_everywhere */
	work(BASE + (rank == 1 ? us * 2 / 5 : 0));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Two ranks have 3/5 of the fault before a send, and another one has the fault before the barrier: two causes. */
static void two_groups(void)
{
	if (rank < 2) {
		work(us * 3 / 5);
		MPI_Send(buf, 16, MPI_DOUBLE, rank + 2, TAG, MPI_COMM_WORLD); /* fault two_groups_send */
	} else {
		MPI_Recv(sum, 16, MPI_DOUBLE, rank - 2, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	work(BASE + (rank == 3 ? us : 0));
	MPI_Barrier(MPI_COMM_WORLD); /* fault two_groups */
}

static void variation(void)
{
	work(BASE + (rank == step % ranks ? us : 0));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_sender(void)
{
	if (rank % 2 == 0) {
		work(us);
		MPI_Send(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD); /* fault late_sender */
		work(BASE);
	} else {
		MPI_Recv(sum, 16, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		work(BASE + us);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_sender_nonblocking(void)
{
	MPI_Request request;

	MPI_Irecv(sum, 16, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &request);
	work(rank == 1 ? us : 0);
	MPI_Send(buf, 16, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD); /* fault late_sender_nonblocking */
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	work(BASE + (rank == 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* An exchange with two neighbours: both wait, and the second send follows the first at once. */
static void late_sender_neighbours(void)
{
	MPI_Request requests[4];

	MPI_Irecv(sum, 8, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &requests[0]);
	MPI_Irecv(sum + 8, 8, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, &requests[1]);
	work(rank == 1 ? us : 0);
	MPI_Isend(buf, 8, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &requests[2]); /* fault late_sender_neighbours */
	MPI_Isend(buf, 8, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, &requests[3]);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
	work(BASE + (rank == 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A chain: all ranks wait for rank 0, most of them through others. */
static void late_sender_chain(void)
{
	if (rank == 0)
		work(us);
	else
		MPI_Recv(sum, 16, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank + 1 < ranks)
		MPI_Send(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD); /* fault late_sender_chain */
	work(BASE + (rank == 0 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Only in simulated times: in virtual times no send waits. */
static void late_receiver(void)
{
	if (rank % 2 == 0) {
		MPI_Ssend(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD);
		work(BASE + us);
	} else {
		work(us);
		MPI_Recv(sum, 16, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* fault late_receiver */
		work(BASE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_root(void)
{
	work(rank == 0 ? us : 0);
	MPI_Bcast(buf, 16, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* fault late_root */
	work(BASE + (rank == 0 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_scatter(void)
{
	work(rank == 3 ? us : 0);
	MPI_Scatter(buf, 1, MPI_DOUBLE, sum, 1, MPI_DOUBLE, 3, MPI_COMM_WORLD); /* fault late_scatter */
	work(BASE + (rank == 3 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void early_root(void)
{
	work(rank == 2 ? us : 0);
	MPI_Reduce(buf, sum, 16, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); /* fault early_root */
	work(BASE + (rank == 2 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void early_gather(void)
{
	work(rank == 2 ? us : 0);
	MPI_Gather(buf, 1, MPI_DOUBLE, sum, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD); /* fault early_gather */
	work(BASE + (rank == 2 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_collective(void)
{
	work(rank == 1 ? us : 0);
	MPI_Allreduce(buf, sum, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* fault late_collective */
	work(BASE + (rank == 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_scan(void)
{
	work(rank == 0 ? us : 0);
	MPI_Scan(buf, sum, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* fault late_scan */
	work(BASE + (rank == 0 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The broadcasts are the fault themselves. */
static void many_broadcasts(void)
{
	work(BASE);
	for (int i = 0; i < us / 50; i++)
		MPI_Bcast(buf, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* fault many_broadcasts */
}

/* Short messages are the fault themselves. */
static void many_messages(void)
{
	work(BASE);
	for (int i = 0; i < us / 25; i++)
		MPI_Sendrecv(buf, 1, MPI_DOUBLE, rank ^ 1, TAG, sum, 1, MPI_DOUBLE, rank ^ 1, TAG, /* fault many_messages */
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(MPI_Request *all)
{
	MPI_Irecv(sum, 8, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &all[0]);
	MPI_Irecv(sum + 8, 8, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, &all[1]);
	MPI_Isend(buf, 8, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &all[2]);
	MPI_Isend(buf, 8, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, &all[3]);
}

static void imbalance_waitall(void)
{
	MPI_Request all[4];

	exchange(all);
	work(BASE + (rank == 3 ? us : 0));
	MPI_Waitall(4, all, MPI_STATUSES_IGNORE); /* fault imbalance_waitall */
	MPI_Barrier(MPI_COMM_WORLD);
}

static void imbalance_testall(void)
{
	MPI_Request all[4];
	int done = 0;

	work(BASE + (rank == 3 ? us : 0));
	MPI_Allreduce(MPI_IN_PLACE, buf, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* fault imbalance_testall */
	exchange(all);
	while (!done)
		MPI_Testall(4, all, &done, MPI_STATUSES_IGNORE);
}

static void imbalance_sendrecv(void)
{
	work(BASE + (rank == 0 ? us : 0));
	MPI_Sendrecv(buf, 16, MPI_DOUBLE, right, TAG, sum, 16, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, /* fault imbalance_sendrecv */
		     MPI_STATUS_IGNORE);
}

static void imbalance_persistent(void)
{
	static MPI_Request both[2];

	if (step == 0) {
		MPI_Send_init(buf, 16, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, &both[0]);
		MPI_Recv_init(sum, 16, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &both[1]);
	}
	work(BASE + (rank == 1 ? us : 0));
	MPI_Startall(2, both); /* fault imbalance_persistent */
	MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
	if (step == steps - 1) {
		MPI_Request_free(&both[0]);
		MPI_Request_free(&both[1]);
	}
}

/* Ranks in pairs, each a communicator of its own. */
static MPI_Comm pair(void)
{
	static MPI_Comm comm = MPI_COMM_NULL;

	if (comm == MPI_COMM_NULL)
		MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &comm);
	return comm;
}

/* Both ranks of a pair compute longer, so that only the other pair waits. */
static void imbalance_pair(void)
{
	MPI_Comm comm = pair();

	work(BASE + (rank >= 2 ? us : 0));
	MPI_Allreduce(buf, sum, 16, MPI_DOUBLE, MPI_SUM, comm); /* fault imbalance_pair */
	MPI_Barrier(MPI_COMM_WORLD);
}

static void imbalance_subcommunicator(void)
{
	MPI_Comm comm = pair();

	work(BASE + (rank == 1 ? us : 0));
	MPI_Allreduce(buf, sum, 16, MPI_DOUBLE, MPI_SUM, comm); /* fault imbalance_subcommunicator */
}

/* Rank 0 gives tasks out and computes nothing; one of the others is slower. */
static void imbalance_worker(void)
{
	if (rank > 0) {
		MPI_Recv(sum, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		work(BASE + (rank == 2 ? us : 0));
		MPI_Send(buf, 16, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD); /* fault imbalance_worker */
		return;
	}
	for (int to = 1; to < ranks; to++)
		MPI_Send(buf, 1, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD);
	for (int from = 1; from < ranks; from++)
		MPI_Recv(sum, 16, MPI_DOUBLE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Items pass through all ranks; so many that filling the pipeline takes no time to speak of. */
static void imbalance_pipeline(void)
{
	for (int item = 0; item < 50; item++) {
		if (rank > 0)
			MPI_Recv(sum, 1, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		work((BASE + (rank == 2 ? us : 0)) / 50);
		if (rank < ranks - 1)
			MPI_Send(buf, 1, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD); /* fault imbalance_pipeline */
	}
}

static void imbalance_fence(void)
{
	static MPI_Win window;

	if (step == 0)
		MPI_Win_create(sum, sizeof sum, sizeof *sum, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	MPI_Put(buf, 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, window);
	work(BASE + (rank == 1 ? us : 0));
	MPI_Win_fence(0, window); /* fault imbalance_fence */
	if (step == steps - 1)
		MPI_Win_free(&window);
}

static void variation_ring(void)
{
	work(BASE + (rank == (step * 7 + 3) % 8 % ranks ? us : 0));
	MPI_Sendrecv(buf, 16, MPI_DOUBLE, right, TAG, sum, 16, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Allreduce(buf, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void late_sender_waitall(void)
{
	MPI_Request both[2];

	MPI_Irecv(sum, 8, MPI_DOUBLE, rank ^ 1, TAG, MPI_COMM_WORLD, &both[0]);
	work(rank % 2 == 0 ? us : 0);
	MPI_Isend(buf, 8, MPI_DOUBLE, rank ^ 1, TAG, MPI_COMM_WORLD, &both[1]); /* fault late_sender_waitall */
	MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
	work(BASE + (rank % 2 == 0 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_sender_probe(void)
{
	if (rank == 0) {
		MPI_Probe(3, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(sum, 16, MPI_DOUBLE, 3, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 3) {
		work(us);
		MPI_Send(buf, 16, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD); /* fault late_sender_probe */
	}
	work(BASE + (rank == 3 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_sender_persistent(void)
{
	static MPI_Request one;

	if (step == 0 && rank % 2 == 1)
		MPI_Send_init(buf, 16, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, &one);
	else if (step == 0)
		MPI_Recv_init(sum, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD, &one);
	work(rank % 2 == 1 ? us : 0);
	MPI_Start(&one); /* fault late_sender_persistent */
	MPI_Wait(&one, MPI_STATUS_IGNORE);
	work(BASE + (rank % 2 == 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
	if (step == steps - 1)
		MPI_Request_free(&one);
}

/* One rank after the other computes, and nobody while another one does. */
static void serialised_chain(void)
{
	if (rank > 0)
		MPI_Recv(sum, 16, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	work(us);
	MPI_Send(buf, 16, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD); /* fault serialised_chain */
	if (rank == 0)
		MPI_Recv(sum, 16, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	work(BASE);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Who has the token may compute. It goes round, and each rank computes as long without it. */
static void token(void)
{
	if (rank > 0 || step > 0)
		MPI_Recv(sum, 1, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	work(4 * us);
	if (rank < ranks - 1 || step < steps - 1)
		MPI_Send(buf, 1, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD); /* fault token */
	work(4 * us);
}

/* A message too long to be sent before its receive is posted. */
static void late_receiver_rendezvous(void)
{
	static double large[8192];

	if (rank == 0)
		MPI_Send(large, 8192, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD);
	work(rank == 1 ? us : 0);
	if (rank == 1)
		MPI_Recv(large, 8192, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, /* fault late_receiver_rendezvous */
			 MPI_STATUS_IGNORE);
	work(BASE + (rank == 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_receiver_nonblocking(void)
{
	MPI_Request one;

	if (rank == 3)
		MPI_Issend(buf, 16, MPI_DOUBLE, 2, TAG, MPI_COMM_WORLD, &one);
	work(rank == 2 ? us : 0);
	if (rank == 2)
		MPI_Irecv(sum, 16, MPI_DOUBLE, 3, TAG, MPI_COMM_WORLD, &one); /* fault late_receiver_nonblocking */
	if (rank >= 2)
		MPI_Wait(&one, MPI_STATUS_IGNORE);
	work(BASE + (rank == 2 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_broadcast_subcommunicator(void)
{
	MPI_Comm comm = pair();

	work(rank == 2 ? us : 0);
	MPI_Bcast(buf, 16, MPI_DOUBLE, 0, comm); /* fault late_broadcast_subcommunicator */
	work(BASE + (rank == 2 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_ibcast(void)
{
	MPI_Request one;

	work(rank == 1 ? us : 0);
	MPI_Ibcast(buf, 16, MPI_DOUBLE, 1, MPI_COMM_WORLD, &one); /* fault late_ibcast */
	MPI_Wait(&one, MPI_STATUS_IGNORE);
	work(BASE + (rank == 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void early_gatherv(void)
{
	static const int one[] = {1, 1, 1, 1}, at[] = {0, 1, 2, 3};

	work(rank == 3 ? us : 0);
	MPI_Gatherv(buf, 1, MPI_DOUBLE, sum, one, at, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* fault early_gatherv */
	work(BASE + (rank == 3 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_alltoallv(void)
{
	static const int one[] = {1, 1, 1, 1}, at[] = {0, 1, 2, 3};

	work(rank == 2 ? us : 0);
	MPI_Alltoallv(buf, one, at, MPI_DOUBLE, sum, one, at, MPI_DOUBLE, MPI_COMM_WORLD); /* fault late_alltoallv */
	work(BASE + (rank == 2 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_exscan(void)
{
	work(rank == 0 ? us : 0);
	MPI_Exscan(buf, sum, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* fault late_exscan */
	work(BASE + (rank == 0 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_iallreduce(void)
{
	MPI_Request one;

	work(rank == 3 ? us : 0);
	MPI_Iallreduce(buf, sum, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &one); /* fault late_iallreduce */
	MPI_Wait(&one, MPI_STATUS_IGNORE);
	work(BASE + (rank == 3 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void many_barriers(void)
{
	work(BASE);
	for (int i = 0; i < us / 100; i++)
		MPI_Barrier(MPI_COMM_WORLD); /* fault many_barriers */
}

/* 560 bytes for each us take 0.8 us. */
static void long_messages(void)
{
	static double out[1 << 19], in[1 << 19];

	work(BASE);
	MPI_Sendrecv(out, 70 * us, MPI_DOUBLE, right, TAG, in, 70 * us, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, /* fault long_messages */
		     MPI_STATUS_IGNORE);
}

/* Rank 0 waits for the late message of rank 1 although the one of rank 2 is there, whose work could be done meanwhile. */
static void wait_order(void)
{
	MPI_Request requests[2];

	if (rank == 0) {
		for (int i = 0; i < 2; i++)
			MPI_Irecv(sum + i, 1, MPI_DOUBLE, i + 1, TAG, MPI_COMM_WORLD, &requests[i]);
		for (int i = 0; i < 2; i++) {
			MPI_Wait(&requests[i], MPI_STATUS_IGNORE); /* fault wait_order */
			work(us);
		}
	} else if (rank < 3) {
		work(rank == 1 ? us : 0);
		MPI_Send(buf, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
	}
	work(rank == 0 ? BASE : BASE + us * (rank == 1 ? 1 : 2));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The same with receives of one tag after the other, from any source. */
static void wildcard_receives(void)
{
	if (rank == 0) {
		for (int i = 0; i < 2; i++) {
			MPI_Status status;
			MPI_Recv(sum, 1, MPI_DOUBLE, MPI_ANY_SOURCE, TAG + i, MPI_COMM_WORLD, &status); /* fault wildcard_receives */
			work(us);
		}
	} else if (rank < 3) {
		work(rank == 1 ? us : 0);
		MPI_Send(buf, 1, MPI_DOUBLE, 0, rank == 1 ? TAG : TAG + 1, MPI_COMM_WORLD);
	}
	work(rank == 0 ? BASE : BASE + us * (rank == 1 ? 1 : 2));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Ranks 0 and 1 exchange data late; the others have none and wait with them. */
static void oversized_collective(void)
{
	int counts[64] = {0}, at[64] = {0};

	if (rank < 2)
		counts[1 - rank] = 1;
	work(rank < 2 ? us : 0);
	MPI_Alltoallv(buf, counts, at, MPI_DOUBLE, sum, counts, at, MPI_DOUBLE, MPI_COMM_WORLD); /* fault oversized_collective */
	work(BASE + (rank < 2 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The neighbours in a ring wait for rank 1. */
static void late_neighbour(void)
{
	static MPI_Comm ring = MPI_COMM_NULL;
	int periodic = 1;

	if (ring == MPI_COMM_NULL)
		MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
	work(rank == 1 ? us : 0);
	MPI_Neighbor_alltoall(buf, 1, MPI_DOUBLE, sum, 1, MPI_DOUBLE, ring); /* fault late_neighbour */
	work(BASE + (rank == 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* All wait for what rank 0 computes, now or in the next collective. In the end the others do as much. */
static void serial_section(void)
{
	work(rank == 0 ? us : 0);
	MPI_Bcast(buf, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* fault serial_section */
	MPI_Barrier(MPI_COMM_WORLD);
	work(BASE + (rank > 0 && step == steps - 1 ? us * steps : 0));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The same before a message that all others wait for. */
static void serial_messages(void)
{
	if (rank == 3) {
		work(us);
		for (int to = 0; to < 3; to++)
			MPI_Send(buf, 1, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD); /* fault serial_messages */
	} else {
		MPI_Recv(sum, 1, MPI_DOUBLE, 3, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	work(BASE + (rank < 3 && step == steps - 1 ? us * steps : 0));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Even ranks wait until odd ones receive; they could go on. */
static void receive_late(void)
{
	work(us);
	MPI_Recv(sum, 16, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	work(BASE);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void synchronous_send(void)
{
	if (rank % 2) {
		receive_late();
		return;
	}
	MPI_Ssend(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD); /* fault synchronous_send */
	work(BASE + us);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void synchronous_nonblocking(void)
{
	MPI_Request one;

	if (rank % 2) {
		receive_late();
		return;
	}
	MPI_Issend(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD, &one); /* fault synchronous_nonblocking */
	MPI_Wait(&one, MPI_STATUS_IGNORE);
	work(BASE + us);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void synchronous_persistent(void)
{
	static MPI_Request one;

	if (rank % 2) {
		receive_late();
		return;
	}
	if (step == 0)
		MPI_Ssend_init(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD, &one); /* fault synchronous_persistent */
	MPI_Start(&one);
	MPI_Wait(&one, MPI_STATUS_IGNORE);
	work(BASE + us);
	MPI_Barrier(MPI_COMM_WORLD);
	if (step == steps - 1)
		MPI_Request_free(&one);
}

/* A window of all ranks, and the group of one rank. */
static MPI_Win window;
static MPI_Group partner;

static void window_of_all(int with)
{
	MPI_Group all;

	if (step > 0)
		return;
	MPI_Win_create(sum, sizeof sum, sizeof *sum, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &with, &partner);
	MPI_Group_free(&all);
}

/* Ends a step, and after the last one frees the window and the group. */
static void end_of_step(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (step == steps - 1) {
		MPI_Group_free(&partner);
		MPI_Win_free(&window);
	}
}

/* Even ranks put into the windows of odd ones, which expose them late. */
static void late_post(void)
{
	window_of_all(rank ^ 1);
	if (rank % 2 == 1) {
		work(us);
		MPI_Win_post(partner, 0, window); /* fault late_post */
		MPI_Win_wait(window);
		work(BASE);
	} else {
		MPI_Win_start(partner, 0, window);
		MPI_Put(buf, 1, MPI_DOUBLE, rank ^ 1, 0, 1, MPI_DOUBLE, window);
		MPI_Win_complete(window);
		work(BASE + us);
	}
	end_of_step();
}

/* They complete it late. */
static void late_complete(void)
{
	window_of_all(rank ^ 1);
	if (rank % 2 == 1) {
		MPI_Win_post(partner, 0, window);
		MPI_Win_wait(window);
		work(BASE + us);
	} else {
		MPI_Win_start(partner, 0, window);
		MPI_Put(buf, 1, MPI_DOUBLE, rank ^ 1, 0, 1, MPI_DOUBLE, window);
		work(us);
		MPI_Win_complete(window); /* fault late_complete */
		work(BASE);
	}
	end_of_step();
}

/* Even ranks keep the lock that odd ones want a little later. */
static void long_lock(void)
{
	int odd = rank % 2, target = (rank / 2 * 2 + 2) % ranks;

	window_of_all(0);
	work(odd ? us / 10 : 0);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
	MPI_Put(buf, 1, MPI_DOUBLE, target, odd, 1, MPI_DOUBLE, window);
	work(odd ? 0 : us);
	MPI_Win_unlock(target, window); /* fault long_lock */
	work(BASE + (odd ? us - us / 10 : 0));
	end_of_step();
}

/* All wait in the fence for rank 1. */
static void late_fence(void)
{
	static MPI_Win window;

	if (step == 0)
		MPI_Win_create(sum, sizeof sum, sizeof *sum, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	work(rank == 1 ? us : 0);
	MPI_Win_fence(0, window); /* fault late_fence */
	work(BASE + (rank == 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
	if (step == steps - 1)
		MPI_Win_free(&window);
}

static const fault faults[] = {
	{"imbalance_barrier", imbalance_barrier},
	{"imbalance_alltoall", imbalance_alltoall},
	{"imbalance_linear", imbalance_linear},
	{"imbalance_ring", imbalance_ring},
	{"imbalance_last", imbalance_last},
	{"imbalance_growing", imbalance_growing},
	{"imbalance_everywhere", imbalance_everywhere},
	{"two_groups", two_groups},
	{"variation", variation},
	{"late_sender", late_sender},
	{"late_sender_nonblocking", late_sender_nonblocking},
	{"late_sender_neighbours", late_sender_neighbours},
	{"late_sender_chain", late_sender_chain},
	{"late_receiver", late_receiver},
	{"late_root", late_root},
	{"late_scatter", late_scatter},
	{"early_root", early_root},
	{"early_gather", early_gather},
	{"late_collective", late_collective},
	{"late_scan", late_scan},
	{"many_broadcasts", many_broadcasts},
	{"many_messages", many_messages},
	{"imbalance_waitall", imbalance_waitall},
	{"imbalance_testall", imbalance_testall},
	{"imbalance_sendrecv", imbalance_sendrecv},
	{"imbalance_persistent", imbalance_persistent},
	{"imbalance_pair", imbalance_pair},
	{"imbalance_subcommunicator", imbalance_subcommunicator},
	{"imbalance_worker", imbalance_worker},
	{"imbalance_pipeline", imbalance_pipeline},
	{"imbalance_fence", imbalance_fence},
	{"variation_ring", variation_ring},
	{"late_sender_waitall", late_sender_waitall},
	{"late_sender_probe", late_sender_probe},
	{"late_sender_persistent", late_sender_persistent},
	{"serialised_chain", serialised_chain},
	{"token", token},
	{"late_receiver_rendezvous", late_receiver_rendezvous},
	{"late_receiver_nonblocking", late_receiver_nonblocking},
	{"late_broadcast_subcommunicator", late_broadcast_subcommunicator},
	{"late_ibcast", late_ibcast},
	{"early_gatherv", early_gatherv},
	{"late_alltoallv", late_alltoallv},
	{"late_exscan", late_exscan},
	{"late_iallreduce", late_iallreduce},
	{"many_barriers", many_barriers},
	{"long_messages", long_messages},
	{"wait_order", wait_order},
	{"wildcard_receives", wildcard_receives},
	{"oversized_collective", oversized_collective},
	{"late_neighbour", late_neighbour},
	{"serial_section", serial_section},
	{"serial_messages", serial_messages},
	{"synchronous_send", synchronous_send},
	{"synchronous_nonblocking", synchronous_nonblocking},
	{"synchronous_persistent", synchronous_persistent},
	{"late_fence", late_fence},
	{"late_post", late_post},
	{"late_complete", late_complete},
	{"long_lock", long_lock},
};

int main(int argc, char **argv) { return run(argc, argv, faults, sizeof faults / sizeof *faults); }
