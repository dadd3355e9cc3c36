package diagnose

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// diagnosed diagnoses a run of testdata.
func diagnosed(t *testing.T, name string, o Options) *Diagnosis {
	t.Helper()
	r, err := run.Open(context.Background(), filepath.Join("..", "testdata", "runs", name), Need)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Run(context.Background(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// uneven.4 has three times the cells on rank 2: three times as long a smoothing, which is all that limits the run.
func TestUnevenRun(t *testing.T) {
	d := diagnosed(t, "uneven.4", Options{})
	var text strings.Builder
	if err := d.Text(&text, d.Shown(0.01, 5), "--all lists them"); err != nil {
		t.Fatal(err)
	}
	want := `uneven.4: 1.55 s of 4 ranks; parallel efficiency 50.9 % = load balance 51.1 % x serialisation 99.6 % x transfer >99.9 %

1. imbalance: gain 735 ms (47.4 %) shared out evenly, 983 ms if it need not be done
   Rank 2 computes 1.96 times as long as the mean, most of it before MPI_Irecv at /src/uneven.c:32.
   waits: 1.71 s in MPI_Wait at /src/uneven.c:36 (late sender, 170 calls)
          608 ms in MPI_Allreduce at /src/uneven.c:59 (wait at collective, 30 calls)
   Give these ranks less work: distribute by the time that parts take, not by their number.

5 smaller findings: --all lists them
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if d.SimulatedNs-d.TimeNs > d.TimeNs/1000 || d.TimeNs-d.SimulatedNs > d.TimeNs/1000 {
		t.Errorf("simulated on its own machine it takes %d ns, not %d", d.SimulatedNs, d.TimeNs)
	}
}

// A finding of a rule from a file that costs nothing comes after those that gain something.
func TestFindingOfNoCost(t *testing.T) {
	own := Evidence{Rule: "own", Way: WayBound, Callsite: schema.NullInt32, Call: "MPI_Send", Found: "It is"}
	d := diagnosed(t, "uneven.4", Options{Evidence: []Evidence{own}})
	before := slices.IndexFunc(d.Findings, func(f Finding) bool { return f.GainNs == 0 })
	if at := slices.IndexFunc(d.Findings, func(f Finding) bool { return f.Rule == "own" }); at < max(1, before) ||
		d.Findings[at].GainNs != 0 {
		t.Errorf("at %d, the first without a gain at %d, of %d", at, before, len(d.Findings))
	}
}

// mg.W.16 was captured on 2 cores: its 16 ranks waited for them, so its times are simulated.
func TestSharedCores(t *testing.T) {
	d := diagnosed(t, "mg.W.16", Options{})
	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "the ranks had a CPU for 39.6 % of the time only") {
		t.Errorf("warnings %q", d.Warnings)
	}
	if d.Efficiency.Transfer != nil || !strings.HasSuffix(d.Verdict(),
		"; transfer not known (commq diagnose --machine NAME simulates a network)") {
		t.Errorf("no network was simulated: %s", d.Verdict())
	}
	if d.TimeNs != d.SimulatedNs {
		t.Errorf("the time is %d ns, the simulated one %d", d.TimeNs, d.SimulatedNs)
	}
	for _, f := range d.Findings {
		if f.Rule == Communication {
			t.Errorf("on an ideal network: %s", f.Title)
		}
	}
	target, err := simulate.ReadTarget(simulate.TargetOptions{Machine: "ethernet-40g"})
	if err != nil {
		t.Fatal(err)
	}
	slow := diagnosed(t, "mg.W.16", Options{Target: target})
	if slow.TimeNs <= d.TimeNs || slow.Efficiency.Transfer == nil || *slow.Efficiency.Transfer >= 0.95 ||
		slow.Machine != "ethernet-40g" {
		t.Errorf("on a network: %d ns, %+v", slow.TimeNs, slow.Efficiency)
	}
}

// A run that knows its cores is simulated if there are too few, although its ranks waited for one only inside MPI; if
// there are enough nothing is doubtful.
func TestKnownCores(t *testing.T) {
	for _, c := range []struct {
		cores schema.HostCores
		want  string
	}{
		{schema.HostCores{Ranks: 4, Cores: 2, SharingRanks: 4, SharedCores: 2},
			"4 ranks shared 2 cores on host n0; these times are " +
				"simulated on an ideal network instead, from the CPU time that the ranks computed: messages take no time " +
				"there, so that rules about messages need --machine NAME"},
		{schema.HostCores{Ranks: 4, Cores: 4}, ""},
	} {
		r, err := run.Open(context.Background(), filepath.Join("..", "testdata", "runs", "uneven.4"), Need)
		if err != nil {
			t.Fatal(err)
		}
		m := *r.Manifest
		m.TimeOrigin, m.Origin.Hosts, m.Origin.Cores = "measured", []string{"n0"}, []schema.HostCores{c.cores}
		r.Manifest = &m
		d, err := Run(context.Background(), r, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(d.Warnings, "; "); got != c.want || (d.TimeNs == d.SimulatedNs) != (c.want != "") {
			t.Errorf("%+v: warnings %q, %d ns, simulated %d", c.cores, got, d.TimeNs, d.SimulatedNs)
		}
	}
}

// A run whose rows do not fit is refused.
func TestMemoryLimit(t *testing.T) {
	r, err := run.Open(context.Background(), filepath.Join("..", "testdata", "runs", "mg.W.16"), Need)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(context.Background(), r, Options{MemoryBytes: 1 << 20})
	want := "diagnose mg.W.16: to explain its waits takes more than 1.05 MB of memory"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Above a number of calls gains are bounds, which the simulated ones keep.
func TestBoundsWithoutSimulation(t *testing.T) {
	simulated, bounded := diagnosed(t, "uneven.4", Options{}), diagnosed(t, "uneven.4", Options{MostCalls: 1000})
	if len(bounded.Warnings) != 1 || bounded.Warnings[0] != "the run has 1,248 calls; above 1,000 gains are bounds, not simulated; "+
		"--simulate-most 1248 simulates" || bounded.SimulatedNs != 0 || bounded.TogetherNs != 0 {
		t.Errorf("%q, %+v", bounded.Warnings, bounded)
	}
	a, b := simulated.Findings[0], bounded.Findings[0]
	if b.Rule != a.Rule || b.Place != a.Place || !b.Bound || b.GainNs < a.GainNs {
		t.Errorf("%s at %s gains at most %d, simulated %s at %s %d", b.Rule, b.Place, b.GainNs, a.Rule, a.Place,
			a.GainNs)
	}
}

// rows are calls of rank 0 with these call sites and computing before them.
func rows(sites []int32, ns []int64) *schema.Events {
	b := &schema.Events{}
	for i := range sites {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Callsite, e.ComputeNs = 0, int64(i), sites[i], ns[i]
		b.Append(&e)
	}
	return b
}

// What is taken away before a call is computed before the next call of another site, also if that is in the next batch.
func TestChangeMovesComputing(t *testing.T) {
	c := &change{factor: map[rankSite]float64{{0, 7}: 0.25}, owed: map[int32]int64{}}
	first, second := rows([]int32{3, 7, 7}, []int64{10, 100, 20}), rows([]int32{4, 7, 3}, []int64{5, 40, 1})
	c.apply(first)
	c.apply(second)
	got := append(append([]int64{}, first.ComputeNs...), second.ComputeNs...)
	if diff := cmp.Diff([]int64{10, 25, 5, 5 + 75 + 15, 10, 1 + 30}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// It is computed after the sends that follow at once, as in an exchange with several neighbours, but before a send that
// has work of its own.
func TestChangeMovesComputingBehindSends(t *testing.T) {
	for _, own := range []struct{ ns, paid int64 }{{2, 2}, {5, 80}} {
		c := &change{factor: map[rankSite]float64{{0, 7}: 0.25}, owed: map[int32]int64{}}
		b := rows([]int32{7, 8, 9}, []int64{100, own.ns, 1})
		b.Call[0], b.Call[1], b.Call[2] = int16(schema.CallIsend), int16(schema.CallIsend), int16(schema.CallWaitall)
		c.apply(b)
		want := []int64{25, own.paid, 76}
		if own.paid > own.ns {
			want[2] = 1
		}
		if diff := cmp.Diff(want, b.ComputeNs); diff != "" {
			t.Errorf("%d ns before the second send: -want +got:\n%s", own.ns, diff)
		}
	}
}

// Ranks above the mean are overloaded; those that are hardly above it are not named.
func TestOverloaded(t *testing.T) {
	for _, c := range []struct {
		total []int64
		want  map[int32]int64
	}{
		{[]int64{10, 10, 10}, map[int32]int64{}},
		{[]int64{10, 40, 10, 20}, map[int32]int64{1: 20}},
		{[]int64{100, 41, 40, 0}, map[int32]int64{0: 39}}, // mean 45.25
		{[]int64{100, 50, 20, 0}, map[int32]int64{0: 43}}, // 50 is 7.5 above the mean of 42.5
		{[]int64{100, 100, 0, 0}, map[int32]int64{0: 50, 1: 50}},
	} {
		if diff := cmp.Diff(c.want, overloaded(c.total)); diff != "" {
			t.Errorf("%v: -want +got:\n%s", c.total, diff)
		}
	}
}

// A rank that several others wait for at a time is overloaded if what it computes, counted once, is what it has too
// much.
func TestImbalancedServer(t *testing.T) {
	at := critical.Activity{Rank: 0, Site: 7, Call: schema.CallSend, Kind: critical.Compute}
	computed := &computing{ns: map[rankSite]int64{{0, 7}: 120, {1, 8}: 20, {2, 8}: 20, {3, 8}: 20}}
	total := computed.total(4)
	if got := imbalanced([]*critical.Delay{{Activity: at, ExcessNs: 290}}, overloaded(total), computed, total); !got[0] {
		t.Errorf("%v", got)
	}
}

// The sentence about the first causes together is no smaller number than that of one of them.
func TestTogether(t *testing.T) {
	without := func() *change { return nil }
	d := &Diagnosis{TogetherNs: 120, Findings: []Finding{{GainNs: 30, without: without}, {GainNs: 900},
		{GainNs: 120, without: without}, {GainNs: 5, Bound: true}}}
	for _, c := range []struct {
		togetherNs int64
		shown      int
		want       string
	}{
		{120, 2, ""},
		{120, 3, "\nThe causes of the first findings share computing: without all of them the run gains no more than without " +
			"that of finding 3.\n"},
		{140, 3, "\nWithout the causes of the first findings together: 140 ns less.\n"},
	} {
		d.TogetherNs = c.togetherNs
		if got := d.togetherText(c.shown); got != c.want {
			t.Errorf("together %d ns, %d shown: %q, want %q", c.togetherNs, c.shown, got, c.want)
		}
	}
}

// Ranks that send to one rank each, one after the other, are a chain if all but the last compute.
func TestChain(t *testing.T) {
	for _, c := range []struct {
		rule  Rule
		ranks []int32
		sends [][2]int32
		want  string
	}{
		{LateSender, []int32{0, 1, 2}, [][2]int32{{1, 2}, {0, 1}, {2, 3}}, "[0 1 2 3]"},
		{LateSender, []int32{1, 3}, [][2]int32{{3, 1}, {1, 0}}, "[3 1 0]"},
		{LateReceiver, []int32{0, 1, 2}, [][2]int32{{1, 2}, {0, 1}, {2, 3}}, "[]"},
		{LateSender, []int32{0}, [][2]int32{{1, 2}, {0, 1}}, "[]"},               // the others only pass it on
		{LateSender, []int32{0, 1, 2}, [][2]int32{{0, 1}, {1, 2}, {2, 0}}, "[]"}, // a ring
		{LateSender, []int32{0, 2}, [][2]int32{{0, 1}, {2, 3}}, "[]"},
		{LateSender, []int32{0, 1}, [][2]int32{{0, 1}, {0, 2}, {1, 2}}, "[]"},
		{LateSender, []int32{0}, [][2]int32{{0, 1}}, "[]"},
	} {
		x := &cause{rule: c.rule, parts: []*part{{call: schema.CallSend, excess: map[int32]int64{}}}, sends: map[[2]int32]bool{}}
		for _, rank := range c.ranks {
			x.parts[0].excess[rank] = 10
		}
		for _, pair := range c.sends {
			x.sends[pair] = true
		}
		if got := fmt.Sprint(x.chain()); got != c.want {
			t.Errorf("%v: %s, want %s", c.sends, got, c.want)
		}
		if chain := c.want != "[]"; (x.advice() == adviceInChain) != chain || strings.Contains(x.title(), "a chain") != chain {
			t.Errorf("%v: %s. %s", c.sends, x.title(), x.advice())
		}
	}
}

// Every rule has advice of its own that is a sentence or two.
func TestAdvice(t *testing.T) {
	by := map[string]Rule{}
	for _, rule := range slices.Concat(Rules, []Rule{LateStart}) {
		text := rule.Advice()
		if len(text) < 20 || !strings.HasSuffix(text, ".") || by[text] != "" {
			t.Errorf("%s has %q, as has %q", rule, text, by[text])
		}
		by[text] = rule
	}
}

// The advice fits the call that ranks come late to.
func TestAdviceByCall(t *testing.T) {
	for _, c := range []struct {
		rule      Rule
		call      schema.CallID
		says, not string
	}{
		{LateSender, schema.CallSend, "Send first", ""},
		{LateSender, schema.CallStart, "Send first", ""},
		{LateSender, schema.CallRecv, "Send what is ready", ""},
		{LateCollective, schema.CallAlltoall, "nonblocking collective", "fence"},
		{LateCollective, schema.CallWinFence, "after the fence", "nonblocking"},
		{LatePost, schema.CallWinPost, "before this work", ""},
		{LongLock, schema.CallWinUnlock, "Give back the lock", ""},
		{Imbalance, schema.CallWinFence, "less work", "fence"},
	} {
		p := &part{place: "x.c:1", call: c.call, excess: map[int32]int64{0: 5}, computed: map[int32]int64{0: 9}}
		got := (&cause{rule: c.rule, parts: []*part{p}, total: []int64{9, 4}}).finding().Advice
		if !strings.Contains(got, c.says) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s before %s: %q", c.rule, c.call, got)
		}
	}
}

// Time in one-sided calls is said to be theirs alone only where a wait for another rank would be known.
func TestOneSidedText(t *testing.T) {
	for call, want := range map[schema.CallID]string{schema.CallPut: "", schema.CallWinFence: "",
		schema.CallWinCreate: "",
		schema.CallWinLock:   " or in waiting for other ranks", schema.CallWinWait: " or in waiting for other ranks",
		schema.CallBarrier: ""} {
		if got := orWaits(call); got != want {
			t.Errorf("%s: %q, want %q", call, got, want)
		}
	}
}

// The other formats say the same.
func TestFormats(t *testing.T) {
	d := diagnosed(t, "uneven.4", Options{})
	for _, c := range []struct {
		format string
		write  func(w *strings.Builder) error
		want   []string
	}{
		{"markdown", func(w *strings.Builder) error { return d.Markdown(w, 1) }, []string{"**uneven.4: 1.55 s of 4 ranks; ",
			"\n1. **imbalance**: gain 735 ms (47.4 %) shared out evenly, 983 ms if it need not be done. Rank 2 computes 1.96 times as long " +
				"as the mean, most of it before MPI\\_Irecv at /src/uneven.c:32. Give"}},
		{"sarif", func(w *strings.Builder) error { return d.SARIF(w, 1, "9.9") }, []string{`"ruleId": "imbalance"`,
			`"uri": "file:///src/uneven.c"`, `"startLine": 32`, `"startLine": 36`,
			`"text": "waits 1.71 s in MPI_Wait at /src/uneven.c:36 (late`}},
		{"junit", func(w *strings.Builder) error { return d.JUnit(w, 0.01) }, []string{
			fmt.Sprintf(`<testsuite name="commq diagnose uneven.4" tests="%d" failures="1" errors="0">`, len(Rules)+1),
			`<testcase name="late-sender" classname="commq.diagnose"></testcase>`,
			`<testcase name="imbalance" classname="commq.diagnose">
      <failure message="/src/uneven.c:32: Rank 2 computes 1.96 times as long as the mean, most of it before MPI_Irecv at ` +
				`/src/uneven.c:32; gain 735 ms (47.4 %) shared out evenly, 983 ms if it need not be done" type="imbalance">`}},
		{"junit", func(w *strings.Builder) error { return d.JUnit(w, 0.5) }, []string{`failures="0"`}},
		{"csv", func(w *strings.Builder) error { return d.CSV(w) }, []string{
			"run,rule,callsite,call,function,caller,ranks,gain_ns,bound,most_ns,wait_ns,title\nuneven.4,imbalance,/src/uneven.c:32,MPI_Irecv,,,2,735"}},
	} {
		var text strings.Builder
		if err := c.write(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: %q is not in\n%s", c.format, want, text.String())
			}
		}
	}
}

// TestJUnitOfRulesNotLookedFor: a rule that was not looked for has not passed.
func TestJUnitOfRulesNotLookedFor(t *testing.T) {
	d := &Diagnosis{Run: "a.4", TimeNs: 100, NotLookedFor: []NotLookedFor{{HandWritten, "too many messages"}}}
	var text strings.Builder
	if err := d.JUnit(&text, 0.01); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`failures="0" errors="1"`,
		`<error message="not looked for: too many messages" type="` + string(HandWritten) + `">`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
}

// Places that have no line, or look as if they had one.
func TestFileAndLine(t *testing.T) {
	for _, c := range []struct {
		place, file string
		line        int
	}{{"/a/b.c:12", "/a/b.c", 12}, {"conj_grad_", "conj_grad_", 0}, {"", "", 0}, {"C:x", "C:x", 0},
		{"lib.so+0x1f:7", "lib.so+0x1f", 7}} {
		if file, line := fileAndLine(c.place); file != c.file || line != c.line {
			t.Errorf("%q: %q, %d", c.place, file, line)
		}
	}
}

// The rule follows from the call that ranks come late to if others wait for that, else from what is waited for most.
func TestRuleByWaits(t *testing.T) {
	for _, c := range []struct {
		call schema.CallID
		ns   map[critical.Awaited]int64
		want Rule
	}{
		{schema.CallSend, map[critical.Awaited]int64{critical.AwaitsSender: 5, critical.AwaitsCollective: 90},
			LateSender},
		{schema.CallWinPost, map[critical.Awaited]int64{critical.AwaitsPost: 5, critical.AwaitsCollective: 90},
			LatePost},
		{schema.CallWinComplete, map[critical.Awaited]int64{critical.AwaitsComplete: 5, critical.AwaitsPost: 90},
			LateComplete},
		{schema.CallWinUnlock, map[critical.Awaited]int64{critical.AwaitsUnlock: 5, critical.AwaitsSender: 90},
			LongLock},
		{schema.CallWinLock, map[critical.Awaited]int64{critical.AwaitsUnlock: 5, critical.AwaitsSender: 90},
			LateSender},
		{schema.CallPut, map[critical.Awaited]int64{critical.AwaitsSender: 5, critical.AwaitsComplete: 90},
			LateComplete},
		{schema.CallWinFence, map[critical.Awaited]int64{critical.AwaitsCollective: 5}, LateCollective},
	} {
		g := &gathered{cause: cause{parts: []*part{{call: c.call}}}, forNs: c.ns}
		if got := g.ruleByWaits(); got != c.want {
			t.Errorf("%s, %v: %s, want %s", c.call, c.ns, got, c.want)
		}
	}
}
