! pcontrol.c in Fortran.
#include "flavour.h"
program pcontrol
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, e, five(5) = 0

  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call message(1)
  call MPI_Pcontrol(0)
  call message(2)
  call MPI_Barrier(MPI_COMM_WORLD, e)
  call MPI_Pcontrol(1)
  call message(3)
  call MPI_Barrier(MPI_COMM_WORLD, e)
  call MPI_Finalize(e)
  if (rank == 0) print '(a)', 'ok'
contains
  subroutine message(n)
    integer, intent(in) :: n
    if (rank == 0) call MPI_Send(five, n, MPI_INTEGER, 2, 9, MPI_COMM_WORLD, e)
    if (rank == 2) call MPI_Recv(five, 5, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
  end subroutine
end program
