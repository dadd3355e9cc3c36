/* Converts Fortran's handles, indices and sentinels to C's. The call itself always gets the program's own pointers. */
#ifndef COMMQ_FORTRAN_H
#define COMMQ_FORTRAN_H

#include "state.h"

#define CQ_COMM(i) cq_p_comm_f2c(i)
#if CQ_OPENMPI
#define cq_p_comm_f2c(i) cq_p.Comm_f2c(i)
#define CQ_TYPE(i) cq_p.Type_f2c(i)
#define CQ_OP(i) cq_p.Op_f2c(i)
#define CQ_REQUEST(i) cq_p.Request_f2c(i)
#define CQ_WIN(i) cq_p.Win_f2c(i)
#define CQ_GROUP(i) cq_p.Group_f2c(i)
#define CQ_MESSAGE(i) cq_p.Message_f2c(i)
#define CQ_F_IGNORE(p) ((void *)(p) == cq_d.p_mpi_fortran_status_ignore_)
#define CQ_F_IGNORE_ALL(p) ((void *)(p) == cq_d.p_mpi_fortran_statuses_ignore_)
#define CQ_F_IN_PLACE(p) ((void *)(p) == cq_d.p_mpi_fortran_in_place_)
#define CQ_F_BOTTOM(p) ((void *)(p) == cq_d.p_mpi_fortran_bottom_)
#elif CQ_ABI
/* Its functions of Fortran are those of other libraries, whose calls arrive at the functions of C: these are not used. */
#define cq_p_comm_f2c(i) ((MPI_Comm)(intptr_t)(i))
#define CQ_TYPE(i) ((MPI_Datatype)(intptr_t)(i))
#define CQ_OP(i) ((MPI_Op)(intptr_t)(i))
#define CQ_REQUEST(i) ((MPI_Request)(intptr_t)(i))
#define CQ_WIN(i) ((MPI_Win)(intptr_t)(i))
#define CQ_GROUP(i) ((MPI_Group)(intptr_t)(i))
#define CQ_MESSAGE(i) ((MPI_Message)(intptr_t)(i))
#define CQ_F_IN_PLACE(p) ((p) == MPI_IN_PLACE)
#define CQ_F_BOTTOM(p) ((p) == MPI_BOTTOM)
#else
#define cq_p_comm_f2c(i) ((MPI_Comm)(i))
#define CQ_TYPE(i) ((MPI_Datatype)(i))
#define CQ_OP(i) ((MPI_Op)(i))
#define CQ_REQUEST(i) ((MPI_Request)(i))
#define CQ_WIN(i) ((MPI_Win)(i))
#define CQ_GROUP(i) ((MPI_Group)(i))
#define CQ_MESSAGE(i) ((MPI_Message)(i))
#define CQ_F_IGNORE(p) ((void *)(p) == cq_d.p_MPIR_F08_MPI_STATUS_IGNORE_OBJ)
#define CQ_F_IGNORE_ALL(p) ((void *)(p) == cq_d.p_MPIR_F08_MPI_STATUSES_IGNORE_OBJ)
#define CQ_F_IN_PLACE(p) ((void *)(p) == cq_d.p_MPIR_F08_MPI_IN_PLACE)
#define CQ_F_BOTTOM(p) ((void *)(p) == cq_d.p_MPIR_F08_MPI_BOTTOM)
#endif

#if CQ_ABI
#define CQ_FILE(i) ((MPI_File)(intptr_t)(i))
#else
#define CQ_FILE(i) cq_p.File_f2c(i)
#endif

/* In both libraries a Fortran status equals the C status word for word, so a pointer to one serves as the other. */
_Static_assert(sizeof(MPI_Status) % sizeof(MPI_Fint) == 0, "status");

CQ_HOT void *cq_f_buffer(const void *p)
{
	if (CQ_UNLIKELY(CQ_F_IN_PLACE(p)))
		return MPI_IN_PLACE;
	return CQ_UNLIKELY(CQ_F_BOTTOM(p)) ? MPI_BOTTOM : (void *)p;
}

/* Converts a Fortran index to a C one; MPI_UNDEFINED stays. Some versions of MPICH count from 0 in mpi_f08. */
CQ_HOT int cq_f_index(int i)
{
	return i == MPI_UNDEFINED ? i : i - cq.f_base;
}

#endif
