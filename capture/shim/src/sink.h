/* What the ways of writing records share: sink.c and packed.c. */
#ifndef COMMQ_SINK_H
#define COMMQ_SINK_H

#include "spooling.h"

#define LIMITED (-1) /* among errnos: the file has reached COMMQ_MAX_SPOOL */

#pragma GCC visibility push(hidden)

/* The path of a thread's file with a suffix, until the next call for the thread; NULL and errno if it is too long. */
const char *cq_sink_path(cq_thread *t, const char *suffix);
/* Creates a file; returns its descriptor, or -1 and an errno. */
int cq_sink_create(const char *path);
/* Reports whether fd is still our file: the program may have closed it and opened its own under that number. */
int cq_sink_owns(const cq_thread *t);
/* Makes sure that a file has its bytes from off on; returns an errno. */
int cq_sink_allocate(int fd, int64_t off, size_t bytes);
/* Writes n bytes at off; returns an errno. */
int cq_sink_write(int fd, const void *p, size_t n, int64_t off);
/* Maps the header of a file, whose first page is allocated; returns an errno. */
int cq_sink_map_header(cq_thread *t);

/* packed.c: windows that become blocks of the file. */

/* Maps the windows; returns an errno. */
int cq_packed_open(cq_thread *t);
/* Packs the full window, and moves to the other one; returns an errno or LIMITED. */
int cq_packed_grow(cq_thread *t);
/* Packs what is in the window, and removes the windows' file. If that fails they stay, and readers take them. */
void cq_packed_close(cq_thread *t);
/* In a forked child: the windows are its own from now on, as it may be in the middle of changing them. */
void cq_packed_disown(cq_thread *t);
/* Frees all memory, if there is some. */
void cq_packed_free(cq_thread *t);
/* Makes room for packing slots that are only counted; returns an errno. */
int cq_packed_open_counted(cq_thread *t);
/* Counts the bytes that the slots of the buffer up to a place would take. */
void cq_packed_count(cq_thread *t, const uint8_t *to);

#pragma GCC visibility pop

#endif
