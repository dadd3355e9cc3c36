/* Bytes and cancellation of a status. */
#ifndef COMMQ_STATUS_H
#define COMMQ_STATUS_H

#include "state.h"

#pragma GCC visibility push(hidden)

int64_t cq_status_bytes_slow(const MPI_Status *st);
int cq_status_cancelled_slow(const MPI_Status *st);

/* PMPI_Get_elements_x and PMPI_Test_cancelled of a status; reads its fields directly if cq_quirks_find found that
 * they have this meaning. The ABI of MPI 5 gives them none. */
CQ_HOT int64_t cq_status_bytes(const MPI_Status *st)
{
	if (CQ_UNLIKELY(!cq.status_fields))
		return cq_status_bytes_slow(st);
#if CQ_OPENMPI
	return (int64_t)st->_ucount;
#elif CQ_ABI
	return cq_status_bytes_slow(st);
#else
	return (int64_t)((uint64_t)(uint32_t)st->count_lo | (uint64_t)((uint32_t)st->count_hi_and_cancelled >> 1) << 32);
#endif
}

CQ_HOT int cq_status_cancelled(const MPI_Status *st)
{
	if (CQ_UNLIKELY(!cq.status_fields))
		return cq_status_cancelled_slow(st);
#if CQ_OPENMPI
	return st->_cancelled != 0;
#elif CQ_ABI
	return cq_status_cancelled_slow(st);
#else
	return st->count_hi_and_cancelled & 1;
#endif
}

#pragma GCC visibility pop

#endif
