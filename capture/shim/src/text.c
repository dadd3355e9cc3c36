/* The program's strings. */
#include "recorders.h"

/* The length of a Fortran string without trailing blanks. */
size_t cq_trimmed(const char *s, size_t n)
{
	while (n > 0 && s[n - 1] == ' ')
		n--;
	return n;
}

/* The length of a C string, which may be NULL if the call fails. */
size_t cq_length(const char *s)
{
	return s != NULL ? strlen(s) : 0;
}

/* A key for communicators that are made with a string instead of a tag. */
int cq_text_key(cq_text s)
{
	uint64_t h = 0xcbf29ce484222325u;
	size_t n = s.n >= 0 ? cq_trimmed(s.p, (size_t)s.n) : s.p != NULL ? strlen(s.p) : 0;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3u;
	return (int)((h ^ h >> 31) & 0x7fffffff);
}
