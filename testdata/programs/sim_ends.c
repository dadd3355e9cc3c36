/* 3000 messages, then a process ends early; argv[1] names it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Kills the process of this job that has the word in its command line and our spool in its environment. */
static void end(const char *word, size_t n)
{
	static char line[1 << 16], want[4096];
	DIR *d = opendir("/proc");
	snprintf(want, sizeof want, "COMMQ_SPOOL=%s", getenv("COMMQ_SPOOL"));
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char path[300];
		int pid = atoi(e->d_name), hit = 0;
		const char *const files[] = {"cmdline", "environ"}, *const what[] = {word, want};
		for (int i = 0; pid > 0 && pid != getpid() && i < 2; i++) {
			snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
			FILE *f = fopen(path, "r");
			size_t bytes = f != NULL ? fread(line, 1, sizeof line, f) : 0;
			if (f != NULL)
				fclose(f);
			hit += memmem(line, bytes, what[i], i == 0 ? n : strlen(want) + 1) != NULL;
		}
		if (hit == 2)
			kill(pid, SIGKILL);
	}
	closedir(d);
}

/* Waits until the simulator rank has begun the files of two ranks: what it has not yet read dies with it. */
static void wait_for_files(void)
{
	for (int files = 0; files < 2; usleep(1000)) {
		DIR *d = opendir(getenv("COMMQ_SPOOL"));
		files = 0;
		for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
			files += strstr(e->d_name, ".cqs") != NULL;
		if (d != NULL)
			closedir(d);
	}
}

int main(int argc, char **argv)
{
	int rank;
	char buf[100];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 4000; i++) {
		if (i == 3000) /* now the simulator ranks are at work */
			MPI_Barrier(MPI_COMM_WORLD);
		if (i == 3000 && rank == 0 && strcmp(argv[1], "the process is killed") == 0) {
			wait_for_files();
			end("\0simrank", sizeof "\0simrank");
		}
		if (i == 3000 && rank == 0 && strcmp(argv[1], "the bridge is killed") == 0)
			end("/commq-bridge", sizeof "/commq-bridge");
		if (i == 3000 && rank == 0 && strcmp(argv[1], "abort") == 0)
			MPI_Abort(MPI_COMM_WORLD, 3);
		if (i == 3000 && rank == 0 && strcmp(argv[1], "crash") == 0)
			raise(SIGSEGV);
		if (i == 3000 && rank == 0 && strcmp(argv[1], "exit") == 0)
			exit(4);
		if (rank == 0)
			MPI_Send(buf, 100, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		else
			MPI_Recv(buf, 100, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	return 0;
}
