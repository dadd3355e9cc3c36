/* Calls that need more than another communicator in place of MPI_COMM_WORLD; in the build for simulator ranks. */
#include "recorders.h"

#include <stdarg.h>
#include <stdio.h>

#if CQ_SIM

/* Attributes. In MPICH every communicator has those that MPI defines. In Open MPI the real MPI_COMM_WORLD has them,
 * and its duplicates have all except the last error code. */

static int predefined(int keyval)
{
	return keyval == MPI_TAG_UB || keyval == MPI_HOST || keyval == MPI_IO || keyval == MPI_WTIME_IS_GLOBAL ||
		keyval == MPI_APPNUM || keyval == MPI_UNIVERSE_SIZE;
}

/* The communicator that holds the attribute that the program's communicator would have without simulator ranks. */
static MPI_Comm attribute_comm(MPI_Comm comm, int keyval)
{
	void *value;
	int derived = 0;
	cq_resolve();
	if (CQ_OPENMPI && comm == MPI_COMM_WORLD && keyval == MPI_LASTUSEDCODE)
		return comm;
	comm = CQ_AS_APP(comm);
	if (CQ_OPENMPI && cq_world.app != MPI_COMM_WORLD && predefined(keyval))
		cq_p.Comm_get_attr(comm, cq_world.derived, &value, &derived);
	return derived ? MPI_COMM_WORLD : comm;
}

CQ_EXPORT int MPI_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag)
{
	return cq_p.Comm_get_attr(attribute_comm(comm, keyval), keyval, value, flag);
}

CQ_EXPORT int MPI_Attr_get(MPI_Comm comm, int keyval, void *value, int *flag)
{
	return cq_p.Attr_get(attribute_comm(comm, keyval), keyval, value, flag);
}

/* MPICH's Fortran library gets and sets attributes without the C functions. */
#define GET_ATTR(symbol, callee) \
	CQ_EXPORT void symbol(MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *flag, MPI_Fint *ierr) \
	{ \
		MPI_Comm of = attribute_comm(CQ_COMM(*comm), *keyval); \
		MPI_Fint f = of == MPI_COMM_WORLD ? cq_world.world_f : of == cq_world.app ? cq_world.app_f : *comm; \
		callee(&f, keyval, value, flag, ierr); \
	}
#define SET_ATTR(symbol, callee) \
	CQ_EXPORT void symbol(MPI_Fint *comm, MPI_Fint *keyval, void *value, MPI_Fint *ierr) \
	{ \
		cq_resolve(); \
		CQ_IN_APP_F(comm); \
		callee(comm, keyval, value, ierr); \
	}

#if CQ_OPENMPI
GET_ATTR(mpi_comm_get_attr_, cq_f.pmpi_comm_get_attr_)
GET_ATTR(mpi_comm_get_attr_f08_, cq_f.pmpi_comm_get_attr_f08_)
GET_ATTR(mpi_attr_get_, cq_f.pmpi_attr_get_)
#else
GET_ATTR(mpi_comm_get_attr_, cq_f.pmpi_comm_get_attr_)
GET_ATTR(mpi_comm_get_attr_f08_, cq_f.pmpir_comm_get_attr_f08_)
GET_ATTR(mpi_attr_get_, cq_f.pmpi_attr_get_)
SET_ATTR(mpi_comm_set_attr_, cq_f.pmpi_comm_set_attr_)
SET_ATTR(mpi_attr_put_, cq_f.pmpi_attr_put_)
#endif

/* Error handlers. Errors that belong to no communicator are raised on the real MPI_COMM_WORLD. */

CQ_EXPORT int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
	cq_resolve();
	if (comm == MPI_COMM_WORLD && cq_world.app != MPI_COMM_WORLD)
		cq_p.Comm_set_errhandler(cq_world.app, handler);
	return cq_p.Comm_set_errhandler(comm, handler);
}

CQ_EXPORT int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler handler)
{
	cq_resolve();
	if (comm == MPI_COMM_WORLD && cq_world.app != MPI_COMM_WORLD)
		cq_p.Errhandler_set(cq_world.app, handler);
	return cq_p.Errhandler_set(comm, handler);
}

#define SET_ERRHANDLER(symbol, callee) \
	CQ_EXPORT void symbol(MPI_Fint *comm, MPI_Fint *handler, MPI_Fint *ierr) \
	{ \
		cq_resolve(); \
		if (*comm == cq_world.world_f && cq_world.app_f != cq_world.world_f) \
			callee(&cq_world.app_f, handler, ierr); \
		callee(comm, handler, ierr); \
	}

#if CQ_OPENMPI
SET_ERRHANDLER(mpi_comm_set_errhandler_, cq_f.pmpi_comm_set_errhandler_)
SET_ERRHANDLER(mpi_comm_set_errhandler_f08_, cq_f.pmpi_comm_set_errhandler_f08_)
SET_ERRHANDLER(mpi_errhandler_set_, cq_f.pmpi_errhandler_set_)
#else
SET_ERRHANDLER(mpi_comm_set_errhandler_f08_, cq_f.pmpir_comm_set_errhandler_f08_)
#endif

/* Callbacks: our functions, which pass MPI_COMM_WORLD to the program's function if they get the communicator that
 * replaces it. An error handler receives only the communicator, so each of the program's has its own function of
 * ours. */

#define HANDLERS 64

typedef void error_function(MPI_Comm *, int *, ...);
typedef void error_function_f(MPI_Fint *, MPI_Fint *, void *, void *);

static uint32_t callbacks_lock;
static error_function *on_error[HANDLERS];
static error_function_f *on_error_f[HANDLERS];

/* Passes on the library's own arguments behind the code. */
static void error_in(int i, MPI_Comm *comm, int *code, void *a, void *b)
{
	MPI_Comm world = MPI_COMM_WORLD;
	on_error[i](*comm == cq_world.app ? &world : comm, code, a, b);
}

static void error_in_f(int i, MPI_Fint *comm, MPI_Fint *code, void *a, void *b)
{
	MPI_Fint world = cq_world.world_f;
	on_error_f[i](*comm == cq_world.app_f ? &world : comm, code, a, b);
}

#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
/* octal */
#define EACH(X) EIGHT(X, 00) EIGHT(X, 01) EIGHT(X, 02) EIGHT(X, 03) EIGHT(X, 04) EIGHT(X, 05) EIGHT(X, 06) EIGHT(X, \
	07)
#define X(i) \
	static void error_##i(MPI_Comm *comm, int *code, ...) \
	{ \
		va_list ap; \
		va_start(ap, code); \
		void *a = va_arg(ap, void *), *b = va_arg(ap, void *); \
		va_end(ap); \
		error_in(i, comm, code, a, b); \
	} \
	static void error_f_##i(MPI_Fint *comm, MPI_Fint *code, void *a, void *b) \
	{ \
		error_in_f(i, comm, code, a, b); \
	}
EACH(X)
#undef X
#define X(i) error_##i,
static error_function *const errors[HANDLERS] = {EACH(X)};
#undef X
#define X(i) error_f_##i,
static error_function_f *const errors_f[HANDLERS] = {EACH(X)};
#undef X

static void full(const char *what)
{
	static uint32_t said;
	if (__atomic_exchange_n(&said, 1, __ATOMIC_ACQ_REL) == 0)
		cq_print("commq: rank %d: the program has too many %s; the last ones see another communicator instead of "
			"MPI_COMM_WORLD\n", cq_world.self, what);
}

#define ERROR_FUNCTION(name, type, taken, ours) \
	static type *name(type *f) \
	{ \
		type *with = f; \
		int i = 0; \
		cq_resolve(); \
		cq_spin(&callbacks_lock); \
		while (i < HANDLERS && taken[i] != NULL && taken[i] != f) \
			i++; \
		if (i < HANDLERS) { \
			taken[i] = f; \
			with = ours[i]; \
		} \
		__atomic_store_n(&callbacks_lock, 0, __ATOMIC_RELEASE); \
		if (i == HANDLERS) \
			full("error handlers"); \
		return f == NULL ? NULL : with; \
	}
ERROR_FUNCTION(error_function_of, error_function, on_error, errors)
ERROR_FUNCTION(error_function_f_of, error_function_f, on_error_f, errors_f)

CQ_EXPORT int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function *f, MPI_Errhandler *handler)
{
	error_function *with = error_function_of(f);
	return cq_p.Comm_create_errhandler(with, handler);
}

CQ_EXPORT int MPI_Errhandler_create(MPI_Comm_errhandler_function *f, MPI_Errhandler *handler)
{
	error_function *with = error_function_of(f);
	return cq_p.Errhandler_create(with, handler);
}

#define CREATE_ERRHANDLER(symbol, callee) \
	CQ_EXPORT void symbol(error_function_f *f, MPI_Fint *handler, MPI_Fint *ierr) \
	{ \
		error_function_f *with = error_function_f_of(f); \
		callee((void *)with, handler, ierr); \
	}

#if CQ_OPENMPI
CREATE_ERRHANDLER(mpi_comm_create_errhandler_, cq_f.pmpi_comm_create_errhandler_)
CREATE_ERRHANDLER(mpi_comm_create_errhandler_f08_, cq_f.pmpi_comm_create_errhandler_f08_)
CREATE_ERRHANDLER(mpi_errhandler_create_, cq_f.pmpi_errhandler_create_)
#else
CREATE_ERRHANDLER(mpi_comm_create_errhandler_f08_, cq_f.pmpir_comm_create_errhandler_f08_)
#endif

/* Attribute functions get a pointer, or in Fortran a number, that belongs to the keyval: ours identifies the
 * program's functions. */

#define KEYVALS 1024

typedef void copy_f(MPI_Fint *comm, void *keyval, void *extra, void *in, void *out, void *flag, void *ierr);
typedef void delete_f(MPI_Fint *comm, void *keyval, void *value, void *extra, void *ierr);

typedef struct {
	MPI_Comm_copy_attr_function *copy;
	MPI_Comm_delete_attr_function *delete;
	copy_f *copy_f;
	delete_f *delete_f;
	void *extra;    /* the program's */
	MPI_Aint value; /* in Fortran with Open MPI, instead of it */
	MPI_Aint number;
} callbacks;

static callbacks keyvals[KEYVALS];
static int keyvals_n;
static CQ_TLS int in_fortran; /* MPICH's Fortran library calls MPI_Comm_create_keyval */

static int copied(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	const callbacks *k = extra;
	return k->copy(comm == cq_world.app ? MPI_COMM_WORLD : comm, keyval, k->extra, in, out, flag);
}

static int deleted(MPI_Comm comm, int keyval, void *value, void *extra)
{
	const callbacks *k = extra;
	return k->delete(comm == cq_world.app ? MPI_COMM_WORLD : comm, keyval, value, k->extra);
}

/* The extra argument of the program's functions in Fortran: MPICH passes the address it was given, Open MPI that of a
 * copy. */
static void *extra_f(callbacks *k)
{
	return CQ_OPENMPI ? &k->value : k->extra;
}

static void copied_f(MPI_Fint *comm, void *keyval, void *extra, void *in, void *out, void *flag, void *ierr)
{
	callbacks *k = &keyvals[*(MPI_Fint *)extra];
	k->copy_f(*comm == cq_world.app_f ? &cq_world.world_f : comm, keyval, extra_f(k), in, out, flag, ierr);
}

static void deleted_f(MPI_Fint *comm, void *keyval, void *value, void *extra, void *ierr)
{
	callbacks *k = &keyvals[*(MPI_Fint *)extra];
	k->delete_f(*comm == cq_world.app_f ? &cq_world.world_f : comm, keyval, value, extra_f(k), ierr);
}

/* The entry of these functions; equal functions share one. NULL if the table is full. */
static callbacks *callbacks_of(callbacks c)
{
	int i = 0;
	cq_resolve();
	cq_spin(&callbacks_lock);
	for (; i < keyvals_n; i++) {
		const callbacks *k = &keyvals[i];
		if (k->copy == c.copy && k->delete == c.delete && k->copy_f == c.copy_f && k->delete_f == c.delete_f &&
			k->extra == c.extra && k->value == c.value)
			break;
	}
	if (i == keyvals_n && i < KEYVALS) {
		c.number = i;
		keyvals[keyvals_n++] = c;
	}
	__atomic_store_n(&callbacks_lock, 0, __ATOMIC_RELEASE);
	if (i == KEYVALS)
		full("keyvals");
	return i == KEYVALS ? NULL : &keyvals[i];
}

#define CREATE_KEYVAL(symbol, callee) \
	CQ_EXPORT int symbol(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *delete, int *keyval, \
		void *extra) \
	{ \
		callbacks *k = in_fortran ? NULL : callbacks_of((callbacks){.copy = copy, .delete = delete, .extra = extra}); \
		if (k == NULL) \
			return callee(copy, delete, keyval, extra); \
		return callee(copy != NULL ? copied : NULL, delete != NULL ? deleted : NULL, keyval, k); \
	}
CREATE_KEYVAL(MPI_Comm_create_keyval, cq_p.Comm_create_keyval)
CREATE_KEYVAL(MPI_Keyval_create, cq_p.Keyval_create)

/* In Fortran extra is the address of a number, of type whole. */
#define CREATE_KEYVAL_F(symbol, callee, whole) \
	CQ_EXPORT void symbol(copy_f *copy, delete_f *delete, MPI_Fint *keyval, whole *extra, MPI_Fint *ierr) \
	{ \
		callbacks c = {.copy_f = copy, .delete_f = delete, .extra = CQ_OPENMPI ? NULL : extra, .value = CQ_OPENMPI ? \
			*extra : 0}; \
		callbacks *k = callbacks_of(c); \
		in_fortran = 1; \
		if (k == NULL) { \
			callee((void *)copy, (void *)delete, keyval, extra, ierr); \
		} else { \
			whole *number = (whole *)&k->number; \
			callee((void *)copied_f, (void *)deleted_f, keyval, number, ierr); \
		} \
		in_fortran = 0; \
	}

#if CQ_OPENMPI
CREATE_KEYVAL_F(mpi_comm_create_keyval_, cq_f.pmpi_comm_create_keyval_, MPI_Aint)
CREATE_KEYVAL_F(mpi_comm_create_keyval_f08_, cq_f.pmpi_comm_create_keyval_f08_, MPI_Aint)
CREATE_KEYVAL_F(mpi_keyval_create_, cq_f.pmpi_keyval_create_, MPI_Fint)
#else
CREATE_KEYVAL_F(mpi_comm_create_keyval_, cq_f.pmpi_comm_create_keyval_, MPI_Aint)
CREATE_KEYVAL_F(mpi_comm_create_keyval_f08_, cq_f.pmpir_comm_create_keyval_f08_, MPI_Aint)
CREATE_KEYVAL_F(mpi_keyval_create_, cq_f.pmpi_keyval_create_, MPI_Fint)
#endif

/* Sessions. */

#if CQ_MPI4
CQ_EXPORT int MPI_Initialized(int *flag)
{
	cq_resolve();
	int err = cq_p.Initialized(flag);
	if (cq_world.ours)
		*flag = 0;
	return err;
}

CQ_EXPORT int MPI_Finalized(int *flag)
{
	cq_resolve();
	int err = cq_p.Finalized(flag);
	if (cq_world.finalized)
		*flag = 1;
	return err;
}

/* The program's ranks of mpi://WORLD. */
static void apps_of(MPI_Group *group)
{
	MPI_Group apps;
	if (!cq_world.split || cq_p.Group_incl(*group, cq_world.apps, cq_world.ranks, &apps) != MPI_SUCCESS)
		return;
	cq_p.Group_free(group);
	*group = apps;
}

static int names_world(const char *name, size_t n)
{
	static const char world[] = "mpi://WORLD";
	return n == sizeof world - 1 && memcmp(name, world, n) == 0;
}

static void apps_counted(MPI_Info info)
{
	char n[16];
	if (!cq_world.split)
		return;
	snprintf(n, sizeof n, "%d", cq_world.apps);
	cq_p.Info_set(info, "mpi_size", n);
}

CQ_EXPORT int MPI_Group_from_session_pset(MPI_Session session, const char *name, MPI_Group *group)
{
	cq_resolve();
	int err = cq_p.Group_from_session_pset(session, name, group);
	if (err == MPI_SUCCESS && names_world(name, strlen(name)))
		apps_of(group);
	return err;
}

CQ_EXPORT int MPI_Session_get_pset_info(MPI_Session session, const char *name, MPI_Info *info)
{
	cq_resolve();
	int err = cq_p.Session_get_pset_info(session, name, info);
	if (err == MPI_SUCCESS && names_world(name, strlen(name)))
		apps_counted(*info);
	return err;
}
#endif

#if CQ_MPICH
#define WHETHER(symbol, callee, c) \
	CQ_EXPORT void symbol(MPI_Fint *flag, MPI_Fint *ierr) \
	{ \
		int is = 0; \
		cq_resolve(); \
		callee(flag, ierr); \
		if (c(&is) == MPI_SUCCESS) \
			*flag = is; \
	}
WHETHER(mpi_initialized_f08_, cq_f.pmpir_initialized_f08_, MPI_Initialized)
WHETHER(mpi_finalized_f08_, cq_f.pmpir_finalized_f08_, MPI_Finalized)

#if CQ_MPI4
CQ_EXPORT void mpi_group_from_session_pset_f08_(MPI_Fint *session, char *name, MPI_Fint *group, MPI_Fint *ierr,
	size_t n)
{
	MPI_Fint e = MPI_SUCCESS;
	cq_resolve();
	((cq_fs5)(void (*)(void))cq_f.pmpir_group_from_session_pset_f08_)(session, name, group, &e, n);
	if (e == MPI_SUCCESS && names_world(name, cq_trimmed(name, n)))
		apps_of((MPI_Group *)group);
	if (ierr != NULL)
		*ierr = e;
}

CQ_EXPORT void mpi_session_get_pset_info_f08_(MPI_Fint *session, char *name, MPI_Fint *info, MPI_Fint *ierr, size_t n)
{
	MPI_Fint e = MPI_SUCCESS;
	cq_resolve();
	((cq_fs5)(void (*)(void))cq_f.pmpir_session_get_pset_info_f08_)(session, name, info, &e, n);
	if (e == MPI_SUCCESS && names_world(name, cq_trimmed(name, n)))
		apps_counted(*info);
	if (ierr != NULL)
		*ierr = e;
}
#endif

/* MPICH calls that ask a communicator for its size before they reach the C function, or that never reach it. */

#define ALLTOALLW(symbol, ...) \
	CQ_EXPORT void mpi_##symbol(void *sbuf, void *scounts, void *sdispls, void *stypes, void *rbuf, void *rcounts, \
		void *rdispls, void *rtypes, MPI_Fint *comm WITH) \
	{ \
		cq_resolve(); \
		CQ_IN_APP_F(comm); \
		cq_f.pmpir_##symbol(sbuf, scounts, sdispls, stypes, rbuf, rcounts, rdispls, rtypes, comm, __VA_ARGS__); \
	}
#define WITH , void *ierr
ALLTOALLW(alltoallw_f08ts_, ierr)
ALLTOALLW(alltoallw_f08ts_large_, ierr)
#undef WITH
#define WITH , void *request, void *ierr
ALLTOALLW(ialltoallw_f08ts_, request, ierr)
ALLTOALLW(ialltoallw_f08ts_large_, request, ierr)
#undef WITH
#define WITH , void *info, void *request, void *ierr
ALLTOALLW(alltoallw_init_f08ts_, info, request, ierr)
ALLTOALLW(alltoallw_init_f08ts_large_, info, request, ierr)
#undef WITH

CQ_EXPORT void mpi_pack_size_f08_large_(MPI_Fint *count, MPI_Fint *datatype, MPI_Fint *comm, MPI_Fint *size,
	MPI_Fint *ierr)
{
	cq_resolve();
	CQ_IN_APP_F(comm);
	cq_f.pmpir_pack_size_f08_large_(count, datatype, comm, size, ierr);
}

#define EXTENSION1(name, low) \
	CQ_EXPORT int MPIX_##name(MPI_Comm comm) \
	{ \
		cq_resolve(); \
		CQ_IN_APP(comm); \
		return cq_p.MPIX_##name(comm); \
	} \
	CQ_EXPORT void mpix_##low##_f08_(MPI_Fint *comm, MPI_Fint *ierr) \
	{ \
		cq_resolve(); \
		CQ_IN_APP_F(comm); \
		cq_f.pmpixr_##low##_f08_(comm, ierr); \
	}
#define EXTENSION2(name, low, type) \
	CQ_EXPORT int MPIX_##name(MPI_Comm comm, type *to) \
	{ \
		cq_resolve(); \
		CQ_IN_APP(comm); \
		return cq_p.MPIX_##name(comm, to); \
	} \
	CQ_EXPORT void mpix_##low##_f08_(MPI_Fint *comm, MPI_Fint *to, MPI_Fint *ierr) \
	{ \
		cq_resolve(); \
		CQ_IN_APP_F(comm); \
		cq_f.pmpixr_##low##_f08_(comm, to, ierr); \
	}
EXTENSION1(Comm_revoke, comm_revoke)
EXTENSION1(Comm_failure_ack, comm_failure_ack)
EXTENSION2(Comm_agree, comm_agree, int)
EXTENSION2(Comm_failure_get_acked, comm_failure_get_acked, MPI_Group)
EXTENSION2(Comm_shrink, comm_shrink, MPI_Comm)
#endif

#endif
