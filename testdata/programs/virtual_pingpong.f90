! The round trip of 4097 bytes between two ranks, by MPI_Wtime, in nanoseconds.
program virtual_pingpong
  use mpi_f08
  implicit none
  character :: buf(4097)
  integer :: rank
  double precision :: t
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  t = MPI_Wtime()
  if (rank == 0) then
    call MPI_Send(buf, 4097, MPI_CHARACTER, 1, 9, MPI_COMM_WORLD)
    call MPI_Recv(buf, 4097, MPI_CHARACTER, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    print '(I0,1X,I0)', 4097, nint((MPI_Wtime() - t) * 1d9)
  else
    call MPI_Recv(buf, 4097, MPI_CHARACTER, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Send(buf, 4097, MPI_CHARACTER, 0, 9, MPI_COMM_WORLD)
  end if
  call MPI_Finalize()
end program
