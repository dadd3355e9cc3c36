package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// manualCollectives are the collectives that take the place of what testdata/programs/manual.c does by hand on 5 ranks: the instances of
// manualFindings, with n bytes as docs/SCHEMA.md has them: of a Bcast the root sends n and 4 receive it, in an Allgather each sends n
// and receives 5n, in an Alltoall each sends and receives 5 blocks of 28 bytes.
const manualCollectives = `ranks,operation,instances,per_rank,send_bytes,recv_bytes
5,MPI_Allgather,2,2,40000,200000
5,MPI_Alltoall,1,1,700,700
5,MPI_Barrier,3,3,0,0
5,MPI_Bcast,25,24.8,84016,332064
`

// TestReplaceWhatIsDoneByHand replaces everything that is found in the program of figure 6 of the paper: the run is whole, has only the
// messages that belong to no finding, computes as long, and can be simulated.
func TestReplaceWhatIsDoneByHand(t *testing.T) {
	captureEnvironment(t)
	p := program{name: "manual", ranks: 5}
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			commq(t, "capture", "build", "--mpi", library)
			exe, store := p.build(t, library, flavours()[0]), t.TempDir()
			commq(t, "capture", "--store", store, "--run", "manual", "-q", "--hash", "crc64", "-n", "5", "--", exe)
			findings := filepath.Join(store, "findings.json")
			if err := os.WriteFile(findings, []byte(commq(t, "detect", "--store", store, "--run", "manual", "--format", "json", "--messages")), 0o644); err != nil {
				t.Fatal(err)
			}
			out := commq(t, "replace", "--store", store, "--run", "manual", "--findings", findings)
			if want := "manual.replaced: 31 collectives in the place of 220 messages of manual;"; !strings.HasPrefix(out, want) {
				t.Errorf("got %s want %s", out, want)
			}
			commq(t, "runs", "check", "--store", store, "manual.replaced")
			if d := gocmp.Diff(manualCollectives, commq(t, "query", "collectives", "--store", store, "--run", "manual.replaced", "--format", "csv")); d != "" {
				t.Errorf("want, got:\n%s", d)
			}
			commq(t, "simulate", "--store", store, "--run", "manual.replaced", "--machine", "ethernet-40g")
			if before, after := computed(t, filepath.Join(store, "manual")), computed(t, filepath.Join(store, "manual.replaced")); !gocmp.Equal(before, after) {
				t.Errorf("ranks compute %v ns; in the replaced run %v", before, after)
			}
		})
	}
}

// computed is the computing time of each rank of a run.
func computed(t *testing.T, dir string) map[int32]int64 {
	t.Helper()
	sums := map[int32]int64{}
	err := writer.ReadTable(context.Background(), dir, &schema.EventsTable, eventRows, func(b schema.Batch) error {
		e := b.(*schema.Events)
		for i, ns := range e.ComputeNs {
			sums[e.Rank[i]] += max(ns, 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}
