package queries_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/schema"
)

// started is a run whose rank 1 computes and polls before MPI_Finalize. Rank 3 is killed in MPI_Finalize, rank 4 in
// MPI_Init.
const started = world + fiveRanks + `
events rank seq call class start_ns end_ns compute_ns polls poll_ns callsite
1 0 MPI_Init other 0 100 7 0 0 0
1 1 MPI_Send send 200 230 90 0 0 1
1 2 MPI_Finalize other 1000 1600 600 3 50 2
3 0 MPI_Init_thread other 10 160 0 0 0 0
3 1 MPI_Recv recv 300 700 140 0 0 3
3 2 MPI_Finalize other 900 - 200 0 0 2
4 0 MPI_Init other 20 - 0 0 0 0

callsites id parent module offset function file line
0 - heat 300 main heat.c 5
1 - heat 310 swap heat.c 31
2 - heat 320 main heat.c 9
3 - heat 330 swap heat.c 32
`

// TestStartup asks every query that can leave MPI_Init and MPI_Finalize out both ways.
func TestStartup(t *testing.T) {
	run := newRun(t, "started.5", started, example.Manifest(5))
	// Rank 1: from 100 to 1000, in MPI 30 and 50 polling; the 600 computed before MPI_Finalize stay, the 7 before
	// MPI_Init do not. Rank 3: from 160 to 900, in MPI 400. Rank 4 never left MPI_Init.
	same(t, "time-by-rank", ask(t, run, "time-by-rank"), `
		1,0,900,80,30,0,0,50,0,0,0,0,820,690
		3,0,740,400,400,0,0,0,0,0,0,0,340,340
		4,0,0,0,0,0,0,0,0,0,0,0,0,`)
	same(t, "with both", ask(t, run, "time-by-rank", "init", "include"), `
		1,0,1600,780,30,0,0,50,0,0,0,700,820,697
		3,0,890,550,400,0,0,0,0,0,0,150,340,340
		4,0,0,0,0,0,0,0,0,0,0,0,0,0`)
	// Rank 1: 80 of 900 ns, rank 3: 400 of 740.
	same(t, "rank-groups", ask(t, run, "rank-groups", "by", "time"), `
		0,0,4,0
		1,0,4,0
		2,0,4,0
		3,3,1,5
		4,0,4,0`)
	// All calls 430 ns; rank 1 from 100 to 1000, rank 3 its calls that returned from 160 to 700.
	same(t, "callsite-time", ask(t, run, "callsite-time"), fmt.Sprintf(`
		3,swap,heat.c,32,heat,,,MPI_Recv,1,1,400,400,400,%v,%v,0
		1,swap,heat.c,31,heat,,,MPI_Send,1,1,30,30,30,%v,%v,0`, 400.0/430, 400.0/1440, 30.0/430, 30.0/1440))
	// All 430 + 100 + 600 + 150 = 1280; rank 1 from 0 to 1600, rank 3 its calls that returned from 10 to 700.
	all, ranks := 1280.0, 2290.0
	same(t, "with both", ask(t, run, "callsite-time", "init", "include"), fmt.Sprintf(`
		2,main,heat.c,9,heat,,,MPI_Finalize,1,1,600,600,600,%v,%v,0
		3,swap,heat.c,32,heat,,,MPI_Recv,1,1,400,400,400,%v,%v,0
		0,main,heat.c,5,heat,,,MPI_Init_thread,1,1,150,150,150,%v,%v,0
		0,main,heat.c,5,heat,,,MPI_Init,1,1,100,100,100,%v,%v,0
		1,swap,heat.c,31,heat,,,MPI_Send,1,1,30,30,30,%v,%v,0`, 600/all, 600/ranks, 400/all, 400/ranks,
		150/all, 150/ranks, 100/all, 100/ranks, 30/all, 30/ranks))
	// From the first end of MPI_Init at 20, where rank 4 was last seen, to the last start of MPI_Finalize.
	for init, want := range map[string]string{
		"leave-out": "compute_ns 1030,mpi_ns 480,runtime_ns 980",
		"include":   "compute_ns 1037,mpi_ns 1330,runtime_ns 1600",
	} {
		var got []string
		for line := range strings.Lines(ask(t, run, "measures", "init", init)) {
			cells := strings.Split(line, ",")
			if slices.Contains([]string{"compute_ns", "mpi_ns", "runtime_ns"}, cells[1]) {
				got = append(got, cells[1]+" "+cells[3])
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("measures, %s: %s, want %s", init, got, want)
		}
	}
}

// TestStartupNote is about the sentence that says what an answer leaves out.
func TestStartupNote(t *testing.T) {
	db := open(t, newRun(t, "started.5", started, example.Manifest(5)))
	s, err := db.Startup(context.Background())
	if err != nil || s != (queries.Startup{Ns: 620, RunNs: 1600}) {
		t.Errorf("%+v, %v; want 620 of 1600 ns: the program is from 20 to 1000", s, err)
	}
	for _, c := range []struct {
		s    queries.Startup
		want string
	}{
		{s, "MPI_Init and MPI_Finalize took 39 % of the run's time and are left out; --init include counts them"},
		{queries.Startup{Ns: 4, RunNs: 1000},
			"MPI_Init and MPI_Finalize took less than 1 % of the run's time and are left out; --init include counts them"},
		{queries.Startup{RunNs: 9}, ""},
		{queries.Startup{}, ""},
	} {
		if got := c.s.Note(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
	for name, want := range map[string]bool{"callsite-time": true, "density": false} {
		q := named(t, name)
		if got := q.LeavesOutStartup(nil); got != want {
			t.Errorf("%s by default: %t, want %t", name, got, want)
		}
		if q.LeavesOutStartup(map[string]string{"init": "include"}) {
			t.Errorf("%s --init include: leaves them out", name)
		}
	}
}

// TestSQLNamesTheStartupCalls compares the names in the SQL with the facts of calls.csv.
func TestSQLNamesTheStartupCalls(t *testing.T) {
	want := map[string]bool{}
	for i := range schema.Calls {
		if schema.CallID(i).IsAny(schema.FactInitializes | schema.FactFinalizes) {
			want["'"+schema.Calls[i].Name+"'"] = true
		}
	}
	for _, file := range []string{"include/program_calls.sql", "scaling.sql"} {
		text, err := os.ReadFile(filepath.Join("sql", file))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, name := range regexp.MustCompile(`'MPI_\w+'`).FindAllString(string(text), -1) {
			got[name] = true
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s names %v, the facts are of %v", file, got, want)
		}
	}
}
