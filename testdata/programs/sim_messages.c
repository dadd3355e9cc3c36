/* Virtual time of messages on a machine with 10 us and 1 GB/s, with COMMQ_CLOCK=none: every time is known to the picosecond. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, bad;
static char buf[1 << 20], to[1 << 20];

static long long now(void)
{
	return (long long)(MPI_Wtime() * 1e12 + 0.5);
}

static long long cost(long long bytes)
{
	return 10000000 + bytes * 1000;
}

static void want(const char *what, long long time)
{
	if (now() != time) {
		printf("rank %d: %s: %lld ps, want %lld\n", rank, what, now(), time);
		bad = 1;
	}
}

/* Sends a message to this rank, the only way to let time pass. */
static void spend(int bytes)
{
	MPI_Request r;
	MPI_Irecv(to, bytes, MPI_BYTE, rank, 99, MPI_COMM_WORLD, &r);
	MPI_Send(buf, bytes, MPI_BYTE, rank, 99, MPI_COMM_WORLD);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

/* Sets all clocks to the same time. */
static long long level(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	return now();
}

static void ping_pong(MPI_Comm comm, int a, int b)
{
	int me;
	MPI_Comm_rank(comm, &me);
	for (int n = 0; n <= 1 << 20; n = n * 4 + 1) {
		long long t = level();
		if (me == a) {
			MPI_Send(buf, n, MPI_BYTE, b, 5, comm);
			want("a send", t);
			MPI_Recv(to, n, MPI_BYTE, b, 6, comm, MPI_STATUS_IGNORE);
			want("a ping-pong", t + 2 * cost(n));
		} else if (me == b) {
			MPI_Recv(to, n, MPI_BYTE, a, 5, comm, MPI_STATUS_IGNORE);
			want("a ping", t + cost(n));
			MPI_Send(buf, n, MPI_BYTE, a, 6, comm);
		}
	}
}

/* Both branches of Figure 3. */
static void late_and_early(void)
{
	long long t = level();
	if (rank == 1) {
		spend(5000); /* 15 us */
		want("time spent", t + cost(5000));
		MPI_Recv(to, 100, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		want("a late receiver", t + cost(5000)); /* the message came after 10.1 us */
		MPI_Recv(to, 9000, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		want("an early receiver", t + cost(9000));
	} else if (rank == 0) {
		MPI_Send(buf, 100, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
		MPI_Ssend(buf, 9000, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
		want("an Ssend", t);
	}
}

/* A message's event follows the posting order, whichever receive is waited for first. */
static void order(int first_source, int first_tag, int second_source, const char *what)
{
	long long t = level();
	MPI_Request r[3];
	if (rank == 2) {
		MPI_Irecv(buf, 9000, MPI_BYTE, first_source, first_tag, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(to, 9000, MPI_BYTE, second_source, 8, MPI_COMM_WORLD, &r[1]);
		MPI_Irecv(to, 9000, MPI_BYTE, 0, 8, MPI_COMM_WORLD, &r[2]);
		MPI_Wait(&r[1], MPI_STATUS_IGNORE);
		want(what, t + cost(10));
		MPI_Wait(&r[2], MPI_STATUS_IGNORE);
		want(what, t + cost(500));
		MPI_Wait(&r[0], MPI_STATUS_IGNORE);
		want(what, t + cost(9000));
	} else if (rank == 0) {
		MPI_Send(buf, 9000, MPI_BYTE, 2, 8, MPI_COMM_WORLD);
		MPI_Send(buf, 10, MPI_BYTE, 2, 8, MPI_COMM_WORLD);
		MPI_Send(buf, 500, MPI_BYTE, 2, 8, MPI_COMM_WORLD);
	}
}

/* The same when one call completes them, in any order. */
static void together(void)
{
	long long t = level();
	MPI_Request r[4];
	int n, all[4], flag = 0;
	if (rank == 2) {
		MPI_Irecv(to, 9000, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &r[3]);
		MPI_Irecv(to, 9000, MPI_BYTE, 0, 8, MPI_COMM_WORLD, &r[1]);
		MPI_Irecv(to, 9000, MPI_BYTE, 1, 8, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(to, 9000, MPI_BYTE, MPI_PROC_NULL, 8, MPI_COMM_WORLD, &r[2]);
		MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
		want("Waitall", t + cost(600));
		MPI_Recv_init(to, 9000, MPI_BYTE, 0, 8, MPI_COMM_WORLD, &r[0]);
		MPI_Recv_init(to, 9000, MPI_BYTE, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &r[1]);
		MPI_Startall(2, r);
		for (n = 0; n < 2; n += flag > 0 ? flag : 0)
			MPI_Testsome(2, r, &flag, all, MPI_STATUSES_IGNORE);
		want("Testsome", t + cost(3000));
		MPI_Start(&r[1]);
		MPI_Wait(&r[1], MPI_STATUS_IGNORE);
		want("a second Start", t + cost(4000));
		MPI_Start(&r[0]);
		while (!flag)
			MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
		MPI_Wait(&r[0], MPI_STATUS_IGNORE);
		MPI_Request_free(&r[0]);
		MPI_Request_free(&r[1]);
	} else if (rank == 0) {
		MPI_Send(buf, 200, MPI_BYTE, 2, 8, MPI_COMM_WORLD);
		MPI_Send(buf, 600, MPI_BYTE, 2, 8, MPI_COMM_WORLD);
		MPI_Send(buf, 1000, MPI_BYTE, 2, 8, MPI_COMM_WORLD);
		MPI_Send_init(buf, 3000, MPI_BYTE, 2, 9, MPI_COMM_WORLD, &r[0]);
		MPI_Send_init(buf, 4000, MPI_BYTE, 2, 9, MPI_COMM_WORLD, &r[1]);
		MPI_Start(&r[0]);
		MPI_Wait(&r[0], MPI_STATUS_IGNORE);
		MPI_Startall(1, &r[1]);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		MPI_Request_free(&r[0]);
		MPI_Request_free(&r[1]);
		want("persistent sends", t);
		MPI_Send(buf, 1000, MPI_BYTE, 2, 8, MPI_COMM_WORLD);
	} else if (rank == 1) {
		MPI_Send(buf, 400, MPI_BYTE, 2, 8, MPI_COMM_WORLD);
	}
}

static void probes(void)
{
	MPI_Status st;
	MPI_Message m, m2;
	MPI_Request r;
	int flag = 0;
	long long t = level();
	if (rank == 1) {
		MPI_Probe(0, 4, MPI_COMM_WORLD, &st);
		want("Probe", t + cost(50));
		while (!flag)
			MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &st);
		want("Iprobe", t + cost(50));
		MPI_Mprobe(0, 4, MPI_COMM_WORLD, &m, &st);
		MPI_Recv(to, 100, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &st);
		want("Recv behind Mprobe", t + cost(80));
		for (flag = 0; !flag;)
			MPI_Improbe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m2, &st);
		want("Improbe", t + cost(90));
		MPI_Imrecv(to, 100, MPI_BYTE, &m2, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		MPI_Mrecv(to, 100, MPI_BYTE, &m, &st);
		want("Mrecv", t + cost(90));
		MPI_Recv(to, 100, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &st);
		want("Recv behind Mrecv", t + cost(95));
	} else if (rank == 0) {
		MPI_Send(buf, 50, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
		MPI_Send(buf, 80, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
		MPI_Send(buf, 90, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
		MPI_Send(buf, 95, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
	}
}

/* Senders that wait for their receiver, which has found the message by a probe. */
static void found_first(void)
{
	MPI_Status st;
	MPI_Message m;
	long long t = level();
	if (rank == 1) {
		MPI_Probe(0, 4, MPI_COMM_WORLD, &st);
		want("Probe of an Ssend", t + cost(60));
		MPI_Recv(to, 100, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &st);
		MPI_Mprobe(0, 4, MPI_COMM_WORLD, &m, &st);
		want("Mprobe of a Sendrecv", t + cost(1 << 20));
		MPI_Mrecv(to, 1 << 20, MPI_BYTE, &m, &st);
		MPI_Send(buf, 5, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
	} else if (rank == 0) {
		MPI_Ssend(buf, 60, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
		MPI_Sendrecv(buf, 1 << 20, MPI_BYTE, 1, 4, to, 5, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &st);
		want("a Sendrecv that was probed", t + cost(1 << 20) + cost(5));
	}
}

static void exchanges(void)
{
	int size;
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	long long t = level();
	for (int i = 1; i <= 5; i++) {
		MPI_Sendrecv(buf, 700, MPI_BYTE, (rank + 1) % size, 3, to, 700, MPI_BYTE, (rank + size - 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		want("Sendrecv", t + i * cost(700));
	}
	MPI_Sendrecv_replace(buf, 300, MPI_BYTE, (rank + 1) % size, 3, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	want("Sendrecv_replace", t + 5 * cost(700) + cost(300));
	MPI_Sendrecv(buf, 700, MPI_BYTE, MPI_PROC_NULL, 3, to, 700, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	want("Sendrecv with nobody", t + 5 * cost(700) + cost(300));
}

/* Cancelled and freed requests do not affect the events of others. */
static void left_alone(void)
{
	MPI_Request r[2];
	long long t = level();
	if (rank == 1) {
		MPI_Irecv(to, 100, MPI_BYTE, 0, 12, MPI_COMM_WORLD, &r[0]);
		MPI_Cancel(&r[0]);
		MPI_Wait(&r[0], MPI_STATUS_IGNORE);
		MPI_Irecv(to, 100, MPI_BYTE, MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, &r[0]);
		MPI_Cancel(&r[0]);
		MPI_Wait(&r[0], MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
		t = now();
		MPI_Irecv(to, 100, MPI_BYTE, 0, 12, MPI_COMM_WORLD, &r[0]);
		MPI_Request_free(&r[0]);
		MPI_Recv(to, 100, MPI_BYTE, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		want("a receive behind one that was freed", t + cost(30));
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0) {
			MPI_Send(buf, 70, MPI_BYTE, 1, 12, MPI_COMM_WORLD);
			MPI_Send(buf, 30, MPI_BYTE, 1, 12, MPI_COMM_WORLD);
		}
	}
}

/* More completions than fit into the buffer of the records. */
static void very_many(void)
{
	enum { N = 5000 };
	static MPI_Request r[N];
	long long t = level();
	for (int i = 0; i < N; i++) {
		if (rank == 0)
			MPI_Isend(buf, i, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &r[N - 1 - i]);
		else if (rank == 1)
			MPI_Irecv(to, N, MPI_BYTE, i % 3 == 0 ? MPI_ANY_SOURCE : 0, i % 5 == 0 ? MPI_ANY_TAG : 2, MPI_COMM_WORLD, &r[N - 1 - i]);
	}
	if (rank > 1)
		return;
	MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
	want("many", rank == 0 ? t : t + cost(N - 1));
}

static void communicators(void)
{
	MPI_Comm a, b, c, d, e;
	MPI_Group world, g;
	int size, odd = rank % 2, in[2] = {2, 0};
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	ping_pong(a, 2, 1);
	MPI_Comm_split(MPI_COMM_WORLD, odd, -rank, &b); /* ranks reversed */
	int n;
	MPI_Comm_size(b, &n);
	long long t = level();
	if (n > 1) {
		MPI_Comm_rank(b, &n);
		if (n == 0)
			MPI_Send(buf, 900, MPI_BYTE, 1, 1, b);
		else if (n == 1) {
			MPI_Recv(to, 900, MPI_BYTE, MPI_ANY_SOURCE, 1, b, MPI_STATUS_IGNORE);
			want("a split communicator", t + cost(900));
		}
	}
	t = level();
	MPI_Intercomm_create(b, 0, MPI_COMM_WORLD, odd ? (size - 1) / 2 * 2 : (size - 2) / 2 * 2 + 1, 17, &c);
	MPI_Comm_rank(b, &n);
	if (n == 0 && odd)
		MPI_Send(buf, 200, MPI_BYTE, 0, 1, c);
	else if (n == 0) {
		MPI_Recv(to, 900, MPI_BYTE, 0, MPI_ANY_TAG, c, MPI_STATUS_IGNORE);
		want("an intercommunicator", t + cost(200));
	}
	t = level();
	MPI_Barrier(c);
	long long left = now(), most;
	MPI_Allreduce(&left, &most, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
	if (left != most || left <= t)
		printf("rank %d: a Barrier of two groups: %lld ps, others %lld\n", rank, left, most), bad = 1;
	MPI_Intercomm_merge(c, odd, &d);
	ping_pong(d, 1, 2);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 2, in, &g);
	t = level();
	for (int i = 0; i < 2 && (rank == 0 || rank == 2); i++) {
		MPI_Comm_create_group(MPI_COMM_WORLD, g, 3, &e);
		if (rank == 0)
			MPI_Send(buf, 100, MPI_BYTE, 0, 0, e);
		else {
			MPI_Recv(to, 100, MPI_BYTE, 1, 0, e, MPI_STATUS_IGNORE);
			want("a communicator of a group", t + cost(100));
		}
		MPI_Comm_free(&e);
	}
	MPI_Comm_free(&a);
	MPI_Comm_free(&b);
	MPI_Comm_free(&c);
	MPI_Comm_free(&d);
	MPI_Group_free(&g);
	MPI_Group_free(&world);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	want("the beginning", 1000000);
	if (MPI_Wtick() != 1e-12)
		printf("a tick of %g s\n", MPI_Wtick());
	ping_pong(MPI_COMM_WORLD, 0, 1);
	late_and_early();
	order(0, 8, 0, "posted alike");
	order(MPI_ANY_SOURCE, 8, 0, "posted behind any source");
	order(0, MPI_ANY_TAG, MPI_ANY_SOURCE, "posted behind any tag");
	together();
	probes();
	found_first();
	exchanges();
	left_alone();
	very_many();
	communicators();
	MPI_Finalize();
	if (!bad && rank == 0)
		printf("ok\n");
	return bad;
}
