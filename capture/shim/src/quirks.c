/* How this version of the library differs from the standard. */
#include "lifetime.h"

/* Tests whether the fields of a status hold bytes and cancellation as this library's header declares them. */
static int try_status_fields(void)
{
	MPI_Status st;
	MPI_Count n;
	memset(&st, 0, sizeof st);
	cq.status_fields = 1;
	for (int i = 0; i < 2; i++) {
		int64_t want = i == 0 ? 4097 : (int64_t)5 << 32 | 9;
		cq_p.Status_set_cancelled(&st, i == 0);
		if (cq_p.Status_set_elements_x(&st, MPI_BYTE, (MPI_Count)want) != MPI_SUCCESS)
			return 0;
		cq_p.Get_elements_x(&st, MPI_BYTE, &n);
		if ((int64_t)n != want || cq_status_bytes(&st) != want || cq_status_cancelled(&st) != (i == 0))
			return 0;
	}
	return 1;
}

#if CQ_MPICH
static int grequest_query(void *state, MPI_Status *st)
{
	(void)state;
	cq_p.Status_set_elements_x(st, MPI_BYTE, 0);
	cq_p.Status_set_cancelled(st, 0);
	st->MPI_SOURCE = st->MPI_TAG = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static int grequest_free(void *state)
{
	(void)state;
	return MPI_SUCCESS;
}

static int grequest_cancel(void *state, int complete)
{
	(void)state;
	(void)complete;
	return MPI_SUCCESS;
}

/* The index that mpi_f08 returns for the second of two requests: 2 by the standard, 1 in MPICH 4.0.2. */
static int fortran_base(void)
{
	MPI_Fint requests[2], n = 2, index = 2, flag = 0, e;
	MPI_Request r;
	MPI_Status st;
	if (cq_is_missing((void (*)(void))cq_f.pmpir_testany_f08_))
		return 1;
	if (cq_p.Grequest_start(grequest_query, grequest_free, grequest_cancel, NULL, &r) != MPI_SUCCESS)
		return 1;
	cq_p.Grequest_complete(r);
	requests[0] = MPI_REQUEST_NULL;
	requests[1] = r;
	cq_f.pmpir_testany_f08_(&n, requests, &index, &flag, &st, &e);
	return flag ? index - 1 : 1;
}
#else
static int fortran_base(void)
{
	return 1;
}
#endif

/* MPICH 4.0.2 leaves the status of an MPI_Isendrecv as an earlier request set it. */
static int try_isendrecv_status(void)
{
#if CQ_MPI4
	char to[3] = "", from[5];
	MPI_Request r;
	MPI_Status st;
	memset(&st, 0, sizeof st);
	if (cq_is_missing((void (*)(void))cq_p.Isendrecv))
		return 1;
	if (cq.sessions) /* without MPI_COMM_SELF it cannot be tried */
		return 0;
	if (cq_p.Isendrecv(to, 3, MPI_BYTE, 0, 9, from, 5, MPI_BYTE, 0, 9, MPI_COMM_SELF, &r) != MPI_SUCCESS ||
		cq_p.Wait(&r, &st) != MPI_SUCCESS)
		return 0;
	return st.MPI_TAG == 9 && cq_status_bytes(&st) == 3;
#else
	return 0;
#endif
}

void cq_quirks_find(void)
{
	cq.status_fields = try_status_fields();
	cq.f_base = fortran_base();
	cq.isendrecv_status = try_isendrecv_status();
}

int cq_library_fits(void)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING + sizeof cq.library] = "";
	int n = 0;
	cq_p.Get_library_version(version, &n);
	version[sizeof cq.library - 1] = 0;
	strcpy(cq.library, version);
	if (CQ_ABI) /* any library that has it: see cq_library_is_foreign */
		return 1;
	if (CQ_OPENMPI)
		return strstr(version, "Open MPI") != NULL;
	/* all with the ABI of MPICH */
	return strstr(version, "MPICH") != NULL || strstr(version, "MVAPICH") != NULL ||
		strstr(version, "Intel(R) MPI") != NULL;
}
