! comms.c in Fortran.
#include "flavour.h"
program comms
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
  integer :: rank, e, bad = 0, color, total, y, all3(3), one
  integer, asynchronous :: x
  HANDLE_COMM :: dup, odd, none, cart, row, made, group_made, inter, merged, graph, dist, idup
  HANDLE_GROUP :: world, some
  HANDLE_REQUEST :: r

  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)

  call MPI_Comm_dup(MPI_COMM_WORLD, dup, e)
  call MPI_Comm_set_name(dup, 'ours', e)
  call MPI_Barrier(dup, e)
  call MPI_Comm_split(dup, mod(rank, 2), -rank, odd, e)
  call pass(odd, 7)
  color = 0
  if (rank < 2) color = MPI_UNDEFINED
  call MPI_Comm_split(odd, color, 0, none, e)
  call check((none == MPI_COMM_NULL) .eqv. (rank < 2), __LINE__)
  if (none /= MPI_COMM_NULL) call MPI_Comm_free(none, e)

  call MPI_Cart_create(MPI_COMM_WORLD, 2, [2, 2], [.true., .false.], .false., cart, e)
  if (cart /= MPI_COMM_NULL) then
    call MPI_Cart_sub(cart, [.false., .true.], row, e)
    call pass(row, 8)
    call MPI_Comm_free(row, e)
    call MPI_Comm_free(cart, e)
  end if

  call MPI_Comm_group(MPI_COMM_WORLD, world, e)
  call MPI_Group_incl(world, 3, [4, 2, 0], some, e)
  call MPI_Comm_create(MPI_COMM_WORLD, some, made, e)
  call check((made == MPI_COMM_NULL) .eqv. (mod(rank, 2) == 1), __LINE__)
  if (made /= MPI_COMM_NULL) then
    call pass(made, 9)
    call MPI_Comm_create_group(MPI_COMM_WORLD, some, 33, group_made, e)
    one = 1
    call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, group_made, e)
    call check(total == 3, __LINE__)
    call MPI_Comm_free(group_made, e)
    call MPI_Comm_free(made, e)
  end if
  call MPI_Group_free(some, e)
  call MPI_Group_free(world, e)

  call MPI_Intercomm_create(odd, 0, MPI_COMM_WORLD, merge(4, 3, mod(rank, 2) == 1), 44, inter, e)
  x = rank
  if (mod(rank, 2) == 0) then
    call MPI_Bcast(x, 1, MPI_INTEGER, merge(MPI_ROOT, MPI_PROC_NULL, rank == 4), inter, e)
  else
    call MPI_Bcast(x, 1, MPI_INTEGER, 0, inter, e)
  end if
  call check(x == merge(4, rank, mod(rank, 2) == 1), __LINE__)
  if (rank == 4) then
    call MPI_Send(x, 1, MPI_INTEGER, 1, 10, inter, e)
  else if (rank == 1) then
    call MPI_Recv(y, 1, MPI_INTEGER, 0, 10, inter, MPI_STATUS_IGNORE, e)
  end if
  call MPI_Allgather(rank, 1, MPI_INTEGER, all3, 1, MPI_INTEGER, inter, e)
  call MPI_Intercomm_merge(inter, mod(rank, 2) == 1, merged, e)
  call pass(merged, 11)
  call MPI_Comm_free(merged, e)
  call MPI_Comm_free(inter, e)

  call MPI_Graph_create(MPI_COMM_WORLD, 5, [1, 3, 5, 7, 8], [1, 0, 2, 1, 3, 2, 4, 3], .false., graph, e)
  call MPI_Comm_free(graph, e)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(rank + 4, 5)], MPI_UNWEIGHTED, 1, [mod(rank + 1, 5)], &
    MPI_UNWEIGHTED, MPI_INFO_NULL, .false., dist, e)
  call MPI_Comm_free(dist, e)

  call MPI_Comm_idup(odd, idup, r, e)
  call MPI_Wait(r, MPI_STATUS_IGNORE, e)
  call MPI_Barrier(idup, e)
  call MPI_Comm_free(idup, e)
  call MPI_Comm_free(odd, e)
  call MPI_Comm_free(dup, e)
  call MPI_Finalize(e)
  if (rank == 0 .and. bad == 0) print '(a)', 'ok'
  if (bad /= 0) stop 1

contains

  ! A message from rank 0 to rank 1 of a communicator.
  subroutine pass(c, tag)
    HANDLE_COMM, intent(in) :: c
    integer, intent(in) :: tag
    integer :: my, z
    call MPI_Comm_rank(c, my, e)
    z = tag
    if (my == 0) then
      call MPI_Send(z, 1, MPI_INTEGER, 1, tag, c, e)
    else if (my == 1) then
      call MPI_Recv(z, 1, MPI_INTEGER, 0, tag, c, MPI_STATUS_IGNORE, e)
    end if
  end subroutine

  subroutine check(holds, line)
    logical, intent(in) :: holds
    integer, intent(in) :: line
    if (.not. holds) then
      bad = bad + 1
      write (0, *) 'comms.F90:', line
    end if
  end subroutine
end program
