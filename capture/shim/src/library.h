/* The MPI library in the process: which one the shim is built for, which functions it has, and pointers to them. A
 * "key" is a handle as a 64-bit number; keys of valid handles are never 0. */
#ifndef COMMQ_LIBRARY_H
#define COMMQ_LIBRARY_H

#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <stdint.h>
#include <string.h>

#include "calls_gen.h"
#include "compiler.h"

#if defined(OPEN_MPI)
#define CQ_OPENMPI 1
#define CQ_MPICH 0
#define CQ_ABI 0
#define CQ_LIBRARY "Open MPI"
#define CQ_SONAMES {"libmpi.so.40", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40"}
#elif defined(MPICH_VERSION)
#define CQ_OPENMPI 0
#define CQ_MPICH 1
#define CQ_ABI 0
#define CQ_LIBRARY "MPICH"
#define CQ_SONAMES {"libmpich.so.12", "libmpichfort.so.12", "libmpi.so.12"}
#elif defined(MPI_ABI_VERSION) /* the ABI of MPI 5, which a library has beside its own */
#define CQ_OPENMPI 0
#define CQ_MPICH 0
#define CQ_ABI 1
#define CQ_LIBRARY "the ABI of MPI 5"
#define CQ_SONAMES {CQ_ABI_SONAME}
typedef int MPI_Fint;
#else
#error "commq: the shim supports Open MPI, MPICH and the ABI of MPI 5; this mpi.h belongs to none of them"
#endif
#define CQ_ABI_SONAME "libmpi_abi.so.1"
/* The functions of MPI 4, which Open MPI has from version 5 on and MPICH from version 4 on. */
#if CQ_OPENMPI ? OMPI_MAJOR_VERSION >= 5 : MPI_VERSION >= 4
#define CQ_MPI4 1
#else
#define CQ_MPI4 0
#endif

#if CQ_MPI4
/* The partitions that MPI_Pready_list takes: const from MPICH 4.2 on, as MPI 4.0 says. */
typedef __typeof__(*_Generic(&MPI_Pready_list, int (*)(int, const int *, MPI_Request): (const int *)0,
	default: (int *)0)) cq_partition;
#endif
/* The functions with counts of type MPI_Count, MPI_X_c: missing in Open MPI 4 and 5. */
#if MPI_VERSION >= 4
#define CQ_LARGE 1
#else
#define CQ_LARGE 0
#endif
/* Open MPI's extension with the persistent collectives, MPIX_X_init. */
#if CQ_OPENMPI && defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define CQ_PCOLL 1
#else
#define CQ_PCOLL 0
#endif

#ifndef CQ_SIM
#define CQ_SIM 0
#endif

#if CQ_SIM && CQ_OPENMPI
/* Removed from mpi.h, but programs compiled with an older one still call them. */
#undef MPI_Errhandler_create
#undef MPI_Errhandler_get
#undef MPI_Errhandler_set
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
int MPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
int PMPI_Errhandler_create(MPI_Comm_errhandler_function *function, MPI_Errhandler *errhandler);
int PMPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);
int PMPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
#endif

#include "fns_gen.h"
#include "world.h"

#if CQ_MPICH
#define CQ_KEY(h) ((uint64_t)(uint32_t)(h))
#else
#define CQ_KEY(h) ((uint64_t)(uintptr_t)(h))
#endif

/* File handles are pointers in all libraries. */
#define CQ_FILE_KEY(h) ((uint64_t)(uintptr_t)(h))

/* Says that a datatype's handle keeps its meaning. MPICH's Fortran module makes a type for each array section that it
 * is given and frees it by the PMPI name, so handles of derived types change their meaning without the shim noticing. */
#if CQ_MPICH
#define CQ_TYPE_FIXED(h) ((uint32_t)(h) >> 30 == 1)
#else
#define CQ_TYPE_FIXED(h) 1
#endif

#pragma GCC visibility push(hidden)

/* Finds the library's functions at the first call; later calls return at once. */
void cq_resolve(void);
/* Reports by the file name whether a library is Cray MPICH's, which is named by its compiler: libmpi_cray.so.12,
 * libmpifort_gnu_123.so.12. abi.go has the names that programs may ask for. */
int cq_of_cray(const char *path);
/* Reports whether the library in the process is of another family than the shim is for: Open MPI, MPICH, or the ABI of
 * MPI 5. A program that is linked to one never gets here; a module loaded later may be. Valid after cq_resolve. */
int cq_library_is_foreign(void);
/* Reports whether the library in the process has a function, by its name with PMPI_. */
int cq_library_has(const char *function);
/* Reports whether this is rank 0 by the launcher's environment. */
int cq_first_rank(void);
/* Reports whether the library lacks a function of cq_p or cq_f. */
int cq_is_missing(void (*function)(void));

#pragma GCC visibility pop

#endif
