/* MPICH waits without ever giving its core away, so that tests with more ranks than cores take minutes. Preloaded, this gives
 * it away whenever UCX, which Debian's MPICH is built on, has found nothing to do. Open MPI yields, but Linux 6.18 can keep a thread
 * that has yielded often from its core for a minute while others yield; who sleeps instead gets it back. Naps grow with the wait:
 * with naps of one length, a quarter of a test's CPU time goes to waking up and looking in vain. What the libraries do stays the
 * same. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#define LONGEST_NS 250000
#define WORK_NS 10000 /* who does something for so long between two naps no longer waits */

static long long now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Sleeps for a quarter of the time that the thread has waited. */
static void nap(void)
{
	static __thread long long since, woke;
	long long now = now_ns();
	if (now - woke > WORK_NS)
		since = now;
	long long ns = (now - since) / 4;
	struct timespec length = {0, ns < 1000 ? 1000 : ns < LONGEST_NS ? ns : LONGEST_NS};
	nanosleep(&length, NULL);
	woke = now_ns();
}

int sched_yield(void)
{
	nap();
	return 0;
}

unsigned ucp_worker_progress(void *worker)
{
	static unsigned (*next)(void *);
	void *p = next == NULL ? dlsym(RTLD_NEXT, "ucp_worker_progress") : NULL;
	if (p != NULL)
		memcpy(&next, &p, sizeof next);
	unsigned done = next(worker);
	if (done == 0)
		nap();
	return done;
}
