#include "status.h"

int64_t cq_status_bytes_slow(const MPI_Status *st)
{
	MPI_Count n = 0;
	cq_p.Get_elements_x((MPI_Status *)st, MPI_BYTE, &n);
	return (int64_t)n;
}

int cq_status_cancelled_slow(const MPI_Status *st)
{
	int flag = 0;
	cq_p.Test_cancelled((MPI_Status *)st, &flag);
	return flag;
}
