package shim

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

// TestGroups checks the groups that MPI_Win_post is recorded with, and that a group that is none fails as without the
// shim: Open MPI accepts MPI_GROUP_NULL, MPICH says that MPI_Win_post was given it.
func TestGroups(t *testing.T) {
	labels := regexp.MustCompile(`MPI_Win_post .*"(.*)"|MPI_Win_post`)
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			testenv.MPI(t, library)
			exe := compile(t, "mpicc."+library, filepath.Join(programs, "groups.c"))
			bare, got, folder := launchBoth(t, library, exe, 5, nil)
			if bare != got || got.status != 0 {
				t.Fatalf("without the shim: %+v\nwith it: %+v", bare, got)
			}
			var posted []string
			for _, line := range dumpFolder(t, folder)[3].lines {
				if m := labels.FindStringSubmatch(line); m != nil {
					posted = append(posted, m[1])
				}
			}
			null := ""
			if library == OpenMPI {
				null = "none"
			}
			if diff := cmp.Diff([]string{null, "none", "0-4", "4,0-2"}, posted); diff != "" {
				t.Errorf("the groups of rank 3 (-want +got):\n%s", diff)
			}
			if library == MPICH {
				// mpiexec now and then drops all that an aborted program printed.
				for try := 0; try == 0 || try < 5 && got.stdout+got.stderr == ""; try++ {
					_, got, _ = launchBoth(t, library, exe, 5, nil, "fatal")
				}
				if all := got.stdout + got.stderr; got.status == 0 || strings.Contains(all, "Group_size") ||
					!strings.Contains(all, "MPI_Win_post(MPI_GROUP_NULL") {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}
