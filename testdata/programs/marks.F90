! marks.c in Fortran.
program marks
  use commq
#if defined(F08)
  use mpi_f08
#define HANDLE(x) x%MPI_VAL
#else
  use mpi
#define HANDLE(x) x
#endif
  implicit none
  integer :: e, a(3) = [3, 5, 9]
  call commq_mark('early')
  call MPI_Init(e)
  call commq_mark('solve ')
  call commq_send_to_self(a, 3, HANDLE(MPI_INTEGER))
  call MPI_Finalize(e)
  call commq_send_to_self(a, 3, HANDLE(MPI_INTEGER))
  print '(a)', 'ok'
end program
