! io.c in Fortran.
#include "flavour.h"
program io
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, next, e, i, bad = 0
  integer :: a(0:11), b(0:23)
  integer(kind=MPI_OFFSET_KIND), parameter :: start = 0
  character(len=4096) :: name
  HANDLE_FILE :: f

  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  next = mod(rank + 1, 3)
  a = [(100 * rank + i, i = 0, 11)]
  call get_command_argument(0, name)
  name = trim(name) // '.dat'
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, f, e)
  call MPI_File_set_size(f, start, e)
  call blocking()
  call together()
  call nonblocking()
  call split()
  call MPI_File_set_size(f, 72_MPI_OFFSET_KIND, e)
  if (rank == 1) call alone()
  call MPI_Barrier(MPI_COMM_WORLD, e)
  call MPI_File_preallocate(f, 80_MPI_OFFSET_KIND, e)
  call MPI_File_close(f, e)
  if (rank == 0) call MPI_File_delete(name, MPI_INFO_NULL, e)
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  integer(kind=MPI_OFFSET_KIND) function at(i)
    integer, intent(in) :: i
    at = i
  end function

  subroutine check(right)
    logical, intent(in) :: right
    if (.not. right) bad = bad + 1
  end subroutine

  subroutine blocking()
    STATUS(st)
    HANDLE_TYPE :: column
    integer :: n
    call MPI_File_set_view(f, start, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, e)
    call MPI_File_write_at(f, at(4 * rank), a, 4, MPI_INTEGER, st, e)
    call MPI_File_sync(f, e)
    call MPI_Barrier(MPI_COMM_WORLD, e)
    call MPI_File_read_at(f, at(4 * next), b, 4, MPI_INTEGER, MPI_STATUS_IGNORE, e)
    call check(b(3) == 100 * next + 3)
    call MPI_File_read_at(f, at(9), b, 7, MPI_INTEGER, st, e)
    call MPI_Get_count(st, MPI_INTEGER, n, e)
    call check(n == 3 .and. b(2) == 203)
    call MPI_File_read_at(f, at(99), b, 7, MPI_INTEGER, MPI_STATUS_IGNORE, e)
    call MPI_Barrier(MPI_COMM_WORLD, e)
    call MPI_File_write_at_all(f, at(12 + 2 * rank), a, 2, MPI_INTEGER, MPI_STATUS_IGNORE, e)
    call MPI_File_read_at_all(f, at(12 + 2 * rank), b, 2, MPI_INTEGER, st, e)
    call MPI_Type_vector(2, 1, 4, MPI_INTEGER, column, e)
    call MPI_Type_commit(column, e)
    call MPI_File_seek(f, at(4 * rank), MPI_SEEK_SET, e)
    call MPI_File_write(f, a(1), 1, column, MPI_STATUS_IGNORE, e)
    call MPI_File_read(f, b, 1, column, st, e)
    call check(b(4) == 100 * rank + 3)
    call MPI_Type_free(column, e)
    call MPI_File_seek(f, at(4 * rank), MPI_SEEK_SET, e)
    call MPI_File_write_all(f, a, 3, MPI_INTEGER, st, e)
    call MPI_File_read_all(f, b, 1, MPI_INTEGER, MPI_STATUS_IGNORE, e)
    call check(b(0) == 100 * rank + 3)
  end subroutine

  subroutine together()
    STATUS(st)
    call MPI_File_write_ordered(f, a, rank + 1, MPI_INTEGER, st, e)
    call MPI_File_write_shared(f, a, 2, MPI_INTEGER, MPI_STATUS_IGNORE, e)
    call MPI_Barrier(MPI_COMM_WORLD, e)
    call MPI_File_seek_shared(f, start, MPI_SEEK_SET, e)
    call MPI_File_read_ordered(f, b, rank + 1, MPI_INTEGER, MPI_STATUS_IGNORE, e)
    call check(b(rank) == 100 * rank + rank)
    call MPI_File_read_shared(f, b, 2, MPI_INTEGER, st, e)
    call MPI_Barrier(MPI_COMM_WORLD, e)
  end subroutine

  subroutine nonblocking()
    HANDLE_REQUEST :: r(2)
    STATUS(st)
    integer :: k, n, which(1)
    call MPI_File_iwrite_at(f, at(4 * rank), a, 4, MPI_INTEGER, r(1), e)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
    call MPI_File_iread_at(f, at(4 * rank + 1), b, 2, MPI_INTEGER, r(1), e)
    call MPI_File_iread_at(f, at(4 * rank + 1), b(2), 3, MPI_INTEGER, r(2), e)
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, e)
    call check(b(1) == 100 * rank + 2)
    call MPI_File_seek(f, at(4 * rank), MPI_SEEK_SET, e)
    call MPI_File_iwrite(f, a, 3, MPI_INTEGER, r(1), e)
    call MPI_Waitany(1, r, k, st, e)
    call MPI_File_iread(f, b, 1, MPI_INTEGER, r(1), e)
    call MPI_Waitsome(1, r, n, which, MPI_STATUSES_IGNORE, e)
    call check(b(0) == 100 * rank + 3)
    call MPI_File_iwrite_at_all(f, at(4 * rank), a, 4, MPI_INTEGER, r(1), e)
    call MPI_Wait(r(1), st, e)
    call MPI_File_iread_at_all(f, at(4 * rank), b, 3, MPI_INTEGER, r(1), e)
    call MPI_Wait(r(1), st, e)
    call MPI_File_seek(f, at(4 * rank), MPI_SEEK_SET, e)
    call MPI_File_iwrite_all(f, a, 3, MPI_INTEGER, r(1), e)
    call MPI_Wait(r(1), st, e)
    call MPI_File_iread_all(f, b, 1, MPI_INTEGER, r(1), e)
    call MPI_Wait(r(1), st, e)
    call check(b(0) == 100 * rank + 3)
    call MPI_Barrier(MPI_COMM_WORLD, e)
    call MPI_File_seek_shared(f, start, MPI_SEEK_SET, e)
    call MPI_File_iwrite_shared(f, a, 5, MPI_INTEGER, r(1), e)
    call MPI_Wait(r(1), st, e)
    call MPI_Barrier(MPI_COMM_WORLD, e)
    call MPI_File_seek_shared(f, start, MPI_SEEK_SET, e)
    call MPI_File_iread_shared(f, b, 4, MPI_INTEGER, r(1), e)
    call MPI_Wait(r(1), st, e)
    call MPI_Barrier(MPI_COMM_WORLD, e)
  end subroutine

  subroutine split()
    STATUS(st)
    call MPI_File_write_at_all_begin(f, at(4 * rank), a, 4, MPI_INTEGER, e)
    call MPI_File_write_at_all_end(f, a, MPI_STATUS_IGNORE, e)
    call MPI_File_read_at_all_begin(f, at(4 * rank + 1), b, 3, MPI_INTEGER, e)
    call MPI_File_read_at_all_end(f, b, MPI_STATUS_IGNORE, e)
    call MPI_File_seek(f, at(4 * rank), MPI_SEEK_SET, e)
    call MPI_File_write_all_begin(f, a, 3, MPI_INTEGER, e)
    call MPI_File_write_all_end(f, a, st, e)
    call MPI_File_read_all_begin(f, b, 1, MPI_INTEGER, e)
    call MPI_File_read_all_end(f, b, st, e)
    call check(b(0) == 100 * rank + 3)
    call MPI_Barrier(MPI_COMM_WORLD, e)
    call MPI_File_seek_shared(f, start, MPI_SEEK_SET, e)
    call MPI_File_write_ordered_begin(f, a, rank + 1, MPI_INTEGER, e)
    call MPI_File_write_ordered_end(f, a, st, e)
    call MPI_File_seek_shared(f, start, MPI_SEEK_SET, e)
    call MPI_File_read_ordered_begin(f, b, rank + 1, MPI_INTEGER, e)
    call MPI_File_read_ordered_end(f, b, st, e)
    call check(b(rank) == 100 * rank + rank)
  end subroutine

  subroutine alone()
    HANDLE_FILE :: g
    call MPI_File_open(MPI_COMM_SELF, trim(name), MPI_MODE_RDONLY, MPI_INFO_NULL, g, e)
    call MPI_File_read(g, b, 95, MPI_BYTE, MPI_STATUS_IGNORE, e)
    call MPI_File_close(g, e)
  end subroutine
end program
