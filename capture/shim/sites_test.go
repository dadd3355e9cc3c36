package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/schema"
)

// describePath formats a path as its modules and functions, the innermost first; frames behind main are left out.
func describePath(r *symbols.Resolver, path []symbols.Address) string {
	var list []string
	for _, a := range path {
		name := "-"
		if a.Module != nil {
			name = a.Module.Name()
		}
		function := ""
		if f := r.Frames(a); len(f) > 0 {
			function = f[len(f)-1].Function
		}
		list = append(list, name+":"+function)
		if function == "main" {
			break
		}
	}
	return strings.Join(list, " < ")
}

// siteLines lists the calls of a thread with their paths.
func (d *dumper) siteLines() []string {
	var r symbols.Resolver
	var list []string
	for _, c := range d.calls {
		list = append(list, fmt.Sprintf("%s %s", schema.CallID(c.Call), describePath(&r, d.sites.Path(c.Site))))
	}
	return list
}

// TestPlaces checks the paths of calls from unusual places, with one frame and with four.
func TestPlaces(t *testing.T) {
	for _, library := range libraries {
		shimFor(t, library) // skips without the library
		dir := t.TempDir()
		exe := filepath.Join(dir, "places")
		if err := os.Rename(compile(t, "mpicc."+library, filepath.Join(programs, "places.c"), "-w", "-O1", "-ldl"),
			exe); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a.so", "b.so"} { // equal except for the name
			if err := os.Rename(compile(t, "mpicc."+library, filepath.Join(programs, "sites_library.c"), "-w", "-O2",
				"-fPIC", "-shared"), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		a, b := filepath.Join(dir, "a.so"), filepath.Join(dir, "b.so")
		for _, c := range []struct {
			args      []string
			one, four []string // without MPI_Init and MPI_Finalize
		}{
			{args: []string{"dl", a, b},
				one: []string{"MPI_Barrier a.so:shared_barrier", "MPI_Barrier b.so:shared_barrier",
					"MPI_Barrier a.so:shared_barrier"},
				four: []string{"MPI_Barrier a.so:shared_barrier < places:from < places:main",
					"MPI_Barrier b.so:shared_barrier < places:from < places:main",
					"MPI_Barrier a.so:shared_barrier < places:from < places:main"}},
			{args: []string{"made"}, one: []string{"MPI_Barrier -:", "MPI_Barrier -:"}},
			{args: []string{"signal"}, one: []string{"MPI_Barrier places:on_signal"}},
		} {
			t.Run(library+"/"+c.args[0], func(t *testing.T) {
				for _, stack := range []string{"0", "1", "4"} {
					bare, got, folder := launchBoth(t, library, exe, 1, []string{"COMMQ_STACK=" + stack}, c.args...)
					if diff := cmp.Diff(bare, got, cmp.AllowUnexported(outcome{})); diff != "" || bare.status != 0 {
						t.Fatalf("--stack %s shows (-without +with), status %d:\n%s", stack, bare.status, diff)
					}
					d := dumpFolder(t, folder)[0]
					if fmt.Sprint(d.header.Stack) != stack {
						t.Errorf("the header says %d frames, want %s", d.header.Stack, stack)
					}
					sites := d.siteLines()
					first, last := "MPI_Init places:main", "MPI_Finalize places:main"
					want := c.one
					switch {
					case stack == "0":
						first, last, want = "MPI_Init ", "MPI_Finalize ", nil
						for _, line := range c.one {
							call, _, _ := strings.Cut(line, " ")
							want = append(want, call+" ")
						}
					case stack == "4" && c.four == nil: // how far these can be walked depends on the unwinder
						for i := range sites {
							sites[i], _, _ = strings.Cut(sites[i], " < ")
						}
					case stack == "4":
						want = c.four
					}
					want = append(append([]string{first}, want...), last)
					if diff := cmp.Diff(want, sites); diff != "" {
						t.Errorf("--stack %s (-want +got):\n%s", stack, diff)
					}
				}
			})
		}
	}
}

// TestManySites calls from 3000 places, more than a thread's cache holds, so most are found in the process's table
// the second time. None is defined twice, and nothing is allocated from the heap.
func TestManySites(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			shimFor(t, library)
			exe := compile(t, "mpicc."+library, filepath.Join(programs, "places.c"), "-w", "-O1", "-ldl")
			for _, stack := range []string{"1", "3"} {
				bare, got, _ := launchBoth(t, library, exe, 1, []string{"COMMQ_STACK=" + stack}, "heap")
				if diff := cmp.Diff(bare, got, cmp.AllowUnexported(outcome{})); diff != "" ||
					bare.stdout != "0 allocations\nok\n" {
					t.Errorf("--stack %s: %q, with the shim:\n%s", stack, bare.stdout, diff)
				}
				_, _, folder := launchBoth(t, library, exe, 1, []string{"COMMQ_STACK=" + stack}, "many")
				d := dumpFolder(t, folder)[0]
				sends := d.calls[1 : len(d.calls)-1]
				if len(sends) != 6000 {
					t.Fatalf("%d sends, want 6000", len(sends))
				}
				want := 3000 + 2
				if stack == "3" {
					want = 6000 + 2 // main calls the function at two places
				}
				if n := len(d.sites.Numbers()); n != want {
					t.Errorf("--stack %s: %d sites, want %d", stack, n, want)
				}
				for i := range 3000 {
					a, b := d.sites.Path(sends[i].Site), d.sites.Path(sends[i+3000].Site)
					if len(a) == 0 || len(b) == 0 || a[0] != b[0] || i > 0 &&
						a[0].Offset <= d.sites.Path(sends[i-1].Site)[0].Offset {
						t.Fatalf("send %d: %v and %v", i, a, b)
					}
				}
			}
		})
	}
}

// TestFortranSitesWithoutLibunwind checks that the program's own address is found through MPICH's Fortran functions;
// without libunwind it is null, not wrong.
func TestFortranSitesWithoutLibunwind(t *testing.T) {
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "libunwind.so.8"), []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			shimFor(t, library)
			exe := compile(t, "mpif90."+library, filepath.Join(programs, "sites.F90"), "-J"+t.TempDir(), "-w", "-g",
				"-O2", "-fno-inline", "-fallow-argument-mismatch", "-DMPIFH")
			with, got, folder := launchBoth(t, library, exe, 3, []string{"COMMQ_STACK=1"})
			if diff := cmp.Diff(with, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("the shim shows (-without +with):\n%s", diff)
			}
			counts := map[string]int{}
			for _, line := range dumpFolder(t, folder)[0].siteLines() {
				counts[line]++
			}
			want := map[string]int{"MPI_Init program:sites": 1, "MPI_Isend program:halo::put": 31,
				"MPI_Recv program:halo::put": 31,
				"MPI_Wait program:halo::put": 31, "MPI_Allreduce program:sites": 1, "MPI_Finalize program:sites": 1}
			if diff := cmp.Diff(want, counts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}

			_, got, folder = launchBoth(t, library, exe, 3, []string{"COMMQ_STACK=3", "LD_LIBRARY_PATH=" + empty})
			if n := strings.Count(got.stderr,
				"commq: libunwind.so.8 cannot be loaded, so call sites have one frame"); got.status != 0 ||
				got.stdout != with.stdout || n != 1 {
				t.Errorf("without libunwind: %+v, told %d times", got, n)
			}
			d := dumpFolder(t, folder)[0]
			if d.header.Stack != 1 {
				t.Errorf("the header says %d frames, want 1", d.header.Stack)
			}
			for _, c := range d.calls {
				path := d.sites.Path(c.Site)
				if library == MPICH && c.Site != 0 || library == OpenMPI &&
					(len(path) != 1 || path[0].Module.Name() != "program") {
					t.Errorf("%s has the site %v", schema.CallID(c.Call), path)
				}
			}
		})
	}
}
