! persistent.c in Fortran.
#include "flavour.h"
#define W MPI_COMM_WORLD
#define I4 MPI_INTEGER
#define INFO MPI_INFO_NULL
program persistent
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
  integer, asynchronous :: a(9) = 0, b(9, 0:17) = 0, to(24), from(24), x = 4097

  call MPI_Init(e)
  call MPI_Comm_rank(W, rank, e)
  b(:, 1) = -1
  if (rank == 2) b(:, 1) = [(20 + i, i = 0, 8)]
  b(1, 15) = rank + 1
  call world()
  call neighbors()
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  subroutine world()
    integer :: counts(3) = [1, 2, 3], at(3) = [0, 1, 3], sc(3) = [0, 1, 2], sd(3) = [0, 0, 1], rc(3), rd(3)
    HANDLE_TYPE :: ints(3)
    HANDLE_REQUEST :: r(0:17), some(2)
    integer :: n
    rc = rank
    rd = [0, rank, 2 * rank]
    ints = I4
    call MPI_Barrier_init(W, INFO, r(0), e)
    call MPI_Bcast_init(b(1, 1), 4, I4, 2, W, INFO, r(1), e)
    call MPI_Reduce_init(a, b(1, 2), 3, I4, MPI_SUM, 1, W, INFO, r(2), e)
    call MPI_Allreduce_init(a, b(1, 3), 2, I4, MPI_MIN, W, INFO, r(3), e)
    call MPI_Scan_init(a, b(1, 4), 1, I4, MPI_SUM, W, INFO, r(4), e)
    call MPI_Exscan_init(a, b(1, 5), 1, I4, MPI_SUM, W, INFO, r(5), e)
    call MPI_Reduce_scatter_init(a, b(1, 6), counts, I4, MPI_SUM, W, INFO, r(6), e)
    call MPI_Reduce_scatter_block_init(a, b(1, 7), 2, I4, MPI_SUM, W, INFO, r(7), e)
    call MPI_Gatherv_init(a, rank + 1, I4, b(1, 8), counts, at, I4, 0, W, INFO, r(8), e)
    call MPI_Scatterv_init(a, counts, at, I4, b(1, 9), rank + 1, I4, 2, W, INFO, r(9), e)
    call MPI_Allgather_init(a, 1, I4, b(1, 10), 1, I4, W, INFO, r(10), e)
    call MPI_Allgatherv_init(a, rank + 1, I4, b(1, 11), counts, at, I4, W, INFO, r(11), e)
    call MPI_Alltoall_init(a, 1, I4, b(1, 12), 1, I4, W, INFO, r(12), e)
    call MPI_Alltoallv_init(a, sc, sd, I4, b(1, 13), rc, rd, I4, W, INFO, r(13), e)
    call MPI_Alltoallw_init(a, sc, 4 * sd, ints, b(1, 14), rc, 4 * rd, ints, W, INFO, r(14), e)
    call MPI_Allreduce_init(MPI_IN_PLACE, b(1, 15), 1, I4, MPI_PROD, W, INFO, r(15), e)
    a = [(10 * rank + i, i = 0, 8)]
    call MPI_Gather_init(a, 2, I4, b(1, 16), 2, I4, 2, W, INFO, r(16), e)
    call MPI_Scatter_init(a, 3, I4, b(1, 17), 3, I4, 1, W, INFO, r(17), e)
    do n = 0, 17
      call MPI_Start(r(n), e)
      call MPI_Wait(r(n), MPI_STATUS_IGNORE, e)
    end do
    call check(rank /= 2 .or. b(5, 16) == 20, __LINE__)
    call check(b(1, 17) == 10 + 3 * rank, __LINE__)
    call all_of_them()
    call MPI_Startall(16, r, e)
    call MPI_Waitall(16, r, MPI_STATUSES_IGNORE, e)
    call all_of_them()
    some(1) = r(3)
    n = 1
    if (rank == 0) call MPI_Send_init(x, 1, I4, 1, 9, W, some(2), e)
    if (rank == 1) call MPI_Recv_init(x, 1, I4, 0, 9, W, some(2), e)
    if (rank < 2) n = 2
    a(2) = a(2) + 5
    call MPI_Startall(n, some, e)
    call MPI_Waitall(n, some, MPI_STATUSES_IGNORE, e)
    call check(b(2, 3) == 6, __LINE__)
    a(2) = a(2) - 5
    do n = 0, 17
      call MPI_Request_free(r(n), e)
    end do
    if (rank < 2) call MPI_Request_free(some(2), e)
  end subroutine

  subroutine all_of_them()
    integer :: at(3) = [0, 1, 3]
    call check(b(4, 1) == 23, __LINE__)
    call check(rank /= 1 .or. b(2, 2) == 33, __LINE__)
    call check(b(2, 3) == 1, __LINE__)
    call check(b(1, 4) == 5 * rank * (rank + 1), __LINE__)
    call check(b(1, 6) == 30 + 3 * at(rank + 1), __LINE__)
    call check(rank /= 0 .or. b(6, 8) == 22, __LINE__)
    call check(b(1, 9) == 20 + at(rank + 1), __LINE__)
    call check(b(6, 11) == 22, __LINE__)
    call check(rank == 0 .or. b(rank + 1, 13) == 10 + rank / 2, __LINE__)
    call check(rank == 0 .or. b(rank + 1, 14) == 10 + rank / 2, __LINE__)
    call check(b(1, 15) == 6, __LINE__)
    b = -1
    if (rank == 2) b(:, 1) = [(20 + i, i = 0, 8)]
    b(1, 15) = rank + 1
  end subroutine

  subroutine neighbors()
    integer :: left, right, at(2) = [0, 1], rc(2) = [3, 1], rd(2) = [0, 3], sc(2) = [1, 3], counts(2) = [1, 2], gathered(2), n
    integer(MPI_ADDRESS_KIND) :: bytes(2) = [0, 32]
    HANDLE_TYPE :: types(2), odd
    HANDLE_COMM :: c, d
    HANDLE_REQUEST :: r(5)
    left = mod(rank + 2, 3)
    right = mod(rank + 1, 3)
    gathered = [1 + left, 1 + right]
    types(1) = MPI_DOUBLE_PRECISION
    types(2) = I4
    to = [(10 * rank + i, i = 0, 23)]
    from = -1
    call MPI_Cart_create(W, 1, [3], [.true.], .false., c, e)
    call MPI_Dist_graph_create_adjacent(W, 2, [left, left], MPI_UNWEIGHTED, 2, [right, right], MPI_UNWEIGHTED, &
      INFO, .false., d, e)
    call MPI_Neighbor_allgather_init(a, 3, I4, b(1, 0), 3, I4, c, INFO, r(1), e)
    call MPI_Neighbor_allgatherv_init(a, 1 + rank, I4, b(1, 1), gathered, rd, I4, c, INFO, r(2), e)
    call MPI_Type_vector(4, 1, 2, I4, odd, e)
    call MPI_Type_commit(odd, e)
    call MPI_Neighbor_alltoall_init(to, 1, odd, b(1, 2), 4, I4, c, INFO, r(3), e)
    call MPI_Type_free(odd, e)
    call MPI_Neighbor_alltoallv_init(a, sc, at, I4, b(1, 3), rc, rd, I4, c, INFO, r(4), e)
    call MPI_Neighbor_alltoallw_init(to, counts, bytes, types, from, counts, bytes, types, d, INFO, r(5), e)
    do n = 1, 5
      call MPI_Start(r(n), e)
      call MPI_Wait(r(n), MPI_STATUS_IGNORE, e)
    end do
    call check(b(1, 0) == 10 * left .and. b(6, 0) == 10 * right + 2, __LINE__)
    call check(b(1, 1) == 10 * left .and. b(4, 1) == 10 * right, __LINE__)
    call check(b(1, 2) == 10 * left + 7 .and. b(4, 2) == 10 * left + 13, __LINE__)
    call check(b(1, 3) == 10 * left + 1 .and. b(4, 3) == 10 * right, __LINE__)
    call check(from(2) == 10 * left + 1 .and. from(10) == 10 * left + 9, __LINE__)
    do n = 1, 5
      call MPI_Request_free(r(n), e)
    end do
    call MPI_Comm_free(c, e)
    call MPI_Comm_free(d, e)
  end subroutine

  subroutine check(holds, line)
    logical, intent(in) :: holds
    integer, intent(in) :: line
    if (.not. holds) then
      bad = bad + 1
      write (0, *) 'persistent.F90:', line
    end if
  end subroutine
end program
