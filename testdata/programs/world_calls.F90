! Results of calls on MPI_COMM_WORLD, printed by rank 3: those of world_calls.c with an entry point of their own in Fortran.
#include "flavour.h"
module shown
#if defined(F08)
  use mpi_f08
#elif defined(USEMPI)
  use mpi
#endif
  implicit none
#if defined(MPIFH)
  include 'mpif.h'
#endif
contains
  subroutine show(what, v)
    character(*), intent(in) :: what
    integer, intent(in) :: v
    integer :: all(4), rank, e
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
    call MPI_Gather(v, 1, MPI_INTEGER, all, 1, MPI_INTEGER, 3, MPI_COMM_WORLD, e)
    if (rank == 3) print '(a,4(1x,i0))', what, all
  end subroutine

  subroutine ranks(what, c)
    character(*), intent(in) :: what
    HANDLE_COMM, intent(inout) :: c
    integer :: n, r, w, first, e
    if (c == MPI_COMM_NULL) then
      call show(what, -1)
      return
    end if
    call MPI_Comm_size(c, n, e)
    call MPI_Comm_rank(c, r, e)
    call MPI_Comm_rank(MPI_COMM_WORLD, w, e)
    first = w
    call MPI_Bcast(first, 1, MPI_INTEGER, 0, c, e)
    call show(what, n * 100 + r * 10 + first)
    call MPI_Comm_free(c, e)
  end subroutine
end module

program world_calls
  use shown
  implicit none
  integer :: rank, size, e, n, m, r, s, i, result, provided, coords(2), list(3), a(8), tests, level
  integer, asynchronous :: b(8)
  integer :: counts(4) = 1, at(4) = [0, 1, 2, 3], bytes(4) = [0, 4, 8, 12]
  integer :: index(4) = [1, 3, 5, 6], edges(6) = [1, 0, 2, 1, 3, 2]
  logical :: flag, weighted
  character :: buffer(64)
  HANDLE_COMM :: c, d, parent
  HANDLE_GROUP :: g, h
  HANDLE_INFO :: info
  HANDLE_TYPE :: types(4)
  HANDLE_REQUEST :: q
  HANDLE_MESSAGE :: msg
  HANDLE_WIN :: w
  integer :: mine(4)
  STATUS(st)
  call MPI_Init_thread(MPI_THREAD_SERIALIZED, provided, e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_size(MPI_COMM_WORLD, size, e)
  call MPI_Query_thread(level, e)
  call show('level', merge(1, 0, level == provided))
  call show('size', size)
  call show('handle', merge(1, 0, MPI_COMM_WORLD /= MPI_COMM_NULL .and. MPI_COMM_WORLD /= MPI_COMM_SELF))
  call MPI_Comm_group(MPI_COMM_WORLD, g, e)
  call MPI_Group_size(g, n, e)
  call MPI_Group_incl(g, 2, [3, 1], h, e)
  call show('group', n)
  call MPI_Comm_create(MPI_COMM_WORLD, h, c, e)
  call ranks('create', c)
  c = MPI_COMM_NULL
  if (mod(rank, 2) == 1) call MPI_Comm_create_group(MPI_COMM_WORLD, h, 9, c, e)
  result = -1
  if (c /= MPI_COMM_NULL) call MPI_Comm_compare(c, MPI_COMM_WORLD, result, e)
  call show('create_group', result)
  call ranks('create_group', c)
  call MPI_Comm_dup(MPI_COMM_WORLD, c, e)
  call MPI_Comm_compare(c, MPI_COMM_WORLD, result, e)
  call show('congruent', merge(1, 0, result == MPI_CONGRUENT .and. c /= MPI_COMM_WORLD))
  call ranks('dup', c)
  call MPI_Comm_get_info(MPI_COMM_WORLD, info, e)
  call MPI_Comm_set_info(MPI_COMM_WORLD, info, e)
  call MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, c, e)
  call ranks('dup_with_info', c)
  call MPI_Info_free(info, e)
  call MPI_Comm_idup(MPI_COMM_WORLD, c, q, e)
  call MPI_Wait(q, MPI_STATUS_IGNORE, e)
  call ranks('idup', c)
  call MPI_Comm_split(MPI_COMM_WORLD, rank / 3, -rank, c, e)
  call ranks('split', c)
  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 5 - rank, MPI_INFO_NULL, c, e)
  call ranks('split_type', c)
  call MPI_Comm_test_inter(MPI_COMM_WORLD, flag, e)
  call MPI_Topo_test(MPI_COMM_WORLD, n, e)
  call show('plain', merge(1, 0, n == MPI_UNDEFINED .and. .not. flag))
  call MPI_Cart_map(MPI_COMM_WORLD, 2, [2, 2], [.true., .false.], n, e)
  call show('cart_map', n)
  call MPI_Graph_map(MPI_COMM_WORLD, 4, index, edges, n, e)
  call show('graph_map', n)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, [2, 2], [.true., .false.], .false., c, e)
  call MPI_Cart_coords(c, rank, 2, coords, e)
  call MPI_Cart_rank(c, coords, n, e)
  call MPI_Cart_shift(c, 0, 1, r, s, e)
  call MPI_Cartdim_get(c, m, e)
  call show('cart', m * 1000 + n * 100 + r * 10 + s)
  call MPI_Cart_sub(c, [.true., .false.], d, e)
  call ranks('cart_sub', d)
  call ranks('cart', c)
  call MPI_Graph_create(MPI_COMM_WORLD, 4, index, edges, .false., c, e)
  call MPI_Graphdims_get(c, n, m, e)
  call MPI_Graph_neighbors_count(c, rank, i, e)
  list = -1
  call MPI_Graph_neighbors(c, rank, i, list, e)
  call show('graph', n * 1000 + m * 100 + i * 10 + list(1))
  call ranks('graph', c)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(rank + 3, 4)], MPI_UNWEIGHTED, &
    1, [mod(rank + 1, 4)], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., c, e)
  call MPI_Dist_graph_neighbors_count(c, n, m, weighted, e)
  call show('adjacent', n * 10 + m)
  call ranks('adjacent', c)
  call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], [mod(rank + 1, 4)], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., c, e)
  call ranks('dist_graph', c)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, c, e)
  call MPI_Intercomm_create(c, 0, MPI_COMM_WORLD, 1 - mod(rank, 2), 7, d, e)
  call MPI_Comm_remote_size(d, n, e)
  call show('inter', n)
  call MPI_Comm_free(c, e)
  call MPI_Intercomm_merge(d, mod(rank, 2) == 1, c, e)
  call MPI_Comm_size(c, n, e)
  call show('merged', n)
  call MPI_Comm_free(c, e)
  call MPI_Comm_free(d, e)
  call MPI_Comm_get_parent(parent, e)
  call show('parent', merge(1, 0, parent == MPI_COMM_NULL))

  a = [(10 * rank + i, i = 0, 7)]
  types = MPI_INTEGER
  b = 0
  call MPI_Barrier(MPI_COMM_WORLD, e)
  call MPI_Allreduce(a, b, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, e)
  call show('allreduce', b(2))
  call MPI_Allreduce(MPI_IN_PLACE, b, 2, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, e)
  call show('in place', b(1))
  call MPI_Alltoall(a, 1, MPI_INTEGER, b, 1, MPI_INTEGER, MPI_COMM_WORLD, e)
  call show('alltoall', b(4))
  call MPI_Alltoallw(a, counts, bytes, types, b, counts, bytes, types, MPI_COMM_WORLD, e)
  call show('alltoallw', b(3))
  b = 0
  call MPI_Ialltoallw(a, counts, bytes, types, b, counts, bytes, types, MPI_COMM_WORLD, q, e)
  call MPI_Wait(q, MPI_STATUS_IGNORE, e)
  call show('ialltoallw', b(3))
  call MPI_Iallgather(a, 1, MPI_INTEGER, b, 1, MPI_INTEGER, MPI_COMM_WORLD, q, e)
  call MPI_Wait(q, MPI_STATUS_IGNORE, e)
  call show('iallgather', b(4))
  call MPI_Ibarrier(MPI_COMM_WORLD, q, e)
  call MPI_Wait(q, MPI_STATUS_IGNORE, e)
  call MPI_Sendrecv(a, 3, MPI_INTEGER, mod(rank + 1, 4), 9, b, 8, MPI_INTEGER, mod(rank + 3, 4), 9, MPI_COMM_WORLD, st, e)
  call show('sendrecv', b(3) * 10 + SOURCE_OF(st))
  call MPI_Isend(a, 3, MPI_INTEGER, 3 - rank, 5, MPI_COMM_WORLD, q, e)
  call MPI_Probe(3 - rank, 5, MPI_COMM_WORLD, st, e)
  flag = .false.
  tests = 0
  do while (.not. flag)
    call MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, flag, st, e)
    tests = tests + 1
  end do
  call MPI_Mprobe(SOURCE_OF(st), TAG_OF(st), MPI_COMM_WORLD, msg, st, e)
  call MPI_Mrecv(b, 8, MPI_INTEGER, msg, st, e)
  call MPI_Wait(q, MPI_STATUS_IGNORE, e)
  call show('mrecv', b(2))
  call MPI_Pack_size(3, MPI_INTEGER, MPI_COMM_WORLD, n, e)
  call show('pack_size', n)
  m = 0
  call MPI_Pack(a, 3, MPI_INTEGER, buffer, 64, m, MPI_COMM_WORLD, e)
  m = 0
  call MPI_Unpack(buffer, 64, m, b, 3, MPI_INTEGER, MPI_COMM_WORLD, e)
  call show('unpack', b(3) * 100 + m)
  call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, w, e)
  call MPI_Win_get_group(w, h, e)
  call MPI_Group_size(h, n, e)
  call show('window', n)
  call MPI_Win_free(w, e)
  call MPI_Finalize(e)
end program
