#include "clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int64_t cq_cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Takes the best of five readings: the one with the least time between its two ticks. */
void cq_clock_pair(uint64_t *tick, int64_t *ns)
{
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < 5; i++) {
		uint64_t a = cq_tick(), m = cq_monotonic(), b = cq_tick();
		if (b - a < best) {
			best = b - a;
			*tick = a + (b - a) / 2;
			*ns = (int64_t)m;
		}
	}
}

/* Reports whether the time stamp counter runs at a constant rate in all power states. */
static int has_tsc(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
#else
	return 0;
#endif
}

void cq_clock_start(void)
{
	struct timespec now;
	cq.tsc = has_tsc();
	cq_clock_pair(&cq.clock0_tick, &cq.clock0_ns);
	clock_gettime(CLOCK_REALTIME, &now);
	cq.realtime_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void cq_clock_calibrate(void)
{
	uint64_t tick;
	int64_t ns;
	do
		cq_clock_pair(&tick, &ns);
	while (ns - cq.clock0_ns < 2000000);
	cq.scale = (uint64_t)(((unsigned __int128)(uint64_t)(ns - cq.clock0_ns) << 32) / (tick - cq.clock0_tick));
	cq.mult = cq.clock == CQ_CLOCK_NONE ? 0 : cq.scale;
	cq.flush_ticks = (uint64_t)((((unsigned __int128)1000000000) << 32) / cq.scale);
	cq.cpu_ticks = (uint64_t)((((unsigned __int128)50000) << 32) / cq.scale);
	cq.short_ticks = cq.counters != CQ_COUNTERS_NONE ? 0 : cq.cpu_ticks;
	if (cq.clock != CQ_CLOCK_CPU)
		return;
	cq.cpu_read_ns = INT64_MAX;
	for (int i = 0; i < 20; i++) {
		int64_t a = cq_cpu_ns(), b = cq_cpu_ns();
		if (b - a < cq.cpu_read_ns)
			cq.cpu_read_ns = b - a;
	}
}
