! corners.c in Fortran.
#include "flavour.h"
#define W MPI_COMM_WORLD
#define I4 MPI_INTEGER
program corners
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, e, bad = 0, i
  integer :: a(30), b(30)
  HANDLE_COMM :: half, inter, none

  call MPI_Init(e)
  call MPI_Comm_rank(W, rank, e)
  call in_place()
  call nothing()
  call MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN, e)
  call MPI_Cart_create(W, 1, [4], [.false.], .false., none, e)
  call check(e /= MPI_SUCCESS, __LINE__)
  call MPI_Barrier(W, e)
  call MPI_Comm_split(W, rank / 2, 0, half, e)
  call MPI_Intercomm_create(half, 0, W, merge(0, 2, rank == 2), 9, inter, e)
  call between(inter)
  call MPI_Comm_free(inter, e)
  call MPI_Comm_free(half, e)
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  subroutine fill()
    a = [(10 * rank + i, i = 0, 29)]
    b = a
  end subroutine

  subroutine in_place()
    integer :: counts(3) = [1, 2, 3], at(3) = [0, 1, 3], n(3), d(3)
    HANDLE_TYPE :: ints(3)
    n = [rank, rank + 1, rank + 2]
    d = [0, rank, 2 * rank + 1]
    ints = I4
    call fill()
    call MPI_Scan(MPI_IN_PLACE, b, 1, I4, MPI_SUM, W, e)
    call check(b(1) == 5 * rank * (rank + 1), __LINE__)
    call fill()
    call MPI_Exscan(MPI_IN_PLACE, b, 2, I4, MPI_SUM, W, e)
    call check(rank /= 2 .or. b(2) == 12, __LINE__)
    call fill()
    call MPI_Reduce_scatter(MPI_IN_PLACE, b, counts, I4, MPI_SUM, W, e)
    call check(b(1) == 30 + 3 * at(rank + 1), __LINE__)
    call fill()
    call MPI_Reduce_scatter_block(MPI_IN_PLACE, b, 2, I4, MPI_SUM, W, e)
    call check(b(2) == 30 + 3 * (2 * rank + 1), __LINE__)
    call fill()
    if (rank == 1) then
      call MPI_Gatherv(MPI_IN_PLACE, rank + 1, I4, b, counts, at, I4, 1, W, e)
    else
      call MPI_Gatherv(a, rank + 1, I4, b, counts, at, I4, 1, W, e)
    end if
    call check(rank /= 1 .or. b(6) == 22, __LINE__)
    if (rank == 0) then
      call MPI_Scatterv(a, counts, at, I4, MPI_IN_PLACE, rank + 1, I4, 0, W, e)
    else
      call MPI_Scatterv(a, counts, at, I4, b, rank + 1, I4, 0, W, e)
    end if
    call check(rank == 0 .or. b(1) == at(rank + 1), __LINE__)
    call fill()
    call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, counts, at, I4, W, e)
    call check(b(6) == 25, __LINE__)
    call fill()
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 1, I4, W, e)
    call check(b(3) == 20 + rank, __LINE__)
    call fill()
    call MPI_Alltoallv(MPI_IN_PLACE, n, d, I4, b, n, d, I4, W, e)
    call check(rank /= 0 .or. b(2) == 20, __LINE__)
    call fill()
    call MPI_Alltoallw(MPI_IN_PLACE, n, 4 * d, ints, b, n, 4 * d, ints, W, e)
    call check(rank /= 0 .or. b(2) == 20, __LINE__)
  end subroutine

  subroutine nothing()
    integer :: zero(3) = [0, 0, 0]
    call MPI_Bcast(b, 0, I4, 2, W, e)
    call MPI_Allreduce(a, b, 0, I4, MPI_SUM, W, e)
    call MPI_Gather(a, 0, I4, b, 0, I4, 1, W, e)
    call MPI_Scatterv(a, zero, zero, I4, b, 0, I4, 2, W, e)
    call MPI_Allgatherv(a, 0, I4, b, zero, zero, I4, W, e)
    call MPI_Alltoallv(a, zero, zero, I4, b, zero, zero, I4, W, e)
  end subroutine

  subroutine between(c)
    HANDLE_COMM, intent(in) :: c
    integer :: from1, to2, few(2) = [1, 3], counts(2) = [1, 2], at(2) = [0, 1], to(2) = [2, 4], dto(2) = [0, 2]
    HANDLE_TYPE :: ints(2)
    logical :: two
    two = rank == 2
    ints = I4
    from1 = 1
    if (rank == 1) from1 = MPI_ROOT
    if (rank == 0) from1 = MPI_PROC_NULL
    to2 = merge(MPI_ROOT, 0, two)
    if (.not. two) then ! to 2, and from it
      to = rank + 1
      dto = 0
    end if
    call fill()
    call MPI_Barrier(c, e)
    call MPI_Bcast(b, 3, I4, from1, c, e)
    call check(b(3) == merge(12, 10 * rank + 2, two), __LINE__)
    call MPI_Reduce(a, b, 2, I4, MPI_SUM, to2, c, e)
    call check(.not. two .or. b(2) == 12, __LINE__)
    call MPI_Allreduce(a, b, 2, I4, MPI_SUM, c, e)
    call check(b(2) == merge(12, 21, two), __LINE__)
    if (two) few = 4
    call MPI_Reduce_scatter(a, b, few, I4, MPI_SUM, c, e)
    call check(b(1) == merge(10, 20 + rank, two), __LINE__)
    call MPI_Reduce_scatter_block(a, b, merge(4, 2, two), I4, MPI_SUM, c, e)
    call check(b(2) == merge(12, 21 + 2 * rank, two), __LINE__)
    call MPI_Gather(a, 3, I4, b, 3, I4, to2, c, e)
    call check(.not. two .or. b(6) == 12, __LINE__)
    call MPI_Gatherv(a, rank + 1, I4, b, counts, at, I4, to2, c, e)
    call check(.not. two .or. b(3) == 11, __LINE__)
    call MPI_Scatter(a, 2, I4, b, 2, I4, to2, c, e)
    call check(two .or. b(2) == 21 + 2 * rank, __LINE__)
    call MPI_Scatterv(a, counts, at, I4, b, rank + 1, I4, to2, c, e)
    call check(two .or. b(1) == 20 + rank, __LINE__)
    call MPI_Allgather(a, 3, I4, b, 3, I4, c, e)
    call check(b(3) == merge(2, 22, two), __LINE__)
    if (.not. two) counts = 3
    call MPI_Allgatherv(a, rank + 1, I4, b, counts, at, I4, c, e)
    call check(b(3) == merge(11, 22, two), __LINE__)
    call MPI_Alltoall(a, 2, I4, b, 2, I4, c, e)
    call check(b(2) == merge(1, 21 + 2 * rank, two), __LINE__)
    if (.not. two) counts = 2 * (rank + 1)
    call MPI_Alltoallv(a, to, dto, I4, b, counts, at, I4, c, e)
    call check(b(2) == merge(10, 21 + 2 * rank, two), __LINE__)
    call MPI_Alltoallw(a, to, 4 * dto, ints, b, counts, 4 * at, ints, c, e)
    call check(b(2) == merge(10, 21 + 2 * rank, two), __LINE__)
  end subroutine

  subroutine check(holds, line)
    logical, intent(in) :: holds
    integer, intent(in) :: line
    if (.not. holds) then
      bad = bad + 1
      write (0, *) 'corners.F90:', line
    end if
  end subroutine
end program
