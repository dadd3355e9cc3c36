/* MPICH waits without ever giving its core away, so that tests with more ranks than cores take minutes. Preloaded, this gives
 * it away whenever UCX, which Debian's MPICH is built on, has found nothing to do. Open MPI yields, but Linux 6.18 can keep a thread
 * that has yielded often from its core for a minute while others yield; who sleeps instead gets it back. What the libraries
 * do stays the same. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

int sched_yield(void)
{
	struct timespec nap = {0, 1000};
	return nanosleep(&nap, NULL);
}

unsigned ucp_worker_progress(void *worker)
{
	static unsigned (*next)(void *);
	void *p = next == NULL ? dlsym(RTLD_NEXT, "ucp_worker_progress") : NULL;
	if (p != NULL)
		memcpy(&next, &p, sizeof next);
	unsigned done = next(worker);
	if (done == 0)
		sched_yield();
	return done;
}
