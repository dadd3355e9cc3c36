/* Calls from odd places, by the first argument:
 *   dl A B   from two libraries, the second of which is loaded where the first was
 *   made     from code made while the program runs, which no unwinder knows; then the same with an invalid frame pointer
 *   signal   from a signal handler
 *   heap     prints how many calls allocated memory
 *   many     from 3000 places, twice */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static long allocations;
void *__libc_malloc(size_t n);

void *malloc(size_t n)
{
	allocations++;
	return __libc_malloc(n);
}

static void from(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*call)(int *);
	int line;
	if (lib == NULL || (*(void **)&call = dlsym(lib, "shared_barrier")) == NULL) {
		printf("%s\n", dlerror());
		exit(9);
	}
	call(&line);
	dlclose(lib);
}

static void made(const unsigned char *code, size_t n)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*call)(int (*)(MPI_Comm), MPI_Comm);
	memcpy(p, code, n);
	memcpy(&call, &p, sizeof call);
	call(MPI_Barrier, MPI_COMM_WORLD);
}

static void on_signal(int s)
{
	(void)s;
	MPI_Barrier(MPI_COMM_WORLD);
}

/* An empty send to MPI_PROC_NULL, for which no library allocates memory. */
static inline __attribute__((always_inline)) void nothing(void)
{
	MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 9, MPI_COMM_WORLD);
}

#define TEN(x) x x x x x x x x x x
static __attribute__((noinline)) void many(void)
{
	TEN(TEN(TEN(nothing();)))
	TEN(TEN(TEN(nothing();)))
	TEN(TEN(TEN(nothing();)))
}

int main(int argc, char **argv)
{
	/* mov rax, rdi; mov rdi, rsi; sub rsp, 8; call rax; add rsp, 8; ret */
	static const unsigned char plain[] = "\x48\x89\xf8\x48\x89\xf7\x48\x83\xec\x08\xff\xd0\x48\x83\xc4\x08\xc3";
	/* push rbp; mov rbp, 0x7eadbeef; mov rax, rdi; mov rdi, rsi; call rax; pop rbp; ret */
	static const unsigned char lost[] = "\x55\x48\xc7\xc5\xef\xbe\xad\x7e\x48\x89\xf8\x48\x89\xf7\xff\xd0\x5d\xc3";
	const char *how = argc > 1 ? argv[1] : "";
	MPI_Init(&argc, &argv);
	if (strcmp(how, "dl") == 0) {
		from(argv[2]);
		from(argv[3]);
		from(argv[2]);
	} else if (strcmp(how, "made") == 0) {
		made(plain, sizeof plain);
		made(lost, sizeof lost);
	} else if (strcmp(how, "signal") == 0) {
		signal(SIGUSR2, on_signal);
		raise(SIGUSR2);
	} else if (strcmp(how, "heap") == 0) {
		nothing();
		long before = allocations;
		many();
		printf("%ld allocations\n", allocations - before);
	} else if (strcmp(how, "many") == 0) {
		many();
		many();
	}
	puts("ok");
	MPI_Finalize();
	return 0;
}
