/* Two halves of a program meet at a port, and two ranks over a socket of their own. Run with 3 ranks; prints ok. */
#include <arpa/inet.h>
#include <mpi.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Gives ranks 0 and 2 the ends of a connection. */
static int connection(int rank)
{
	struct sockaddr_in a;
	socklen_t n = sizeof a;
	int s = socket(AF_INET, SOCK_STREAM, 0), got = -1;
	memset(&a, 0, sizeof a);
	a.sin_family = AF_INET;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (rank == 0) {
		bind(s, (struct sockaddr *)&a, sizeof a);
		listen(s, 1);
		getsockname(s, (struct sockaddr *)&a, &n);
		MPI_Send(&a.sin_port, 2, MPI_BYTE, 2, 11, MPI_COMM_WORLD);
		got = accept(s, NULL, NULL);
		close(s);
		return got;
	}
	MPI_Recv(&a.sin_port, 2, MPI_BYTE, 0, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return connect(s, (struct sockaddr *)&a, sizeof a) == 0 ? s : -1;
}

int main(int argc, char **argv)
{
	char port[MPI_MAX_PORT_NAME];
	int rank, x = 0, bad = 0, fd, remote;
	MPI_Comm half, between;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split(MPI_COMM_WORLD, rank == 1, 0, &half);
	if (rank == 1) {
		MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 9, MPI_COMM_WORLD);
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &between);
		MPI_Recv(&x, 1, MPI_INT, 1, 5, between, MPI_STATUS_IGNORE);
		bad = x != 7;
		MPI_Close_port(port);
	} else {
		if (rank == 0)
			MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &between);
		x = 7;
		if (rank == 2)
			MPI_Send(&x, 1, MPI_INT, 0, 5, between);
	}
	MPI_Comm_remote_size(between, &remote);
	bad |= remote != (rank == 1 ? 2 : 1);
	MPI_Comm_disconnect(&between);
	if (rank != 1) {
		fd = connection(rank);
		MPI_Comm_join(fd, &between);
		if (rank == 0)
			MPI_Send(&x, 1, MPI_INT, 0, 3, between);
		else
			MPI_Recv(&x, 1, MPI_INT, 0, 3, between, MPI_STATUS_IGNORE);
		MPI_Comm_disconnect(&between);
		close(fd);
	}
	MPI_Comm_free(&half);
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad;
}
