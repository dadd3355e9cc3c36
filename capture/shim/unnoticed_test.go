package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnnoticed checks that programs print and return the same with the shim, including when it hashes what they
// receive. Other tests compare their rows.
func TestUnnoticed(t *testing.T) {
	for _, p := range []struct {
		name    string
		mpi4    bool // it needs functions of MPI 4
		flavour []int
	}{
		{name: "errors", flavour: []int{0}},
		{name: "rma", flavour: []int{0}},
		{name: "io", flavour: []int{0}},
		{name: "neighbors", flavour: []int{0}},
		{name: "persistent", flavour: []int{0}},
		{name: "hashes", flavour: []int{0}},
		{name: "windows", mpi4: true, flavour: []int{0}},
		{name: "large", mpi4: true, flavour: []int{0, 3}},
	} {
		for _, library := range libraries {
			for _, i := range p.flavour {
				f := flavours[i]
				if p.mpi4 && library == OpenMPI {
					continue
				}
				t.Run(p.name+"/"+library+"/"+f.name, func(t *testing.T) {
					lib := shimFor(t, library)
					exe := compile(t, f.compiler+library, filepath.Join(programs, p.name+f.suffix), f.flags...)
					folder := filepath.Join(t.TempDir(), "spool")
					bare := launch(t, library, 3, nil, exe)
					got := launch(t, library, 3,
						[]string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_HASH_VERIFY=1"}, exe)
					if bare.status != 0 || bare.stdout == "" || p.name != "errors" && bare.stdout != "ok\n" {
						t.Fatalf("without the shim: status %d, %q, %q", bare.status, bare.stdout, bare.stderr)
					}
					if p.name == "errors" && strings.Count(bare.stdout, "\n") != 6 {
						t.Fatalf("without the shim there are not six errors: %q", bare.stdout)
					}
					if diff := cmp.Diff(bare, got, cmp.AllowUnexported(outcome{})); diff != "" {
						t.Errorf("the shim shows (-without +with):\n%s", diff)
					}
					if files, err := os.ReadDir(folder); err != nil || len(files) != 3 {
						t.Errorf("%d files, %v", len(files), err)
					}
				})
			}
		}
	}
}

// TestFreedEntriesAreReused checks that the entries of freed communicators and datatypes are reused, and that a
// thread without a file does not change errno.
func TestFreedEntriesAreReused(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			lib := shimFor(t, library)
			exe := compile(t, "mpicc."+library, filepath.Join(programs, "kept.c"), "-pthread")
			folder := filepath.Join(t.TempDir(), "spool")
			if bare := launch(t, library, 1, nil, exe); bare.stdout != "ok\n" {
				t.Fatalf("without the shim: %+v", bare)
			}
			got := launch(t, library, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_SINK=null"}, exe)
			if got.status != 0 || got.stdout != "ok\n" || !strings.Contains(got.stderr, "opening a thread's file") {
				t.Errorf("%+v", got)
			}
			if files, err := os.ReadDir(folder); err != nil || len(files) != 1 {
				t.Errorf("%d files, %v", len(files), err)
			}
		})
	}
}
