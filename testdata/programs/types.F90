! types.c in Fortran.
#include "flavour.h"
program types
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, ranks, e, bad = 0, i, next, before, a(12), b(12)
  double precision :: d = 1.5d0, f
  HANDLE_TYPE :: column, pair
  STATUS(st)

  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, e)
  a = [(100 * rank + i, i = 0, 11)]
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  call MPI_Type_vector(3, 1, 4, MPI_INTEGER, column, e)
  call MPI_Type_commit(column, e)
  call MPI_Sendrecv(a, 1, column, next, 1, b, 3, MPI_INTEGER, before, 1, MPI_COMM_WORLD, st, e)
  if (b(2) /= 100 * before + 4) bad = bad + 1
  call MPI_Type_free(column, e)
  call MPI_Type_contiguous(2, MPI_INTEGER, pair, e)
  call MPI_Type_commit(pair, e)
  call MPI_Sendrecv(a, 2, pair, next, 2, b, 4, MPI_INTEGER, before, 2, MPI_COMM_WORLD, st, e)
  if (b(4) /= 100 * before + 3) bad = bad + 1
  call MPI_Type_free(pair, e)
  call MPI_Sendrecv(d, 1, MPI_DOUBLE_PRECISION, next, 3, f, 1, MPI_DOUBLE_PRECISION, before, 3, MPI_COMM_WORLD, st, e)
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1
end program
