package compare

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/commq/commq/internal/stats"
	"github.com/commq/commq/internal/units"
)

// Outcomes for a finding.
const (
	Came   = "came"   // only the new runs have it
	Went   = "went"   // only the base has it
	Grew   = "grew"   // mending it gains more in the new runs
	Shrank = "shrank" // likewise less, or Unclear if a side has one run whose times were measured
)

// leastShift is the least difference of gains that counts, as a part of the base's time.
const leastShift = 0.01

// FindingShift is a finding of commq diagnose that differs between two sets of runs.
type FindingShift struct {
	// What is the outcome: came, went, grew or shrank; unclear if both sides have the finding and one of them is a
	// single run whose times were measured.
	What string `json:"what"`
	// Rule is the kind of finding.
	Rule string `json:"rule"`
	// Call is the MPI call at its place; empty where there is no one place.
	Call string `json:"call"`
	// Place is that call's place in the new program, or in the base if only it has the finding.
	Place string `json:"callsite"`
	// From is the call's place in the base if its line moved.
	From string `json:"from,omitempty"`
	// Title says what is the matter in the last run that has the finding.
	Title string `json:"title"`
	// Base is the gain of mending it in the runs of the base.
	Base SideGain `json:"base"`
	// New is the gain in the other runs.
	New SideGain `json:"new"`
}

// SideGain is the gain of mending a finding in one set of runs. Runs that lack the finding count as 0.
type SideGain struct {
	// Found is how many of the runs have the finding.
	Found int `json:"found"`
	// LowNs and HighNs are the least and the greatest gain.
	LowNs  int64 `json:"low_ns"`
	HighNs int64 `json:"high_ns"`
	// GainNs is the median of the gains.
	GainNs int64 `json:"gain_ns"`
	// Share is the median of the gains as parts of the runs' times.
	Share float64 `json:"share"`
	// Bound means that in one of the runs the gain was not simulated and is at most this.
	Bound bool `json:"bound,omitempty"`
}

// Diagnose diagnoses the runs of both sides and adds the findings that differ, as AddFindings. If a run cannot be
// diagnosed, the notes tell why and there are no findings: the runs still have their measures.
func (d *Comparison) Diagnose(ctx context.Context, base, new []Run,
	diagnose func(ctx context.Context, r Run) (Causes, error)) error {
	all := slices.Concat(base, new)
	var causes []Causes
	for _, r := range all {
		found, err := diagnose(ctx, r)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			d.FindingNotes = append(d.FindingNotes, fmt.Sprintf("not looked for: %v", err))
			return nil
		}
		causes = append(causes, found)
	}
	d.AddFindings(causes[:len(base)], causes[len(base):])
	measured := func(r Run) bool { return r.Manifest.TimeOrigin == "measured" }
	if len(d.Findings) > 0 && min(len(base), len(new)) == 1 && slices.ContainsFunc(all, measured) {
		d.FindingNotes = slices.Insert(d.FindingNotes, 0, "measured times differ from run to run; several runs of "+
			"each side (--base and --run) show by how much")
	}
	return nil
}

// AddFindings compares the findings of two sets of runs, and keeps what came, went, grew or shrank, the greatest
// difference first. With such a finding, what makes the findings of the runs doubtful is noted. Findings whose times
// cannot be compared are not; the notes tell why.
func (d *Comparison) AddFindings(base, new []Causes) {
	all := slices.Concat(base, new)
	if why := incomparable(all); why != "" {
		if slices.ContainsFunc(all, func(c Causes) bool { return len(c.Found) > 0 }) {
			d.FindingNotes = append(append(d.FindingNotes, why), doubtsOf(all)...)
		}
		return
	}
	b, n := gather(base), gather(new)
	pairFindings(b, n)
	measured := func(c Causes) bool { return c.Times == "measured" }
	few := min(len(base), len(new)) == 1 && slices.ContainsFunc(all, measured)
	least := leastShift * medianTime(base)
	for _, f := range b {
		d.addShift(f, f.same, least, len(base), len(new))
	}
	for _, f := range n {
		if f.same == nil {
			d.addShift(nil, f, least, len(base), len(new))
		}
	}
	for i := range d.Findings {
		if s := &d.Findings[i]; few && (s.What == Grew || s.What == Shrank) {
			s.What = Unclear
		}
	}
	slices.SortStableFunc(d.Findings, func(x, y FindingShift) int { return cmp.Compare(y.size(), x.size()) })
	if len(d.Findings) > 0 {
		d.FindingNotes = append(d.FindingNotes, doubtsOf(all)...)
	}
}

// incomparable says why the times of the findings of runs cannot be compared, and what to do; "" if they can.
func incomparable(runs []Causes) string {
	for i := range runs {
		switch a, b := &runs[0], &runs[i]; {
		case a.Clock != b.Clock:
			return fmt.Sprintf("not compared: the compute clock of %s is %s, that of %s is %s; only runs of one "+
				"clock compare (commq capture --clock)", a.Run, a.Clock, b.Run, b.Clock)
		case a.Times != b.Times:
			return fmt.Sprintf("not compared: the times of %s are %s, those of %s are %s; --machine NAME "+
				"simulates both",
				a.Run, a.Times, b.Run, b.Times)
		}
	}
	return ""
}

// doubtsOf returns the reasons why findings of runs are doubtful, each once.
func doubtsOf(runs []Causes) (notes []string) {
	for i := range runs {
		if m := runs[i].Machine; m != runs[0].Machine {
			notes = append(notes, fmt.Sprintf("the gains of %s are on %s, those of %s on %s; --machine takes one "+
				"for all", runs[0].Run, runs[0].Machine, runs[i].Run, m))
			break
		}
	}
	for i := range runs {
		for _, text := range runs[i].Warnings {
			notes = append(notes, fmt.Sprintf("run %s: %s", runs[i].Run, text))
		}
	}
	return notes
}

// sideFinding is the same finding in the runs of a side.
type sideFinding struct {
	Cause                // in the last run that has it
	gains  map[int]int64 // by the number of the run
	shares map[int]float64
	bound  bool
	same   *sideFinding // of the other side
}

// gather gathers the findings of a side by rule, call and place. Several in a run, of other ranks, add up.
func gather(runs []Causes) (all []*sideFinding) {
	at := map[string]*sideFinding{}
	for i := range runs {
		for _, c := range runs[i].Found {
			if c.Apart {
				continue
			}
			f := at[c.key(exactPlace)]
			if f == nil {
				f = &sideFinding{gains: map[int]int64{}, shares: map[int]float64{}}
				at[c.key(exactPlace)] = f
				all = append(all, f)
			}
			f.Cause, f.bound = c, f.bound || c.Bound
			f.gains[i] += c.GainNs
			f.shares[i] += c.Share
		}
	}
	return all
}

// likeness is the part of the places of two findings that must be equal.
type likeness int

const (
	exactPlace  likeness = iota
	fileAndLine          // without the folder: the program can be built in another one
	fileOnly             // the line moved
)

// key identifies equal findings.
func (c *Cause) key(like likeness) string {
	place := c.Place
	switch {
	case like == fileOnly && c.Line > 0:
		place = path.Base(c.File)
	case like == fileAndLine && c.Line > 0:
		place = fmt.Sprintf("%s:%d", path.Base(c.File), c.Line)
	}
	return strings.Join([]string{c.Rule, c.Call, place}, "\x00")
}

// pairFindings finds for each finding the same one of the other side: at the same place, else at a place like it, if
// only one is left on both sides.
func pairFindings(base, new []*sideFinding) {
	for _, like := range []likeness{exactPlace, fileAndLine, fileOnly} {
		b, n := unpaired(base, like), unpaired(new, like)
		for key, of := range b {
			if len(of) == 1 && len(n[key]) == 1 {
				of[0].same, n[key][0].same = n[key][0], of[0]
			}
		}
	}
}

func unpaired(side []*sideFinding, like likeness) map[string][]*sideFinding {
	left := map[string][]*sideFinding{}
	for _, f := range side {
		if f.same == nil {
			left[f.key(like)] = append(left[f.key(like)], f)
		}
	}
	return left
}

// addShift adds the difference of a finding if it counts: if the medians differ by at least least, and no run of the
// one side has a gain within the range of the other. base or new is nil if no run of that side has the finding.
func (d *Comparison) addShift(base, new *sideFinding, least float64, bases, news int) {
	s := FindingShift{Base: base.gain(bases), New: new.gain(news)}
	if apart := s.New.LowNs > s.Base.HighNs || s.New.HighNs < s.Base.LowNs; !apart || float64(s.size()) < least {
		return
	}
	switch {
	case s.Base.Found == 0:
		s.What = Came
	case s.New.Found == 0:
		s.What = Went
	case s.New.GainNs > s.Base.GainNs:
		s.What = Grew
	default:
		s.What = Shrank
	}
	last := new
	if last == nil {
		last = base
	}
	s.Rule, s.Call, s.Place, s.Title = last.Rule, last.Call, last.Place, last.Text
	if base != nil && base.key(fileAndLine) != last.key(fileAndLine) {
		s.From = base.Place
	}
	d.Findings = append(d.Findings, s)
}

// gain returns the gain of a finding in a set of this many runs.
func (f *sideFinding) gain(runs int) (g SideGain) {
	if f == nil {
		return g
	}
	var gains []int64
	var shares []float64
	for i := range runs {
		gains, shares = append(gains, f.gains[i]), append(shares, f.shares[i])
	}
	return SideGain{Found: len(f.gains), LowNs: slices.Min(gains), HighNs: slices.Max(gains),
		GainNs: int64(stats.Median(gains)), Share: stats.Median(shares), Bound: f.bound}
}

// size returns the difference of the gains, without its sign.
func (s *FindingShift) size() int64 {
	return max(s.New.GainNs-s.Base.GainNs, s.Base.GainNs-s.New.GainNs)
}

func medianTime(runs []Causes) float64 {
	var times []int64
	for i := range runs {
		times = append(times, runs[i].TimeNs)
	}
	return stats.Median(times)
}

// shownNotes limits the notes about findings in texts.
const shownNotes = 3

// writeFindings writes the findings that differ, and notes about them. Without both it writes nothing.
func (d *Comparison) writeFindings(w io.Writer, format func(*grid) string, line func(note string) string) error {
	var b strings.Builder
	if len(d.Findings) > 0 {
		g := &grid{}
		g.add("findings", "base", "new", "change")
		for i := range d.Findings {
			s := &d.Findings[i]
			g.add(s.name(), s.Base.text(), s.New.text(), s.change())
		}
		b.WriteString("\n" + format(g))
	}
	notes := d.FindingNotes
	if more := len(notes) - shownNotes; more > 0 {
		notes = append(slices.Clone(notes[:shownNotes]), plural(int64(more), "more note")+", which --format json has")
	}
	for i, note := range notes {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(line(note) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// name is the rule and the place.
func (s *FindingShift) name() string {
	c := Cause{Call: s.Call, Place: s.Place}
	if s.Call == "" {
		return s.Rule
	}
	return s.Rule + ", " + c.site()
}

// change is the outcome in words.
func (s *FindingShift) change() string {
	what := s.What
	if what == Unclear {
		what = "~ (n=1, too few to tell)"
	}
	if s.From != "" {
		return what + ", was at " + s.From
	}
	return what
}

// text is the gain in words; empty if no run has the finding.
func (g *SideGain) text() string {
	if g.Found == 0 {
		return ""
	}
	most := ""
	if g.Bound {
		most = "at most "
	}
	return fmt.Sprintf("%s%s (%s)", most, units.Duration(g.GainNs), units.Percent(g.Share))
}
