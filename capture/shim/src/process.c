/* Wrappers of MPI_Pcontrol and of sessions. */
#include "lifetime.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/uio.h>
#include <unistd.h>

/* MPI_Pcontrol. C programs may pass a name for the phase after level 2, but nothing shows whether they did: the
 * argument counts as a name only if it can be read and is short, terminated and printable. */

#define NAME_BYTES 64
#define PAGE_BYTES 4096

/* The number of bytes of the UTF-8 character at p if it is printable, else 0. n bytes are readable. */
static size_t printable(const uint8_t *p, size_t n)
{
	if (p[0] < 0x80)
		return p[0] >= 0x20 && p[0] != 0x7f;
	size_t more = p[0] >= 0xf0 && p[0] < 0xf5 ? 3 : p[0] >= 0xe0 && p[0] < 0xf0 ? 2 : p[0] >= 0xc2 && p[0] < 0xe0 ? 1 :
		0;
	if (more == 0 || more >= n)
		return 0;
	for (size_t i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	uint32_t two = (uint32_t)p[0] << 8 | p[1];
	if (two < 0xc2a0 || (two >= 0xe000 && two < 0xe0a0) || (two >= 0xeda0 && two < 0xee00) ||
		(two >= 0xf000 && two < 0xf090) || two >= 0xf490)
		return 0; /* control characters, overlong forms, surrogates, beyond Unicode */
	return more + 1;
}

/* Copies the name at p, which may be any value, and returns its length; 0 if p is not a name. */
static size_t copy_name(const void *p, uint8_t *to)
{
	uintptr_t at = (uintptr_t)p;
	size_t first = PAGE_BYTES - at % PAGE_BYTES;
	if (first > NAME_BYTES)
		first = NAME_BYTES;
	struct iovec here = {to, NAME_BYTES}, there[2] = {{(void *)at, first}, {(void *)(at + first), NAME_BYTES - first}};
	int e = errno;
	ssize_t n = p == NULL ? -1 : process_vm_readv(getpid(), &here, 1, there, first < NAME_BYTES ? 2 : 1, 0);
	errno = e;
	for (size_t i = 0; n > 0 && i < (size_t)n;) {
		if (to[i] == 0)
			return i;
		size_t step = printable(to + i, (size_t)n - i);
		if (step == 0)
			return 0;
		i += step;
	}
	return 0;
}

static void pcontrol_begin(cq_thread *t, int level)
{
	cq_call *c = cq_open(t, CQ_Pcontrol);
	cq_blank(c);
	c->count = level;
	cq_mpi_begins(t);
}

static void pcontrol_end(cq_thread *t, int err, const uint8_t *name, size_t n)
{
	cq_mpi_ends(t);
	if (n != 0)
		cq_def_put(t, CQ_DEF_LABEL, 0, name, n);
	cq_close(t, err);
}

CQ_EXPORT int MPI_Pcontrol(const int level, ...)
{
	uint8_t name[NAME_BYTES];
	va_list ap;
	va_start(ap, level);
	void *arg = va_arg(ap, void *); /* without an argument this is the register's content, which is passed on unused */
	va_end(ap);
	cq_thread *t = cq_enter();
	if (CQ_UNLIKELY(t == NULL))
		return cq_next.Pcontrol(level, arg);
	size_t n = level == 2 ? copy_name(arg, name) : 0;
	pcontrol_begin(t, level);
	int err = cq_next.Pcontrol(level, arg);
	pcontrol_end(t, err, name, n);
	return err;
}

/* In Fortran the level is the only argument; MPICH adds an ierr, which is passed on unchanged. */
#define PCONTROL(symbol, callee) \
	CQ_EXPORT void symbol(MPI_Fint *level, MPI_Fint *ierr) \
	{ \
		cq_thread *t = cq_enter(); \
		if (t != NULL) \
			pcontrol_begin(t, *level); \
		callee(level, ierr); \
		if (t != NULL) \
			pcontrol_end(t, MPI_SUCCESS, NULL, 0); \
	}

#if CQ_OPENMPI
PCONTROL(mpi_pcontrol_, cq_f.pmpi_pcontrol_)
PCONTROL(mpi_pcontrol_f08_, cq_f.pmpi_pcontrol_f08_)
#elif CQ_MPICH
PCONTROL(mpi_pcontrol_, cq_f.pmpi_pcontrol_)
PCONTROL(mpi_pcontrol_f08_, cq_f.pmpir_pcontrol_f08_)
#endif

#if CQ_MPI4
/* The thread, if MPI_Session_init is recorded as an ordinary call; NULL if it is not recorded or starts recording. */
CQ_HOT cq_thread *session_before(void)
{
	if (cq_hooks != NULL && cq_hooks->session_opens(__builtin_return_address(0), __builtin_dwarf_cfa()))
		return NULL;
	cq_thread *t = cq_enter();
	if (t != NULL)
		cq_session_follows(t);
	else
		cq_session_starts(__builtin_return_address(0), __builtin_dwarf_cfa());
	return t;
}

CQ_HOT cq_thread *session_end_before(int *last)
{
	cq_thread *t = cq_enter();
	*last = cq_session_ends();
	if (t != NULL)
		cq_plain_begin(t, CQ_Session_finalize, MPI_COMM_NULL);
	return t;
}

CQ_EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
	cq_thread *t = session_before();
	int err = cq_next.Session_init(info, errhandler, session);
	cq_session_after(t, err, session);
	return err;
}

CQ_EXPORT int MPI_Session_finalize(MPI_Session *session)
{
	int last;
	cq_thread *t = session_end_before(&last);
	int err = cq_next.Session_finalize(session);
	cq_session_end_after(t, err, last);
	return err;
}
#endif

#if CQ_MPICH && CQ_MPI4
_Static_assert(sizeof(MPI_Session) == sizeof(MPI_Fint), "session");

CQ_EXPORT void mpi_session_init_f08_(MPI_Fint *info, MPI_Fint *errhandler, MPI_Fint *session, MPI_Fint *ierr)
{
	MPI_Fint e = MPI_SUCCESS;
	cq_thread *t = session_before();
	cq_f.pmpir_session_init_f08_(info, errhandler, session, &e);
	cq_session_after(t, e, (MPI_Session *)session);
	if (ierr != NULL)
		*ierr = e;
}

CQ_EXPORT void mpi_session_finalize_f08_(MPI_Fint *session, MPI_Fint *ierr)
{
	MPI_Fint e = MPI_SUCCESS;
	int last;
	cq_thread *t = session_end_before(&last);
	cq_f.pmpir_session_finalize_f08_(session, &e);
	cq_session_end_after(t, e, last);
	if (ierr != NULL)
		*ierr = e;
}
#endif
