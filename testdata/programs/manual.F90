! manual.c in Fortran.
#include "flavour.h"
module work
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer, parameter :: n = 1000, segment = 250
  integer :: rank, ranks, next, before, e, i, k, p, s
  integer, asynchronous :: data(n), others(n, 0:4)
contains
  subroutine fill(x, count, first)
    integer, intent(in) :: count, first
    integer, intent(out) :: x(count)
    integer :: j
    do j = 1, count
      x(j) = first + j - 1
    end do
  end subroutine

  subroutine noise(from, to)
    integer, intent(in) :: from, to
    integer :: x(3), y(3)
    x = [100 * from + to, from, to]
    if (rank == from) call MPI_Send(x, 3, MPI_INTEGER, to, 1, MPI_COMM_WORLD, e)
    if (rank == to) call MPI_Recv(y, 3, MPI_INTEGER, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
  end subroutine

  subroutine linear()
    if (rank == 0) call fill(data, n, 1000)
    call noise(2, 4)
    if (rank > 0) call MPI_Recv(data, n, MPI_INTEGER, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call noise(0, 3)
    if (rank < ranks - 1) call MPI_Send(data, n, MPI_INTEGER, next, 2, MPI_COMM_WORLD, e)
    call noise(4, 1)
  end subroutine

  subroutine redundant()
    if (rank == 0) call fill(data, n, 20000)
    if (rank > 0) call MPI_Recv(data, n, MPI_INTEGER, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call MPI_Send(data, n, MPI_INTEGER, next, 3, MPI_COMM_WORLD, e)
    if (rank == 0) call MPI_Recv(data, n, MPI_INTEGER, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
  end subroutine

  subroutine repeated()
    if (rank == 0) call fill(data, n, 30000)
    do k = 1, 2
      if (rank > 0) call MPI_Recv(data, n, MPI_INTEGER, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      if (rank < ranks - 1) call MPI_Send(data, n, MPI_INTEGER, next, 4, MPI_COMM_WORLD, e)
    end do
  end subroutine

  subroutine nested()
    integer :: token(1), owner
    token = 4711
    do owner = 0, ranks - 1
      if (owner > 0 .and. rank == 0) call MPI_Send(token, 1, MPI_INTEGER, owner, 5, MPI_COMM_WORLD, e)
      if (owner > 0 .and. rank == owner) call MPI_Recv(token, 1, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      if (rank == owner) then
        call fill(data, n, 40000 + 2000 * owner)
        do p = 0, ranks - 1
          if (p /= owner) call MPI_Send(data, n, MPI_INTEGER, p, 6, MPI_COMM_WORLD, e)
        end do
      else
        call MPI_Recv(data, n, MPI_INTEGER, owner, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      end if
    end do
  end subroutine

  subroutine ring()
    integer :: token(1)
    token = 815
    do k = 1, 3
      if (rank > 0) call MPI_Recv(token, 1, MPI_INTEGER, before, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      call MPI_Send(token, 1, MPI_INTEGER, next, 7, MPI_COMM_WORLD, e)
      if (rank == 0) call MPI_Recv(token, 1, MPI_INTEGER, before, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    end do
  end subroutine

  subroutine tree()
    HANDLE_REQUEST :: r(5)
    integer :: count, bit
    do k = 0, 9
      count = 0
      if (rank == 0) call fill(data, n, 60000 + 2000 * k)
      bit = 1
      do while (bit < ranks .and. iand(rank, bit) == 0)
        bit = 2 * bit
      end do
      if (rank > 0) then
        call MPI_Irecv(data, n, MPI_INTEGER, rank - bit, 8, MPI_COMM_WORLD, r(1), e)
        call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
      end if
      bit = bit / 2
      do while (bit > 0)
        if (rank + bit < ranks) then
          count = count + 1
          call MPI_Isend(data, n, MPI_INTEGER, rank + bit, 8, MPI_COMM_WORLD, r(count), e)
        end if
        bit = bit / 2
      end do
      call MPI_Waitall(count, r, MPI_STATUSES_IGNORE, e)
    end do
  end subroutine

  subroutine pipeline()
    if (rank == ranks - 1) call fill(data, n, 90000)
    do s = 0, n / segment - 1
      i = s * segment + 1
      if (rank < ranks - 1) call MPI_Recv(data(i), segment, MPI_INTEGER, next, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      if (rank > 0) call MPI_Send(data(i), segment, MPI_INTEGER, before, 9, MPI_COMM_WORLD, e)
    end do
  end subroutine

  subroutine allgather()
    do k = 0, 1
      call fill(others(:, rank), n, 100000 + 20000 * k + 2000 * rank)
      do s = 0, ranks - 2
        call MPI_Sendrecv(others(1, mod(rank - s + ranks, ranks)), n, MPI_INTEGER, next, 10, &
          others(1, mod(before - s + ranks, ranks)), n, MPI_INTEGER, before, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      end do
    end do
  end subroutine

  subroutine alltoall()
    HANDLE_REQUEST :: r(10)
    integer :: count
    count = 0
    do p = 0, ranks - 1
      if (p == rank) cycle
      count = count + 1
      call MPI_Irecv(others(1, p), 7, MPI_INTEGER, p, 11, MPI_COMM_WORLD, r(count), e)
    end do
    do p = 0, ranks - 1
      if (p == rank) cycle
      count = count + 1
      call fill(data(7 * p + 1:7 * p + 7), 7, 200000 + 1000 * rank + 100 * p)
      call MPI_Isend(data(7 * p + 1), 7, MPI_INTEGER, p, 11, MPI_COMM_WORLD, r(count), e)
    end do
    call MPI_Waitall(count, r, MPI_STATUSES_IGNORE, e)
  end subroutine

  subroutine barrier()
    integer :: nothing(1), none(1)
    do k = 1, 3
      s = 1
      do while (s < ranks)
        call MPI_Sendrecv(nothing, 0, MPI_INTEGER, mod(rank + s, ranks), 12, &
          none, 0, MPI_INTEGER, mod(rank - s + ranks, ranks), 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        s = 2 * s
      end do
    end do
  end subroutine

  subroutine halo()
    call fill(data, n, 300000)
    do k = 1, ranks
      call MPI_Sendrecv(data, n, MPI_INTEGER, next, 13, others, n, MPI_INTEGER, before, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      call MPI_Sendrecv(data, n, MPI_INTEGER, before, 14, others, n, MPI_INTEGER, next, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    end do
  end subroutine

  subroutine part()
    if (rank == 1) then
      call fill(data, n, 400000)
      do p = 0, ranks - 1
        if (p /= 1 .and. p /= 2) call MPI_Send(data, n, MPI_INTEGER, p, 15, MPI_COMM_WORLD, e)
      end do
    else if (rank /= 2) then
      call MPI_Recv(data, n, MPI_INTEGER, 1, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    end if
  end subroutine
end module

program manual
  use work
  implicit none
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, e)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  call linear()
  call redundant()
  call repeated()
  call nested()
  call ring()
  call tree()
  call pipeline()
  call allgather()
  call alltoall()
  call barrier()
  call halo()
  call part()
  if (rank == 0) print '(a)', 'ok'
  call MPI_Finalize(e)
end program
