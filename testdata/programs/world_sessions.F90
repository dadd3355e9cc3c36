! A session in Fortran, as rank 2 sees it. Run with 3 ranks.
#include "flavour.h"
#if defined(F08)
#define HANDLE_SESSION type(MPI_Session)
#else
#define HANDLE_SESSION integer
#endif
program world_sessions
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, size, total, e
  logical :: there, gone, found
  character(31) :: text
  HANDLE_SESSION :: s
  HANDLE_GROUP :: g
  HANDLE_COMM :: c
  HANDLE_INFO :: info
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, s, e)
  call MPI_Initialized(there, e)
  call MPI_Finalized(gone, e)
  call MPI_Group_from_session_pset(s, 'mpi://WORLD', g, e)
  call MPI_Group_rank(g, rank, e)
  call MPI_Group_size(g, size, e)
  call MPI_Session_get_pset_info(s, 'mpi://WORLD', info, e)
  call MPI_Info_get(info, 'mpi_size', 31, text, found, e)
  call MPI_Info_free(info, e)
  call MPI_Comm_create_from_group(g, 'ours', MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, c, e)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, c, e)
  if (rank == 2) print '(l1,l1,3(1x,i0),l2,1x,a)', there, gone, rank, size, total, found, trim(text)
  call MPI_Group_free(g, e)
  call MPI_Comm_free(c, e)
  call MPI_Session_finalize(s, e)
end program
