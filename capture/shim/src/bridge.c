/* A simulator rank connects the ranks of the program with the commq process that simulates the network. It is either
 * a separate program (with -DCQ_BRIDGE=1), started beside the program's ranks, or one of the ranks that the program
 * was started with, which then never returns from MPI_Init. It never blocks: it polls MPI and both pipes in turn, and
 * keeps what it cannot pass on yet. The buffer before the pipe bounds the messages from the ranks: while it is full,
 * none are received. Messages from the process need no bound, because each answers a question of the ranks. */
#include "state.h"

#if CQ_SIM

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bridge.h"
#include "clock.h"
#include "ranks.h"
#include "sim.h"
#include "status.h"

#define RING 8
#define OUT_BYTES ((size_t)1 << 20)
#define IN_BYTES ((size_t)64 << 10)
#define END_NS 60000000000u /* time that the process may take to end */

extern char **environ;

/* Events for one rank, sent together. */
typedef struct message message;
struct message {
	message *next;
	MPI_Request request;
	int n;
	cq_sim_event events[CQ_SIM_MANY];
};

typedef struct {
	MPI_Request request;
	uint8_t bytes[sizeof(cq_sim_event) + CQ_SIM_DATA];
} slot;

static struct {
	slot *ring; /* receives, in the order they were posted */
	int head;
	uint8_t *out; /* bytes to the process: out[begin, end) */
	size_t out_begin, out_end;
	uint8_t *in;  /* bytes from it: the first in_n */
	size_t in_n;
	int to, from; /* pipes; -1: closed */
	pid_t process;
	int gone;
	int left, unfinalized; /* ranks that have left; those of them that did not call MPI_Finalize */
	message **open;  /* by rank, not sent yet */
	int *opened;     /* the ranks with an open message */
	int opened_n;
	message *sent, **sent_end; /* in the order of sending */
	message *spare;
} b = {.to = -1, .from = -1};

static void fail(const char *what)
{
	cq_print("commq: simulator rank %d: %s: %s\n", cq_world.self, what, strerror(errno));
	cq_p.Abort(cq_world.channel, 2);
	_exit(2);
}

static void *memory(size_t bytes)
{
	void *p = calloc(1, bytes);
	if (p == NULL)
		fail("memory");
	return p;
}

/* Events to ranks. */

static void send_open(int rank)
{
	message *m = b.open[rank];
	b.open[rank] = NULL;
	if (cq_p.Isend(m->events, m->n * (int)sizeof m->events[0], MPI_BYTE, cq_world.ranks[rank], CQ_SIM_TAG,
		cq_world.channel, &m->request) != MPI_SUCCESS)
		fail("send to a rank");
	m->next = NULL;
	*b.sent_end = m;
	b.sent_end = &m->next;
}

static void send_all(void)
{
	for (int i = 0; i < b.opened_n; i++) {
		if (b.open[b.opened[i]] != NULL)
			send_open(b.opened[i]);
	}
	b.opened_n = 0;
}

static void answer(const cq_sim_event *e)
{
	int rank = e->rank;
	if (rank < 0 || rank >= cq_world.apps)
		return;
	if (b.opened_n == cq_world.apps)
		send_all();
	message *m = b.open[rank];
	if (m == NULL) {
		m = b.spare;
		if (m != NULL)
			b.spare = m->next;
		else
			m = memory(sizeof *m);
		m->n = 0;
		b.open[rank] = m;
		b.opened[b.opened_n++] = rank;
	}
	m->events[m->n++] = *e;
	if (m->n == CQ_SIM_MANY)
		send_open(rank);
}

/* Reuses messages that have been sent; returns whether there was one. */
static int reuse_sent(void)
{
	int any = 0;
	while (b.sent != NULL) {
		message *m = b.sent;
		int done = 0;
		if (cq_p.Test(&m->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done)
			break;
		b.sent = m->next;
		if (b.sent == NULL)
			b.sent_end = &b.sent;
		m->next = b.spare;
		b.spare = m;
		any = 1;
	}
	return any;
}

/* The process. */

static void tell_all(int kind)
{
	for (int r = 0; r < cq_world.apps; r++)
		answer(&(cq_sim_event){.kind = (uint16_t)kind, .rank = r});
	send_all();
}

/* The process has ended or cannot be reached: tell the ranks, and drop their events from now on. */
static void lose_process(const char *attributes)
{
	if (b.gone)
		return;
	b.gone = 1;
	if (b.to >= 0)
		close(b.to);
	if (b.from >= 0)
		close(b.from);
	b.to = b.from = -1;
	if (attributes != NULL)
		cq_print("commq: simulator rank %d: %s; the program goes on without virtual time, and nothing more is "
			"recorded\n", cq_world.self, attributes);
	tell_all(CQ_SIM_GONE);
}

static void pipe_for(int ours_writes, int *ours, int *theirs)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) != 0)
		fail("pipe");
	*ours = p[ours_writes];
	*theirs = p[!ours_writes];
	fcntl(*ours, F_SETFL, O_NONBLOCK);
	fcntl(*ours, F_SETPIPE_SZ, 1 << 20); /* where that size is permitted */
}

static char **environment(void)
{
	int n = 0, remaining = 0;
	while (environ[n] != NULL)
		n++;
	char **e = memory((size_t)(n + 1) * sizeof *e);
	for (int i = 0; i < n; i++) {
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
			e[remaining++] = environ[i];
	}
	return e;
}

static void start_process(void)
{
	char *command = getenv("COMMQ_SIM_COMMAND");
	char *argv[] = {command, "simrank", NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	int their_in, their_out;
	if (command == NULL || *command == 0) {
		lose_process("COMMQ_SIM_COMMAND is not set: start the job by commq capture --sim-ranks");
		return;
	}
	pipe_for(1, &b.to, &their_in);
	pipe_for(0, &b.from, &their_out);
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, their_in, 0);
	posix_spawn_file_actions_adddup2(&files, their_out, 1);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	char **e = environment();
	int error = posix_spawn(&b.process, command, &files, &attributes, argv, e);
	free(e);
	close(their_in);
	close(their_out);
	if (error != 0) {
		cq_print("commq: simulator rank %d: %s: %s\n", cq_world.self, command, strerror(error));
		b.process = 0;
		lose_process("the simulating process cannot be started");
	}
}

/* Writes as much as the pipe takes; returns whether it took anything. */
static int write_out(void)
{
	if (b.to < 0 || b.out_begin == b.out_end)
		return 0;
	ssize_t n = write(b.to, b.out + b.out_begin, b.out_end - b.out_begin);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		lose_process("the simulating process has ended");
		return 1;
	}
	b.out_begin += (size_t)n;
	if (b.out_begin == b.out_end)
		b.out_begin = b.out_end = 0;
	return 1;
}

/* Reads answers of the process; returns whether any came. */
static int read_in(void)
{
	if (b.from < 0)
		return 0;
	ssize_t n = read(b.from, b.in + b.in_n, IN_BYTES - b.in_n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		if (b.to >= 0) {
			lose_process("the simulating process has ended");
		} else { /* as requested */
			close(b.from);
			b.from = -1;
		}
		return 1;
	}
	b.in_n += (size_t)n;
	size_t at = 0;
	for (cq_sim_event e; b.in_n - at >= sizeof e; at += sizeof e) {
		memcpy(&e, b.in + at, sizeof e);
		answer(&e);
	}
	memmove(b.in, b.in + at, b.in_n - at);
	b.in_n -= at;
	send_all();
	return 1;
}

/* Events from ranks. */

static int is_ours(int rank)
{
	return rank % cq_world.sims == cq_world.self;
}

static void pass_on(const uint8_t *p, size_t n)
{
	if (b.to < 0)
		return;
	if (b.out_end + n > OUT_BYTES) {
		memmove(b.out, b.out + b.out_begin, b.out_end - b.out_begin);
		b.out_end -= b.out_begin;
		b.out_begin = 0;
	}
	memcpy(b.out + b.out_end, p, n);
	b.out_end += n;
}

static void handle(const uint8_t *p, size_t n)
{
	cq_sim_event e;
	if (n < sizeof e)
		return;
	memcpy(&e, p, sizeof e);
	switch (e.kind) {
	case CQ_BRIDGE_PING:
		answer(&(cq_sim_event){.kind = CQ_BRIDGE_HERE, .rank = e.rank});
		send_all();
		return;
	case CQ_SIM_LEFT: /* sent to all simulators, recorded by one */
		b.left++;
		b.unfinalized += e.peer != CQ_ENDED_FINALIZED;
		if (!is_ours(e.rank))
			return;
		break;
	case CQ_SIM_SYNC:
		if (b.gone) {
			answer(&(cq_sim_event){.kind = CQ_SIM_SYNCED, .rank = e.rank});
			send_all();
		}
		break;
	}
	pass_on(p, n);
}

static void post_receive(slot *s)
{
	if (cq_p.Irecv(s->bytes, sizeof s->bytes, MPI_BYTE, MPI_ANY_SOURCE, CQ_SIM_TAG, cq_world.channel,
		&s->request) != MPI_SUCCESS)
		fail("receive from the ranks");
}

/* Receives messages from ranks while the buffer has space; returns whether any came. */
static int receive(void)
{
	MPI_Status st;
	int done = 0, n = 0;
	while (n < 1000 && OUT_BYTES - (b.out_end - b.out_begin) >= sizeof b.ring->bytes) {
		slot *s = &b.ring[b.head];
		if (cq_p.Test(&s->request, &done, &st) != MPI_SUCCESS)
			fail("receive from the ranks");
		if (!done)
			break;
		handle(s->bytes, (size_t)cq_status_bytes(&st));
		post_receive(s);
		b.head = (b.head + 1) % RING;
		n++;
	}
	return n > 0;
}

static void stop_receiving(void)
{
	for (int i = 0; i < RING; i++) {
		cq_p.Cancel(&b.ring[i].request);
		cq_p.Wait(&b.ring[i].request, MPI_STATUS_IGNORE);
	}
}

/* Rests after a turn in which nothing happened: the ranks may need this core. */
static void rest(int busy)
{
	static uint64_t since;
	static int turns;
	if (busy) {
		since = 0;
		turns = 0;
		return;
	}
	if (++turns < 50) /* often more arrives at once */
		return;
	uint64_t now = cq_monotonic();
	if (since == 0)
		since = now;
	cq_sim_rest(now - since);
}

/* When the ranks have left: sends the process the rest of its input, closes the pipe, and waits while it writes its
 * files. */
static void end_process(void)
{
	uint64_t until = cq_monotonic() + END_NS;
	int status = 0;
	pid_t p = 0;
	while (b.to >= 0 && b.out_begin != b.out_end && cq_monotonic() < until) {
		int busy = write_out();
		busy |= read_in();
		rest(busy);
	}
	if (b.to >= 0)
		close(b.to);
	b.to = -1;
	while (b.process > 0 && (p = waitpid(b.process, &status, WNOHANG)) == 0 && cq_monotonic() < until) {
		read_in();
		cq_sim_rest(UINT64_MAX);
	}
	if (b.process > 0 && p == 0) {
		kill(b.process, SIGKILL);
		waitpid(b.process, &status, 0);
		cq_print("commq: simulator rank %d: the simulating process did not end and was killed; records may be "
			"missing\n", cq_world.self);
	} else if (p > 0 && !b.gone && status != 0) {
		cq_print("commq: simulator rank %d: the simulating process ended badly; records may be missing\n",
			cq_world.self);
	}
	read_in();
	if (b.from >= 0)
		close(b.from);
	b.from = -1;
}

void cq_bridge_run(void)
{
	struct sigaction ignore, before;
	prctl(PR_SET_TIMERSLACK, 1000ul); /* sleeps are short */
	memset(&ignore, 0, sizeof ignore);
	ignore.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &ignore, &before);
	b.ring = memory(RING * sizeof *b.ring);
	b.out = memory(OUT_BYTES);
	b.in = memory(IN_BYTES);
	b.open = memory((size_t)cq_world.apps * sizeof *b.open);
	b.opened = memory((size_t)cq_world.apps * sizeof *b.opened);
	b.sent_end = &b.sent;
	for (int i = 0; i < RING; i++)
		post_receive(&b.ring[i]);
	start_process();
	while (b.left < cq_world.apps) {
		int busy = receive();
		busy |= write_out();
		busy |= read_in();
		busy |= reuse_sent();
		rest(busy);
	}
	end_process();
	if (b.unfinalized > 0) /* those ranks no longer exist */
		_exit(0);
	tell_all(CQ_BRIDGE_OVER);
	while (b.sent != NULL)
		rest(reuse_sent());
	stop_receiving();
	sigaction(SIGPIPE, &before, NULL);
}

void cq_bridge_in_init(void)
{
	cq_bridge_run();
	cq_world_free();
	cq_p.Finalize();
	_exit(0);
}

#if CQ_BRIDGE
int main(void)
{
	cq_resolve();
	if (cq_p.Init(NULL, NULL) != MPI_SUCCESS)
		return 2;
	int alone = cq_world_meet(CQ_WORLD_SIM) != CQ_WORLD_SIM;
	if (!alone)
		cq_bridge_run();
	cq_world_free();
	cq_p.Finalize();
	return alone ? 2 : 0;
}
#endif

#endif
