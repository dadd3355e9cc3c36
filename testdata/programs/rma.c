/* One-sided communication: every call that transfers data, every way to synchronise, windows of four kinds. Run with 3
 * ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int rank, next, before, bad, a[12], b[12];
static MPI_Datatype column; /* 2 ints, the second 4 ints after the first */

static void fences(MPI_Win w, int *mem)
{
	MPI_Win_fence(0, w);
	MPI_Put(a, 3, MPI_INT, next, 0, 3, MPI_INT, w);
	MPI_Accumulate(a, 2, MPI_INT, before, 4, 2, MPI_INT, MPI_SUM, w);
	MPI_Put(a, 2, column, next, 8, 4, MPI_INT, w);
	MPI_Win_fence(0, w);
	bad += mem[2] != 100 * before + 2 || mem[5] != 100 * next + 1 || mem[11] != 100 * before + 9;
	MPI_Get(b, 2, MPI_INT, next, 8, 1, column, w);
	MPI_Put(a, 5, MPI_INT, MPI_PROC_NULL, 0, 5, MPI_INT, w);
	MPI_Get(b + 4, 5, MPI_INT, MPI_PROC_NULL, 0, 5, MPI_INT, w);
	MPI_Fetch_and_op(a, b + 4, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, w);
	MPI_Win_fence(0, w);
	bad += b[0] != 100 * rank || b[1] != next + 5;
}

static void groups(MPI_Win w)
{
	MPI_Group all, to, from;
	int flag = 0;
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &next, &to);
	MPI_Group_incl(all, 1, &before, &from);
	MPI_Win_post(from, 0, w);
	MPI_Win_start(to, 0, w);
	MPI_Put(a, 1, MPI_INT, next, 3, 1, MPI_INT, w);
	MPI_Win_complete(w);
	MPI_Win_wait(w);
	if (rank == 0) { /* rank 2 starts later, when told: the first test fails */
		MPI_Win_post(from, 0, w);
		MPI_Win_test(w, &flag);
		bad += flag;
		MPI_Send(a, 1, MPI_INT, before, 9, MPI_COMM_WORLD);
		while (!flag)
			MPI_Win_test(w, &flag);
	} else if (rank == 2) {
		MPI_Recv(b, 1, MPI_INT, next, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Win_start(to, 0, w);
		MPI_Win_complete(w);
	}
	MPI_Group_free(&all);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
}

static void locks(MPI_Win w)
{
	MPI_Request r[2];
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, w);
	MPI_Put(a + 6, 1, MPI_INT, next, 6, 1, MPI_INT, w);
	MPI_Win_flush(next, w);
	MPI_Win_flush_local(next, w);
	MPI_Win_unlock(next, w);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, w);
	MPI_Win_sync(w);
	MPI_Rput(a + 7, 1, MPI_INT, next, 7, 1, MPI_INT, w, r);
	MPI_Wait(r, MPI_STATUS_IGNORE);
	MPI_Win_flush_all(w);
	MPI_Raccumulate(a, 2, MPI_INT, next, 0, 2, MPI_INT, MPI_REPLACE, w, r);
	MPI_Rget(b, 1, MPI_INT, next, 12, 1, MPI_INT, w, r + 1);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	MPI_Win_flush_local_all(w);
	MPI_Rget_accumulate(NULL, 0, MPI_INT, b + 2, 1, MPI_INT, next, 12, 1, MPI_INT, MPI_NO_OP, w, r);
	MPI_Wait(r, MPI_STATUS_IGNORE);
	MPI_Get_accumulate(a + 1, 2, MPI_INT, b + 8, 2, MPI_INT, next, 14, 2, MPI_INT, MPI_MAX, w);
	MPI_Fetch_and_op(a + 2, b + 6, MPI_INT, next, 3, MPI_SUM, w);
	MPI_Compare_and_swap(a + 3, a + 6, b + 7, MPI_INT, next, 6, w);
	MPI_Win_unlock_all(w);
	bad += b[0] != next + 5 || b[2] != next + 5 || b[6] != 100 * rank || b[7] != 100 * rank + 6 || b[8] != 0;
	MPI_Barrier(MPI_COMM_WORLD);
}

/* World ranks 2 and 0 are 0 and 1 of a communicator that is freed before its window is used. */
static void shared(void)
{
	int *mem, me;
	MPI_Comm sub;
	MPI_Win w;
	MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 5, -rank, &sub);
	if (sub == MPI_COMM_NULL)
		return;
	MPI_Comm_rank(sub, &me);
	MPI_Win_allocate_shared(32, 4, MPI_INFO_NULL, sub, &mem, &w);
	MPI_Comm_free(&sub);
	MPI_Win_fence(0, w);
	MPI_Put(a + 4, 7, MPI_INT, 1 - me, 1, 7, MPI_INT, w);
	MPI_Win_fence(0, w);
	bad += mem[7] != 100 * (2 - rank) + 10;
	MPI_Win_free(&w);
}

/* Memory attached later, and an origin given by its address. */
static void dynamic(void)
{
	MPI_Win w;
	MPI_Aint from, to;
	MPI_Datatype there;
	int one = 1;
	MPI_Get_address(a + 11, &from);
	MPI_Get_address(b, &to);
	MPI_Type_create_hindexed(1, &one, &from, MPI_INT, &there);
	MPI_Type_commit(&there);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
	MPI_Win_attach(w, b, sizeof b);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w);
	MPI_Put(MPI_BOTTOM, 1, there, rank, to, 1, MPI_INT, w);
	MPI_Win_unlock(rank, w);
	bad += b[0] != 100 * rank + 11;
	MPI_Win_detach(w, b);
	MPI_Win_free(&w);
	MPI_Type_free(&there);
}

int main(int argc, char **argv)
{
	int *mem;
	MPI_Win w;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	next = (rank + 1) % 3;
	before = (rank + 2) % 3;
	for (int i = 0; i < 12; i++)
		a[i] = 100 * rank + i;
	MPI_Type_vector(2, 1, 4, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &w);
	for (int i = 0; i < 16; i++)
		mem[i] = i == 12 ? rank + 5 : 0;
	fences(w, mem);
	groups(w);
	locks(w);
	MPI_Win_free(&w);
	shared();
	dynamic();
	MPI_Type_free(&column);
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
