/* Processes that are spawned or connect. */
#include "recorders.h"

/* No call made the communicator of the parent. */
void cq_comm_parent_end(cq_thread *t, int err, MPI_Comm parent)
{
	if (err == MPI_SUCCESS && parent != MPI_COMM_NULL)
		cq_comm_known(t, parent, 8 /* inter */);
	cq_leave(t);
}

/* The program's name is significant only on the root. */
void cq_spawn_end(cq_thread *t, int err, MPI_Comm made, uint64_t instance, int root, MPI_Comm comm, cq_text program)
{
	cq_comm_new_record(t, err, made, 8 /* inter */, CQ_COUNTED, instance, 0);
	if (cq_comm_of(t, comm)->rank == root) {
		const char *p = program.list != NULL ? program.list[0] : program.p;
		size_t n = program.n >= 0 ? cq_trimmed(p, (size_t)program.n) : p != NULL ? strlen(p) : 0;
		if (n != 0)
			cq_def_put(t, CQ_DEF_LABEL, 0, p, n);
	}
	cq_close(t, err);
}
