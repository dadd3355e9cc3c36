package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// rough compiles rough.c and returns how it ends, without the shim and with it; arguments are an empty folder for
// "FOLDER", and a file in it for "FILE". The spool is a relative path.
func rough(t *testing.T, library string, args ...string) (bare, got outcome, folder string) {
	t.Helper()
	testenv.MPI(t, library)
	exe, folder := compile(t, "mpicc."+library, filepath.Join(programs, "rough.c"), "-w", "-pthread"), t.TempDir()
	for i, a := range args {
		args[i] = strings.ReplaceAll(strings.ReplaceAll(a, "FOLDER", folder), "FILE", filepath.Join(folder, "file"))
	}
	here := append([]string{"env", "-C", folder}, append([]string{exe}, args...)...)
	bare = run(t, nil, here...)
	if bare.status != 0 {
		t.Fatalf("without the shim: %+v", bare)
	}
	return bare, run(t, []string{"LD_PRELOAD=" + shimFor(t, library), "COMMQ_SPOOL=spool"}, here...), folder
}

// TestRoughPrograms: a program may close all files and open its own under their numbers, change its folder, and start a
// thread with a stack of 16 KiB. Its thread is recorded all the same, and nothing of commq's is in its files.
func TestRoughPrograms(t *testing.T) {
	for _, library := range libraries {
		for _, args := range [][]string{{"closed", "FILE"}, {"moved", "/"}, {"small"}} {
			t.Run(library+"/"+args[0], func(t *testing.T) {
				bare, got, folder := rough(t, library, args...)
				if args[0] == "closed" {
					text, err := os.ReadFile(filepath.Join(folder, "file"))
					if err != nil || string(text) != "ok\nok\n" { // by both runs
						t.Errorf("%q in the program's file, %v", text, err)
					}
				}
				if bare != got {
					t.Errorf("without the shim %+v, with it %+v", bare, got)
				}
				files, err := filepath.Glob(filepath.Join(folder, "spool", "*.0.1.cqs"))
				if err != nil || len(files) != 1 || recordedCalls(t, files[0]) != 10 {
					t.Errorf("files of the thread: %q, %v; want one of 10 calls", files, err)
				}
			})
		}
	}
}

// TestChangedRoot: where a thread cannot create its file it runs unrecorded.
func TestChangedRoot(t *testing.T) {
	testenv.Root(t, "it changes its root")
	_, got, _ := rough(t, OpenMPI, "jailed", "FOLDER")
	if got.status != 0 || got.stdout != "ok\n" || strings.Count(got.stderr, "commq: ") != 1 ||
		!strings.Contains(got.stderr, "the thread runs unrecorded") {
		t.Errorf("%+v", got)
	}
}

// TestForeignStderr: a message of commq is not written into a file that the program opens in place of stderr, and
// no signal ends the program where stderr is a pipe that nobody reads, or a file that may not grow.
func TestForeignStderr(t *testing.T) {
	const kib = 20000
	for _, library := range libraries {
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "rough.c"), "-w", "-pthread")
		file := filepath.Join(t.TempDir(), "file")
		for how, script := range map[string]string{
			"replaced": `exec "$0" replaced "$1"`,
			"pipe":     `mkfifo "$1" && exec 4<>"$1" 2>"$1" 4>&- && exec "$0" plain`,
			"full":     fmt.Sprintf(`ulimit -f %d && truncate -s %dK "$1" && exec "$0" plain 2>>"$1"`, kib, kib),
		} {
			got := run(t, []string{"LD_PRELOAD=" + shimFor(t, library)}, "bash", "-c", script, exe, file)
			if got != (outcome{"ok\n", "", 0}) {
				t.Errorf("%s, %s: %+v", library, how, got)
			}
			if info, err := os.Stat(file); err != nil || how == "replaced" && info.Size() != 0 {
				t.Errorf("%s, %s: %d bytes in the program's file, %v", library, how, info.Size(), err)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// replacement compiles a library to preload that replaces functions of the C library.
func replacement(t *testing.T, text string) string {
	t.Helper()
	lib := filepath.Join(t.TempDir(), "replacement.so")
	if o := run(t, nil, "gcc", "-w", "-shared", "-fPIC", "-o", lib, source(t, "replacement.c", text), "-ldl"); o.status != 0 {
		t.Fatal(o.stderr)
	}
	return lib
}

// failingPages replaces syscall, by which the shim asks for pages: those with a condition on a, the arguments of mmap, end
// with an errno.
func failingPages(t *testing.T, condition, errno string) string {
	t.Helper()
	return replacement(t, `#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
static int is_rank(const char *want)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	rank = rank != NULL ? rank : getenv("PMI_RANK");
	return rank != NULL && strcmp(rank, want) == 0;
}
long syscall(long number, ...)
{
	long a[6], (*next)(long, ...) = dlsym(RTLD_NEXT, "syscall");
	va_list ap;
	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	Dl_info of = {0};
	if (number == SYS_mmap && dladdr(__builtin_return_address(0), &of) != 0 && strstr(of.dli_fname, "libcommq") != NULL &&
		(`+condition+`)) {
		errno = `+errno+`;
		return -1;
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}`)
}

// TestNoMemory: a rank without memory for its records takes part in what the ranks exchange in MPI_Init; the others are
// recorded.
func TestNoMemory(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			testenv.MPI(t, library)
			without := failingPages(t, `(a[3] & MAP_ANONYMOUS) && is_rank("1")`, "ENOMEM")
			exe := compile(t, "mpicc."+library, source(t, "three.c", threeSends))
			folder := filepath.Join(t.TempDir(), "spool")
			got := launch(t, library, 2, []string{"LD_PRELOAD=" + without + ":" + shimFor(t, library),
				"COMMQ_SPOOL=" + folder}, exe)
			if got.status != 0 || strings.Count(got.stderr, "commq: ") != 1 ||
				!strings.Contains(got.stderr, "Cannot allocate memory; the rank runs unrecorded") {
				t.Errorf("%+v", got)
			}
			all := dumpFolder(t, folder)
			if len(all) != 1 || all[0].header.Rank != 0 || len(all[0].calls) < 3 {
				t.Errorf("%d files", len(all))
			}
		})
	}
}
