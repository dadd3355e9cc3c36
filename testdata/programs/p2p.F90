! p2p.c in Fortran.
#include "flavour.h"
program p2p
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, ranks, n, next, before, i, e, bad = 0
  integer :: out(5), in(5), nothing(1), to, from
  integer, parameter :: room = 1024
  character :: buffer(room)
  HANDLE_REQUEST :: r
  STATUS(st)

  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, e)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  do i = 1, 5
    out(i) = 10 * rank + i - 1
  end do

  if (rank == 0) then
    call MPI_Send(out, 5, MPI_INTEGER, 1, 9, MPI_COMM_WORLD, e)
    call MPI_Ssend(out, 4, MPI_INTEGER, 1, 9, MPI_COMM_WORLD, e)
    call MPI_Buffer_attach(buffer, room, e)
    call MPI_Bsend(out, 3, MPI_INTEGER, 1, 9, MPI_COMM_WORLD, e)
    call detach()
    call MPI_Recv(nothing, 0, MPI_INTEGER, 1, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call MPI_Rsend(out, 2, MPI_INTEGER, 1, 11, MPI_COMM_WORLD, e)
  else if (rank == 1) then
    call MPI_Recv(in, 5, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, st, e)
    call check(SOURCE_OF(st) == 0 .and. TAG_OF(st) == 9 .and. in(5) == 4, __LINE__)
    call MPI_Recv(in, 5, MPI_INTEGER, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, st, e)
    call MPI_Get_count(st, MPI_INTEGER, n, e)
    call check(n == 4 .and. SOURCE_OF(st) == 0, __LINE__)
    call MPI_Recv(in, 5, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call MPI_Irecv(in, 5, MPI_INTEGER, 0, 11, MPI_COMM_WORLD, r, e)
    call MPI_Send(nothing, 0, MPI_INTEGER, 0, 17, MPI_COMM_WORLD, e)
    call MPI_Wait(r, st, e)
    call MPI_Get_count(st, MPI_INTEGER, n, e)
    call check(n == 2 .and. TAG_OF(st) == 11 .and. in(2) == 1 .and. r == MPI_REQUEST_NULL, __LINE__)
  end if

  call MPI_Sendrecv(out, 3, MPI_INTEGER, next, 21, in, 5, MPI_INTEGER, before, 21, MPI_COMM_WORLD, st, e)
  call check(SOURCE_OF(st) == before .and. in(3) == 10 * before + 2, __LINE__)
  call MPI_Sendrecv_replace(in, 2, MPI_INTEGER, before, 22, next, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
  call check(in(1) == 10 * rank .and. in(2) == 10 * rank + 1, __LINE__)
  call MPI_Sendrecv(out, 1, MPI_INTEGER, rank, 23, in, 1, MPI_INTEGER, MPI_ANY_SOURCE, 23, MPI_COMM_WORLD, st, e)
  call check(SOURCE_OF(st) == rank, __LINE__)
  call MPI_Send(out, 5, MPI_INTEGER, MPI_PROC_NULL, 24, MPI_COMM_WORLD, e)
  call MPI_Recv(in, 5, MPI_INTEGER, MPI_PROC_NULL, 24, MPI_COMM_WORLD, st, e)
  call check(SOURCE_OF(st) == MPI_PROC_NULL .and. TAG_OF(st) == MPI_ANY_TAG, __LINE__)
  call MPI_Sendrecv(out, 1, MPI_INTEGER, 0, 26, in, 1, MPI_INTEGER, 0, 26, MPI_COMM_SELF, MPI_STATUS_IGNORE, e)
  to = MPI_PROC_NULL
  from = MPI_PROC_NULL
  if (rank + 1 < ranks) to = rank + 1
  if (rank > 0) from = rank - 1
  call MPI_Sendrecv(out, 2, MPI_INTEGER, to, 25, in, 2, MPI_INTEGER, from, 25, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)

  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  subroutine check(holds, line)
    logical, intent(in) :: holds
    integer, intent(in) :: line
    if (.not. holds) then
      bad = bad + 1
      write (0, *) 'p2p.F90:', line
    end if
  end subroutine

  ! The three bindings need three kinds of argument for the address of the buffer.
  subroutine detach()
#if defined(F08)
    use iso_c_binding, only: c_ptr
    type(c_ptr) :: p
#else
    integer(kind=MPI_ADDRESS_KIND) :: p
#endif
    integer :: n
    call MPI_Buffer_detach(p, n, e)
  end subroutine
end program
