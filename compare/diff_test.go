package compare

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
)

// exactly returns an exact measure.
func exactly(key string, value int64) Value {
	measure, item, _ := strings.Cut(key, "/")
	return Value{Measure: measure, Item: item, Value: value, Unit: "1", Exact: true}
}

// taking returns a run that took ns nanoseconds.
func taking(ns int64) Sample {
	return Sample{Run: "t", Ranks: 3, Values: []Value{{Measure: "end_ns", Value: ns, Unit: "ns"}}}
}

func sampleWith(run string, values ...Value) Sample {
	return Sample{Run: run, Ranks: 3, Values: values}
}

// whats returns the outcome of each measure.
func whats(all []Change) map[string]string {
	got := map[string]string{}
	for i := range all {
		got[all[i].Key()] = all[i].What
	}
	return got
}

func TestExactMeasures(t *testing.T) {
	base := []Sample{
		sampleWith("a.1", exactly("messages", 40), exactly("calls", 97), exactly("calls/MPI_Send", 40),
			exactly("calls/MPI_Bcast", 3), exactly("pairs", 7), exactly("partners_max", 5), exactly("ranks", 3)),
		sampleWith("a.2", exactly("messages", 40), exactly("calls", 97), exactly("calls/MPI_Send", 40),
			exactly("calls/MPI_Bcast", 3), exactly("pairs", 9), exactly("partners_max", 5), exactly("ranks", 3)),
	}
	base[0].Values = append(base[0].Values, Value{Measure: "payloads", Value: 11, Unit: Fingerprint, Exact: true})
	base[1].Values = append(base[1].Values, Value{Measure: "payloads", Value: 11, Unit: Fingerprint, Exact: true})
	new := []Sample{sampleWith("b", exactly("messages", 41), exactly("calls", 90), exactly("calls/MPI_Send", 40),
		exactly("calls/MPI_Isend", 2), exactly("pairs", 8), exactly("ranks", 3))}
	new[0].Values = append(new[0].Values, Value{Measure: "payloads", Value: 9, Unit: Fingerprint, Exact: true})
	want := map[string]string{"ranks": Same, "messages": More, "pairs": Varies, "partners_max": Unknown,
		"payloads": Differs,
		"calls":    Fewer, "calls/MPI_Bcast": Vanished, "calls/MPI_Isend": Appeared, "calls/MPI_Send": Same}
	if diff := cmp.Diff(want, whats(Diff(base, new, DiffOptions{}))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPartsOfSomeRuns: a part that only some of the runs of one side have varies.
func TestPartsOfSomeRuns(t *testing.T) {
	const part = "messages/<= 16"
	set := func(counts ...int64) (set []Sample) {
		for _, n := range counts {
			set = append(set, sampleWith("r", exactly("messages", 5), exactly(part, n)))
		}
		return set
	}
	for _, c := range []struct {
		base, new []Sample
		want      string
	}{
		{set(0, 0), set(0, 5), Varies}, {set(0, 5), set(0, 0), Varies}, {set(0, 0), set(4, 5), Appeared},
		{set(4, 5), set(0, 0), Vanished},
	} {
		if got := whats(Diff(c.base, c.new, DiffOptions{}))[part]; got != c.want {
			t.Errorf("%v and %v: %s, want %s", c.base, c.new, got, c.want)
		}
	}
}

// TestTimes: five runs of each side that do not overlap have a p-value of 2/252 = 0.0079 (252 ways to choose five of
// ten; two of them, all below and all above, are as extreme).
func TestTimes(t *testing.T) {
	base := []Sample{taking(1000), taking(1010), taking(1020), taking(1030), taking(1040)}
	slower := []Sample{taking(1100), taking(1110), taking(1120), taking(1130), taking(1140)}
	between := []Sample{taking(1005), taking(1015), taking(1022), taking(1025), taking(1035)}
	for _, c := range []struct {
		name string
		new  []Sample
		want string
		p    float64
	}{{"slower", slower, More, 2.0 / 252}, {"itself", base, Same, 1}, {"between", between, Same, -1},
		{"two runs", slower[:2], Unclear, -1}} {
		got := Diff(base, c.new, DiffOptions{})[0]
		if got.What != c.want || c.p > 0 && (got.P < c.p-1e-9 || got.P > c.p+1e-9) {
			t.Errorf("%s: %s with p=%v, want %s with %v", c.name, got.What, got.P, c.want, c.p)
		}
	}
	if got := Diff(slower, base, DiffOptions{})[0]; got.What != Fewer || got.Base.Center != 1120 ||
		got.New.Center != 1020 {
		t.Errorf("faster: %+v", got)
	}
	if got := Diff(base, slower, DiffOptions{Alpha: 0.001})[0]; got.What != Unclear { // 2/252 is as low as p gets
		t.Errorf("alpha 0.001: %+v", got)
	}
	if got := Diff(base[:3], slower[:3], DiffOptions{Alpha: 0.1})[0]; got.What != Unclear { // p is 0.1, and not below it
		t.Errorf("alpha 0.1: %+v", got)
	}
	mixed := []Sample{slower[0], slower[2], taking(1035)} // one of them lies among those of the base
	p := Diff(base, mixed, DiffOptions{})[0].P
	if got := Diff(base, mixed, DiffOptions{Alpha: p})[0]; p <= leastP(5, 3) || got.What != Same {
		t.Errorf("alpha %v: %+v", p, got)
	}
}

// TestMovedCallSites: a renamed function is recognized, unless it makes other calls or two functions fit.
func TestMovedCallSites(t *testing.T) {
	site := func(where string, calls, bytes int64) []Value {
		return []Value{exactly("sites/"+where, 1), exactly("site_calls/"+where, calls),
			exactly("site_bytes/"+where, bytes)}
	}
	whole := []Value{exactly("sites", 1), exactly("site_calls", 1), exactly("site_bytes", 1)}
	set := func(values ...[]Value) []Sample {
		s := sampleWith("r", whole...)
		for _, v := range values {
			s.Values = append(s.Values, v...)
		}
		return []Sample{s}
	}
	old := site("MPI_Isend in exchange (halo.c)", 40, 4097)
	for name, c := range map[string]struct {
		new  []Sample
		what string
	}{
		"renamed":    {set(site("MPI_Isend in swap (halo.c)", 40, 4097)), Moved},
		"more calls": {set(site("MPI_Isend in swap (halo.c)", 41, 4097)), Vanished},
		"more bytes": {set(site("MPI_Isend in swap (halo.c)", 40, 4098)), Vanished},
		"other call": {set(site("MPI_Send in exchange (halo.c)", 40, 4097)), Vanished},
		"two fit": {set(site("MPI_Isend in a (halo.c)", 40, 4097), site("MPI_Isend in b (halo.c)", 40, 4097)),
			Vanished},
	} {
		changes := Diff(set(old), c.new, DiffOptions{})
		if got := whats(changes)["site_calls/MPI_Isend in exchange (halo.c)"]; got != c.what {
			t.Errorf("%s: %s, want %s", name, got, c.what)
		}
	}
}

func TestText(t *testing.T) {
	base := []Sample{sampleWith("main.1", exactly("messages", 1200), exactly("messages/<= 1 Ki", 1200),
		exactly("pairs", 6), exactly("calls", 50), exactly("calls/MPI_Send", 50),
		Value{Measure: "end_ns", Value: 1_250_000, Unit: "ns"})}
	new := []Sample{sampleWith("pr.1", exactly("messages", 1500), exactly("messages/<= 16", 300),
		exactly("messages/<= 1 Ki", 1200), exactly("pairs", 6), exactly("calls", 50), exactly("calls/MPI_Isend", 50),
		Value{Measure: "end_ns", Value: 1_500_000, Unit: "ns"})}
	d, err := Compare(base, new, DiffOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var text, markdown bytes.Buffer
	if err := d.Text(&text, false, 0); err != nil {
		t.Fatal(err)
	}
	want := `base  main.1 (3 ranks)
new   pr.1 (3 ranks)

exact         base    new  change
messages     1,200  1,500  +25 %
  <= 16          0    300  appeared
calls
  MPI_Isend      0     50  appeared
  MPI_Send      50      0  vanished

3 other exact measures are the same.

times      base     new  vs base
end_ns  1.25 ms  1.5 ms  ~ (n=1, too few for a test)
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := d.Markdown(&markdown, false); err != nil {
		t.Fatal(err)
	}
	if got := markdown.String(); !strings.Contains(got,
		"| exact | base | new | change |\n|---|---:|---:|---|\n| messages | 1,200 | 1,500 | +25 % |\n|   &lt;= 16 | 0 | 300 | appeared |\n") {
		t.Error(got)
	}
	if !d.Changed() {
		t.Error("nothing changed")
	}
}

// TestTextOfHostileNames: a name ends no line, and a note neither.
func TestTextOfHostileNames(t *testing.T) {
	d, err := Compare([]Sample{sampleWith("a\n::add-mask::x", exactly("messages", 1))},
		[]Sample{sampleWith("b\x1b[2J", exactly("messages", 1))}, DiffOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.FindingNotes = []string{"c\n::stop-commands::y"}
	for _, width := range []int{0, 60} {
		var b bytes.Buffer
		if err := d.Text(&b, false, width); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.HasPrefix(got, `base  a\n::add-mask::x (`) ||
			!strings.Contains(got, `new   b\x1b[2J (`) || !strings.HasSuffix(got, "findings: c\\n::stop-commands::y\n") {
			t.Error(got)
		}
	}
}

func TestInvalidSetsAreRejected(t *testing.T) {
	one := sampleWith("a", exactly("messages", 1))
	other := Sample{Run: "b", Ranks: 5}
	for _, c := range []struct {
		base, new []Sample
		want      string
	}{{nil, []Sample{one}, "base: no run"}, {[]Sample{one}, []Sample{one, other},
		"new: run a has 3 ranks and run b 5"}} {
		if _, err := Compare(c.base, c.new, DiffOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// A comparison that cannot be written tells why once.
func TestComparisonOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		testenv.Skip(t, "no /dev/full here")
	}
	defer full.Close()
	d := &Comparison{Base: []string{"a"}, New: []string{"b"}, FindingNotes: []string{"none"}}
	for _, err := range []error{d.Text(full, false, 0), d.Markdown(full, false)} {
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
		}
	}
}
