#include "print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static void write_line(const char *line, size_t n)
{
	while (n > 0) {
		ssize_t w = write(STDERR_FILENO, line, n);
		if (w <= 0 && errno != EINTR)
			return;
		if (w > 0) {
			line += w;
			n -= (size_t)w;
		}
	}
}

void cq_print(const char *format, ...)
{
	char line[4096];
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	if (n > 0)
		write_line(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}
