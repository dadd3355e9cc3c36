! One fault per run, of a known size, as in planted.c; see planted.h. The compute time of simulator ranks is read from
! commq_compute_ns.
module planted
#if defined(F08)
  use mpi_f08
#else
  use mpi
#endif
  use iso_c_binding, only: c_long_long
  implicit none
  integer(c_long_long), bind(C, name="commq_compute_ns") :: compute_ns = 0
  integer, parameter :: base = 20000, tag = 5
  integer :: rank, ranks, left, right, us, step, steps, e
  double precision :: buf(16) = 0, sum(16) = 0
contains
  subroutine work(for_us)
    integer, intent(in) :: for_us
    compute_ns = compute_ns + 1000_c_long_long * for_us
  end subroutine

  ! us on a rank, 0 on others.
  integer function on(only)
    integer, intent(in) :: only
    on = merge(us, 0, rank == only)
  end function

  ! us on all ranks but one.
  integer function off(only)
    integer, intent(in) :: only
    off = us - on(only)
  end function

  subroutine barrier()
    call MPI_Barrier(MPI_COMM_WORLD, e)
  end subroutine

  subroutine none()
    call work(base)
    call MPI_Sendrecv(buf, 16, MPI_DOUBLE_PRECISION, right, tag, sum, 16, MPI_DOUBLE_PRECISION, left, tag, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
  end subroutine

  subroutine imbalance_allreduce()
    call work(base + on(2))
    call MPI_Allreduce(buf, sum, 16, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, e) ! fault imbalance_allreduce
  end subroutine

  subroutine imbalance_sendrecv()
    call work(base + on(3))
    call MPI_Sendrecv(buf, 16, MPI_DOUBLE_PRECISION, right, tag, sum, 16, MPI_DOUBLE_PRECISION, left, tag, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, e) ! fault imbalance_sendrecv
  end subroutine

  subroutine variation()
    call work(base + on(mod(step, ranks)))
    call MPI_Allreduce(buf, sum, 16, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, e)
  end subroutine

  subroutine late_sender()
    if (mod(rank, 2) == 0) then
      call work(us)
      call MPI_Send(buf, 16, MPI_DOUBLE_PRECISION, rank + 1, tag, MPI_COMM_WORLD, e) ! fault late_sender
      call work(base)
    else
      call MPI_Recv(sum, 16, MPI_DOUBLE_PRECISION, rank - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
      call work(base + us)
    end if
    call barrier()
  end subroutine

  subroutine late_receiver()
    if (mod(rank, 2) == 0) then
      call MPI_Ssend(buf, 16, MPI_DOUBLE_PRECISION, rank + 1, tag, MPI_COMM_WORLD, e)
      call work(base + us)
    else
      call work(us)
      call MPI_Recv(sum, 16, MPI_DOUBLE_PRECISION, rank - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e) ! fault late_receiver
      call work(base)
    end if
    call barrier()
  end subroutine

  subroutine late_root()
    call work(on(1))
    call MPI_Bcast(buf, 16, MPI_DOUBLE_PRECISION, 1, MPI_COMM_WORLD, e) ! fault late_root
    call work(base + off(1))
    call barrier()
  end subroutine

  subroutine early_root()
    call work(on(3))
    call MPI_Reduce(buf, sum, 16, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, e) ! fault early_root
    call work(base + off(3))
    call barrier()
  end subroutine

  subroutine late_collective()
    call work(on(2))
    call MPI_Alltoall(buf, 4, MPI_DOUBLE_PRECISION, sum, 4, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, e) ! fault late_collective
    call work(base + off(2))
    call barrier()
  end subroutine

  subroutine late_scan()
    call work(on(0))
    call MPI_Scan(buf, sum, 16, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, e) ! fault late_scan
    call work(base + off(0))
    call barrier()
  end subroutine

  subroutine many_broadcasts()
    integer :: i
    call work(base)
    do i = 1, us / 50
      call MPI_Bcast(buf, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, e) ! fault many_broadcasts
    end do
  end subroutine

  subroutine long_messages()
    double precision, save :: out(400000) = 0, in(400000) = 0
    call work(base)
    call MPI_Sendrecv(out, 70 * us, MPI_DOUBLE_PRECISION, right, tag, in, 70 * us, MPI_DOUBLE_PRECISION, left, tag, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, e) ! fault long_messages
  end subroutine

  ! One rank after the other computes.
  subroutine serialised_chain()
    if (rank > 0) call MPI_Recv(sum, 16, MPI_DOUBLE_PRECISION, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call work(us)
    call MPI_Send(buf, 16, MPI_DOUBLE_PRECISION, right, tag, MPI_COMM_WORLD, e) ! fault serialised_chain
    if (rank == 0) call MPI_Recv(sum, 16, MPI_DOUBLE_PRECISION, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
    call work(base)
    call barrier()
  end subroutine

  ! All wait for what rank 0 computes, now or in the barrier; in the end the others do as much.
  subroutine serial_section()
    call work(on(0))
    call MPI_Bcast(buf, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, e) ! fault serial_section
    call barrier()
    call work(base + merge(off(0) * steps, 0, step == steps - 1))
    call barrier()
  end subroutine

  ! Rank 0 waits for the late message of rank 1 although that of rank 2 is there.
  subroutine wait_order()
#if defined(F08)
    type(MPI_Request) :: requests(2)
#else
    integer :: requests(2)
#endif
    integer :: i
    if (rank == 0) then
      do i = 1, 2
        call MPI_Irecv(sum(i), 1, MPI_DOUBLE_PRECISION, i, tag, MPI_COMM_WORLD, requests(i), e)
      end do
      do i = 1, 2
        call MPI_Wait(requests(i), MPI_STATUS_IGNORE, e) ! fault wait_order
        call work(us)
      end do
    else if (rank < 3) then
      call work(on(1))
      call MPI_Send(buf, 1, MPI_DOUBLE_PRECISION, 0, tag, MPI_COMM_WORLD, e)
    end if
    call work(base + merge(0, us * merge(1, 2, rank == 1), rank == 0))
    call barrier()
  end subroutine

  ! The same with receives from any source, one tag after the other.
  subroutine wildcard_receives()
    integer :: i
    if (rank == 0) then
      do i = 1, 2
        call MPI_Recv(sum, 1, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, tag + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e) ! fault wildcard_receives
        call work(us)
      end do
    else if (rank < 3) then
      call work(on(1))
      call MPI_Send(buf, 1, MPI_DOUBLE_PRECISION, 0, tag + rank, MPI_COMM_WORLD, e)
    end if
    call work(base + merge(0, us * merge(1, 2, rank == 1), rank == 0))
    call barrier()
  end subroutine

  ! Ranks 0 and 1 exchange data late; the others have none and wait with them.
  subroutine oversized_collective()
    integer :: counts(64), at(64)
    counts = 0
    at = 0
    if (rank < 2) counts(2 - rank) = 1
    call work(merge(us, 0, rank < 2))
    call MPI_Alltoallv(buf, counts, at, MPI_DOUBLE_PRECISION, sum, counts, at, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, e) ! fault oversized_collective
    call work(base + merge(0, us, rank < 2))
    call barrier()
  end subroutine
end module

program planted_f
  use planted
  implicit none
  character(len=40) :: fault, number
  call get_command_argument(1, fault)
  call get_command_argument(2, number)
  read (number, *) us
  call get_command_argument(3, number)
  read (number, *) steps
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, e)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do step = 0, steps - 1
    select case (fault)
    case ("none"); call none()
    case ("imbalance_allreduce"); call imbalance_allreduce()
    case ("imbalance_sendrecv"); call imbalance_sendrecv()
    case ("variation"); call variation()
    case ("late_sender"); call late_sender()
    case ("late_receiver"); call late_receiver()
    case ("late_root"); call late_root()
    case ("early_root"); call early_root()
    case ("late_collective"); call late_collective()
    case ("late_scan"); call late_scan()
    case ("many_broadcasts"); call many_broadcasts()
    case ("long_messages"); call long_messages()
    case ("serialised_chain"); call serialised_chain()
    case ("serial_section"); call serial_section()
    case ("wait_order"); call wait_order()
    case ("wildcard_receives"); call wildcard_receives()
    case ("oversized_collective"); call oversized_collective()
    case default; call MPI_Abort(MPI_COMM_WORLD, 2, e)
    end select
  end do
  call MPI_Finalize(e)
end program
