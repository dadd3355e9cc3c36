/* Memory directly from the kernel. MPI's memory registration (UCX's, Open MPI's) hooks libc's mmap and munmap, and
 * the hooks take locks: if a signal handler of the program forks, or calls MPI's allocator, while the recorder is
 * inside such a hook, it deadlocks. These pages never become a message buffer, so the hooks need not know of them. */
#ifndef COMMQ_PAGES_H
#define COMMQ_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mmap
#error "commq: no mmap system call with an offset in bytes: 64-bit Linux only"
#endif

/* Maps bytes of a file from an offset, a multiple of the page size; NULL and errno on failure. */
static inline void *cq_file_pages(size_t bytes, int protection, int fd, int64_t offset)
{
	long p = syscall(SYS_mmap, NULL, bytes, protection, MAP_SHARED, fd, offset);
	return p == -1 ? NULL : (void *)p;
}

/* Zeroed memory of whole pages; NULL and errno on failure. */
static inline void *cq_pages(size_t bytes)
{
	long p = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, (off_t)0);
	return p == -1 ? NULL : (void *)p;
}

static inline int cq_pages_free(void *p, size_t bytes)
{
	return (int)syscall(SYS_munmap, p, bytes);
}

#endif
