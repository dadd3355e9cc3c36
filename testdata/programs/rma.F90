! rma.c in Fortran.
#include "flavour.h"
program rma
  use, intrinsic :: iso_c_binding
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, next, before, e, i, bad = 0
  integer, target :: a(0:11), b(0:11)
  integer, pointer :: mem(:)
  integer(kind=MPI_ADDRESS_KIND), parameter :: none = 0
  HANDLE_TYPE :: column
  HANDLE_WIN :: w
#if defined(MPIFH)
  integer(kind=MPI_ADDRESS_KIND) :: base
#else
  type(c_ptr) :: base
#endif

  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  next = mod(rank + 1, 3)
  before = mod(rank + 2, 3)
  a = [(100 * rank + i, i = 0, 11)]
  call MPI_Type_vector(2, 1, 4, MPI_INTEGER, column, e)
  call MPI_Type_commit(column, e)
  call MPI_Win_allocate(64_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, w, e)
  call memory(16)
  mem = 0
  mem(12) = rank + 5
  call fences()
  call groups()
  call locks()
  call MPI_Win_free(w, e)
  call shared()
  call dynamic()
  call MPI_Type_free(column, e)
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  subroutine memory(n)
    integer, intent(in) :: n
    integer, pointer :: from_one(:)
#if defined(MPIFH)
    call c_f_pointer(transfer(base, c_null_ptr), from_one, [n])
#else
    call c_f_pointer(base, from_one, [n])
#endif
    mem(0:) => from_one
  end subroutine

  integer(kind=MPI_ADDRESS_KIND) function at(i)
    integer, intent(in) :: i
    at = i
  end function

  subroutine check(right)
    logical, intent(in) :: right
    if (.not. right) bad = bad + 1
  end subroutine

  subroutine fences()
    call MPI_Win_fence(0, w, e)
    call MPI_Put(a, 3, MPI_INTEGER, next, at(0), 3, MPI_INTEGER, w, e)
    call MPI_Accumulate(a, 2, MPI_INTEGER, before, at(4), 2, MPI_INTEGER, MPI_SUM, w, e)
    call MPI_Put(a, 2, column, next, at(8), 4, MPI_INTEGER, w, e)
    call MPI_Win_fence(0, w, e)
    call check(mem(2) == 100 * before + 2 .and. mem(5) == 100 * next + 1 .and. mem(11) == 100 * before + 9)
    call MPI_Get(b, 2, MPI_INTEGER, next, at(8), 1, column, w, e)
    call MPI_Put(a, 5, MPI_INTEGER, MPI_PROC_NULL, none, 5, MPI_INTEGER, w, e)
    call MPI_Get(b(4:8), 5, MPI_INTEGER, MPI_PROC_NULL, none, 5, MPI_INTEGER, w, e)
    call MPI_Fetch_and_op(a(0), b(4), MPI_INTEGER, MPI_PROC_NULL, none, MPI_SUM, w, e)
    call MPI_Win_fence(0, w, e)
    call check(b(0) == 100 * rank .and. b(1) == next + 5)
  end subroutine

  subroutine groups()
    HANDLE_GROUP :: all, to, from
    logical :: flag
    call MPI_Comm_group(MPI_COMM_WORLD, all, e)
    call MPI_Group_incl(all, 1, [next], to, e)
    call MPI_Group_incl(all, 1, [before], from, e)
    call MPI_Win_post(from, 0, w, e)
    call MPI_Win_start(to, 0, w, e)
    call MPI_Put(a, 1, MPI_INTEGER, next, at(3), 1, MPI_INTEGER, w, e)
    call MPI_Win_complete(w, e)
    call MPI_Win_wait(w, e)
    if (rank == 0) then
      call MPI_Win_post(from, 0, w, e)
      call MPI_Win_test(w, flag, e)
      call check(.not. flag)
      call MPI_Send(a, 1, MPI_INTEGER, before, 9, MPI_COMM_WORLD, e)
      do while (.not. flag)
        call MPI_Win_test(w, flag, e)
      end do
    else if (rank == 2) then
      call MPI_Recv(b, 1, MPI_INTEGER, next, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      call MPI_Win_start(to, 0, w, e)
      call MPI_Win_complete(w, e)
    end if
    call MPI_Group_free(all, e)
    call MPI_Group_free(to, e)
    call MPI_Group_free(from, e)
  end subroutine

  subroutine locks()
    HANDLE_REQUEST :: r(2)
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, w, e)
    call MPI_Put(a(6), 1, MPI_INTEGER, next, at(6), 1, MPI_INTEGER, w, e)
    call MPI_Win_flush(next, w, e)
    call MPI_Win_flush_local(next, w, e)
    call MPI_Win_unlock(next, w, e)
    call MPI_Barrier(MPI_COMM_WORLD, e)
    call MPI_Win_lock_all(0, w, e)
    call MPI_Win_sync(w, e)
    call MPI_Rput(a(7), 1, MPI_INTEGER, next, at(7), 1, MPI_INTEGER, w, r(1), e)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
    call MPI_Win_flush_all(w, e)
    call MPI_Raccumulate(a, 2, MPI_INTEGER, next, at(0), 2, MPI_INTEGER, MPI_REPLACE, w, r(1), e)
    call MPI_Rget(b, 1, MPI_INTEGER, next, at(12), 1, MPI_INTEGER, w, r(2), e)
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, e)
    call MPI_Win_flush_local_all(w, e)
    call MPI_Rget_accumulate(a, 0, MPI_INTEGER, b(2), 1, MPI_INTEGER, next, at(12), 1, MPI_INTEGER, MPI_NO_OP, w, r(1), e)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, e)
    call MPI_Get_accumulate(a(1:2), 2, MPI_INTEGER, b(8:9), 2, MPI_INTEGER, next, at(14), 2, MPI_INTEGER, MPI_MAX, w, e)
    call MPI_Fetch_and_op(a(2), b(6), MPI_INTEGER, next, at(3), MPI_SUM, w, e)
    call MPI_Compare_and_swap(a(3), a(6), b(7), MPI_INTEGER, next, at(6), w, e)
    call MPI_Win_unlock_all(w, e)
    call check(b(0) == next + 5 .and. b(2) == next + 5 .and. b(6) == 100 * rank .and. b(7) == 100 * rank + 6 .and. b(8) == 0)
    call MPI_Barrier(MPI_COMM_WORLD, e)
  end subroutine

  subroutine shared()
    HANDLE_COMM :: sub
    integer :: me, color
    color = 5
    if (rank == 1) color = MPI_UNDEFINED
    call MPI_Comm_split(MPI_COMM_WORLD, color, -rank, sub, e)
    if (sub == MPI_COMM_NULL) return
    call MPI_Comm_rank(sub, me, e)
    call MPI_Win_allocate_shared(32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, sub, base, w, e)
    call memory(8)
    call MPI_Comm_free(sub, e)
    call MPI_Win_fence(0, w, e)
    call MPI_Put(a(4:10), 7, MPI_INTEGER, 1 - me, at(1), 7, MPI_INTEGER, w, e)
    call MPI_Win_fence(0, w, e)
    call check(mem(7) == 100 * (2 - rank) + 10)
    call MPI_Win_free(w, e)
  end subroutine

  subroutine dynamic()
    integer(kind=MPI_ADDRESS_KIND) :: from, to
    HANDLE_TYPE :: there
    call MPI_Get_address(a(11), from, e)
    call MPI_Get_address(b, to, e)
    call MPI_Type_create_hindexed(1, [1], [from], MPI_INTEGER, there, e)
    call MPI_Type_commit(there, e)
    call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, w, e)
    call MPI_Win_attach(w, b, 48_MPI_ADDRESS_KIND, e)
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w, e)
    call MPI_Put(MPI_BOTTOM, 1, there, rank, to, 1, MPI_INTEGER, w, e)
    call MPI_Win_unlock(rank, w, e)
    call check(b(0) == 100 * rank + 11)
    call MPI_Win_detach(w, b, e)
    call MPI_Win_free(w, e)
    call MPI_Type_free(there, e)
  end subroutine
end program
