! Collectives by hand in Fortran, and exchanges that are not collectives. For 6 ranks; each is done TIMES times.
#include "flavour.h"
module work
#if defined(F08)
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer, parameter :: times = 7, n = 11, dp = kind(1d0)
  integer :: rank, ranks, e, t, i, k, salt = 0
contains
  real(dp) function number(i)
    integer, intent(in) :: i
    number = 1 + mod(abs(sin(1d0 * i + 37 * rank + 1013 * salt)) * 4711d0, 1d0)
  end function

  ! The first rank sends its input to each of the others: sizes, then factors.
  subroutine parameters()
    integer :: sizes(5)
    real(dp) :: factors(3)
    sizes = [(31 + i + rank, i = 1, 5)]
    factors = [(number(i), i = 1, 3)]
    if (rank == 0) then
      do k = 1, ranks - 1
        call MPI_Send(sizes, 5, MPI_INTEGER, k, 1, MPI_COMM_WORLD, e)
        call MPI_Send(factors, 3, MPI_DOUBLE_PRECISION, k, 2, MPI_COMM_WORLD, e)
      end do
    else
      call MPI_Recv(sizes, 5, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      call MPI_Recv(factors, 3, MPI_DOUBLE_PRECISION, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    end if
  end subroutine

  ! The row of the pivot goes round a ring from its owner, a row of a matrix that is stored by columns.
  subroutine pivot_rows()
    real(dp) :: a(5, n), row(n)
    integer :: owner
    do t = 0, 2 * times - 1
      salt = salt + 1
      a = reshape([(number(i), i = 1, 5 * n)], [5, n])
      owner = mod(t, ranks)
      if (rank == owner) then
        row = a(3, :)
      else
        call MPI_Recv(row, n, MPI_DOUBLE_PRECISION, mod(rank - 1 + ranks, ranks), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        a(3, :) = row
      end if
      if (mod(rank + 1, ranks) /= owner) call MPI_Send(a(3, :), n, MPI_DOUBLE_PRECISION, mod(rank + 1, ranks), 3, MPI_COMM_WORLD, e)
    end do
  end subroutine

  ! A sum goes up the chain of ranks, and down again.
  subroutine chain_sum()
    real(dp) :: s(n), other(n)
    do t = 1, times
      salt = salt + 1
      s = [(number(i), i = 1, n)]
      if (rank > 0) then
        call MPI_Recv(other, n, MPI_DOUBLE_PRECISION, rank - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        s = s + other
      end if
      if (rank < ranks - 1) then
        call MPI_Send(s, n, MPI_DOUBLE_PRECISION, rank + 1, 4, MPI_COMM_WORLD, e)
        call MPI_Recv(s, n, MPI_DOUBLE_PRECISION, rank + 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      end if
      if (rank > 0) call MPI_Send(s, n, MPI_DOUBLE_PRECISION, rank - 1, 5, MPI_COMM_WORLD, e)
    end do
  end subroutine

  ! The columns of a field are collected, then distributed again.
  subroutine columns()
    real(dp) :: own(n), field(n, 0:5)
    HANDLE_REQUEST :: requests(6)
    do t = 1, times
      salt = salt + 1
      own = [(number(i), i = 1, n)]
      if (rank == 0) then
        field(:, 0) = own
        do k = 1, ranks - 1
          call MPI_Recv(field(1, k), n, MPI_DOUBLE_PRECISION, k, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
        end do
        field = 2 * field
        do k = 1, ranks - 1
          call MPI_Isend(field(1, k), n, MPI_DOUBLE_PRECISION, k, 7, MPI_COMM_WORLD, requests(k), e)
        end do
        call MPI_Waitall(ranks - 1, requests, MPI_STATUSES_IGNORE, e)
      else
        call MPI_Send(own, n, MPI_DOUBLE_PRECISION, 0, 6, MPI_COMM_WORLD, e)
        call MPI_Recv(own, n, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      end if
    end do
  end subroutine

  ! A maximum of integers: up a binomial tree, and down again.
  subroutine largest()
    integer :: m(2), other(2), bit, from
    do t = 1, times
      salt = salt + 1
      m = [int(1e6 * number(1)), int(1e6 * number(2))]
      bit = 1
      from = 0
      do while (bit < ranks)
        if (iand(rank, bit) /= 0) then
          from = bit
          call MPI_Send(m, 2, MPI_INTEGER, rank - bit, 8, MPI_COMM_WORLD, e)
          call MPI_Recv(m, 2, MPI_INTEGER, rank - bit, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
          exit
        else if (rank + bit < ranks) then
          call MPI_Recv(other, 2, MPI_INTEGER, rank + bit, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
          m = max(m, other)
        end if
        bit = 2 * bit
      end do
      bit = bit / 2
      do while (bit > 0)
        if (rank + bit < ranks) call MPI_Send(m, 2, MPI_INTEGER, rank + bit, 9, MPI_COMM_WORLD, e)
        bit = bit / 2
      end do
    end do
  end subroutine

  ! Blocks of a matrix are transposed among all.
  subroutine transpose_blocks()
    real(dp), asynchronous :: a(n, 0:5), b(n, 0:5)
    HANDLE_REQUEST :: requests(12)
    integer :: m
    do t = 1, times
      salt = salt + 1
      a = reshape([(number(i), i = 1, 6 * n)], [n, 6])
      m = 0
      do k = 0, ranks - 1
        if (k == rank) cycle
        call MPI_Irecv(b(1, k), n, MPI_DOUBLE_PRECISION, k, 10, MPI_COMM_WORLD, requests(m + 1), e)
        call MPI_Isend(a(1, k), n, MPI_DOUBLE_PRECISION, k, 10, MPI_COMM_WORLD, requests(m + 2), e)
        m = m + 2
      end do
      call MPI_Waitall(m, requests, MPI_STATUSES_IGNORE, e)
      b(:, rank) = a(:, rank)
    end do
  end subroutine

  ! A sweep goes over the ranks from both sides, and a shift goes round. No collectives.
  subroutine sweeps()
    real(dp) :: edge(n), other(n)
    do t = 1, times
      salt = salt + 1
      edge = [(number(i), i = 1, n)]
      if (rank > 0) call MPI_Recv(edge, n, MPI_DOUBLE_PRECISION, rank - 1, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      edge = edge / 3 + number(0)
      if (rank < ranks - 1) call MPI_Send(edge, n, MPI_DOUBLE_PRECISION, rank + 1, 11, MPI_COMM_WORLD, e)
    end do
    do t = 1, times
      salt = salt + 1
      edge = [(number(i), i = 1, n)]
      call MPI_Sendrecv(edge, n, MPI_DOUBLE_PRECISION, mod(rank + 1, ranks), 12, other, n, MPI_DOUBLE_PRECISION, &
                        mod(rank - 1 + ranks, ranks), 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    end do
  end subroutine
end module

program habits
  use work
  implicit none
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, e)
  call parameters()
  call pivot_rows()
  call chain_sum()
  call columns()
  call largest()
  call transpose_blocks()
  call sweeps()
  if (rank == 0) print '(a)', 'ok'
  call MPI_Finalize(e)
end program
