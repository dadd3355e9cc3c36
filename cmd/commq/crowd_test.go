package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
)

// Four threads send a million messages at the same time: each is in the run once, with its partner. The expected
// counts by source and tag are computed: crowd.c sends n of each of four kinds from each of four threads.
func TestCrowd(t *testing.T) {
	captureEnvironment(t)
	for _, c := range []struct {
		library  string
		ranks, n int
	}{{"openmpi", 1, 62500}, {"mpich", 2, 150}} { // 16 x 62500 = a million; MPICH polls without sleep
		t.Run(c.library, func(t *testing.T) {
			testenv.MPI(t, c.library)
			store, exe := t.TempDir(), filepath.Join(t.TempDir(), "crowd")
			if out, err := exec.Command("mpicc."+c.library, "-w", "-pthread", "-o", exe,
				"../../testdata/programs/crowd.c").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			out := commq(t, "capture", "--store", store, "--name", "crowd", "--hash", "none", "-q", "-n",
				strconv.Itoa(c.ranks), "--", exe, strconv.Itoa(c.n))
			if out == "no threads\n" {
				testenv.Skip(t, c.library+" has no MPI_THREAD_MULTIPLE")
			}
			if out != "ok\n" {
				t.Fatalf("the program prints %q, want ok", out)
			}
			commq(t, "runs", "check", "--store", store, "crowd")
			// source, destination, tag, messages, sends, receives posted, receives done (one row may end several),
			// bytes
			var want []string
			for src := range c.ranks {
				for tag := range 44 {
					if tag%10 < 4 && tag >= 10 {
						want = append(want, fmt.Sprint(src, ",", c.ranks-1-src, ",", tag, ",", c.n, ",", c.n, ",",
							c.n, ",", c.n, ",", 4*c.n))
					}
				}
			}
			got := asked(t, store, "crowd", `SELECT src, dst, tag, count(*), count(DISTINCT send_seq), count(DISTINCT recv_post_seq), count(recv_done_seq), sum(bytes)::BIGINT
				FROM messages GROUP BY ALL ORDER BY ALL`)
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("messages by source and tag (-want +got):\n%s", diff)
			}
			if rows := commq(t, "query", "unmatched", "--store", store, "--run", "crowd", "--format",
				"csv"); strings.Count(rows, "\n") != 1 {
				t.Errorf("unmatched:\n%.900s", rows)
			}
		})
	}
}
