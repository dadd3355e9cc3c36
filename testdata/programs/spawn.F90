! spawn.c in Fortran.
#include "flavour.h"
program spawn
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, e, bad = 0, codes(2) = 3, counts(2) = 1
  HANDLE_COMM :: parent, between
  HANDLE_INFO :: infos(2)
  character(len=300) :: commands(2)
  logical :: first

  call get_command_argument(0, commands(1))
  commands(2) = commands(1)
  infos = MPI_INFO_NULL
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_get_parent(parent, e)
  first = parent == MPI_COMM_NULL
  if (.not. first) then
    call meet(parent, .true.)
  else
    call MPI_Comm_spawn(commands(1), MPI_ARGV_NULL, 2, MPI_INFO_NULL, 1, MPI_COMM_WORLD, between, codes, e)
    call check(all(codes == MPI_SUCCESS), __LINE__)
    call meet(between, .false.)
    call MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 2, MPI_COMM_WORLD, between, MPI_ERRCODES_IGNORE, e)
    call meet(between, .false.)
  end if
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0 .and. first) print '(a)', 'ok'
contains
  subroutine check(right, line)
    logical, intent(in) :: right
    integer, intent(in) :: line
    if (right) return
    print '(a,i0)', 'line ', line
    bad = 1
  end subroutine

  subroutine meet(between, spawned)
    HANDLE_COMM :: between, merged
    logical, intent(in) :: spawned
    integer :: place, five(5) = [3, 5, 9, 0, 7]
    if (.not. spawned .and. rank == 2) call MPI_Send(five, 3, MPI_INTEGER, 1, 8, between, e)
    if (spawned .and. rank == 1) call MPI_Recv(five, 5, MPI_INTEGER, 2, 8, between, MPI_STATUS_IGNORE, e)
    if (spawned .and. rank == 0) call MPI_Send(five, 5, MPI_INTEGER, 1, 9, MPI_COMM_WORLD, e)
    if (spawned .and. rank == 1) call MPI_Recv(five, 5, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call MPI_Intercomm_merge(between, spawned, merged, e)
    call MPI_Comm_rank(merged, place, e)
    call check(place == merge(3 + rank, rank, spawned), __LINE__)
    call MPI_Barrier(merged, e)
    call MPI_Comm_free(merged, e)
    call MPI_Comm_disconnect(between, e)
  end subroutine
end program
