#include "print.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What stderr was when the program started. A program may close it, and then open a file of its own under that number.
 */
static struct stat started;
static int has_stderr;

/* Runs before the constructor in library.c, which may print. */
__attribute__((constructor(101))) static void loaded(void)
{
	int e = errno;
	has_stderr = fstat(STDERR_FILENO, &started) == 0;
	errno = e;
}

static int is_stderr(void)
{
	struct stat now;
	return has_stderr && fstat(STDERR_FILENO, &now) == 0 && now.st_dev == started.st_dev && now.st_ino == started.st_ino;
}

/* Returns 0 or an errno. */
static int write_all(const char *line, size_t n)
{
	while (n > 0) {
		ssize_t w = write(STDERR_FILENO, line, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? errno : EIO;
		line += w;
		n -= (size_t)w;
	}
	return 0;
}

/* Writes without the signals of a closed pipe, of a file at the limit of the process, and of a terminal that another job
 * has: they would end or stop the program. A signal that the program itself has pending stays. */
static void write_quietly(const char *line, size_t n)
{
	static const int signals[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
	const struct timespec no_time = {0, 0};
	sigset_t ours, before, pending;
	sigemptyset(&ours);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaddset(&ours, signals[i]);
	if (pthread_sigmask(SIG_BLOCK, &ours, &before) != 0)
		return;
	sigpending(&pending);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		if (sigismember(&pending, signals[i]))
			sigdelset(&ours, signals[i]);
	}
	int e = write_all(line, n);
	while ((e == EPIPE || e == EFBIG) && sigtimedwait(&ours, NULL, &no_time) > 0)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void cq_print(const char *format, ...)
{
	char line[4096];
	int e = errno;
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	if (n > 0 && is_stderr())
		write_quietly(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
	errno = e;
}
