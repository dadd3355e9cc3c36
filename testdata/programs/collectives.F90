! collectives.c in Fortran.
#include "flavour.h"
#define W MPI_COMM_WORLD
#define I4 MPI_INTEGER
program collectives
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, ranks, e, bad = 0, i
  integer, asynchronous :: a(9), b(9)
  integer :: counts(3) = [1, 2, 3], at(3) = [0, 1, 3]
  integer :: sc(3) = [0, 1, 2], sd(3) = [0, 0, 1], rc(3), rd(3), sdb(3) = [0, 0, 4], rdb(3)
  HANDLE_TYPE :: ints(3)
  HANDLE_REQUEST :: r

  call MPI_Init(e)
  call MPI_Comm_rank(W, rank, e)
  call MPI_Comm_size(W, ranks, e)
  a = [(10 * rank + i, i = 0, 8)]
  b = -1
  rc = rank
  rd = [0, rank, 2 * rank]
  rdb = 4 * rd
  ints = I4

  call MPI_Barrier(W, e)
  call MPI_Bcast(b, 4, I4, 2, W, e)
  call MPI_Reduce(a, b, 3, I4, MPI_SUM, 1, W, e)
  call check(rank /= 1 .or. b(2) == 33, __LINE__)
  if (rank == 0) then
    call MPI_Reduce(MPI_IN_PLACE, b, 1, I4, MPI_MAX, 0, W, e)
  else
    call MPI_Reduce(b, a(9), 1, I4, MPI_MAX, 0, W, e)
  end if
  call MPI_Allreduce(a, b, 2, I4, MPI_MIN, W, e)
  call check(b(1) == 0 .and. b(2) == 1, __LINE__)
  b(1) = rank + 1
  call MPI_Allreduce(MPI_IN_PLACE, b, 1, I4, MPI_PROD, W, e)
  call check(b(1) == 6, __LINE__)
  call MPI_Scan(a, b, 1, I4, MPI_SUM, W, e)
  call MPI_Exscan(a, b, 1, I4, MPI_SUM, W, e)
  call MPI_Reduce_scatter(a, b, counts, I4, MPI_SUM, W, e)
  call check(b(1) == 30 + 3 * at(rank + 1), __LINE__)
  call MPI_Reduce_scatter_block(a, b, 2, I4, MPI_SUM, W, e)
  call MPI_Gather(a, 2, I4, b, 2, I4, 2, W, e)
  call check(rank /= 2 .or. b(5) == 20, __LINE__)
  if (rank == 1) then
    call MPI_Gather(MPI_IN_PLACE, 1, I4, b, 1, I4, 1, W, e)
  else
    call MPI_Gather(a, 1, I4, b, 1, I4, 1, W, e)
  end if
  call MPI_Gatherv(a, rank + 1, I4, b, counts, at, I4, 0, W, e)
  call check(rank /= 0 .or. b(6) == 22, __LINE__)
  call MPI_Scatter(a, 3, I4, b, 3, I4, 1, W, e)
  call check(b(1) == 10 + 3 * rank, __LINE__)
  if (rank == 0) then
    call MPI_Scatter(a, 1, I4, MPI_IN_PLACE, 1, I4, 0, W, e)
  else
    call MPI_Scatter(a, 1, I4, b, 1, I4, 0, W, e)
  end if
  call MPI_Scatterv(a, counts, at, I4, b, rank + 1, I4, 2, W, e)
  call check(b(1) == 20 + at(rank + 1), __LINE__)
  call MPI_Allgather(a, 1, I4, b, 1, I4, W, e)
  call check(b(3) == 20, __LINE__)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 1, I4, W, e)
  call MPI_Allgatherv(a, rank + 1, I4, b, counts, at, I4, W, e)
  call check(b(6) == 22, __LINE__)
  call MPI_Alltoall(a, 1, I4, b, 1, I4, W, e)
  call check(b(3) == 20 + rank, __LINE__)
  call MPI_Alltoallv(a, sc, sd, I4, b, rc, rd, I4, W, e)
  call MPI_Alltoallw(a, sc, sdb, ints, b, rc, rdb, ints, W, e)
  if (rank > 0) call check(b(rank + 1) == 10 + rank / 2, __LINE__)

  call MPI_Ibarrier(W, r, e)
  call done()
  call MPI_Ibcast(b, 4, I4, 2, W, r, e)
  call done()
  call MPI_Ireduce(a, b, 3, I4, MPI_BAND, 1, W, r, e)
  call done()
  call MPI_Iallreduce(a, b, 2, I4, MPI_BOR, W, r, e)
  call done()
  call MPI_Iscan(a, b, 1, I4, MPI_BXOR, W, r, e)
  call done()
  call MPI_Iexscan(a, b, 1, I4, MPI_PROD, W, r, e)
  call done()
  call MPI_Ireduce_scatter(a, b, counts, I4, MPI_SUM, W, r, e)
  call done()
  call MPI_Ireduce_scatter_block(a, b, 2, I4, MPI_SUM, W, r, e)
  call done()
  call MPI_Igather(a, 2, I4, b, 2, I4, 2, W, r, e)
  call done()
  call MPI_Igatherv(a, rank + 1, I4, b, counts, at, I4, 0, W, r, e)
  call done()
  call MPI_Iscatter(a, 3, I4, b, 3, I4, 1, W, r, e)
  call done()
  call MPI_Iscatterv(a, counts, at, I4, b, rank + 1, I4, 2, W, r, e)
  call done()
  call MPI_Iallgather(a, 1, I4, b, 1, I4, W, r, e)
  call done()
  call MPI_Iallgatherv(a, rank + 1, I4, b, counts, at, I4, W, r, e)
  call done()
  call MPI_Ialltoall(a, 1, I4, b, 1, I4, W, r, e)
  call done()
  call MPI_Ialltoallv(a, sc, sd, I4, b, rc, rd, I4, W, r, e)
  call done()
  call MPI_Ialltoallw(a, sc, sdb, ints, b, rc, rdb, ints, W, r, e)
  call done()
  if (rank > 0) call check(b(rank + 1) == 10 + rank / 2, __LINE__)
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  subroutine done()
    call MPI_Wait(r, MPI_STATUS_IGNORE, e)
  end subroutine

  subroutine check(holds, line)
    logical, intent(in) :: holds
    integer, intent(in) :: line
    if (.not. holds) then
      bad = bad + 1
      write (0, *) 'collectives.F90:', line
    end if
  end subroutine
end program
