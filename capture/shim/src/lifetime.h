/* Start and end of recording: MPI_Init, sessions, MPI_Finalize, MPI_Abort. */
#ifndef COMMQ_LIFETIME_H
#define COMMQ_LIFETIME_H

#include "recorders.h"

#pragma GCC visibility push(hidden)

/* start.c */

/* Before and after an MPI_Init that is called from cq.init_site. */
void cq_init_starts(int id);
void cq_init_after(int id, int err);

CQ_HOT void cq_init_before(int id)
{
	cq.init_site = __builtin_return_address(0);
	cq.init_cfa = __builtin_dwarf_cfa();
	cq_init_starts(id);
}

#if CQ_MPI4
/* Before an MPI_Session_init that is recorded as an ordinary call. */
void cq_session_follows(cq_thread *t);
/* Before an MPI_Session_init that is not recorded as an ordinary call: it starts recording if it is the first. */
void cq_session_starts(const void *site, const void *cfa);
void cq_session_after(cq_thread *t, int err, const MPI_Session *session);
#endif

/* settings.c: settings from the environment. */

void cq_settings_read(void);
/* Reads how many frames of call sites are wanted, and prepares for them. */
void cq_settings_stack(void);
/* Sets cq.spool and makes the folder; an errno on failure. */
int cq_settings_spool(void);
/* A number from the environment that distinguishes this launch of sessions from others; 0 if the environment has
 * none. */
uint64_t cq_settings_job(void);

/* quirks.c: how this version of the library differs from the standard. */

void cq_quirks_find(void);
/* Reports whether the shim is built for the library in the process; sets cq.library. */
int cq_library_fits(void);

/* offsets.c: offsets between the clocks of hosts. */

/* Takes the memory for measuring; reports whether there is enough. */
int cq_clock_offsets_room(void);
/* The first measurement, on all ranks, which all have that memory. hellos has one entry per rank; it begins with the
 * hash of the rank's host. */
void cq_clock_offsets_begin(const void *hellos, size_t stride);
/* Measures again at the end; every rank calls it. */
void cq_clock_offsets_end(void);

/* stop.c */

void cq_abort_before(cq_thread *t);
/* Before MPI_Finalize, on every rank, including those that do not record (t is NULL); and after it, on those that
 * record. */
void cq_finalize_before(cq_thread *t);
void cq_finalize_after(cq_thread *t, int err);
/* Stops recording in a forked child. */
void cq_stop_in_child(void);
#if CQ_MPI4
/* Before MPI_Session_finalize: reports whether it ends the last session. */
int cq_session_ends(void);
void cq_session_end_after(cq_thread *t, int err, int last);
#endif

#pragma GCC visibility pop

#endif
