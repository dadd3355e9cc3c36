/* Two functions for MPI programs that commq captures, in C and C++. Include this file; there is nothing to link. Without the capture
 * library (LD_PRELOAD, which "commq capture" sets) they do nothing, and so they do before MPI_Init and after MPI_Finalize.
 *
 *     #include "commq.h"
 *     commq_mark("solve");                        a row of events with this label
 *     commq_send_to_self(block, n, MPI_DOUBLE);   a row with the hash of a buffer that this rank uses without sending it
 *
 * The second is Send_To_Self of Calotoiu, Siebert and Wolf ("Pattern-Independent Detection of Manual Collectives in MPI
 * Programs", section 4): it makes the root's own part of a hand-written scatter or gather visible. No message is sent. */
#ifndef COMMQ_H
#define COMMQ_H

#include <mpi.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dlsym, weakly: a statically linked program has none, and nothing can be preloaded into it. */
void *commq_dlsym(void *handle, const char *name) __asm__("dlsym") __attribute__((weak));

#ifdef __cplusplus
}
#endif

static inline void commq_mark(const char *name)
{
	void (*mark)(const char *name, long long bytes);
	void *p = commq_dlsym != 0 ? commq_dlsym(0, "commq_shim_mark") : 0;
	if (p == 0)
		return;
	memcpy(&mark, &p, sizeof mark);
	mark(name, (long long)strlen(name));
}

static inline void commq_send_to_self(const void *buf, int count, MPI_Datatype datatype)
{
	void (*self)(const void *buf, long long count, MPI_Datatype datatype);
	void *p = commq_dlsym != 0 ? commq_dlsym(0, "commq_shim_self") : 0;
	if (p == 0)
		return;
	memcpy(&self, &p, sizeof self);
	self(buf, count, datatype);
}

#endif
