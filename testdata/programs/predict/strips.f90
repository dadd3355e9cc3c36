! Shallow water in strips: strips NX NY STEPS, for example 64 230 30.
! Rows are dealt to a line of ranks, the LAST ones get the remainder. Two rows of ghosts of each of three fields go both ways
! in each step. Every tenth step the depth and the momentum of each rank are gathered on rank 0 (MPI_Gather) and the depth is
! written to a checkpoint (MPI_Gatherv of all rows).
program strips
	use mpi
	implicit none
	integer, parameter :: dp = kind(1d0), ghost = 2
	integer :: ierr, ranks, rank, nx, ny, steps, step, rows, start, above, below, r, a, wrong
	integer, allocatable :: counts(:), offsets(:)
	real(dp), allocatable :: q(:, :, :), all(:, :, :), checkpoint(:, :), sums(:, :)
	real(dp) :: mine(2), volume
	character(len=20) :: word

	call MPI_Init(ierr)
	nx = 64
	ny = 230
	steps = 30
	do a = 1, min(command_argument_count(), 3)
		call get_command_argument(a, word)
		if (a == 1) read (word, *) nx
		if (a == 2) read (word, *) ny
		if (a == 3) read (word, *) steps
	end do
	call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
	call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
	if (ny/ranks < ghost) then
		if (rank == 0) print '(a,i0,a,i0,a)', 'strips: ', ranks, ' ranks are too many for ', ny, ' rows'
		call MPI_Abort(MPI_COMM_WORLD, 2, ierr)
	end if
	allocate (counts(ranks), offsets(ranks), sums(2, ranks), checkpoint(nx, ny))
	do r = 1, ranks
		counts(r) = nx*(ny/ranks)
		if (r > ranks - mod(ny, ranks)) counts(r) = counts(r) + nx
		offsets(r) = sum(counts(1:r - 1))
	end do
	rows = counts(rank + 1)/nx
	start = offsets(rank + 1)/nx
	above = merge(MPI_PROC_NULL, rank + 1, rank == ranks - 1)
	below = merge(MPI_PROC_NULL, rank - 1, rank == 0)

	allocate (q(nx, 1 - ghost:rows + ghost, 3), all(nx, 1 - ghost:ny + ghost, 3))
	call begin(q, rows, start)
	volume = 0
	do step = 1, steps
		call exchange()
		call advance(q, rows, rank == 0, rank == ranks - 1)
		if (mod(step, 10) == 0) then
			mine = [sum(q(:, 1:rows, 1)), sum(q(:, 1:rows, 2))]
			call MPI_Gather(mine, 2, MPI_DOUBLE_PRECISION, sums, 2, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
			call MPI_Gatherv(q(1, 1, 1), rows*nx, MPI_DOUBLE_PRECISION, checkpoint, counts, offsets, MPI_DOUBLE_PRECISION, &
				0, MPI_COMM_WORLD, ierr)
		end if
	end do

	if (rank == 0) then
		volume = sum(sums(1, :))
		call begin(all, ny, 0)
		do step = 1, steps/10*10
			call advance(all, ny, .true., .true.)
		end do
		wrong = count(abs(checkpoint - all(:, 1:ny, 1)) > 1d-12)
		if (abs(volume - sum(all(:, 1:ny, 1))) > 1d-8) wrong = wrong + 1
		if (wrong == 0) print '(a,i0,a,f14.6,a)', 'strips on ', ranks, ': volume ', volume, ', right'
		if (wrong /= 0) print '(a,i0,a,i0,a)', 'strips on ', ranks, ': ', wrong, ' cells WRONG'
	end if
	call MPI_Bcast(wrong, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
	call MPI_Finalize(ierr)
	if (wrong /= 0) stop 1

contains

	! Depth, and momentum in x and y, with a hump of water.
	subroutine begin(u, n, from)
		integer, intent(in) :: n, from
		real(dp), intent(out) :: u(:, 1 - ghost:, :)
		integer :: i, j
		u = 0
		do j = 1, n
			do i = 1, nx
				u(i, j, 1) = 1 + 0.3_dp*exp(-((i - 0.4_dp*nx)**2 + (j + from - 0.6_dp*ny)**2)/60)
			end do
		end do
	end subroutine

	! One step of a Lax-Friedrichs scheme with some fourth-order smoothing; walls at both ends of y, periodic in x.
	subroutine advance(u, n, first, last)
		integer, intent(in) :: n
		real(dp), intent(inout) :: u(:, 1 - ghost:, :)
		logical, intent(in) :: first, last
		real(dp), allocatable :: new(:, :, :)
		real(dp) :: s(3)
		integer :: i, j, e, w, g
		real(dp), parameter :: c = 0.05_dp
		s = [1, 1, -1]
		do g = 1, ghost
			if (first) u(:, 1 - g, :) = u(:, g, :)*spread(s, 1, nx)
			if (last) u(:, n + g, :) = u(:, n + 1 - g, :)*spread(s, 1, nx)
		end do
		allocate (new(nx, n, 3))
		do j = 1, n
			do i = 1, nx
				e = mod(i, nx) + 1
				w = mod(i + nx - 2, nx) + 1
				new(i, j, :) = 0.2_dp*(u(i, j, :) + u(e, j, :) + u(w, j, :) + u(i, j - 1, :) + u(i, j + 1, :)) &
					- 0.002_dp*(u(i, j - 2, :) - 4*u(i, j - 1, :) + 6*u(i, j, :) - 4*u(i, j + 1, :) + u(i, j + 2, :))
				new(i, j, 1) = new(i, j, 1) - c*(u(e, j, 2) - u(w, j, 2) + u(i, j + 1, 3) - u(i, j - 1, 3))
				new(i, j, 2) = new(i, j, 2) - c*(u(e, j, 1)**2 - u(w, j, 1)**2)/2
				new(i, j, 3) = new(i, j, 3) - c*(u(i, j + 1, 1)**2 - u(i, j - 1, 1)**2)/2
			end do
		end do
		u(:, 1:n, :) = new
	end subroutine

	subroutine exchange()
		integer :: requests(12), k, f, m
		m = nx*ghost
		k = 0
		do f = 1, 3
			call MPI_Irecv(q(1, 1 - ghost, f), m, MPI_DOUBLE_PRECISION, below, f, MPI_COMM_WORLD, requests(k + 1), ierr)
			call MPI_Irecv(q(1, rows + 1, f), m, MPI_DOUBLE_PRECISION, above, f, MPI_COMM_WORLD, requests(k + 2), ierr)
			call MPI_Isend(q(1, 1, f), m, MPI_DOUBLE_PRECISION, below, f, MPI_COMM_WORLD, requests(k + 3), ierr)
			call MPI_Isend(q(1, rows + 1 - ghost, f), m, MPI_DOUBLE_PRECISION, above, f, MPI_COMM_WORLD, requests(k + 4), ierr)
			k = k + 4
		end do
		call MPI_Waitall(12, requests, MPI_STATUSES_IGNORE, ierr)
	end subroutine
end program
