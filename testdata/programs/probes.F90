! probes.c in Fortran.
#include "flavour.h"
program probes
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, n, e, bad = 0
  integer, asynchronous :: in(4)
  integer :: out(4) = [1, 2, 3, 4]
  logical :: flag
  HANDLE_MESSAGE :: m
  HANDLE_REQUEST :: r
  STATUS(st)

  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  if (rank == 2) then
    call MPI_Send(out, 3, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, e)
    call MPI_Send(out, 4, MPI_INTEGER, 0, 6, MPI_COMM_WORLD, e)
    call MPI_Send(out, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, e)
    call MPI_Send(out, 2, MPI_INTEGER, 0, 8, MPI_COMM_WORLD, e)
  else if (rank == 0) then
    call MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, e)
    call check(.not. flag, __LINE__)
    call MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, st, e)
    call MPI_Get_count(st, MPI_INTEGER, n, e)
    call check(n == 3 .and. SOURCE_OF(st) == 2, __LINE__)
    call MPI_Recv(in, n, MPI_INTEGER, SOURCE_OF(st), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    do
      call MPI_Iprobe(2, 6, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, e)
      if (flag) exit
    end do
    call MPI_Recv(in, 4, MPI_INTEGER, 2, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call check(in(4) == 4, __LINE__)
    call MPI_Mprobe(2, MPI_ANY_TAG, MPI_COMM_WORLD, m, st, e)
    call check(TAG_OF(st) == 7, __LINE__)
    call MPI_Mrecv(in, 4, MPI_INTEGER, m, st, e)
    call MPI_Get_count(st, MPI_INTEGER, n, e)
    call check(n == 1 .and. m == MPI_MESSAGE_NULL, __LINE__)
    do
      call MPI_Improbe(2, 8, MPI_COMM_WORLD, flag, m, MPI_STATUS_IGNORE, e)
      if (flag) exit
    end do
    call MPI_Imrecv(in, 2, MPI_INTEGER, m, r, e)
    call MPI_Wait(r, MPI_STATUS_IGNORE, e)
    call check(in(2) == 2, __LINE__)
    call MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, m, st, e)
    call check(m == MPI_MESSAGE_NO_PROC, __LINE__)
    call MPI_Mrecv(in, 2, MPI_INTEGER, m, MPI_STATUS_IGNORE, e)
  end if
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  subroutine check(holds, line)
    logical, intent(in) :: holds
    integer, intent(in) :: line
    if (.not. holds) then
      bad = bad + 1
      write (0, *) 'probes.F90:', line
    end if
  end subroutine
end program
