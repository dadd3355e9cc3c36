/* Settings from the environment: COMMQ_*. */
#include "lifetime.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counters.h"

/* The source of instructions and cycles; reports one that is unavailable. */
static int read_counters(void)
{
	const char *s = getenv("COMMQ_COUNTERS");
	if (s == NULL || *s == 0 || strcmp(s, "none") == 0)
		return CQ_COUNTERS_NONE;
	if (strcmp(s, "fake") == 0)
		return CQ_COUNTERS_FAKE;
	if (strcmp(s, "perf") != 0) {
		if (cq.rank == 0)
			cq_print("commq: COMMQ_COUNTERS=%s is not perf, fake or none; instructions and cycles are not counted\n",
				s);
		return CQ_COUNTERS_NONE;
	}
	int e = cq_count_try();
	if (e == 0)
		return CQ_COUNTERS_PERF;
	const char *why = e == EACCES || e == EPERM ?
		"the system does not let us; set /proc/sys/kernel/perf_event_paranoid to 2 or less" :
		"the machine offers no such counters, as virtual machines often do not";
	if (cq.rank == 0)
		cq_print("commq: instructions and cycles are not counted: perf_event_open: %s: %s\n", strerror(e), why);
	return CQ_COUNTERS_NONE;
}

/* COMMQ_MAX_SPOOL. A file needs at least a header and the records of MPI_Init. */
static uint64_t read_limit(void)
{
	const char *s = getenv("COMMQ_MAX_SPOOL");
	char *end = NULL;
	uint64_t least = 65536, n = 0;
	if (s == NULL || *s == 0)
		return 0;
	n = strtoull(s, &end, 10);
	if (*s < '0' || *s > '9' || *end != 0) {
		if (cq.rank == 0)
			cq_print("commq: COMMQ_MAX_SPOOL=%s is not a number of bytes; the records are not bounded\n", s);
		return 0;
	}
	if (n != 0 && n < least) {
		if (cq.rank == 0)
			cq_print("commq: COMMQ_MAX_SPOOL=%s: %d is the least, and used\n", s, (int)least);
		return least;
	}
	return n;
}

static int read_clock(void)
{
	const char *s = getenv("COMMQ_CLOCK");
	if (s == NULL || strcmp(s, "cpu") == 0)
		return CQ_CLOCK_CPU;
	if (strcmp(s, "wall") == 0)
		return CQ_CLOCK_WALL;
	if (strcmp(s, "none") == 0)
		return CQ_CLOCK_NONE;
	if (cq.rank == 0)
		cq_print("commq: COMMQ_CLOCK=%s is not cpu, wall or none; cpu is used\n", s);
	return CQ_CLOCK_CPU;
}

/* Reads the number of frames per call site. */
static int read_stack(void)
{
	const char *s = getenv("COMMQ_STACK");
	char *end;
	if (s == NULL || *s == 0)
		return 1;
	long n = strtol(s, &end, 10);
	if (*end == 0 && n >= 0 && n <= 64)
		return (int)n;
	if (cq.rank == 0)
		cq_print("commq: COMMQ_STACK=%s is not a number of frames from 0 to 64; 1 is used\n", s);
	return 1;
}

void cq_settings_stack(void)
{
	cq.stack = read_stack();
	if (cq_sites_init() || cq.stack < 2)
		return;
	cq.stack = 1;
	if (cq.rank == 0)
		cq_print("commq: libunwind.so.8 cannot be loaded, so call sites have one frame (Debian: apt-get install "
			"libunwind8)\n");
}

static int make_folders(char *path)
{
	for (char *p = path + 1; *p != 0; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		int bad = mkdir(path, 0700) != 0 && errno != EEXIST;
		*p = '/';
		if (bad)
			return errno;
	}
	return mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
}

/* Refuses a folder that another user has made, or that other users can write to: its name may be known before. EPERM
 * then says so, see report_failure. */
static int check_owner(const char *path)
{
	struct stat link, s;
	if (lstat(path, &link) != 0 || stat(path, &s) != 0)
		return errno;
	if ((s.st_uid != geteuid() && s.st_uid != 0) || (link.st_uid != geteuid() && link.st_uid != 0) ||
		(s.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return EPERM;
	return 0;
}

/* Sets cq.spool, which is absolute because the program may change its folder. */
static int set_spool(const char *dir)
{
	size_t n = 0;
	if (*dir != '/') {
		if (getcwd(cq.spool, sizeof cq.spool - 1) == NULL)
			return errno == ERANGE ? ENAMETOOLONG : errno;
		n = strlen(cq.spool);
		cq.spool[n++] = '/';
	}
	if (n + strlen(dir) >= sizeof cq.spool)
		return ENAMETOOLONG;
	strcpy(cq.spool + n, dir);
	return 0;
}

int cq_settings_spool(void)
{
	const char *dir = getenv("COMMQ_SPOOL");
	if (dir == NULL || *dir == 0)
		return ENOENT;
	int e = set_spool(dir);
	if (e != 0 || (cq_hooks != NULL && cq_hooks->takes_records()))
		return e; /* with these hooks the commq process creates the folder */
	e = make_folders(cq.spool);
	return e != 0 ? e : check_owner(cq.spool);
}

/* With sessions nothing can be sent yet, so the job number is a hash of what the launch gives to all ranks, and of
 * the number of ranks, so that jobs of different sizes never mix. */
uint64_t cq_settings_job(void)
{
	static const char *const names[] = {"COMMQ_JOB", "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"};
	const char *found[sizeof names / sizeof names[0]];
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		found[i] = getenv(names[i]);
		for (const char *p = found[i]; p != NULL && *p != 0; p++)
			h = (h ^ (uint8_t)*p) * 0x100000001b3u;
		h = (h ^ i) * 0x100000001b3u;
	}
	h = (h ^ (uint64_t)cq.size) * 0x100000001b3u;
	int named = (found[0] != NULL && *found[0] != 0) || found[1] != NULL || (found[2] != NULL && found[3] != NULL);
	return named && h != 0 ? h : 0;
}

void cq_settings_read(void)
{
	const char *sink = getenv("COMMQ_SINK");
	cq.force_write = sink != NULL && strcmp(sink, "write") == 0;
	cq.count_only = sink != NULL && strcmp(sink, "null") == 0;
	cq.pack = sink == NULL || *sink == 0 || strcmp(sink, "packed") == 0;
	cq.clock = read_clock();
	cq.counters = read_counters();
	cq.limit = read_limit();
}
