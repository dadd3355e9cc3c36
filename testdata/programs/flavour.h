! What differs between mpif.h (MPIFH), use mpi (USEMPI) and use mpi_f08 (F08).
#if defined(F08)
#define HANDLE_COMM type(MPI_Comm)
#define HANDLE_REQUEST type(MPI_Request)
#define HANDLE_MESSAGE type(MPI_Message)
#define HANDLE_TYPE type(MPI_Datatype)
#define HANDLE_GROUP type(MPI_Group)
#define STATUS(x) type(MPI_Status) :: x
#define STATUSES(x,n) type(MPI_Status) :: x(n)
#define FIRST(x) x(1)
#define SOURCE_OF(x) x%MPI_SOURCE
#define TAG_OF(x) x%MPI_TAG
#else
#define HANDLE_COMM integer
#define HANDLE_REQUEST integer
#define HANDLE_MESSAGE integer
#define HANDLE_TYPE integer
#define HANDLE_GROUP integer
#define STATUS(x) integer :: x(MPI_STATUS_SIZE)
#define STATUSES(x,n) integer :: x(MPI_STATUS_SIZE,n)
#define FIRST(x) x(:,1)
#define SOURCE_OF(x) x(MPI_SOURCE)
#define TAG_OF(x) x(MPI_TAG)
#endif
#if defined(F08)
#define HANDLE_WIN type(MPI_Win)
#define HANDLE_FILE type(MPI_File)
#else
#define HANDLE_WIN integer
#define HANDLE_FILE integer
#endif
#if defined(F08)
#define HANDLE_INFO type(MPI_Info)
#else
#define HANDLE_INFO integer
#endif
