/* Files: every way to read and write. Run with 3 ranks; prints ok. Its file lies beside the executable. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, next, bad, a[12], b[24];
static MPI_File f;

/* The file has 12 ints, 4 of each rank; later 18. */
static void blocking(void)
{
	MPI_Status st;
	MPI_Datatype column;
	int n;
	MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
	MPI_File_write_at(f, 4 * rank, a, 4, MPI_INT, &st);
	MPI_File_sync(f);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_read_at(f, 4 * next, b, 4, MPI_INT, MPI_STATUS_IGNORE);
	bad += b[3] != 100 * next + 3;
	MPI_File_read_at(f, 9, b, 7, MPI_INT, &st); /* the file has 3 of them */
	MPI_Get_count(&st, MPI_INT, &n);
	bad += n != 3 || b[2] != 203;
	MPI_File_read_at(f, 99, b, 7, MPI_INT, MPI_STATUS_IGNORE); /* the file has none of them */
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_write_at_all(f, 12 + 2 * rank, a, 2, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_read_at_all(f, 12 + 2 * rank, b, 2, MPI_INT, &st);
	MPI_Type_vector(2, 1, 4, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_File_seek(f, 4 * rank, MPI_SEEK_SET);
	MPI_File_write(f, a + 1, 1, column, MPI_STATUS_IGNORE);
	MPI_File_read(f, b, 1, column, &st);
	bad += b[4] != 100 * rank + 3;
	MPI_Type_free(&column);
	MPI_File_seek(f, 4 * rank, MPI_SEEK_SET);
	MPI_File_write_all(f, a, 3, MPI_INT, &st);
	MPI_File_read_all(f, b, 1, MPI_INT, MPI_STATUS_IGNORE);
	bad += b[0] != 100 * rank + 3;
}

static void together(void)
{
	MPI_Status st;
	MPI_File_write_ordered(f, a, rank + 1, MPI_INT, &st);
	MPI_File_write_shared(f, a, 2, MPI_INT, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
	MPI_File_read_ordered(f, b, rank + 1, MPI_INT, MPI_STATUS_IGNORE);
	bad += b[rank] != 100 * rank + rank;
	MPI_File_read_shared(f, b, 2, MPI_INT, &st);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void nonblocking(void)
{
	MPI_Request r[2];
	MPI_Status st;
	int k, n;
	MPI_File_iwrite_at(f, 4 * rank, a, 4, MPI_INT, r);
	MPI_Wait(r, MPI_STATUS_IGNORE);
	MPI_File_iread_at(f, 4 * rank + 1, b, 2, MPI_INT, r);
	MPI_File_iread_at(f, 4 * rank + 1, b + 2, 3, MPI_INT, r + 1);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	bad += b[1] != 100 * rank + 2;
	MPI_File_seek(f, 4 * rank, MPI_SEEK_SET);
	MPI_File_iwrite(f, a, 3, MPI_INT, r);
	MPI_Waitany(1, r, &k, &st);
	MPI_File_iread(f, b, 1, MPI_INT, r);
	MPI_Waitsome(1, r, &n, &k, MPI_STATUSES_IGNORE);
	bad += b[0] != 100 * rank + 3;
	MPI_File_iwrite_at_all(f, 4 * rank, a, 4, MPI_INT, r);
	MPI_Wait(r, &st);
	MPI_File_iread_at_all(f, 4 * rank, b, 3, MPI_INT, r);
	MPI_Wait(r, &st);
	MPI_File_seek(f, 4 * rank, MPI_SEEK_SET);
	MPI_File_iwrite_all(f, a, 3, MPI_INT, r);
	MPI_Wait(r, &st);
	MPI_File_iread_all(f, b, 1, MPI_INT, r);
	MPI_Wait(r, &st);
	bad += b[0] != 100 * rank + 3;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
	MPI_File_iwrite_shared(f, a, 5, MPI_INT, r);
	MPI_Wait(r, &st);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
	MPI_File_iread_shared(f, b, 4, MPI_INT, r);
	MPI_Wait(r, &st);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void split(void)
{
	MPI_Status st;
	MPI_File_write_at_all_begin(f, 4 * rank, a, 4, MPI_INT);
	MPI_File_write_at_all_end(f, a, MPI_STATUS_IGNORE);
	MPI_File_read_at_all_begin(f, 4 * rank + 1, b, 3, MPI_INT);
	MPI_File_read_at_all_end(f, b, MPI_STATUS_IGNORE);
	MPI_File_seek(f, 4 * rank, MPI_SEEK_SET);
	MPI_File_write_all_begin(f, a, 3, MPI_INT);
	MPI_File_write_all_end(f, a, &st);
	MPI_File_read_all_begin(f, b, 1, MPI_INT);
	MPI_File_read_all_end(f, b, &st);
	bad += b[0] != 100 * rank + 3;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
	MPI_File_write_ordered_begin(f, a, rank + 1, MPI_INT);
	MPI_File_write_ordered_end(f, a, &st);
	MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
	MPI_File_read_ordered_begin(f, b, rank + 1, MPI_INT);
	MPI_File_read_ordered_end(f, b, &st);
	bad += b[rank] != 100 * rank + rank;
}

/* Rank 1 alone opens a second file while the other one is open. */
static void alone(const char *name)
{
	MPI_File g;

	MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &g);
	MPI_File_read(g, b, 95, MPI_BYTE, MPI_STATUS_IGNORE); /* the file has 72 of them */
	MPI_File_close(&g);
}

int main(int argc, char **argv)
{
	char name[4096];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	next = (rank + 1) % 3;
	for (int i = 0; i < 12; i++)
		a[i] = 100 * rank + i;
	snprintf(name, sizeof name, "%s.dat", argv[0]);
	MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
	MPI_File_set_size(f, 0);
	blocking();
	together();
	nonblocking();
	split();
	MPI_File_set_size(f, 72);
	if (rank == 1)
		alone(name);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_preallocate(f, 80);
	MPI_File_close(&f);
	if (rank == 0)
		MPI_File_delete(name, MPI_INFO_NULL);
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
