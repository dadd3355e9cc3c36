! large.c in Fortran: mpi_f08 takes counts of kind MPI_COUNT_KIND under the plain names.
#define W MPI_COMM_WORLD
#define I4 MPI_INTEGER
program large
  use mpi_f08
  implicit none
  integer, parameter :: ck = MPI_COUNT_KIND
  integer :: rank, e, bad = 0, i, left, right
  integer, asynchronous :: a(9), b(9)
  type(MPI_Request) :: r(2)

  call MPI_Init(e)
  call MPI_Comm_rank(W, rank, e)
  a = [(10 * rank + i, i = 0, 8)]
  b = -1
  left = mod(rank + 2, 3)
  right = mod(rank + 1, 3)
  call around()
  call matched()
  call collectives()
  call huge()
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  subroutine around()
    call MPI_Isend(a, int(1 + rank, ck), I4, right, 5, W, r(1), e)
    call MPI_Irecv(b, 9_ck, I4, left, 5, W, r(2), e)
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, e)
    call check(b(left + 1) == 11 * left, __LINE__)
    call MPI_Sendrecv(a, 2_ck, I4, right, 6, b, 2_ck, I4, left, 6, W, MPI_STATUS_IGNORE, e)
    call check(b(2) == 10 * left + 1, __LINE__)
    call MPI_Sendrecv_replace(b, 1_ck, I4, right, 7, left, 7, W, MPI_STATUS_IGNORE, e)
    call check(b(1) == 10 * right, __LINE__)
    call MPI_Isendrecv(a, 4_ck, I4, right, 8, b, 4_ck, I4, left, 8, W, r(1), e)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
    call check(b(4) == 10 * left + 3, __LINE__)
    call MPI_Send_init(a, 5_ck, I4, right, 9, W, r(1), e)
    call MPI_Recv_init(b, 5_ck, I4, left, 9, W, r(2), e)
    call MPI_Startall(2, r, e)
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, e)
    call check(b(5) == 10 * left + 4, __LINE__)
    call MPI_Request_free(r(1), e)
    call MPI_Request_free(r(2), e)
  end subroutine

  subroutine matched()
    type(MPI_Message) :: m
    type(MPI_Datatype) :: nothing
    call MPI_Type_contiguous(0, I4, nothing, e)
    call MPI_Type_commit(nothing, e)
    select case (rank)
    case (0)
      call MPI_Send(a, 6_ck, I4, 1, 3, W, e)
      call MPI_Mprobe(2, 4, W, m, MPI_STATUS_IGNORE, e)
      call MPI_Imrecv(b, 7_ck, I4, m, r(1), e)
      call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
      call check(b(7) == 26, __LINE__)
    case (1)
      call MPI_Mprobe(0, 3, W, m, MPI_STATUS_IGNORE, e)
      call MPI_Mrecv(b, 6_ck, I4, m, MPI_STATUS_IGNORE, e)
      call check(b(6) == 5, __LINE__)
      call MPI_Send(a, 5000000000_ck, nothing, 2, 2, W, e)
    case default
      call MPI_Ssend(a, 7_ck, I4, 0, 4, W, e)
      call MPI_Recv(b, 5000000000_ck, nothing, 1, 2, W, MPI_STATUS_IGNORE, e)
    end select
    call MPI_Type_free(nothing, e)
  end subroutine

  subroutine collectives()
    integer(kind=MPI_COUNT_KIND) :: counts(3) = [1, 2, 3], sc(3) = [0, 1, 2], rc(3), two(2) = [1, 3], from(2) = [3, 1]
    integer(kind=MPI_ADDRESS_KIND) :: at3(3) = [0, 1, 3], sd(3) = [0, 0, 1], rd(3), sdb(3) = [0, 0, 4], rdb(3)
    integer(kind=MPI_ADDRESS_KIND) :: td(2) = [0, 1], fd(2) = [0, 3]
    type(MPI_Datatype) :: ints(3)
    type(MPI_Comm) :: c
    rc = rank
    rd = [0, rank, 2 * rank]
    rdb = 4 * rd
    ints = I4
    call MPI_Bcast(b, 4_ck, I4, 2, W, e)
    call MPI_Gatherv(a, int(rank + 1, ck), I4, b, counts, at3, I4, 0, W, e)
    call check(rank /= 0 .or. b(6) == 22, __LINE__)
    call MPI_Reduce_scatter(a, b, counts, I4, MPI_SUM, W, e)
    call check(b(1) == 30 + 3 * at3(rank + 1), __LINE__)
    call MPI_Alltoallw(a, sc, sdb, ints, b, rc, rdb, ints, W, e)
    if (rank > 0) call check(b(rank + 1) == 10 + rank / 2, __LINE__)
    call MPI_Iallgatherv(a, int(rank + 1, ck), I4, b, counts, at3, I4, W, r(1), e)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
    call check(b(6) == 22, __LINE__)
    call MPI_Ialltoallv(a, sc, sd, I4, b, rc, rd, I4, W, r(1), e)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
    if (rank > 0) call check(b(rank + 1) == 10 + rank / 2, __LINE__)
    call MPI_Reduce_scatter_block(a, b, 2_ck, I4, MPI_SUM, W, e)
    call MPI_Scatter(a, 3_ck, I4, b, 3_ck, I4, 1, W, e)
    call check(b(1) == 10 + 3 * rank, __LINE__)
    call MPI_Allreduce_init(a, b, 2_ck, I4, MPI_MIN, W, MPI_INFO_NULL, r(1), e)
    call MPI_Start(r(1), e)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
    call check(b(2) == 1, __LINE__)
    call MPI_Request_free(r(1), e)
    call MPI_Cart_create(W, 1, [3], [.true.], .false., c, e)
    call MPI_Neighbor_alltoallv(a, two, td, I4, b, from, fd, I4, c, e)
    call check(b(1) == 10 * left + 1, __LINE__)
    call MPI_Ineighbor_allgather(a, 3_ck, I4, b, 3_ck, I4, c, r(1), e)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
    call check(b(1) == 10 * left, __LINE__)
    call MPI_Comm_free(c, e)
  end subroutine

  subroutine huge()
    type(MPI_Datatype) :: gib
    integer(kind=ck) :: five(1) = [5000000000_ck]
    integer(kind=MPI_ADDRESS_KIND) :: at0(1) = [0]
    call MPI_Type_contiguous(2**30, MPI_BYTE, gib, e)
    call MPI_Type_commit(gib, e)
    call MPI_Bcast(a, 3_ck, gib, 0, MPI_COMM_SELF, e)
    call MPI_Allgatherv(MPI_IN_PLACE, 0_ck, MPI_DATATYPE_NULL, a, five, at0, MPI_BYTE, MPI_COMM_SELF, e)
    call MPI_Type_free(gib, e)
  end subroutine

  subroutine check(holds, line)
    logical, intent(in) :: holds
    integer, intent(in) :: line
    if (.not. holds) then
      bad = bad + 1
      write (0, *) 'large.F90:', line
    end if
  end subroutine
end program
