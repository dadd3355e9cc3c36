/* Rank 0 chooses between a message of 70000 bytes from rank 1 and one of 9 bytes from rank 2, in each way that there is.
 * MPI_Comm_dup, which takes no virtual time, keeps rank 2 from sending until rank 0 has got the first. With the argument "late"
 * rank 2 computes for 200 us before it sends. Rank 0 prints the virtual times of both, in ns since both were level. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

long long commq_compute_ns;
static char buf[2][70000];
static int rank;

#define W MPI_COMM_WORLD

static void go(void)
{
	MPI_Comm c;
	MPI_Comm_dup(W, &c);
	MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
	static const char *const ways[] = {"source", "tag", "Irecv", "Probe", "Iprobe", "Mprobe", "Waitany", "Waitsome", "Testany", "Testsome"};
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(W, &rank);
	for (int way = 0; way < 10; way++) {
		MPI_Request r[2];
		MPI_Status st;
		MPI_Message m;
		int n = 0, some[2], flag = 0;
		MPI_Barrier(W);
		double t = MPI_Wtime(), ended[2];
		if (rank == 1)
			MPI_Send(buf, 70000, MPI_BYTE, 0, 9, W);
		for (int i = 0; i < 2 && rank == 0; i++) {
			flag = n = 0;
			if (way >= 6 && i == 0) {
				MPI_Irecv(buf[0], 70000, MPI_BYTE, 1, 9, W, &r[0]);
				MPI_Irecv(buf[1], 70000, MPI_BYTE, 2, 9, W, &r[1]);
			}
			switch (way) {
			case 0:
				MPI_Recv(buf, 70000, MPI_BYTE, MPI_ANY_SOURCE, 9, W, &st);
				break;
			case 1:
				MPI_Recv(buf, 70000, MPI_BYTE, 1 + i, MPI_ANY_TAG, W, &st);
				break;
			case 2:
				MPI_Irecv(buf, 70000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, W, &r[0]);
				MPI_Wait(&r[0], &st);
				break;
			case 3:
				MPI_Probe(MPI_ANY_SOURCE, 9, W, &st);
				MPI_Recv(buf, 70000, MPI_BYTE, st.MPI_SOURCE, 9, W, &st);
				break;
			case 4:
				while (!flag)
					MPI_Iprobe(MPI_ANY_SOURCE, 9, W, &flag, &st);
				MPI_Recv(buf, 70000, MPI_BYTE, st.MPI_SOURCE, 9, W, &st);
				break;
			case 5:
				MPI_Mprobe(MPI_ANY_SOURCE, 9, W, &m, &st);
				MPI_Mrecv(buf, 70000, MPI_BYTE, &m, &st);
				break;
			case 6:
				MPI_Waitany(2, r, &n, &st);
				break;
			case 7:
				MPI_Waitsome(2, r, &n, some, MPI_STATUSES_IGNORE);
				break;
			case 8:
				while (!flag)
					MPI_Testany(2, r, &n, &flag, &st);
				break;
			case 9:
				while (n < 1)
					MPI_Testsome(2, r, &n, some, MPI_STATUSES_IGNORE);
				break;
			}
			ended[i] = (MPI_Wtime() - t) * 1e9;
			if (i == 0)
				go();
		}
		if (rank == 0)
			printf("%s %.0f %.0f\n", ways[way], ended[0], ended[1]);
		else
			go();
		if (rank == 2) {
			if (argc > 1 && strcmp(argv[1], "late") == 0)
				commq_compute_ns += 200000;
			MPI_Send(buf, 9, MPI_BYTE, 0, 9, W);
		}
	}
	MPI_Finalize();
	return 0;
}
