/* Ways to end, by the first argument. Run with 3 ranks (early: 1); 0 ends in that way after a barrier, the others too where it is
 * orderly. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static MPI_Datatype inner;

/* Frees a datatype by a call that no recorder sees. */
static int freed(MPI_Comm comm, int key, void *value, void *extra)
{
	return MPI_Type_free(&inner);
}

static MPI_Request kept[2];

/* Ends two requests by calls that no recorder sees. */
static int ended(MPI_Comm comm, int key, void *value, void *extra)
{
	MPI_Request_free(&kept[0]);
	return MPI_Wait(&kept[1], MPI_STATUS_IGNORE);
}

/* An error handler that ends the job. */
static void give_up(MPI_Comm *comm, int *error, ...)
{
	MPI_Abort(MPI_COMM_WORLD, 7);
}

static void *in_thread(void *nothing)
{
	int one = 1, got;
	MPI_Sendrecv(&one, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	return nothing;
}

/* Replaces every open spool file by a file of the program's own; does nothing if there is none. */
static void take_files(int *fds, const char *name)
{
	for (int i = 3; i < 256; i++) {
		char link[64], to[512] = "";
		snprintf(link, sizeof link, "/proc/self/fd/%d", i);
		if (readlink(link, to, sizeof to - 1) > 4 && strstr(to, ".cqs") != NULL)
			close(i);
	}
	for (int i = 0; i < 32; i++)
		fds[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	unlink(name);
	if (write(fds[0], "hello", 5) != 5)
		perror(name);
}

int main(int argc, char **argv)
{
	int rank, x = 0;
	const char *how = argc > 1 ? argv[1] : "";
	if (strcmp(how, "threads") == 0)
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &x);
	else
		MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (strcmp(how, "status") == 0) {
		MPI_Finalize();
		return rank == 0 ? 3 : 0;
	}
	if (strcmp(how, "early") == 0) /* without MPI_Finalize */
		exit(5);
	if (strcmp(how, "abort") == 0) {
		if (rank == 0)
			MPI_Abort(MPI_COMM_WORLD, 7);
		MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (strcmp(how, "killed") == 0) {
		if (rank == 0) {
			usleep(300000); /* the others have left the barrier */
			raise(SIGKILL);
		}
		MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (strcmp(how, "fork") == 0) { /* children that make no call, exit, or run another program */
		int status = 0;
		pid_t child = fork();
		if (child == 0) {
			int initialized;
			MPI_Initialized(&initialized);
			exit(initialized ? 11 : 12);
		}
		waitpid(child, &status, 0);
		if (rank == 0)
			printf("%d %d\n", WEXITSTATUS(status), WEXITSTATUS(system("exit 4")));
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (strcmp(how, "errors") == 0) {
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		int e = MPI_Send(&x, 1, MPI_INT, 99, 9, MPI_COMM_WORLD), class;
		MPI_Error_class(e, &class);
		if (rank == 0)
			printf("%d\n", class == MPI_ERR_RANK);
	}
	if (strcmp(how, "handler") == 0) {
		MPI_Errhandler handler;
		MPI_Comm_create_errhandler(give_up, &handler);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
		if (rank == 0)
			MPI_Send(&x, 1, MPI_INT, 99, 9, MPI_COMM_WORLD);
		MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (strcmp(how, "clone") == 0) { /* a child without fork, which no handler sees */
		pid_t child = (pid_t)syscall(SYS_fork);
		if (child == 0)
			exit(0);
		waitpid(child, NULL, 0);
		for (int i = 0; i < 200; i++)
			MPI_Barrier(MPI_COMM_SELF);
	}
	if (strcmp(how, "threads") == 0) { /* short-lived threads, more than there may be files */
		struct rlimit files = {160, 160};
		pthread_t t;
		setrlimit(RLIMIT_NOFILE, &files);
		for (int i = 0; i < 200; i++) {
			pthread_create(&t, NULL, in_thread, NULL);
			pthread_join(t, NULL);
		}
		if (rank == 0)
			printf("%d\n", fopen("/dev/null", "r") != NULL);
	}
	if (strcmp(how, "failed") == 0) { /* the request completes although the message is too long */
		int got[8] = {0}, sent[8] = {0}, done = 0, e;
		MPI_Request r, both[2] = {MPI_REQUEST_NULL, (MPI_Request)0};
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
		MPI_Irecv(got, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &r);
		MPI_Send(sent, 8, MPI_INT, rank, 1, MPI_COMM_WORLD);
		do
			e = MPI_Test(&r, &done, MPI_STATUS_IGNORE);
		while (e == MPI_SUCCESS && !done);
		MPI_Irecv(got, 8, MPI_INT, rank, 2, MPI_COMM_WORLD, &r);
		MPI_Send(sent, 8, MPI_INT, rank, 2, MPI_COMM_WORLD);
		MPI_Waitany(1, &r, &done, MPI_STATUS_IGNORE);
		MPI_Recv_init(got, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &r);
		MPI_Start(&r);
		MPI_Send(sent, 8, MPI_INT, rank, 3, MPI_COMM_WORLD);
		do
			e = MPI_Testall(1, &r, &done, MPI_STATUSES_IGNORE);
		while (e == MPI_SUCCESS && !done);
		MPI_Recv_init(got, 8, MPI_INT, rank, 4, MPI_COMM_WORLD, &both[0]);
		MPI_Start(&both[0]);
		MPI_Waitall(2, both, MPI_STATUSES_IGNORE); /* refused, as the second is no request: completes nothing */
		MPI_Send(sent, 8, MPI_INT, rank, 4, MPI_COMM_WORLD);
		MPI_Waitall(1, both, MPI_STATUSES_IGNORE);
	}
	if (strcmp(how, "truncated") == 0) { /* wildcards whose messages are too long */
		int got[1], sent[8] = {0}, i;
		MPI_Request r;
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
		MPI_Isend(sent, 8, MPI_INT, 0, 5, MPI_COMM_SELF, &r);
		MPI_Recv(got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		MPI_Irecv(got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &r);
		MPI_Send(sent, 8, MPI_INT, 0, 5, MPI_COMM_SELF);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		MPI_Irecv(got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &r);
		MPI_Send(sent, 8, MPI_INT, 0, 5, MPI_COMM_SELF);
		MPI_Waitany(1, &r, &i, MPI_STATUS_IGNORE);
	}
	if (strcmp(how, "callback") == 0) {
		MPI_Comm comm;
		int key, buf[4] = {0};
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed, &key, NULL);
		MPI_Comm_dup(MPI_COMM_SELF, &comm);
		MPI_Comm_set_attr(comm, key, NULL);
		MPI_Type_contiguous(3, MPI_INT, &inner);
		MPI_Type_commit(&inner);
		MPI_Bcast(buf, 1, inner, 0, MPI_COMM_SELF);
		MPI_Comm_free(&comm);
		MPI_Type_contiguous(2, MPI_INT, &inner);
		MPI_Type_commit(&inner);
		MPI_Bcast(buf, 1, inner, 0, MPI_COMM_SELF);
		MPI_Type_free(&inner);
	}
	if (strcmp(how, "requests") == 0) { /* later ones get the handles of those that end in a callback */
		MPI_Comm comm;
		MPI_Request r[2];
		int key, got[2], sent = 1;
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ended, &key, NULL);
		MPI_Comm_dup(MPI_COMM_SELF, &comm);
		MPI_Comm_set_attr(comm, key, NULL);
		MPI_Recv_init(got, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &kept[0]);
		MPI_Irecv(got, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &kept[1]);
		MPI_Send(&sent, 1, MPI_INT, 0, 2, MPI_COMM_SELF);
		MPI_Comm_free(&comm);
		for (int i = 0; i < 2; i++)
			MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, 3 + i, MPI_COMM_SELF, &r[i]);
		for (int i = 0; i < 2; i++)
			MPI_Send(&sent, 1, MPI_INT, 0, 3 + i, MPI_COMM_SELF);
		for (int i = 0; i < 2; i++)
			MPI_Wait(&r[i], MPI_STATUS_IGNORE);
	}
	if (strcmp(how, "closed") == 0) { /* closes files that are not the program's, and reuses their numbers */
		int fds[32];
		char name[64];
		struct stat s;
		snprintf(name, sizeof name, "/tmp/commq-ends-%d", (int)getpid());
		take_files(fds, name);
		MPI_Finalize();
		for (int i = 0; i < 32; i++) {
			if (fstat(fds[i], &s) != 0 || s.st_size != 5)
				printf("file %d\n", i);
		}
		return 0;
	}
	MPI_Finalize();
	return 0;
}
