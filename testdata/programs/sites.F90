! sites.c in Fortran: prints the line of each examined call. 3 ranks.
#include "flavour.h"
module halo
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, line_put, line_early, line_late, line_in, line_received
  character :: out(4097), in(4097)
contains
  ! One place with two paths to it.
  subroutine put(tag)
    integer, intent(in) :: tag
    integer :: e
    STATUS(st)
    HANDLE_REQUEST :: r
    line_put = __LINE__ + 1
    call MPI_Isend(out, 4097, MPI_CHARACTER, mod(rank + 1, 3), tag, MPI_COMM_WORLD, r, e)
    line_received = __LINE__ + 1
    call MPI_Recv(in, 4097, MPI_CHARACTER, mod(rank + 2, 3), tag, MPI_COMM_WORLD, st, e)
    line_in = __LINE__ + 1
    call MPI_Wait(r, MPI_STATUS_IGNORE, e)
    out(2) = in(1) ! no tail call
  end subroutine put

  subroutine early()
    line_early = __LINE__ + 1
    call put(9)
    out(3) = in(1)
  end subroutine early

  subroutine late()
    line_late = __LINE__ + 1
    call put(5)
    out(4) = in(1)
  end subroutine late
end module halo

program sites
  use halo
  implicit none
  integer :: e, i, sum
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  out = 'a'
  do i = 1, 30
    call early()
  end do
  call late()
  call MPI_Allreduce(rank, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, e)
  if (rank == 0) then
    print '(5(a,i0))', 'put ', line_put, ' recv ', line_received, ' wait ', line_in, ' early ', line_early, ' late ', line_late
  end if
  call MPI_Finalize(e)
end program sites
