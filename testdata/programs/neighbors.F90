! neighbors.c in Fortran.
#include "flavour.h"
#define W MPI_COMM_WORLD
#define I4 MPI_INTEGER
program neighbors
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
  integer, asynchronous :: a(24), b(24)
  HANDLE_COMM :: c, d
  HANDLE_REQUEST :: r

  call MPI_Init(e)
  call MPI_Comm_rank(W, rank, e)
  a = [(10 * rank + i, i = 0, 23)]
  b = -1
  call row()
  call ring()
  call star()
  call directed()
  call twice()
  call alone()
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  subroutine row()
    integer :: sc(4) = [1, 2, 3, 3], sd(4) = [0, 1, 3, 6], rc(4) = [2, 1, 3, 3], rd(4) = [0, 2, 3, 6]
    call MPI_Cart_create(W, 2, [3, 1], [.false., .true.], .false., c, e)
    call MPI_Neighbor_allgather(a, 2, I4, b, 2, I4, c, e)
    call check(rank == 0 .or. b(2) == 10 * (rank - 1) + 1, __LINE__)
    call check(rank == 2 .or. b(4) == 10 * (rank + 1) + 1, __LINE__)
    call check(b(6) == 10 * rank + 1, __LINE__)
    call MPI_Neighbor_alltoall(a, 1, I4, b, 1, I4, c, e)
    call check(rank == 0 .or. b(1) == 10 * (rank - 1) + 1, __LINE__)
    call MPI_Neighbor_alltoallv(a, sc, sd, I4, b, rc, rd, I4, c, e)
    call check(rank == 0 .or. b(2) == 10 * (rank - 1) + 2, __LINE__)
    call check(rank == 2 .or. b(3) == 10 * (rank + 1), __LINE__)
    call MPI_Comm_free(c, e)
  end subroutine

  subroutine ring()
    integer :: at(2) = [0, 1], none(2) = [0, 0], rc(2) = [3, 1], rd(2) = [0, 3], sc(2) = [1, 3], gathered(2), left, right
    left = mod(rank + 2, 3)
    right = mod(rank + 1, 3)
    gathered = [1 + left, 1 + right]
    call MPI_Cart_create(W, 1, [3], [.true.], .false., c, e)
    call MPI_Ineighbor_allgather(a, 5, I4, b, 5, I4, c, r, e)
    call done()
    call check(b(1) == 10 * left .and. b(10) == 10 * right + 4, __LINE__)
    call MPI_Ineighbor_allgatherv(a, 1 + rank, I4, b, gathered, rd, I4, c, r, e)
    call done()
    call check(b(1) == 10 * left .and. b(4) == 10 * right, __LINE__)
    call MPI_Comm_dup(c, d, e)
    call MPI_Ineighbor_alltoall(a, 4, I4, b, 4, I4, d, r, e)
    call done()
    call check(b(1) == 10 * left + 4, __LINE__)
    call MPI_Ineighbor_alltoallv(a, sc, at, I4, b, rc, rd, I4, c, r, e)
    call done()
    call check(b(1) == 10 * left + 1 .and. b(4) == 10 * right, __LINE__)
    call MPI_Neighbor_alltoallv(a, none, at, I4, b, none, at, I4, c, e)
    call MPI_Comm_free(d, e)
    call MPI_Comm_free(c, e)
  end subroutine

  subroutine star()
    integer :: counts(2) = [2, 3], at(2) = [0, 2]
    if (rank > 0) counts(1) = 1
    call MPI_Graph_create(W, 3, [2, 3, 4], [1, 2, 0, 0], .false., c, e)
    call MPI_Neighbor_allgatherv(a, 1 + rank, I4, b, counts, at, I4, c, e)
    call check(rank /= 0 .or. b(5) == 22, __LINE__)
    call check(rank == 0 .or. b(1) == 0, __LINE__)
    call MPI_Neighbor_alltoall(a, 1, I4, b, 1, I4, c, e)
    call check(rank == 0 .or. b(1) == rank - 1, __LINE__)
    call MPI_Comm_free(c, e)
  end subroutine

  subroutine directed()
    integer :: sources(2, 0:2) = reshape([1, 1, 0, 0, 0, 0], [2, 3]), in(0:2) = [2, 0, 1]
    integer :: destinations(2, 0:2) = reshape([2, 0, 0, 0, 0, 0], [2, 3]), out(0:2) = [1, 2, 0]
    integer :: sc(2, 0:2) = reshape([4, 0, 1, 2, 0, 0], [2, 3]), rc(2, 0:2) = reshape([1, 2, 0, 0, 4, 0], [2, 3]), at(2) = [0, 4]
    call MPI_Dist_graph_create_adjacent(W, in(rank), sources(:, rank), MPI_UNWEIGHTED, &
      out(rank), destinations(:, rank), MPI_UNWEIGHTED, MPI_INFO_NULL, .false., c, e)
    call MPI_Neighbor_allgather(a, 3, I4, b, 3, I4, c, e)
    call check(rank /= 0 .or. b(6) == 12, __LINE__)
    call check(rank /= 2 .or. b(3) == 2, __LINE__)
    call MPI_Neighbor_alltoallv(a, sc(:, rank), at, I4, b, rc(:, rank), at, I4, c, e)
    call check(rank /= 0 .or. (b(1) == 10 .and. b(5) == 14), __LINE__)
    call check(rank /= 2 .or. b(4) == 3, __LINE__)
    call MPI_Comm_free(c, e)
  end subroutine

  subroutine twice()
    integer :: left, right, sources(2), destinations(2), counts(2) = [1, 2]
    integer(kind=MPI_ADDRESS_KIND) :: bytes(2) = [0, 32]
    HANDLE_TYPE :: types(2)
    left = mod(rank + 2, 3)
    right = mod(rank + 1, 3)
    sources = left
    destinations = right
    types(1) = MPI_DOUBLE_PRECISION
    types(2) = I4
    call MPI_Dist_graph_create_adjacent(W, 2, sources, MPI_UNWEIGHTED, 2, destinations, MPI_UNWEIGHTED, &
      MPI_INFO_NULL, .false., c, e)
    b(2) = -1
    b(10) = -1
    call MPI_Neighbor_alltoallw(a, counts, bytes, types, b, counts, bytes, types, c, e)
    call check(b(2) == 10 * left + 1 .and. b(10) == 10 * left + 9, __LINE__)
    b(10) = -1
    call MPI_Ineighbor_alltoallw(a, counts, bytes, types, b, counts, bytes, types, c, r, e)
    call done()
    call check(b(10) == 10 * left + 9, __LINE__)
    call MPI_Comm_free(c, e)
  end subroutine

  subroutine alone()
    integer :: other(1) = 0
    if (rank == 0) other = 1
    call MPI_Graph_create(W, 3, [1, 2, 2], [1, 0], .false., c, e)
    b(1) = -1
    call MPI_Neighbor_allgather(a, 2, I4, b, 2, I4, c, e)
    call check(b(1) == merge(10 * other(1), -1, rank < 2), __LINE__)
    call MPI_Ineighbor_alltoall(a, 1, I4, b, 1, I4, c, r, e)
    call done()
    call MPI_Comm_free(c, e)
    call MPI_Dist_graph_create_adjacent(W, merge(1, 0, rank == 1), other, MPI_UNWEIGHTED, &
      merge(1, 0, rank == 0), other, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., c, e)
    call MPI_Neighbor_allgatherv(a, 3, I4, b, [3], [0], I4, c, e)
    call MPI_Neighbor_alltoall(a, 4, I4, b, 4, I4, c, e)
    call check(rank /= 1 .or. b(4) == 3, __LINE__)
    call MPI_Comm_free(c, e)
  end subroutine

  subroutine done()
    call MPI_Wait(r, MPI_STATUS_IGNORE, e)
  end subroutine

  subroutine check(holds, line)
    logical, intent(in) :: holds
    integer, intent(in) :: line
    if (.not. holds) then
      bad = bad + 1
      write (0, *) 'neighbors.F90:', line
    end if
  end subroutine
end program
