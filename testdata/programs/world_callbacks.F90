! world_callbacks.c in Fortran, as far as that is possible.
#include "flavour.h"
#if defined(F08)
#define HANDLE_ERRHANDLER type(MPI_Errhandler)
#else
#define HANDLE_ERRHANDLER integer
#endif
module functions
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank
  logical :: told ! in Open MPI 4 Fortran's delete functions get any number for the communicator
  HANDLE_COMM :: dup
contains
  function which(c) result(s)
    HANDLE_COMM, intent(in) :: c
    character(7) :: s
    s = 'another'
    if (c == MPI_COMM_WORLD) s = 'WORLD'
    if (c == MPI_COMM_SELF) s = 'SELF'
    if (c == dup) s = 'dup'
  end function

  function deleted(c) result(s)
    HANDLE_COMM, intent(in) :: c
    character(7) :: s
    s = '?'
    if (told) s = which(c)
  end function

  subroutine copy(c, keyval, extra, in, out, flag, e)
    HANDLE_COMM :: c
    integer :: keyval, e
    integer(MPI_ADDRESS_KIND) :: extra, in, out
    logical :: flag
    if (rank == 3) print '(a,a,i0,a,i0)', 'copy from ', which(c), extra, ' ', in
    out = in + 1
    flag = .true.
    e = MPI_SUCCESS
  end subroutine

  subroutine gone(c, keyval, val, extra, e)
    HANDLE_COMM :: c
    integer :: keyval, e, size
    integer(MPI_ADDRESS_KIND) :: val, extra
    size = -1
    if (told) call MPI_Comm_size(c, size, e)
    if (rank == 3) print '(a,a,i0,a,i0,a,i0)', 'delete from ', deleted(c), size, ' ', extra, ' ', val
    e = MPI_SUCCESS
  end subroutine

#if !defined(F08)
  subroutine copy_old(c, keyval, extra, in, out, flag, e)
    integer :: c, keyval, e, extra, in, out
    logical :: flag
    if (rank == 3) print '(a,a,i0,a,i0)', 'old copy from ', which(c), extra, ' ', in
    out = in
    flag = .true.
    e = MPI_SUCCESS
  end subroutine

  subroutine gone_old(c, keyval, val, extra, e)
    integer :: c, keyval, e, val, extra
    if (rank == 3) print '(a,a,i0,a,i0)', 'old delete from ', deleted(c), extra, ' ', val
    e = MPI_SUCCESS
  end subroutine
#endif

  subroutine handler(c, code)
    HANDLE_COMM :: c
    integer :: code, class, e
    call MPI_Error_class(code, class, e)
    if (rank == 3) print '(a,a,l1,l1)', 'handler: ', which(c), class == MPI_ERR_RANK, class == MPI_ERR_OTHER
  end subroutine

  subroutine another(c, code)
    HANDLE_COMM :: c
    integer :: code
    if (rank == 3) print '(a,a)', 'second handler: ', which(c)
  end subroutine

  subroutine predefined(what, c)
    character(*), intent(in) :: what
    HANDLE_COMM, intent(in) :: c
    integer :: keyvals(7), i, e, old
    integer(MPI_ADDRESS_KIND) :: v
    logical :: flag
    keyvals = [MPI_TAG_UB, MPI_HOST, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_UNIVERSE_SIZE, MPI_APPNUM, MPI_LASTUSEDCODE]
    do i = 1, 7
      v = 0
      call MPI_Comm_get_attr(c, keyvals(i), v, flag, e)
      if (.not. flag .or. what == 'dup') v = 0 ! in Open MPI a duplicate's value is an address
      if (rank == 3) print '(a,a,i0,l2,a,i0)', what, ' ', i, flag, ' ', v
#if !defined(F08)
      old = 0
      call MPI_Attr_get(c, keyvals(i), old, flag, e)
      if (.not. flag .or. what == 'dup') old = 0
      if (rank == 3) print '(a,a,i0,l2,a,i0)', what, ' ', i, flag, ' ', old
#endif
    end do
  end subroutine
end module

program world_callbacks
  use functions
  implicit none
  integer :: keyval, none, as_is, old, e, class, x, n
  integer(MPI_ADDRESS_KIND) :: extra, v
  logical :: flag
  character(MPI_MAX_OBJECT_NAME) :: name
  character(MPI_MAX_LIBRARY_VERSION_STRING) :: version
  HANDLE_COMM :: again
  HANDLE_ERRHANDLER :: h, s, got
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Get_library_version(version, n, e)
  told = index(version, 'Open MPI') == 0
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, e)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, again, e)
  call predefined('WORLD', MPI_COMM_WORLD)
  call predefined('dup', dup)
  call predefined('split', again)
  call predefined('SELF', MPI_COMM_SELF)
  call MPI_Comm_free(again, e)
  call MPI_Comm_free(dup, e)
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, n, e)
  if (rank == 3) print '(a,i0)', name(1:n), n
  call MPI_Comm_set_name(MPI_COMM_WORLD, 'all of us', e)
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, n, e)
  if (rank == 3) print '(a,i0)', name(1:n), n

  extra = 10
  call MPI_Comm_create_keyval(copy, gone, keyval, extra, e)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, none, extra, e)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, as_is, extra, e)
  v = 5
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, v, e)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, none, v, e)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, as_is, v, e)
#if !defined(F08)
  x = 7
  call MPI_Keyval_create(copy_old, gone_old, old, x, e)
  n = 9
  call MPI_Attr_put(MPI_COMM_WORLD, old, n, e)
  n = 0
  call MPI_Attr_get(MPI_COMM_WORLD, old, n, flag, e)
  if (rank == 3) print '(a,l2,i2)', 'old', flag, n
#endif
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, e)
  v = 0
  call MPI_Comm_get_attr(dup, keyval, v, flag, e)
  if (rank == 3) print '(a,l2,i2)', 'dup', flag, v
  call MPI_Comm_get_attr(dup, none, v, flag, e)
  if (rank == 3) print '(a,l2)', 'dup', flag
  v = 0
  call MPI_Comm_get_attr(dup, as_is, v, flag, e)
  if (rank == 3) print '(a,l2,i2)', 'dup', flag, v
  call MPI_Comm_dup(dup, again, e)
  call MPI_Comm_free(again, e)
  call MPI_Comm_free(dup, e)
  v = 3
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, v, e)
#if !defined(F08)
  call MPI_Attr_delete(MPI_COMM_WORLD, old, e)
#endif

  call MPI_Comm_create_errhandler(handler, h, e)
  call MPI_Comm_create_errhandler(another, s, e)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, h, e)
  call MPI_Comm_get_errhandler(MPI_COMM_WORLD, got, e)
  if (rank == 3) print '(a,l2)', 'handler is set', got == h
  call MPI_Errhandler_free(got, e)
  x = 5
  call MPI_Send(x, 1, MPI_INTEGER, 4, 9, MPI_COMM_WORLD, e)
  call MPI_Error_class(e, class, n)
  if (rank == 3) print '(a,l2)', 'to rank 4', class == MPI_ERR_RANK
  call MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER, e)
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, e)
  call MPI_Comm_call_errhandler(dup, MPI_ERR_OTHER, e)
  call MPI_Comm_free(dup, e)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, s, e)
  call MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER, e)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, h, e)
  call MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER, e)
#if !defined(F08)
  call MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN, e)
#else
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, e)
#endif
  call MPI_Recv(x, 1, MPI_INTEGER, 5, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
  call MPI_Error_class(e, class, n)
  if (rank == 3) print '(a,l2)', 'from rank 5', class == MPI_ERR_RANK
  if (rank == 3) print '(a)', 'the end'
  call MPI_Finalize(e)
  if (rank == 3) print '(a)', 'after it'
end program
