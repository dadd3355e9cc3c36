/* Marks, sessions, and processes that come and go. */
#include "recorders.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sink.h"

/* MPI_Pcontrol. C programs may give the phase a name behind level 2, but nothing says whether they did: what stands there is
 * taken for one only where it can be read and is short, ended and printable. */

#define NAME_BYTES 64
#define PAGE_BYTES 4096

/* The number of bytes of the UTF-8 character at p that can be printed; 0: it is none. n bytes are there. */
static size_t printable(const uint8_t *p, size_t n)
{
	if (p[0] < 0x80)
		return p[0] >= 0x20 && p[0] != 0x7f;
	size_t more = p[0] >= 0xf0 && p[0] < 0xf5 ? 3 : p[0] >= 0xe0 && p[0] < 0xf0 ? 2 : p[0] >= 0xc2 && p[0] < 0xe0 ? 1 : 0;
	if (more == 0 || more >= n)
		return 0;
	for (size_t i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	uint32_t two = (uint32_t)p[0] << 8 | p[1];
	if (two < 0xc2a0 || (two >= 0xe000 && two < 0xe0a0) || (two >= 0xeda0 && two < 0xee00) || (two >= 0xf000 && two < 0xf090) || two >= 0xf490)
		return 0; /* control characters, longer forms than need be, halves of pairs, beyond Unicode */
	return more + 1;
}

/* Copies the name at p, which may be anything, and returns its bytes; 0: there is none. */
static size_t name_at(const void *p, uint8_t *to)
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
	cq_go(t, c);
}

static void pcontrol_end(cq_thread *t, int err, const uint8_t *name, size_t n)
{
	cq_back(t);
	if (n != 0)
		cq_def_put(t, CQ_DEF_LABEL, 0, name, n);
	cq_close(t, err);
}

CQ_EXPORT int MPI_Pcontrol(const int level, ...)
{
	uint8_t name[NAME_BYTES];
	va_list ap;
	va_start(ap, level);
	void *arg = va_arg(ap, void *); /* where there is none, what its register holds: it is passed on and not used */
	va_end(ap);
	cq_thread *t = cq_enter();
	if (CQ_UNLIKELY(t == NULL))
		return cq_p.Pcontrol(level, arg);
	size_t n = level == 2 ? name_at(arg, name) : 0;
	pcontrol_begin(t, level);
	int err = cq_p.Pcontrol(level, arg);
	pcontrol_end(t, err, name, n);
	return err;
}

/* In Fortran there is the level alone; MPICH has an ierr behind it all the same, which is passed on as it is. */
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
#else
PCONTROL(mpi_pcontrol_, cq_f.pmpi_pcontrol_)
PCONTROL(mpi_pcontrol_f08_, cq_f.pmpir_pcontrol_f08_)
#endif

/* Processes that come and go. */

/* The parent's communicator is there without a constructor having been called. */
void cq_comm_parent_end(cq_thread *t, int err, MPI_Comm parent)
{
	if (err == MPI_SUCCESS && parent != MPI_COMM_NULL)
		cq_comm_known(t, parent, 8 /* inter */);
	cq_leave(t);
}

/* A key for communicators that are made with a text instead of a tag. */
int cq_text_key(cq_text s)
{
	uint64_t h = 0xcbf29ce484222325u;
	size_t n = s.n >= 0 ? cq_trimmed(s.p, (size_t)s.n) : s.p != NULL ? strlen(s.p) : 0;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3u;
	return (int)((h ^ h >> 31) & 0x7fffffff);
}

/* The program's name means something on the root alone. */
void cq_spawn_end(cq_thread *t, int err, MPI_Comm made, uint64_t instance, int root, MPI_Comm comm, cq_text program)
{
	cq_comm_new_made(t, err, made, 8 /* inter */, CQ_COUNTED, instance, 0);
	if (cq_comm_of(t, comm)->rank == root) {
		const char *p = program.list != NULL ? program.list[0] : program.p;
		size_t n = program.n >= 0 ? cq_trimmed(p, (size_t)program.n) : p != NULL ? strlen(p) : 0;
		if (n != 0)
			cq_def_put(t, CQ_DEF_LABEL, 0, p, n);
	}
	cq_close(t, err);
}

/* Sessions. */

#if CQ_MPI4
/* The thread where MPI_Session_init is a call like others; NULL where it is not recorded or starts recording. */
CQ_HOT cq_thread *session_before(void)
{
#if CQ_SIM
	if (cq_world_absent()) { /* its row is the beginning's */
		cq_init_before(CQ_Session_init);
		cq_world_begin();
		cq_world_late();
		return NULL;
	}
	cq_world_late();
#endif
	cq_thread *t = cq_enter();
	if (t != NULL)
		cq_plain_begin(t, CQ_Session_init, MPI_COMM_NULL);
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
	int err = cq_p.Session_init(info, errhandler, session);
	cq_session_after(t, err, session);
	return err;
}

CQ_EXPORT int MPI_Session_finalize(MPI_Session *session)
{
	int last;
	cq_thread *t = session_end_before(&last);
	int err = cq_p.Session_finalize(session);
	cq_session_end_after(t, err, last);
	return err;
}
#endif

#if CQ_MPICH
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
