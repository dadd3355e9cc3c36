package diagnose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The text of a finding has all evidence: ranks, places, the calls before, waits, when, and the longest.
func TestDetail(t *testing.T) {
	d := diagnosed(t, "uneven.4", Options{Finding: 1, Asked: []string{"--store", "a b", "uneven.4"}})
	var text strings.Builder
	if err := d.Detail(&text, &d.Findings[0]); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"by simulating the run without it on ethernet-40g, where it takes 1.55 s as it is\n",
		"\n  rank  longer than needed  share  computes in all  times the mean\n     2              755 ms  100 %           1.54 s            1.96\n",
		"680 ms  MPI_Irecv at /src/uneven.c:32, by rank 2\n",
		"  MPI_Wait at /src/uneven.c:36\n    1.39 s of computing (90 times)\n  MPI_Irecv at /src/uneven.c:32\n",
		"2.31 s waited because of it, by all ranks together:\n", "the longest 34.4 ms, by rank 1 at 290 ms\n",
		"\n  1.24 s  1.40 s  210 ms  ##################################\n",
		"\n       at  rank   waited  all ranks\n  0.290 s     1  34.4 ms    71.3 ms  MPI_Allreduce at /src/uneven.c:59, for rank 2\n",
		"\n  commq query timeline --store 'a b' uneven.4 --from-s 0.273"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	for line := range strings.Lines(text.String()) {
		if !strings.Contains(line, "commq query") && len(line) > 101 {
			t.Errorf("more than 100 columns: %s", line)
		}
	}
}

// The time in the slices of the run is all time waited, and each instance is in the run.
func TestInstancesOfWaits(t *testing.T) {
	d := diagnosed(t, "uneven.4", Options{})
	f := &d.Findings[0]
	sum, longest := int64(0), f.Instances.Longest
	for _, x := range f.Instances.OverTime {
		sum += x.Ns
	}
	if diff := sum - f.WaitNs; diff > f.WaitNs/1000 || -diff > f.WaitNs/1000 {
		t.Errorf("%d ns in slices, %d in all", sum, f.WaitNs)
	}
	if last := f.Instances.OverTime[timeSlices-1].ToNs; last < d.TimeNs || last > d.TimeNs+d.StartupNs {
		t.Errorf("the last slice ends at %d", last)
	}
	if len(longest) != 5 || longest[0].Ns < longest[4].Ns || *longest[0].Peer != 2 || longest[0].Rank == 2 {
		t.Errorf("%+v", longest)
	}
	if len(f.Instances.Before) > 0 {
		t.Error("the calls before are of a finding that was not asked for")
	}
}

// Findings that nobody waits for have their instances from the rows: computing longer than the mean, or calls.
func TestInstancesOfRows(t *testing.T) {
	for _, c := range []struct {
		run, of string
		rule    Rule
		peer    bool
	}{{"mg.W.16", ofComputing, Variation, false}, {"bt-io.S.4", ofCalls, FileTime, false}, {"uneven.4", ofCalls, Communication, true}} {
		n := 0
		for i, f := range diagnosed(t, c.run, Options{}).Findings {
			if n == 0 && f.Rule == c.rule && f.Instances == nil {
				n = i + 1
			}
		}
		if n == 0 {
			t.Fatalf("%s has no %s", c.run, c.rule)
		}
		in := diagnosed(t, c.run, Options{Finding: n}).Findings[n-1].Instances
		if in.Of != c.of || len(in.OverTime) != timeSlices || len(in.Longest) == 0 || len(in.Before) == 0 {
			t.Fatalf("%s: %+v", c.run, in)
		}
		share, ranks, slices := 0.0, int64(0), int64(0)
		for _, r := range in.Ranks {
			share, ranks = share+r.Share, ranks+r.Ns
		}
		for _, x := range in.OverTime {
			slices += x.Ns
		}
		if share < 0.999 || share > 1.001 || ranks-slices > ranks/1000 || slices-ranks > ranks/1000 {
			t.Errorf("%s: %v of the ranks, %d ns, in slices %d", c.run, share, ranks, slices)
		}
		if x := in.Longest[0]; x.AtNs < in.OverTime[0].FromNs || x.AtNs > in.OverTime[timeSlices-1].ToNs || (x.Peer != nil) != c.peer {
			t.Errorf("%s: %+v", c.run, x)
		}
	}
}

// A text of more than eight ranks says what the others have.
func TestManyRanks(t *testing.T) {
	f := Finding{Instances: &Instances{Of: ofCalls}}
	for rank := range int32(10) {
		f.Instances.Ranks = append(f.Instances.Ranks, RankShare{rank, 1000, 0.1})
	}
	var s strings.Builder
	f.ranksText(&s)
	if lines := strings.Split(s.String(), "\n"); len(lines) != 12 || lines[10] != "  2 others: 20 %" {
		t.Errorf("%q", lines)
	}
}

// Times have the digits that tell slices apart.
func TestClock(t *testing.T) {
	var got []string
	for _, wide := range []int64{10e9, 150e6, 4e6, 400e3, 1} {
		got = append(got, clock(1_956_880_123, wide))
	}
	if diff := cmp.Diff([]string{"1.96 s", "1.96 s", "1.9569 s", "1.95688 s", "1.956880123 s"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
