/* A master and workers: workers INTERVALS, for example 64. Rank 0 hands out intervals of an integral; a worker that finds
 * one too rough gives its halves back. Who gets which and how many differs from run to run, as does who sends to whom when:
 * all receives of the master are from MPI_ANY_SOURCE. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { READY = 1, DONE, SPLIT, WORK, STOP };

static double f(double x)
{
	return sin(1 / (x + 0.02));
}

static double simpson(double a, double b)
{
	return (b - a) / 6 * (f(a) + 4 * f((a + b) / 2) + f(b));
}

/* The integral from a to b if halving the interval changes little, else NAN. */
static double attempt(double a, double b)
{
	double m = (a + b) / 2, whole = simpson(a, b), halves = simpson(a, m) + simpson(m, b);
	return fabs(whole - halves) < 1e-9 ? halves : NAN;
}

static double adaptive(double a, double b)
{
	double v = attempt(a, b);
	return isnan(v) ? adaptive(a, (a + b) / 2) + adaptive((a + b) / 2, b) : v;
}

static double master(int ranks, int intervals, int *tasks)
{
	double (*todo)[2] = malloc(sizeof(double[2]) * 100000), sum = 0, in[4];
	int n = 0, busy = 0, waiting = 0, *idle = malloc(ranks * sizeof(int));
	for (int i = 0; i < intervals; i++, n++) {
		todo[n][0] = (double)i / intervals;
		todo[n][1] = (double)(i + 1) / intervals;
	}
	*tasks = 0;
	while (n > 0 || busy > 0) {
		MPI_Status s;
		MPI_Recv(in, 4, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
		if (s.MPI_TAG == DONE) {
			sum += in[0];
		} else if (s.MPI_TAG == SPLIT) {
			for (int i = 0; i < 2; i++, n++) {
				todo[n][0] = in[2 * i];
				todo[n][1] = in[2 * i + 1];
			}
		}
		busy -= s.MPI_TAG != READY;
		idle[waiting++] = s.MPI_SOURCE;
		while (waiting > 0 && n > 0) {
			MPI_Send(todo[--n], 2, MPI_DOUBLE, idle[--waiting], WORK, MPI_COMM_WORLD);
			busy++;
			++*tasks;
		}
	}
	for (int stopped = waiting; stopped < ranks - 1; stopped++) {
		MPI_Status s;
		MPI_Recv(in, 4, MPI_DOUBLE, MPI_ANY_SOURCE, READY, MPI_COMM_WORLD, &s);
		idle[waiting++] = s.MPI_SOURCE;
	}
	for (int i = 0; i < waiting; i++)
		MPI_Send(NULL, 0, MPI_DOUBLE, idle[i], STOP, MPI_COMM_WORLD);
	return sum;
}

static void worker(void)
{
	double w[2], out[4];
	MPI_Status s;
	MPI_Send(NULL, 0, MPI_DOUBLE, 0, READY, MPI_COMM_WORLD);
	for (;;) {
		MPI_Recv(w, 2, MPI_DOUBLE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
		if (s.MPI_TAG == STOP)
			return;
		out[0] = attempt(w[0], w[1]);
		if (!isnan(out[0])) {
			MPI_Send(out, 1, MPI_DOUBLE, 0, DONE, MPI_COMM_WORLD);
			continue;
		}
		out[0] = w[0];
		out[1] = out[2] = (w[0] + w[1]) / 2;
		out[3] = w[1];
		MPI_Send(out, 4, MPI_DOUBLE, 0, SPLIT, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	int ranks, rank, tasks, wrong = 0;
	MPI_Init(&argc, &argv);
	int intervals = argc > 1 ? atoi(argv[1]) : 64;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (ranks < 2) {
		fprintf(stderr, "workers: 1 rank is too few, give it 2\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (rank == 0) {
		double sum = master(ranks, intervals, &tasks), want = 0;
		for (int i = 0; i < intervals; i++)
			want += adaptive((double)i / intervals, (double)(i + 1) / intervals);
		wrong = fabs(sum - want) > 1e-9;
		printf("workers on %d: %d tasks, %.9f, %s\n", ranks, tasks, sum, wrong ? "WRONG" : "right");
	} else {
		worker();
	}
	MPI_Finalize();
	return wrong;
}
