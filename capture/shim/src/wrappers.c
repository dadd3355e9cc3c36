/* Handwritten wrappers: of MPI_Init and MPI_Finalize, and of calls with strings. */
#include "lifetime.h"

/* Reports whether MPI is already initialized at the program's MPI_Init: see hooks.h. */
static int init_is_done(void)
{
	return cq_hooks != NULL && cq_hooks->init_is_done();
}

static int finalize_is_put_off(void)
{
	return cq_hooks != NULL && cq_hooks->finalize_is_put_off();
}

CQ_EXPORT int MPI_Init(int *argc, char ***argv)
{
	cq_init_before(CQ_Init);
	int err = init_is_done() ? MPI_SUCCESS : cq_next.Init(argc, argv);
	cq_init_after(CQ_Init, err);
	return err;
}

CQ_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	cq_init_before(CQ_Init_thread);
	int err = init_is_done() ? cq_p.Query_thread(provided) : cq_next.Init_thread(argc, argv, required, provided);
	cq_init_after(CQ_Init_thread, err);
	return err;
}

/* A postponed MPI_Finalize is recorded as an ordinary call. */
static int finalize_later(cq_thread *t)
{
	if (t != NULL) {
		cq_plain_begin(t, CQ_Finalize, MPI_COMM_NULL);
		cq_mpi_ends(t);
		cq_close(t, MPI_SUCCESS);
	}
	return MPI_SUCCESS;
}

CQ_EXPORT int MPI_Finalize(void)
{
	cq_thread *t = cq_enter();
	if (finalize_is_put_off())
		return finalize_later(t);
	cq_finalize_before(t);
	int err = cq_next.Finalize();
	if (t != NULL)
		cq_finalize_after(t, err);
	return err;
}

CQ_EXPORT int MPI_Comm_set_name(MPI_Comm comm, const char *name)
{
	CQ_IN_APP(comm);
	cq_thread *t = cq_enter();
	int err = cq_next.Comm_set_name(comm, name);
	if (t != NULL) {
		if (err == MPI_SUCCESS)
			cq_comm_name(t, comm, name, strlen(name));
		cq_leave(t);
	}
	return err;
}

/* In Fortran MPI_Init has no arguments, and a string's length follows the last argument. */
#define INIT(symbol, callee) \
	CQ_EXPORT void symbol(MPI_Fint *ierr) \
	{ \
		MPI_Fint e = MPI_SUCCESS; \
		cq_init_before(CQ_Init); \
		if (!init_is_done()) \
			callee(&e); \
		cq_init_after(CQ_Init, e); \
		if (ierr != NULL) \
			*ierr = e; \
	}
#define INIT_THREAD(symbol, callee) \
	CQ_EXPORT void symbol(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierr) \
	{ \
		MPI_Fint e = MPI_SUCCESS; \
		cq_init_before(CQ_Init_thread); \
		if (init_is_done()) \
			cq_p.Query_thread(provided); \
		else \
			callee(required, provided, &e); \
		cq_init_after(CQ_Init_thread, e); \
		if (ierr != NULL) \
			*ierr = e; \
	}
#define FINALIZE(symbol, callee) \
	CQ_EXPORT void symbol(MPI_Fint *ierr) \
	{ \
		MPI_Fint e = MPI_SUCCESS; \
		cq_thread *t = cq_enter(); \
		if (finalize_is_put_off()) { \
			e = finalize_later(t); \
		} else { \
			cq_finalize_before(t); \
			callee(&e); \
			if (t != NULL) \
				cq_finalize_after(t, e); \
		} \
		if (ierr != NULL) \
			*ierr = e; \
	}
#define SET_NAME(symbol, callee) \
	CQ_EXPORT void symbol(MPI_Fint *comm, char *name, MPI_Fint *ierr, size_t n) \
	{ \
		MPI_Fint e = MPI_SUCCESS; \
		CQ_IN_APP_F(comm); \
		cq_thread *t = cq_enter(); \
		((cq_fs4)(void (*)(void))callee)(comm, name, &e, n); \
		if (t != NULL) { \
			if (e == MPI_SUCCESS) \
				cq_comm_name(t, CQ_COMM(*comm), name, cq_trimmed(name, n)); \
			cq_leave(t); \
		} \
		if (ierr != NULL) \
			*ierr = e; \
	}

#if CQ_OPENMPI
INIT(mpi_init_, cq_f.pmpi_init_)
INIT(mpi_init_f08_, cq_f.pmpi_init_f08_)
INIT_THREAD(mpi_init_thread_, cq_f.pmpi_init_thread_)
INIT_THREAD(mpi_init_thread_f08_, cq_f.pmpi_init_thread_f08_)
FINALIZE(mpi_finalize_, cq_f.pmpi_finalize_)
FINALIZE(mpi_finalize_f08_, cq_f.pmpi_finalize_f08_)
SET_NAME(mpi_comm_set_name_, cq_f.pmpi_comm_set_name_)
SET_NAME(mpi_comm_set_name_f08_, cq_f.pmpi_comm_set_name_f08_)
#elif CQ_MPICH
INIT(mpi_init_f08_, cq_f.pmpir_init_f08_)
INIT_THREAD(mpi_init_thread_f08_, cq_f.pmpir_init_thread_f08_)
FINALIZE(mpi_finalize_f08_, cq_f.pmpir_finalize_f08_)
SET_NAME(mpi_comm_set_name_f08_, cq_f.pmpir_comm_set_name_f08_)
#endif
