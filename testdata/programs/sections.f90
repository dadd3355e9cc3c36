! Sends array sections of 10, 20, 30 and 40 integers; MPICH's module makes a datatype for each. Run with 1 rank.
program sections
	use mpi_f08
	implicit none
	integer :: a(100), b(100), i
	type(MPI_Status) :: s
	type(MPI_Request) :: r
	a = 1
	call MPI_Init()
	do i = 1, 4
		call MPI_Irecv(b, 100, MPI_INTEGER, 0, i, MPI_COMM_SELF, r)
		call MPI_Send(a(1:20*i:2), 10*i, MPI_INTEGER, 0, i, MPI_COMM_SELF)
		call MPI_Wait(r, s)
	end do
	call MPI_Finalize()
end program
