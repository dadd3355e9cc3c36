! combined.c in Fortran.
#include "flavour.h"
module work
  use commq
#if defined(F08)
  use mpi_f08
#define HANDLE(x) x%MPI_VAL
#elif defined(USEMPI)
  use mpi
#define HANDLE(x) x
#else
#define HANDLE(x) x
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer, parameter :: times = 6, n = 7, dp = kind(1d0)
  integer :: rank, ranks, e, t, bit, i
  real(dp), asynchronous :: x(n), y(n), all(n, 0:4)
  integer :: k(n), l(n), many(25)
contains
  subroutine numbers(time, salt)
    integer, intent(in) :: time, salt
    do i = 1, n
      x(i) = 1d0 / (2 + rank * n + i + 1000 * time + 100000 * salt)
      k(i) = mod(rank * 7919 + i * 104729 + time * 1299709 + salt * 15485863, 10007) - 5000
    end do
  end subroutine

  subroutine reduce_tree()
    do t = 0, times - 1
      call numbers(t, 1)
      bit = 1
      do while (bit < ranks)
        if (iand(rank, bit) /= 0) then
          call MPI_Send(x, n, MPI_DOUBLE_PRECISION, rank - bit, 1, MPI_COMM_WORLD, e)
          exit
        end if
        if (rank + bit < ranks) then
          call MPI_Recv(y, n, MPI_DOUBLE_PRECISION, rank + bit, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
          x = x + y
        end if
        bit = 2 * bit
      end do
    end do
  end subroutine

  subroutine reduce_recorded()
    do t = 0, times - 1
      call numbers(t, 2)
      call commq_send_to_self(k, n, HANDLE(MPI_INTEGER))
      bit = 1
      do while (bit < ranks)
        if (iand(rank, bit) /= 0) then
          call MPI_Send(k, n, MPI_INTEGER, rank - bit, 2, MPI_COMM_WORLD, e)
          exit
        end if
        if (rank + bit < ranks) then
          call MPI_Recv(l, n, MPI_INTEGER, rank + bit, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
          k = k + l
        end if
        bit = 2 * bit
      end do
      if (rank == 0) call commq_send_to_self(k, n, HANDLE(MPI_INTEGER))
    end do
  end subroutine

  subroutine doubling()
    do t = 0, times - 1
      call numbers(t, 3)
      if (rank == 4) call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 0, 3, MPI_COMM_WORLD, e)
      if (rank == 0) then
        call MPI_Recv(y, n, MPI_DOUBLE_PRECISION, 4, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        x = x + y
      end if
      bit = 1
      do while (bit < 4 .and. rank < 4)
        call MPI_Sendrecv(x, n, MPI_DOUBLE_PRECISION, ieor(rank, bit), 3, y, n, MPI_DOUBLE_PRECISION, ieor(rank, bit), 3, &
          MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        x = x + y
        bit = 2 * bit
      end do
      if (rank == 0) call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 4, 3, MPI_COMM_WORLD, e)
      if (rank == 4) call MPI_Recv(x, n, MPI_DOUBLE_PRECISION, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    end do
  end subroutine

  subroutine largest()
    do t = 0, times - 1
      call numbers(t, 4)
      bit = 1
      do while (bit < 4 .and. rank < 4)
        call MPI_Sendrecv(k, 1, MPI_INTEGER, ieor(rank, bit), 4, l, 1, MPI_INTEGER, ieor(rank, bit), 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        k(1) = max(k(1), l(1))
        bit = 2 * bit
      end do
    end do
  end subroutine

  subroutine central()
    integer :: r
    do t = 0, times - 1
      call numbers(t, 5)
      if (rank /= 2) then
        call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 2, 5, MPI_COMM_WORLD, e)
        call MPI_Recv(x, n, MPI_DOUBLE_PRECISION, 2, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        cycle
      end if
      do r = 0, ranks - 1
        if (r == 2) cycle
        call MPI_Recv(y, n, MPI_DOUBLE_PRECISION, r, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        x = x + y
      end do
      do r = 0, ranks - 1
        if (r /= 2) call MPI_Send(x, n, MPI_DOUBLE_PRECISION, r, 6, MPI_COMM_WORLD, e)
      end do
    end do
  end subroutine

  subroutine scan()
    integer :: from, to
    do t = 0, times - 1
      call numbers(t, 7)
      bit = 1
      do while (bit < ranks)
        from = merge(rank - bit, MPI_PROC_NULL, rank >= bit)
        to = merge(rank + bit, MPI_PROC_NULL, rank + bit < ranks)
        l = 0
        call MPI_Sendrecv(k, n, MPI_INTEGER, to, 7, l, n, MPI_INTEGER, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        k = k + l
        bit = 2 * bit
      end do
    end do
  end subroutine

  subroutine chain()
    do t = 0, times - 1
      call numbers(t, 8)
      call commq_send_to_self(x, n, HANDLE(MPI_DOUBLE_PRECISION))
      if (rank > 0) then
        call MPI_Recv(y, n, MPI_DOUBLE_PRECISION, rank - 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        x = x + y
      end if
      if (rank < ranks - 1) call MPI_Send(x, n, MPI_DOUBLE_PRECISION, rank + 1, 8, MPI_COMM_WORLD, e)
    end do
  end subroutine

  subroutine gather()
    HANDLE_REQUEST :: r(5)
    integer :: p, count
    do t = 0, times - 1
      call numbers(t, 9)
      if (rank /= 3) then
        call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 3, 9, MPI_COMM_WORLD, e)
        cycle
      end if
      count = 0
      do p = 0, ranks - 1
        if (p == 3) cycle
        count = count + 1
        call MPI_Irecv(all(1, p), n, MPI_DOUBLE_PRECISION, p, 9, MPI_COMM_WORLD, r(count), e)
      end do
      all(:, 3) = x
      call MPI_Waitall(count, r, MPI_STATUSES_IGNORE, e)
    end do
  end subroutine

  subroutine gather_tree()
    integer :: have, more
    do t = 0, times - 1
      have = 1
      call numbers(t, 10)
      all(:, rank) = x
      call commq_send_to_self(x, n, HANDLE(MPI_DOUBLE_PRECISION))
      bit = 1
      do while (bit < ranks)
        if (iand(rank, bit) /= 0) then
          call MPI_Send(all(1, rank), have * n, MPI_DOUBLE_PRECISION, rank - bit, 10, MPI_COMM_WORLD, e)
          exit
        end if
        if (rank + bit < ranks) then
          more = min(ranks - rank - bit, bit)
          call MPI_Recv(all(1, rank + bit), more * n, MPI_DOUBLE_PRECISION, rank + bit, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
          have = have + more
        end if
        bit = 2 * bit
      end do
      if (rank == 0) call commq_send_to_self(all, ranks * n, HANDLE(MPI_DOUBLE_PRECISION))
    end do
  end subroutine

  subroutine scatterv()
    integer :: p, at
    do t = 0, times - 1
      do i = 1, 25
        many(i) = (i - 1) * 31 + t * 1009
      end do
      if (rank /= 1) then
        call MPI_Recv(many, rank + 1, MPI_INTEGER, 1, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        cycle
      end if
      at = 1
      do p = 0, ranks - 1
        if (p /= 1) call MPI_Send(many(at), p + 1, MPI_INTEGER, p, 11, MPI_COMM_WORLD, e)
        at = at + p + 1
      end do
    end do
  end subroutine

  subroutine scatter_tree()
    integer :: have, j
    do t = 0, times - 1
      bit = 1
      have = ranks
      do j = 0, 4
        do i = 1, n
          all(i, j) = merge(1d0 / (16 + i + n * j + 101 * t), 0d0, rank == 0)
        end do
      end do
      do while (bit < ranks .and. iand(rank, bit) == 0)
        bit = 2 * bit
      end do
      if (rank > 0) then
        have = min(ranks - rank, bit)
        call MPI_Recv(all(1, rank), have * n, MPI_DOUBLE_PRECISION, rank - bit, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      end if
      bit = bit / 2
      do while (bit > 0)
        if (rank + bit < ranks) then
          call MPI_Send(all(1, rank + bit), (have - bit) * n, MPI_DOUBLE_PRECISION, rank + bit, 12, MPI_COMM_WORLD, e)
          have = bit
        end if
        bit = bit / 2
      end do
    end do
  end subroutine

  subroutine growing()
    integer :: mine, theirs
    do t = 0, times - 1
      call numbers(t, 13)
      all(:, rank) = x
      bit = 1
      do while (bit < 4 .and. rank < 4)
        mine = rank / bit * bit
        theirs = ieor(mine, bit)
        call MPI_Sendrecv(all(1, mine), bit * n, MPI_DOUBLE_PRECISION, ieor(rank, bit), 13, all(1, theirs), bit * n, &
          MPI_DOUBLE_PRECISION, ieor(rank, bit), 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        bit = 2 * bit
      end do
    end do
  end subroutine

  subroutine ring()
    integer :: next, before, out, in, s, j
    next = mod(rank + 1, ranks)
    before = mod(rank + ranks - 1, ranks)
    do t = 0, times - 1
      do j = 0, 4
        do i = 1, n
          all(i, j) = 1d0 / (2 + rank * 7 + i + n * j + 13 * t)
        end do
      end do
      call commq_send_to_self(all, ranks * n, HANDLE(MPI_DOUBLE_PRECISION))
      do s = 0, ranks - 2
        out = mod(rank - s + ranks, ranks)
        in = mod(before - s + ranks, ranks)
        call MPI_Sendrecv(all(1, out), n, MPI_DOUBLE_PRECISION, next, 14, y, n, MPI_DOUBLE_PRECISION, before, 14, &
          MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        all(:, in) = all(:, in) + y
      end do
    end do
  end subroutine

  subroutine pipeline()
    y = 1
    do t = 0, 3 * times - 1
      call numbers(t, 15)
      if (rank > 0) call MPI_Recv(y, n, MPI_DOUBLE_PRECISION, rank - 1, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      x = 0.5d0 * (x + y)
      if (rank < ranks - 1) call MPI_Send(x, n, MPI_DOUBLE_PRECISION, rank + 1, 15, MPI_COMM_WORLD, e)
    end do
  end subroutine

  subroutine halo()
    do t = 0, 3 * times - 1
      bit = 1
      do while (bit < 4 .and. rank < 4)
        call numbers(t, 15 + bit)
        call MPI_Sendrecv(x, n, MPI_DOUBLE_PRECISION, ieor(rank, bit), 16, y, n, MPI_DOUBLE_PRECISION, ieor(rank, bit), 16, &
          MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        x = 0.25d0 * (x + y)
        bit = 2 * bit
      end do
    end do
  end subroutine

  subroutine ping_pong()
    do t = 0, 3 * times - 1
      if (rank > 3) cycle
      if (mod(rank, 2) == 0) then
        call numbers(t, 19)
        call MPI_Send(x, n, MPI_DOUBLE_PRECISION, rank + 1, 17, MPI_COMM_WORLD, e)
        call MPI_Recv(x, n, MPI_DOUBLE_PRECISION, rank + 1, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      else
        call MPI_Recv(x, n, MPI_DOUBLE_PRECISION, rank - 1, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        x(1) = x(1) + t
        call MPI_Send(x, n, MPI_DOUBLE_PRECISION, rank - 1, 17, MPI_COMM_WORLD, e)
      end if
    end do
  end subroutine
end module

program combined
  use work
  implicit none
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, e)
  call reduce_tree()
  call reduce_recorded()
  call doubling()
  call largest()
  call central()
  call scan()
  call chain()
  call gather()
  call gather_tree()
  call scatterv()
  call scatter_tree()
  call growing()
  call ring()
  call pipeline()
  call halo()
  call ping_pong()
  if (rank == 0) print '(a)', 'ok'
  call MPI_Finalize(e)
end program
