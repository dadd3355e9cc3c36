/* The sessions as a program sees them. With init: MPI_Init between two sessions; first: before them. Run with 3 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank = -1;

#define SAY(...) do { if (rank == 2) { printf(__VA_ARGS__); fflush(stdout); } } while (0)

static void with_session(const char *tag)
{
	MPI_Session s;
	MPI_Group all, self, also;
	MPI_Comm c;
	MPI_Info info;
	int n, there, gone, size, result, sum = 0;
	char value[32] = "";
	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
	MPI_Initialized(&there);
	MPI_Finalized(&gone);
	MPI_Group_from_session_pset(s, "mpi://WORLD", &all);
	MPI_Group_from_session_pset(s, "mpi://SELF", &self);
	MPI_Group_rank(all, &rank);
	MPI_Group_size(all, &n);
	MPI_Group_size(self, &size);
	SAY("%s: initialized %d, finalized %d, rank %d of %d, self %d\n", tag, there, gone, rank, n, size);
	MPI_Session_get_pset_info(s, "mpi://WORLD", &info);
	MPI_Info_get(info, "mpi_size", 31, value, &there);
	SAY("mpi_size %s\n", value);
	MPI_Info_free(&info);
	MPI_Session_get_pset_info(s, "mpi://SELF", &info);
	MPI_Info_get(info, "mpi_size", 31, value, &there);
	SAY("mpi_size %s\n", value);
	MPI_Info_free(&info);
	MPI_Comm_create_from_group(all, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c);
	MPI_Comm_group(c, &also);
	MPI_Group_compare(all, also, &result);
	SAY("sum %d, same group %d\n", sum, result == MPI_IDENT);
	MPI_Group_free(&also);
	MPI_Group_free(&self);
	MPI_Group_free(&all);
	MPI_Comm_free(&c);
	MPI_Session_finalize(&s);
}

static void with_world(int *argc, char ***argv, int keep)
{
	int size, there;
	MPI_Init(argc, argv);
	MPI_Initialized(&there);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	SAY("world %d, initialized %d\n", size, there);
	if (keep)
		return;
	MPI_Finalize();
	MPI_Finalized(&there);
	SAY("finalized %d\n", there);
}

int main(int argc, char **argv)
{
	int there = -1;
	MPI_Session s;
	const char *how = argc > 1 ? argv[1] : "";
	if (strcmp(how, "first") == 0) {
		with_world(&argc, &argv, 1);
		with_session("second");
		MPI_Finalize();
		MPI_Finalized(&there);
		SAY("finalized %d\n", there);
		return 0;
	}
	if (strcmp(how, "init") == 0) {
		MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
		MPI_Initialized(&there);
		with_session("first");
		with_world(&argc, &argv, 0);
		SAY("before: %d\n", there);
		with_session("second");
		MPI_Session_finalize(&s);
		return 0;
	}
	with_session("first"); /* MPICH 4.0 cannot have another one then */
	return 0;
}
