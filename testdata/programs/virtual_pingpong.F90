! The round trip of 4097 bytes between two ranks, by MPI_Wtime, in nanoseconds.
#include "flavour.h"
program virtual_pingpong
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  character :: buf(4097)
  integer :: rank, e
  double precision :: t
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  t = MPI_Wtime()
  if (rank == 0) then
    call MPI_Send(buf, 4097, MPI_CHARACTER, 1, 9, MPI_COMM_WORLD, e)
    call MPI_Recv(buf, 4097, MPI_CHARACTER, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    print '(I0,1X,I0,1X,ES7.1)', 4097, nint((MPI_Wtime() - t) * 1d9), MPI_Wtick()
  else
    call MPI_Recv(buf, 4097, MPI_CHARACTER, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call MPI_Send(buf, 4097, MPI_CHARACTER, 0, 9, MPI_COMM_WORLD, e)
  end if
  call MPI_Finalize(e)
end program
