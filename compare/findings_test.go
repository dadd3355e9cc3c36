package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

const ms = 1_000_000

// costs is a run of 2 s with findings: a rule, a call, a file with a line, and the gain in ms.
func costs(run string, found ...string) Causes {
	c := Causes{Run: run, TimeNs: 2000 * ms, Machine: "m"}
	for _, text := range found {
		var x Cause
		var gain int64
		if _, err := fmt.Sscan(strings.Replace(text, ":", " ", 1), &x.Rule, &x.Call, &x.File, &x.Line, &gain); err != nil {
			panic(err)
		}
		x.Place, x.GainNs, x.Share = fmt.Sprintf("%s:%d", x.File, x.Line), gain*ms, float64(gain)/2000
		c.Found = append(c.Found, x)
	}
	return c
}

// shifts are the findings that differ, as they are printed.
func shifts(base, new []Causes) string {
	var d Comparison
	d.AddFindings(base, new)
	var lines []string
	for i := range d.Findings {
		s := &d.Findings[i]
		lines = append(lines, strings.Join([]string{s.change(), s.name(), s.Base.text(), s.New.text()}, "; "))
	}
	return strings.Join(lines, "\n")
}

func TestFindingShifts(t *testing.T) {
	for _, c := range []struct {
		about     string
		base, new []Causes
		want      string
	}{
		{"equal", []Causes{costs("a", "late-sender MPI_Send a.c:12 70")}, []Causes{costs("b", "late-sender MPI_Send a.c:12 70")}, ""},
		{"came", []Causes{costs("a")}, []Causes{costs("b", "late-sender MPI_Send a.c:12 60")},
			"came; late-sender, MPI_Send at a.c:12; ; 60 ms (3 %)"},
		{"less than 1 %", []Causes{costs("a")}, []Causes{costs("b", "late-sender MPI_Send a.c:12 19")}, ""},
		{"the larger first", []Causes{costs("a", "late-root MPI_Bcast a.c:4 40", "late-sender MPI_Send a.c:12 10")},
			[]Causes{costs("b", "late-sender MPI_Send a.c:12 60")},
			"grew; late-sender, MPI_Send at a.c:12; 10 ms (0.5 %); 60 ms (3 %)\nwent; late-root, MPI_Bcast at a.c:4; 40 ms (2 %); "},
		{"a line that moved", []Causes{costs("a", "late-sender MPI_Send a.c:12 80")},
			[]Causes{costs("b", "late-sender MPI_Send a.c:15 20")},
			"shrank, was at a.c:12; late-sender, MPI_Send at a.c:15; 80 ms (4 %); 20 ms (1 %)"},
		{"a line that moved, at the same cost", []Causes{costs("a", "late-sender MPI_Send a.c:12 80")},
			[]Causes{costs("b", "late-sender MPI_Send a.c:15 80")}, ""},
		{"two that could have moved", []Causes{costs("a", "late-sender MPI_Send a.c:12 80")},
			[]Causes{costs("b", "late-sender MPI_Send a.c:15 60", "late-sender MPI_Send a.c:18 40")},
			"went; late-sender, MPI_Send at a.c:12; 80 ms (4 %); \ncame; late-sender, MPI_Send at a.c:15; ; 60 ms (3 %)\n" +
				"came; late-sender, MPI_Send at a.c:18; ; 40 ms (2 %)"},
		{"built in another folder", []Causes{costs("a", "late-sender MPI_Send /1/a.c:12 20", "late-sender MPI_Send /1/a.c:15 30")},
			[]Causes{costs("b", "late-sender MPI_Send /2/a.c:15 30", "late-sender MPI_Send /2/a.c:12 60")},
			"grew; late-sender, MPI_Send at /2/a.c:12; 20 ms (1 %); 60 ms (3 %)"},
		{"another call or file", []Causes{costs("a", "late-sender MPI_Send a.c:12 80")},
			[]Causes{costs("b", "late-sender MPI_Isend a.c:12 80", "late-sender MPI_Send b.c:12 80")},
			"went; late-sender, MPI_Send at a.c:12; 80 ms (4 %); \ncame; late-sender, MPI_Isend at a.c:12; ; 80 ms (4 %)\n" +
				"came; late-sender, MPI_Send at b.c:12; ; 80 ms (4 %)"},
		{"of other ranks at the same place", []Causes{costs("a", "imbalance MPI_Send a.c:12 30", "imbalance MPI_Send a.c:12 30")},
			[]Causes{costs("b", "imbalance MPI_Send a.c:12 60")}, ""},
		{"within the range of the base", []Causes{costs("a", "imbalance MPI_Send a.c:12 30"), costs("b", "imbalance MPI_Send a.c:12 90")},
			[]Causes{costs("c"), costs("d", "imbalance MPI_Send a.c:12 31")}, ""},
		{"outside it", []Causes{costs("a", "imbalance MPI_Send a.c:12 30"), costs("b")},
			[]Causes{costs("c", "imbalance MPI_Send a.c:12 60"), costs("d", "imbalance MPI_Send a.c:12 40")},
			"grew; imbalance, MPI_Send at a.c:12; 15 ms (0.75 %); 50 ms (2.5 %)"},
	} {
		if got := shifts(c.base, c.new); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.about, got, c.want)
		}
	}
}

// How much a finding gains in one run with measured times is no evidence that it grew; in simulated times it is.
func TestFindingsOfSingleMeasuredRuns(t *testing.T) {
	one := func(times string, gain int) Causes {
		c := costs("a", fmt.Sprintf("late-sender MPI_Send a.c:12 %d", gain))
		c.Times = times
		return c
	}
	const of = "; late-sender, MPI_Send at a.c:12; 80 ms (4 %); 20 ms (1 %)"
	for _, c := range []struct {
		base, new []Causes
		want      string
	}{
		{[]Causes{one("measured", 80)}, []Causes{one("measured", 20)}, "~ (n=1, too few to tell)" + of},
		{[]Causes{one("measured", 80)}, []Causes{one("measured", 20), one("measured", 20)}, "~ (n=1, too few to tell)" + of},
		{[]Causes{one("measured", 80), one("measured", 80)}, []Causes{one("measured", 20), one("measured", 20)}, "shrank" + of},
		{[]Causes{one("simulated", 80)}, []Causes{one("simulated", 20)}, "shrank" + of},
	} {
		if got := shifts(c.base, c.new); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// Doubts about findings are said only where findings differ.
func TestFindingDoubts(t *testing.T) {
	late := costs("b", "late-sender MPI_Send a.c:12 60")
	late.Machine, late.Warnings = "n", []string{"the clocks differ"}
	for _, c := range []struct {
		base Causes
		want string
	}{
		{costs("a", "late-sender MPI_Send a.c:12 60"), ""},
		{costs("a"), `
findings                         base          new  change
late-sender, MPI_Send at a.c:12        60 ms (3 %)  came

findings: the gains of a are on m, those of b on n;
          --machine takes one for all
findings: run b: the clocks differ
`},
	} {
		var d Comparison
		d.AddFindings([]Causes{c.base}, []Causes{late})
		var b bytes.Buffer
		if err := d.Text(&b, false, 60); err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(b.String(), "\n\n"); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}

// Findings in times of different kinds are not compared. Nothing is said of runs without findings.
func TestFindingsInOtherTimes(t *testing.T) {
	const found = "late-sender MPI_Send a.c:12 60"
	in := func(c Causes, times, clock string) []Causes {
		c.Times, c.Clock = times, clock
		return []Causes{c}
	}
	base := in(costs("a"), "measured", "cpu")
	for _, c := range []struct {
		new  []Causes
		want []string
	}{
		{in(costs("b"), "simulated", "wall"), nil},
		{in(costs("b", found), "simulated", "cpu"),
			[]string{"not compared: the times of a are measured, those of b are simulated; --machine NAME simulates both"}},
		{in(costs("b", found), "measured", "wall"),
			[]string{"not compared: the compute clock of a is cpu, that of b is wall; only runs of one clock compare (commq capture --clock)"}},
	} {
		var d Comparison
		d.AddFindings(base, c.new)
		if len(d.Findings) > 0 || !slices.Equal(d.FindingNotes, c.want) {
			t.Errorf("%d findings, notes %q; want %q", len(d.Findings), d.FindingNotes, c.want)
		}
	}
}

// Findings of measured runs are doubtful if a side has one run. A run that cannot be diagnosed leaves out all findings.
func TestDiagnose(t *testing.T) {
	run := func(name, times string) Run { return Run{Name: name, Manifest: &schema.Manifest{TimeOrigin: times}} }
	diagnose := func(_ context.Context, r Run) (Causes, error) {
		if r.Name == "bad" {
			return Causes{}, errors.New("it has no end")
		}
		if r.Name == "slow" {
			return costs(r.Name, "late-sender MPI_Send a.c:12 60"), nil
		}
		return costs(r.Name), nil
	}
	for _, c := range []struct {
		base, new []Run
		findings  int
		note      string
	}{
		{[]Run{run("fast", "measured")}, []Run{run("slow", "measured")}, 1, "measured times differ"},
		{[]Run{run("fast", "virtual")}, []Run{run("slow", "virtual")}, 1, ""},
		{[]Run{run("fast", "measured"), run("fast", "measured")},
			[]Run{run("slow", "measured"), run("slow", "measured")}, 1, ""},
		{[]Run{run("fast", "measured")}, []Run{run("fast", "measured")}, 0, ""},
		{[]Run{run("bad", "measured")}, []Run{run("slow", "measured")}, 0, "not looked for: it has no end"},
	} {
		var d Comparison
		err := d.Diagnose(context.Background(), c.base, c.new, diagnose)
		notes := strings.Join(d.FindingNotes, "; ")
		if err != nil || len(d.Findings) != c.findings || (notes != "") != (c.note != "") ||
			!strings.HasPrefix(notes, c.note) {
			t.Errorf("%s and %s: %v, %d findings, notes %q; want %d, %q", c.base[0].Name, c.new[0].Name, err,
				len(d.Findings), notes, c.findings, c.note)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d := Comparison{}
	err := d.Diagnose(ctx, []Run{run("bad", "virtual")}, nil, diagnose)
	if !errors.Is(err, context.Canceled) || len(d.FindingNotes) > 0 {
		t.Errorf("cancelled: %v, notes %q", err, d.FindingNotes)
	}
}
