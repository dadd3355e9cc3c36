package queries_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
)

// TestTimeline has a run of 450 ns in steps of 151 ns, with a call that never returns, and its two messages.
func TestTimeline(t *testing.T) {
	run := newRun(t, "times.5", world+fiveRanks+twoRanksCall+`
messages src dst tag bytes send_seq send_start_ns recv_end_ns
1 3 9 17 1 200 340
3 1 9 900 2 150 -
`, example.Manifest(5))
	same(t, "whole", ask(t, run, "timeline", "bins", "3"), `
		1,1,0,0,151,other MPI,1,100,,,,
		1,1,0,0,151,outside MPI,,51,,,,
		1,1,1,151,302,outside MPI,,119,,,,
		1,1,1,151,302,send,1,30,,,,
		1,1,1,151,302,sent,,,1,17,,
		1,1,1,151,302,wait,1,2,,,,
		1,1,,200,340,message,,,1,17,3,1
		1,1,2,302,453,collective,1,50,,,,
		1,1,2,302,453,outside MPI,,10,,,,
		1,1,2,302,453,wait,0,88,,,,
		3,1,0,0,151,other MPI,1,90,,,,
		3,1,0,0,151,receive,1,51,,,,
		3,1,0,0,151,send,1,1,,,,
		3,1,0,0,151,sent,,,1,900,,
		3,1,1,151,302,receive,0,151,,,,
		3,1,1,151,302,send,0,59,,,,
		3,1,2,302,453,I/O,1,35,,,,
		3,1,2,302,453,collective,1,10,,,,
		3,1,2,302,453,one-sided,1,10,,,,
		3,1,2,302,453,other MPI,1,20,,,,
		3,1,2,302,453,outside MPI,,25,,,,
		3,1,2,302,453,receive,0,38,,,,
		3,1,2,302,453,wait,1,10,,,,`)
	const message = "1,3,200,340,17,9,0,1" // the other one never arrived
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, message},
		{[]string{"from-s", "0.00000034"}, message},
		{[]string{"from-s", "0.000000341"}, ""},
		{[]string{"to-s", "0.0000002", "from-rank", "3"}, message},
		{[]string{"to-s", "0.0000002", "to-rank", "1"}, message},
		{[]string{"from-rank", "2", "to-rank", "2"}, ""},
		{[]string{"to-s", "0.000000199"}, ""},
	} {
		same(t, fmt.Sprint("messages ", c.args), ask(t, run, "timeline-messages", c.args...), c.want)
	}
	few := ask(t, run, "timeline", "bins", "1", "rows", "1", "from-s", "0.00000012", "to-s", "0.00000021", "lines", "1")
	same(t, "a window, too many messages for lines, all ranks in a row", few, `
		1,2,0,120,211,outside MPI,,80,,,,
		1,2,0,120,211,receive,0,90,,,,
		1,2,0,120,211,send,2,70,,,,
		1,2,0,120,211,sent,,,2,917,,`)
	same(t, "no message of that kind", ask(t, run, "timeline", "bins", "1", "from-s", "0.0000004", "where", "tag = 7"), `
		1,1,0,400,451,collective,1,50,,,,
		3,1,0,400,451,collective,1,10,,,,
		3,1,0,400,451,other MPI,1,20,,,,
		3,1,0,400,451,outside MPI,,10,,,,
		3,1,0,400,451,wait,1,10,,,,`)
	for _, outside := range []map[string]string{{"from-s": "1"}, {"from-s": "0.0000003", "to-s": "0.0000002"},
		{"from-rank": "5"}, {"from-rank": "3", "to-rank": "2"}} {
		if err := named(t, "timeline").CheckWindow(outside, []queries.Run{run}); err == nil || !strings.Contains(err.Error(), ": want ") {
			t.Errorf("%v: %v, want an error that says what is wanted", outside, err)
		}
	}
}

// TestTimelineAgainstTheSlowWay looks at every ns of random runs.
func TestTimelineAgainstTheSlowWay(t *testing.T) {
	kinds := map[string]string{"MPI_Send send": "send", "MPI_Recv recv": "receive", "MPI_Probe probe": "wait",
		"MPI_Comm_dup comm": "other MPI"}
	names := slices.Sorted(maps.Keys(kinds))
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		ranks := 1 + r.IntN(4)
		kindAt, last := make([]map[int]string, ranks), 0 // kindAt is the kind of each ns in which a rank runs
		began := map[[2]int]string{}
		var text strings.Builder
		text.WriteString("events rank seq call class start_ns end_ns\n")
		for rank := range ranks {
			kindAt[rank] = map[int]string{}
			at := r.IntN(20)
			for seq := range 1 + r.IntN(12) {
				call, end := names[r.IntN(len(names))], at+1+r.IntN(60)
				fmt.Fprintf(&text, "%d %d %s %d %d\n", rank, seq, call, at, end)
				began[[2]int{rank, at}] = kinds[call]
				for ; at < end; at++ {
					kindAt[rank][at] = kinds[call]
				}
				last = max(last, end)
				for idle := r.IntN(3) * r.IntN(30); idle > 0; idle-- {
					kindAt[rank][at] = "outside MPI"
					at++
				}
			}
			for at--; kindAt[rank][at] == "outside MPI"; at-- { // after the last call
				delete(kindAt[rank], at)
			}
		}
		run := newRun(t, fmt.Sprintf("r.%d", ranks), text.String(), example.Manifest(int32(ranks)))
		bins, rows, from, to := 1+r.IntN(12), 1+r.IntN(ranks), r.IntN(max(last/2, 1)), last
		args := []string{"bins", fmt.Sprint(bins), "rows", fmt.Sprint(rows), "from-s", fmt.Sprintf("%.9f", float64(from)*1e-9)}
		if r.IntN(2) == 0 {
			to = from + 1 + r.IntN(last-from)
			args = append(args, "to-s", fmt.Sprintf("%.9f", float64(to)*1e-9))
		}
		first, after := 0, ranks // the ranks asked for
		if r.IntN(2) == 0 {
			first = r.IntN(ranks)
			after = first + 1 + r.IntN(ranks-first)
			args = append(args, "from-rank", fmt.Sprint(first), "to-rank", fmt.Sprint(after-1))
		}
		step, perRow := (to-from)/bins+1, (after-first+rows-1)/rows
		type cell struct {
			row, bin int
			kind     string
		}
		ns, calls := map[cell]int{}, map[cell]int{}
		for rank := first; rank < after; rank++ {
			row := (rank - first) / perRow
			for at := from; at < to; at++ {
				if kind := kindAt[rank][at]; kind != "" {
					ns[cell{row, (at - from) / step, kind}]++
				}
			}
			for at := from; at <= to; at++ {
				if kind := began[[2]int{rank, at}]; kind != "" {
					c := cell{row, (at - from) / step, kind}
					calls[c]++
					ns[c] += 0
				}
			}
		}
		var want []string
		for c, n := range ns {
			called := ""
			if c.kind != "outside MPI" {
				called = fmt.Sprint(calls[c])
			}
			want = append(want, fmt.Sprintf("%d,%d,%d,%d,%d,%s,%s,%d,,,,", first+c.row*perRow,
				min(perRow, after-first-c.row*perRow), c.bin, from+c.bin*step, from+(c.bin+1)*step, c.kind, called, n))
		}
		got := strings.Split(strings.TrimSuffix(ask(t, run, "timeline", args...), "\n"), "\n")
		slices.Sort(want)
		slices.Sort(got)
		same(t, fmt.Sprint("seed ", seed, args), strings.Join(got, "\n")+"\n", strings.Join(want, "\n"))
	}
}

// TestTimelineCalls lists the calls of times.5 that a window of time and ranks touches.
func TestTimelineCalls(t *testing.T) {
	run := newRun(t, "times.5", world+fiveRanks+twoRanksCall, example.Manifest(5))
	all := strings.Split(strings.TrimSuffix(ask(t, run, "timeline-calls"), "\n"), "\n")
	if len(all) < 10 {
		t.Fatalf("the run has %d calls", len(all))
	}
	type call struct {
		line       string
		rank       int
		start, end float64
	}
	var calls []call
	for _, line := range all {
		cells := strings.Split(line, ",")
		c := call{line: line, end: 1e9}
		fmt.Sscan(cells[0], &c.rank)
		fmt.Sscan(cells[5], &c.start)
		fmt.Sscan(cells[6], &c.end) // a call that never returned lasts
		calls = append(calls, c)
	}
	for _, w := range []struct {
		from, to    float64 // ns
		first, last int
	}{{100, 200, 0, 4}, {0, 10, 1, 1}, {300, 300, 0, 4}, {420, 500, 3, 3}, {0, 1000, 4, 4}} {
		var want []string
		for _, c := range calls {
			if c.start <= w.to && c.end >= w.from && w.first <= c.rank && c.rank <= w.last {
				want = append(want, c.line)
			}
		}
		got := ask(t, run, "timeline-calls", "from-s", fmt.Sprintf("%.9f", w.from*1e-9), "to-s", fmt.Sprintf("%.9f", w.to*1e-9),
			"from-rank", fmt.Sprint(w.first), "to-rank", fmt.Sprint(w.last))
		if got != strings.Join(append(want, ""), "\n") {
			t.Errorf("%v:\n%s\nwant\n%s", w, got, strings.Join(want, "\n"))
		}
	}
}

// timelineWait is a row of timeline-waits.
type timelineWait struct {
	line       string
	single     bool
	rank       int
	start, end float64
	state      string
	ns         int
}

// timelineWaits asks timeline-waits.
func timelineWaits(t *testing.T, run queries.Run, args ...string) (all []timelineWait) {
	t.Helper()
	for line := range strings.Lines(ask(t, run, "timeline-waits", args...)) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		w := timelineWait{line: line, single: cells[2] == "", state: cells[5]}
		fmt.Sscan(strings.Join([]string{cells[0], cells[3], cells[4], cells[7]}, " "), &w.rank, &w.start, &w.end, &w.ns)
		all = append(all, w)
	}
	return all
}

// TestTimelineWaitsAddUp compares the waits of steps, and the single ones, with what wait-states says of each rank.
func TestTimelineWaitsAddUp(t *testing.T) {
	for _, name := range []string{"uneven.4", "cg.A.4", "is.W.16", "sp.W.4"} {
		run := captured(t, name)
		want := map[string]int{}
		for line := range strings.Lines(ask(t, run, "wait-states", "by", "rank")) {
			cells := strings.Split(line, ",")
			ns := 0
			if fmt.Sscan(cells[3], &ns); cells[0] != "all" && ns > 0 {
				want[cells[0]+" of "+cells[1]] += ns
			}
		}
		steps, singles := map[string]int{}, map[string]int{}
		for _, w := range timelineWaits(t, run, "lines", "100000", "bins", "37") {
			key := fmt.Sprintf("%s of %d", w.state, w.rank)
			if w.single {
				singles[key] += w.ns
			} else {
				steps[key] += w.ns
			}
		}
		if len(want) == 0 || !maps.Equal(steps, want) || !maps.Equal(singles, want) {
			t.Errorf("%s: steps %v, single waits %v; want %v", name, steps, singles, want)
		}
	}
}

// TestTimelineWaitsOfAWindow: a window has the waits of the whole run that it touches, as long as they are.
func TestTimelineWaitsOfAWindow(t *testing.T) {
	for _, name := range []string{"uneven.4", "cg.A.4", "sp.W.4"} {
		run := captured(t, name)
		whole := timelineWaits(t, run, "lines", "100000")
		last := 0.0
		for _, w := range whole {
			last = max(last, w.end)
		}
		for _, c := range []struct {
			from, to    float64 // shares of the run
			least       float64
			first, last int
		}{{0.3, 0.31, 0, 0, 3}, {0.5, 0.9, 20000, 1, 2}, {0.7, 0.7001, 0, 3, 3}} {
			from, to := math.Round(c.from*last), math.Round(c.to*last)
			var want, got []string
			for _, w := range whole {
				if w.single && w.start <= to && w.end >= from && w.end-w.start >= c.least && c.first <= w.rank && w.rank <= c.last {
					want = append(want, w.line)
				}
			}
			inSteps, inWindow := 0, 0.0
			for _, w := range timelineWaits(t, run, "lines", "100000", "from-s", fmt.Sprintf("%.9f", from*1e-9), "to-s",
				fmt.Sprintf("%.9f", to*1e-9), "from-rank", fmt.Sprint(c.first), "to-rank", fmt.Sprint(c.last), "least-ns",
				fmt.Sprint(int(c.least)), "bins", "7") {
				if w.single {
					got = append(got, w.line)
					inWindow += min(w.end, to) - max(w.start, from)
				} else {
					inSteps += w.ns
				}
			}
			if !slices.Equal(got, want) || float64(inSteps) != inWindow {
				t.Errorf("%s, %v: %d ns in steps, %.0f in waits\n%s\nwant\n%s", name, c, inSteps, inWindow,
					strings.Join(got, ""), strings.Join(want, ""))
			}
			if c.least == 0 && c.last-c.first == 3 && len(want) == 0 && name != "uneven.4" {
				t.Errorf("%s, %v: no wait to compare", name, c)
			}
		}
	}
}

// Each wait has a row of its own if there are as many as lines, and none has one if there is one more.
func TestTimelineWaitsUpToSoManyLines(t *testing.T) {
	run := captured(t, "cg.A.4")
	singles := func(lines int) (n int) {
		for _, w := range timelineWaits(t, run, "lines", fmt.Sprint(lines)) {
			if w.single {
				n++
			}
		}
		return n
	}
	all := singles(100000)
	if all == 0 || singles(all) != all || singles(all-1) != 0 || singles(0) != 0 {
		t.Errorf("%d waits; with as many lines %d, with one line less %d, without lines %d", all, singles(all),
			singles(all-1), singles(0))
	}
}

// TestUnorderedAnswers compares answers with and without their order, and those of an engine that joins as is written.
func TestUnorderedAnswers(t *testing.T) {
	run := captured(t, "cg.A.4")
	db := open(t, run)
	written, err := queries.Open(context.Background(), []queries.Run{run}, queries.Options{AsWritten: true})
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close()
	for _, name := range []string{"timeline", "timeline-groups", "timeline-calls", "timeline-messages", "density", "over-time"} {
		q := named(t, name)
		ordered, err := db.Ask(context.Background(), q, nil)
		want := strings.Split(text(t, ordered, err), "\n")
		unordered, err := written.Ask(context.Background(), q, nil, queries.Unordered)
		got := strings.Split(text(t, unordered, err), "\n")
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d rows without order are not the %d rows with it", name, len(got), len(want))
		}
	}
}
