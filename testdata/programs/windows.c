/* MPI_Win_create, which Open MPI cannot do on every machine, and one-sided communication and files with large counts.
 * Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int rank, next, bad, a[12], b[24], mem[16];

static void data(MPI_Win w)
{
	MPI_Request r[4];
	int got = -1;
	MPI_Win_fence(0, w);
	MPI_Put_c(a, 3, MPI_INT, next, 0, 3, MPI_INT, w);
	MPI_Accumulate_c(a, 2, MPI_INT, next, 4, 2, MPI_INT, MPI_SUM, w);
	MPI_Win_fence(0, w);
	MPI_Get_c(b, 3, MPI_INT, next, 0, 3, MPI_INT, w);
	MPI_Get_accumulate_c(a, 2, MPI_INT, b + 4, 2, MPI_INT, next, 6, 2, MPI_INT, MPI_SUM, w);
	MPI_Win_fence(0, w);
	bad += b[2] != 100 * rank + 2;
	MPI_Win_lock_all(0, w);
	MPI_Rput_c(a, 1, MPI_INT, next, 8, 1, MPI_INT, w, r);
	MPI_Rget_c(b, 1, MPI_INT, next, 1, 1, MPI_INT, w, r + 1);
	MPI_Raccumulate_c(a, 1, MPI_INT, next, 9, 1, MPI_INT, MPI_SUM, w, r + 2);
	MPI_Rget_accumulate_c(a, 1, MPI_INT, &got, 1, MPI_INT, next, 10, 1, MPI_INT, MPI_REPLACE, w, r + 3);
	MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
	MPI_Win_unlock_all(w);
	bad += b[0] != 100 * rank + 1 || got != 0;
}

static void files(const char *name)
{
	MPI_File f;
	MPI_Request r;
	MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
	MPI_File_write_at_c(f, 16 * rank, a, 16, MPI_BYTE, MPI_STATUS_IGNORE);
	MPI_File_write_at_all_c(f, 16 * rank, a, 16, MPI_BYTE, MPI_STATUS_IGNORE);
	MPI_File_seek(f, 16 * rank, MPI_SEEK_SET);
	MPI_File_write_c(f, a, 3, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_write_all_c(f, a, 1, MPI_INT, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_read_at_c(f, 41, b, 96, MPI_BYTE, MPI_STATUS_IGNORE); /* of 48 bytes, those from byte 41 on */
	MPI_File_read_at_all_c(f, 16, b, 7, MPI_BYTE, MPI_STATUS_IGNORE);
	MPI_File_seek(f, 16 * rank, MPI_SEEK_SET);
	MPI_File_read_c(f, b, 2, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_read_all_c(f, b, 1, MPI_INT, MPI_STATUS_IGNORE);
	bad += b[0] != 100 * rank + 2;
	MPI_File_iwrite_at_c(f, 16 * rank, a, 9, MPI_BYTE, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_File_iread_at_c(f, 45, b, 96, MPI_BYTE, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_File_read_at_all_begin_c(f, 41, b, 7, MPI_BYTE);
	MPI_File_read_at_all_end(f, b, MPI_STATUS_IGNORE);
	MPI_File_write_all_begin_c(f, a, 0, MPI_INT);
	MPI_File_write_all_end(f, a, MPI_STATUS_IGNORE);
	MPI_File_close(&f);
}

int main(int argc, char **argv)
{
	MPI_Win w;
	char name[4096];
	int *p;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	next = (rank + 1) % 3;
	for (int i = 0; i < 12; i++)
		a[i] = 100 * rank + i;
	MPI_Win_create(mem, sizeof mem, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
	data(w);
	MPI_Win_free(&w);
	MPI_Win_create_c(mem, sizeof mem, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
	MPI_Win_free(&w);
	MPI_Win_allocate_c(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &p, &w);
	MPI_Win_free(&w);
	MPI_Win_allocate_shared_c(16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &p, &w);
	MPI_Win_free(&w);
	/* a constructor that fails on every rank still counts as a collective operation */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	bad += MPI_Win_create(mem, sizeof mem, -5, MPI_INFO_NULL, MPI_COMM_WORLD, &w) == MPI_SUCCESS;
	snprintf(name, sizeof name, "%s.dat", argv[0]);
	files(name);
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
