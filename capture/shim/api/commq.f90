! Two subroutines for MPI programs that commq captures, with mpif.h, use mpi or use mpi_f08. Compile this file with the program, or
! include it before its first unit; there is nothing to link. Without the capture library they do nothing.
!
!     use commq
!     call commq_mark('solve')
!     call commq_send_to_self(block, n, MPI_DOUBLE_PRECISION)            ! with mpi_f08: MPI_DOUBLE_PRECISION%MPI_VAL
!
! See commq.h for what they record.
module commq
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: commq_mark, commq_send_to_self

  abstract interface
    subroutine mark_function(name, bytes) bind(C)
      import :: c_char, c_long_long
      character(kind=c_char), intent(in) :: name(*)
      integer(c_long_long), value :: bytes
    end subroutine
    subroutine self_function(buf, count, datatype) bind(C)
      import :: c_ptr, c_long_long, c_int
      type(c_ptr), value :: buf
      integer(c_long_long), value :: count
      integer(c_int), value :: datatype
    end subroutine
  end interface

  interface
    function dlsym(handle, name) bind(C, name='dlsym')
      import :: c_ptr, c_funptr, c_char
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: dlsym
    end function
  end interface

contains

  ! Records a row with this label, blanks at its end left out.
  subroutine commq_mark(name)
    character(len=*), intent(in) :: name
    character(kind=c_char) :: text(len_trim(name) + 1)
    procedure(mark_function), pointer :: mark
    type(c_funptr) :: found
    integer :: i
    found = dlsym(c_null_ptr, 'commq_shim_mark' // c_null_char)
    if (.not. c_associated(found)) return
    do i = 1, len_trim(name)
      text(i) = name(i:i)
    end do
    call c_f_procpointer(found, mark)
    call mark(text, int(len_trim(name), c_long_long))
  end subroutine

  ! Records the hash of count elements of a datatype in buf, a variable or a whole array.
  subroutine commq_send_to_self(buf, count, datatype)
    type(*), dimension(..), intent(in), target, contiguous :: buf
    integer, intent(in) :: count, datatype
    procedure(self_function), pointer :: self
    type(c_funptr) :: found
    found = dlsym(c_null_ptr, 'commq_shim_self_f' // c_null_char)
    if (.not. c_associated(found)) return
    call c_f_procpointer(found, self)
    call self(c_loc(buf), int(count, c_long_long), int(datatype, c_int))
  end subroutine

end module
