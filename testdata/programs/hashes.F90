! hashes.c in Fortran.
#include "flavour.h"
program hashes
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, e, i, bad = 0, a(12), x, three(3), in(3), out(3), n
  integer(kind=MPI_ADDRESS_KIND) :: at(2), address, zero
  integer, parameter :: counts(3) = [1, 0, 2], displs(3) = [0, 1, 4], ones(3) = [1, 1, 1], order(3) = [2, 0, 1]
  integer(kind=2) :: small(2)
  double precision :: d = 1.5d0
  character(len=9) :: text = '123456789'
  character :: got(256)
  character(len=8 + MPI_BSEND_OVERHEAD) :: room
  HANDLE_TYPE :: t, types(2)
  HANDLE_REQUEST :: q(1)
  STATUS(st)
  STATUSES(sts, 1)

  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  a = [(i, i = 1, 12)]
  small = [-1_2, 2_2]
  three = [2, 3, 5]
  zero = 0
  if (rank == 1) call MPI_Send(text, 9, MPI_CHARACTER, 2, 1, MPI_COMM_WORLD, e)
  if (rank == 1) call MPI_Send([1, 4, 7, 10], 4, MPI_INTEGER, 2, 2, MPI_COMM_WORLD, e)
  call MPI_Type_vector(4, 1, 3, MPI_INTEGER, t, e)
  call pass_once(3, 1)
  at = [4, 0]
  types(1) = MPI_INTEGER
  types(2) = MPI_INTEGER
  call MPI_Type_create_struct(2, [1, 1], at, types, t, e)
  call pass_once(4, 1)
  if (rank == 1) call MPI_Send([2, 1], 2, MPI_INTEGER, 2, 5, MPI_COMM_WORLD, e)
  call MPI_Type_create_subarray(2, [4, 3], [2, 2], [1, 1], MPI_ORDER_FORTRAN, MPI_INTEGER, t, e)
  call pass_once(6, 1)
  if (rank == 1) call MPI_Send([6, 7, 10, 11], 4, MPI_INTEGER, 2, 7, MPI_COMM_WORLD, e)
  address = 8
  call MPI_Type_create_resized(MPI_INTEGER, zero, address, t, e)
  call pass_once(8, 3)
  if (rank == 1) call MPI_Send([1, 3, 5], 3, MPI_INTEGER, 2, 9, MPI_COMM_WORLD, e)
  if (rank == 1) call MPI_Send(a, 0, MPI_INTEGER, 2, 10, MPI_COMM_WORLD, e)
  call MPI_Get_address(three, address, e)
  at(1) = address
  call MPI_Type_create_hindexed(1, [2], at, MPI_INTEGER, t, e)
  call MPI_Type_commit(t, e)
  if (rank == 1) call MPI_Send(MPI_BOTTOM, 1, t, 2, 11, MPI_COMM_WORLD, e)
  call MPI_Type_free(t, e)
  call MPI_Get_address(three(3), at(2), e)
  call MPI_Type_create_hindexed(2, [1, 1], at, MPI_INTEGER, t, e)
  call MPI_Type_commit(t, e)
  if (rank == 1) call MPI_Send(MPI_BOTTOM, 1, t, 2, 17, MPI_COMM_WORLD, e)
  call MPI_Type_free(t, e)
  if (rank == 1) call MPI_Send(small, 2, MPI_INTEGER2, 2, 12, MPI_COMM_WORLD, e)
  if (rank == 1) call MPI_Send(a(1:12:3), 4, MPI_INTEGER, 2, 13, MPI_COMM_WORLD, e)
  do i = 1, 13
    if (rank == 2) call MPI_Recv(got, 256, MPI_CHARACTER, 1, i, MPI_COMM_WORLD, st, e)
  end do
  if (rank == 2) call MPI_Recv(got, 256, MPI_CHARACTER, 1, 17, MPI_COMM_WORLD, st, e)

  if (rank == 1) then
    call MPI_Send_init(three, 3, MPI_INTEGER, 2, 14, MPI_COMM_WORLD, q(1), e)
    call MPI_Start(q(1), e)
    call MPI_Wait(q(1), MPI_STATUS_IGNORE, e)
    three(1) = 7
    call MPI_Startall(1, q, e)
    call MPI_Waitall(1, q, sts, e)
    call MPI_Request_free(q(1), e)
    n = len(room)
    call MPI_Buffer_attach(room, n, e)
    call MPI_Bsend(d, 1, MPI_DOUBLE_PRECISION, 2, 15, MPI_COMM_WORLD, e)
    call detach()
  else if (rank == 2) then
    do i = 1, 2
      call MPI_Recv(three, 3, MPI_INTEGER, 1, 14, MPI_COMM_WORLD, st, e)
    end do
    if (three(1) /= 7) bad = bad + 1
    call MPI_Recv(d, 1, MPI_DOUBLE_PRECISION, 1, 15, MPI_COMM_WORLD, st, e)
  end if
  if (rank > 0) then
    x = 3 * rank
    call MPI_Sendrecv_replace(x, 1, MPI_INTEGER, 3 - rank, 16, 3 - rank, 16, MPI_COMM_WORLD, st, e)
    if (x /= 3 * (3 - rank)) bad = bad + 1
  end if

  in = [3 + rank, 5, 9]
  call MPI_Bcast(in(2), 2, MPI_INTEGER, 2, MPI_COMM_WORLD, e)
  call MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, e)
  if (in(1) /= 12) bad = bad + 1
  call MPI_Scatterv(a, counts, displs, MPI_INTEGER, out, counts(rank + 1), MPI_INTEGER, 0, MPI_COMM_WORLD, e)
  in = [(10 * rank + i, i = 0, 2)]
  if (rank == 0) then
    call MPI_Gather(MPI_IN_PLACE, 1, MPI_INTEGER, in, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, e)
    if (in(3) /= 20) bad = bad + 1
  else
    call MPI_Gather(in, 1, MPI_INTEGER, out, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, e)
  end if
  call MPI_Alltoallv(a, ones, order, MPI_INTEGER, out, ones, order, MPI_INTEGER, MPI_COMM_WORLD, e)
  call MPI_Barrier(MPI_COMM_WORLD, e)
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  subroutine pass_once(tag, count)
    integer, intent(in) :: tag, count
    call MPI_Type_commit(t, e)
    if (rank == 1) call MPI_Send(a, count, t, 2, tag, MPI_COMM_WORLD, e)
    call MPI_Type_free(t, e)
  end subroutine

  subroutine detach()
#if defined(F08)
    use, intrinsic :: iso_c_binding
    type(c_ptr) :: was
    call MPI_Buffer_detach(was, n, e)
#else
    character :: was(16)
    call MPI_Buffer_detach(was, n, e)
#endif
  end subroutine
end program
