! requests.c in Fortran. Indices of completed requests are not checked: MPICH 4.0.2 counts them from 0 in mpi_f08, and adds 1
! to MPI_UNDEFINED in the other two.
#include "flavour.h"
program requests
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, ranks, provided, e, bad = 0, bad_all

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, e)
  if (rank == 0) then
    call zero()
  else if (rank == 1) then
    call one()
  else
    call two()
  end if
  call persistent()
  call MPI_Reduce(bad, bad_all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, e)
  call MPI_Finalize(e)
  if (rank == 0) then
    if (bad_all == 0) print '(a)', 'ok'
  end if
  if (bad /= 0) stop 1

contains

  subroutine check(holds, line)
    logical, intent(in) :: holds
    integer, intent(in) :: line
    if (.not. holds) then
      bad = bad + 1
      write (0, *) 'requests.F90:', line
    end if
  end subroutine

  ! 1 sends a message with this tag when 0 asks for it.
  subroutine ask(tag)
    integer, intent(in) :: tag
    call MPI_Send(tag, 1, MPI_INTEGER, 1, 40, MPI_COMM_WORLD, e)
  end subroutine

  subroutine zero()
    integer, asynchronous :: in(4)
    integer :: i, indx, n, indices(4)
    logical :: flag
    HANDLE_REQUEST :: r(4)
    STATUSES(sts, 4)
    STATUS(st)

    in = 0
    call MPI_Irecv(in(1), 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, r(1), e)
    call MPI_Test(r(1), flag, MPI_STATUS_IGNORE, e)
    call check(.not. flag, __LINE__)
    call MPI_Test(r(1), flag, st, e)
    call check(.not. flag, __LINE__)
    call ask(1)
    do
      call MPI_Request_get_status(r(1), flag, st, e)
      if (flag) exit
    end do
    call check(SOURCE_OF(st) == 1 .and. r(1) /= MPI_REQUEST_NULL, __LINE__)
    call MPI_Test(r(1), flag, st, e)
    call check(flag .and. TAG_OF(st) == 1 .and. in(1) == 1 .and. r(1) == MPI_REQUEST_NULL, __LINE__)
    call MPI_Test(r(1), flag, st, e)
    call check(flag, __LINE__)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)

    do i = 1, 3
      call MPI_Irecv(in(i), 1, MPI_INTEGER, MPI_ANY_SOURCE, 1 + i, MPI_COMM_WORLD, r(i), e)
    end do
    call ask(3)
    call MPI_Waitany(3, r, indx, st, e)
    call check(SOURCE_OF(st) == 1 .and. TAG_OF(st) == 3 .and. in(2) == 3, __LINE__)
    call ask(2)
    do
      call MPI_Testany(3, r, indx, flag, MPI_STATUS_IGNORE, e)
      if (flag) exit
    end do
    call check(in(1) == 2, __LINE__)
    call ask(4)
    call MPI_Waitsome(3, r, n, indices, MPI_STATUSES_IGNORE, e)
    call check(n == 1 .and. in(3) == 4, __LINE__)
    call MPI_Waitany(3, r, indx, MPI_STATUS_IGNORE, e)
    call MPI_Testany(3, r, indx, flag, MPI_STATUS_IGNORE, e)
    call check(flag, __LINE__)
    call MPI_Waitsome(3, r, n, indices, sts, e)
    call check(n == MPI_UNDEFINED, __LINE__)

    call MPI_Irecv(in(1), 1, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, r(1), e)
    r(2) = MPI_REQUEST_NULL
    call MPI_Irecv(in(3), 1, MPI_INTEGER, 1, 6, MPI_COMM_WORLD, r(3), e)
    call ask(6)
    do
      call MPI_Testsome(3, r, n, indices, sts, e)
      if (n /= 0) exit
    end do
    st = FIRST(sts)
    call check(n == 1 .and. TAG_OF(st) == 6, __LINE__)
    call ask(5)
    do
      call MPI_Testall(3, r, flag, MPI_STATUSES_IGNORE, e)
      if (flag) exit
    end do
    call check(in(1) == 5, __LINE__)

    in(2) = 11
    call MPI_Irecv(in(1), 1, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, r(1), e)
    call MPI_Isend(in(2), 1, MPI_INTEGER, 0, 8, MPI_COMM_WORLD, r(2), e)
    call MPI_Irecv(in(3), 1, MPI_INTEGER, MPI_PROC_NULL, 8, MPI_COMM_WORLD, r(3), e)
    call MPI_Irecv(in(4), 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, r(4), e)
    call MPI_Send(in(2), 1, MPI_INTEGER, 0, 12, MPI_COMM_SELF, e)
    call MPI_Recv(in(3), 1, MPI_INTEGER, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call check(in(3) == 11, __LINE__)
    call ask(7)
    call MPI_Waitall(4, r, sts, e)
    st = FIRST(sts)
    call check(in(1) == 7 .and. in(4) == 11 .and. SOURCE_OF(st) == 1, __LINE__)
    call MPI_Waitall(4, r, MPI_STATUSES_IGNORE, e)
  end subroutine

  subroutine one()
    integer, asynchronous :: tag
    integer :: i
    HANDLE_REQUEST :: r
    do i = 1, 7
      call MPI_Recv(tag, 1, MPI_INTEGER, 0, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      call MPI_Issend(tag, 1, MPI_INTEGER, 0, tag, MPI_COMM_WORLD, r, e)
      call MPI_Wait(r, MPI_STATUS_IGNORE, e)
    end do
  end subroutine

  subroutine two()
    integer, asynchronous :: x, y
    logical :: flag
    HANDLE_REQUEST :: r, s
    STATUS(st)
    x = 5
    y = 0
    call MPI_Irecv(y, 1, MPI_INTEGER, 0, 99, MPI_COMM_WORLD, r, e)
    call MPI_Cancel(r, e)
    call MPI_Wait(r, st, e)
    call MPI_Test_cancelled(st, flag, e)
    call check(flag, __LINE__)
    call MPI_Irecv(y, 1, MPI_INTEGER, 0, 31, MPI_COMM_SELF, r, e)
    s = MPI_REQUEST_NULL
    call MPI_Wait(s, MPI_STATUS_IGNORE, e)
    call MPI_Isend(x, 1, MPI_INTEGER, 0, 31, MPI_COMM_SELF, s, e)
    call MPI_Request_free(s, e)
    call MPI_Wait(r, st, e)
    call check(y == 5 .and. s == MPI_REQUEST_NULL, __LINE__)
  end subroutine

  subroutine persistent()
    integer, asynchronous :: out(2), in(2)
    integer :: before
    HANDLE_REQUEST :: r(2)
    STATUSES(sts, 2)
    STATUS(st)
    out = [rank, -rank]
    before = mod(rank + ranks - 1, ranks)
    call MPI_Recv_init(in, 2, MPI_INTEGER, before, 50, MPI_COMM_WORLD, r(1), e)
    call MPI_Send_init(out, 2, MPI_INTEGER, mod(rank + 1, ranks), 50, MPI_COMM_WORLD, r(2), e)
    call MPI_Startall(2, r, e)
    call MPI_Waitall(2, r, sts, e)
    call check(in(1) == before, __LINE__)
    call MPI_Start(r(1), e)
    call MPI_Start(r(2), e)
    call MPI_Wait(r(2), MPI_STATUS_IGNORE, e)
    call MPI_Wait(r(1), st, e)
    call check(SOURCE_OF(st) == before .and. r(1) /= MPI_REQUEST_NULL, __LINE__)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
    call MPI_Request_free(r(1), e)
    call MPI_Request_free(r(2), e)
    call check(r(1) == MPI_REQUEST_NULL, __LINE__)
  end subroutine
end program
