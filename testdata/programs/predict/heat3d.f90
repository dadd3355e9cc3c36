! A 3-D seven-point heat equation on a torus: heat3d NX NY NZ STEPS, for example 48 40 36 12.
! The grid of ranks is MPI_Dims_create's, the remainder goes to the first ranks of an axis. Six MPI_Sendrecv, written out, fill
! the ghosts; the heat is summed every fourth step.
program heat3d
	use mpi
	implicit none
	integer, parameter :: dp = kind(1d0)
	integer :: ierr, ranks, rank, grid, steps, step, k, wrong, a
	integer :: domain(3), dims(3), at(3), lo(3), n(3), minus(3), plus(3), status(MPI_STATUS_SIZE)
	logical :: periods(3)
	real(dp), allocatable :: u(:, :, :), v(:, :, :), send(:), recv(:), all(:, :, :), next(:, :, :)
	real(dp) :: heat, total
	character(len=20) :: word

	call MPI_Init(ierr)
	domain = [48, 40, 36]
	steps = 12
	do a = 1, min(command_argument_count(), 4)
		call get_command_argument(a, word)
		if (a < 4) read (word, *) domain(a)
		if (a == 4) read (word, *) steps
	end do
	call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
	dims = 0
	call MPI_Dims_create(ranks, 3, dims, ierr)
	periods = .true.
	call MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, .false., grid, ierr)
	call MPI_Comm_rank(grid, rank, ierr)
	call MPI_Cart_coords(grid, rank, 3, at, ierr)
	do a = 1, 3
		call MPI_Cart_shift(grid, a - 1, 1, minus(a), plus(a), ierr)
		n(a) = domain(a)/dims(a)
		lo(a) = at(a)*n(a) + min(at(a), mod(domain(a), dims(a)))
		if (at(a) < mod(domain(a), dims(a))) n(a) = n(a) + 1
	end do

	allocate (u(0:n(1) + 1, 0:n(2) + 1, 0:n(3) + 1), v(n(1), n(2), n(3)))
	k = max(n(1)*n(2), n(2)*n(3), n(1)*n(3))
	allocate (send(k), recv(k))
	call begin(u(1:n(1), 1:n(2), 1:n(3)), lo)
	total = 0
	do step = 1, steps
		call ghosts()
		call diffuse(u, v, n)
		u(1:n(1), 1:n(2), 1:n(3)) = v
		if (mod(step, 4) == 0) then
			heat = sum(v)
			call MPI_Allreduce(heat, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, grid, ierr)
		end if
	end do

	! the same on one rank
	allocate (all(0:domain(1) + 1, 0:domain(2) + 1, 0:domain(3) + 1), next(domain(1), domain(2), domain(3)))
	call begin(all(1:domain(1), 1:domain(2), 1:domain(3)), [0, 0, 0])
	do step = 1, steps
		all(0, :, :) = all(domain(1), :, :)
		all(domain(1) + 1, :, :) = all(1, :, :)
		all(:, 0, :) = all(:, domain(2), :)
		all(:, domain(2) + 1, :) = all(:, 1, :)
		all(:, :, 0) = all(:, :, domain(3))
		all(:, :, domain(3) + 1) = all(:, :, 1)
		call diffuse(all, next, domain)
		all(1:domain(1), 1:domain(2), 1:domain(3)) = next
	end do
	wrong = count(abs(next(lo(1) + 1:lo(1) + n(1), lo(2) + 1:lo(2) + n(2), lo(3) + 1:lo(3) + n(3)) - v) > 1d-9)
	call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, grid, ierr)
	if (rank == 0) then
		if (wrong == 0) print '(a,3i3,a,f14.3,a)', ' heat3d on', dims, ': heat ', total, ', right'
		if (wrong /= 0) print '(a,3i3,a,i0,a)', ' heat3d on', dims, ': ', wrong, ' cells WRONG'
	end if
	call MPI_Finalize(ierr)
	if (wrong /= 0) stop 1

contains

	subroutine begin(block, from)
		real(dp), intent(out) :: block(:, :, :)
		integer, intent(in) :: from(3)
		integer :: x, y, z
		do z = 1, size(block, 3)
			do y = 1, size(block, 2)
				do x = 1, size(block, 1)
					block(x, y, z) = mod(7*(x + from(1)) + 5*(y + from(2)) + 3*(z + from(3)), 31)
				end do
			end do
		end do
	end subroutine

	subroutine diffuse(from, to, m)
		integer, intent(in) :: m(3)
		real(dp), intent(in) :: from(0:, 0:, 0:)
		real(dp), intent(out) :: to(:, :, :)
		integer :: x, y, z
		do z = 1, m(3)
			do y = 1, m(2)
				do x = 1, m(1)
					to(x, y, z) = 0.4_dp*from(x, y, z) + 0.1_dp*(from(x - 1, y, z) + from(x + 1, y, z) &
						+ from(x, y - 1, z) + from(x, y + 1, z) + from(x, y, z - 1) + from(x, y, z + 1))
				end do
			end do
		end do
	end subroutine

	subroutine ghosts()
		integer :: m
		m = n(2)*n(3)
		send(1:m) = reshape(u(1, 1:n(2), 1:n(3)), [m])
		call MPI_Sendrecv(send, m, MPI_DOUBLE_PRECISION, minus(1), 1, recv, m, MPI_DOUBLE_PRECISION, plus(1), 1, grid, status, ierr)
		u(n(1) + 1, 1:n(2), 1:n(3)) = reshape(recv(1:m), [n(2), n(3)])
		send(1:m) = reshape(u(n(1), 1:n(2), 1:n(3)), [m])
		call MPI_Sendrecv(send, m, MPI_DOUBLE_PRECISION, plus(1), 2, recv, m, MPI_DOUBLE_PRECISION, minus(1), 2, grid, status, ierr)
		u(0, 1:n(2), 1:n(3)) = reshape(recv(1:m), [n(2), n(3)])
		m = n(1)*n(3)
		send(1:m) = reshape(u(1:n(1), 1, 1:n(3)), [m])
		call MPI_Sendrecv(send, m, MPI_DOUBLE_PRECISION, minus(2), 3, recv, m, MPI_DOUBLE_PRECISION, plus(2), 3, grid, status, ierr)
		u(1:n(1), n(2) + 1, 1:n(3)) = reshape(recv(1:m), [n(1), n(3)])
		send(1:m) = reshape(u(1:n(1), n(2), 1:n(3)), [m])
		call MPI_Sendrecv(send, m, MPI_DOUBLE_PRECISION, plus(2), 4, recv, m, MPI_DOUBLE_PRECISION, minus(2), 4, grid, status, ierr)
		u(1:n(1), 0, 1:n(3)) = reshape(recv(1:m), [n(1), n(3)])
		m = n(1)*n(2)
		send(1:m) = reshape(u(1:n(1), 1:n(2), 1), [m])
		call MPI_Sendrecv(send, m, MPI_DOUBLE_PRECISION, minus(3), 5, recv, m, MPI_DOUBLE_PRECISION, plus(3), 5, grid, status, ierr)
		u(1:n(1), 1:n(2), n(3) + 1) = reshape(recv(1:m), [n(1), n(2)])
		send(1:m) = reshape(u(1:n(1), 1:n(2), n(3)), [m])
		call MPI_Sendrecv(send, m, MPI_DOUBLE_PRECISION, plus(3), 6, recv, m, MPI_DOUBLE_PRECISION, minus(3), 6, grid, status, ierr)
		u(1:n(1), 1:n(2), 0) = reshape(recv(1:m), [n(1), n(2)])
	end subroutine
end program
