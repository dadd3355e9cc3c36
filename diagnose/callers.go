package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/run"
)

// Caller is a place in the program from which the call of a finding is reached.
type Caller struct {
	// Function is the function there; it is empty if it is not known.
	Function string `json:"function"`
	// Place is the place of the call in it, with file and line if they are known.
	Place string `json:"callsite"`
	// Ns is its part of the finding: the time on the critical path in the MPI call, what ranks compute longer than they
	// had to before it, or of variation the standard deviation of that computing, all calls together. Of a wait it is
	// the time waited.
	Ns int64 `json:"ns"`
	// Share is that as a part of the sum over all callers.
	Share float64 `json:"share"`
}

// paths are the call paths of a run.
type paths struct {
	frames []run.Frame
	// wrappers are the functions that reach MPI at one place only and are called from several.
	wrappers map[string]bool
}

// functionKey identifies a function: several files can have functions of one name.
func functionKey(f *run.Frame) string {
	file, _ := fileAndLine(f.Place)
	return f.Function + " " + file
}

// parent returns the frame that called the function of a frame; nil if it was not recorded.
func (p *paths) parent(f *run.Frame) *run.Frame {
	if f.Parent < 0 || int(f.Parent) >= len(p.frames) {
		return nil
	}
	return &p.frames[f.Parent]
}

// pathsOf finds the wrappers by the shape of the call paths, not by names.
func pathsOf(frames []run.Frame) *paths {
	p := &paths{frames: frames, wrappers: map[string]bool{}}
	places, callers := map[string]map[string]bool{}, map[string]map[string]bool{}
	note := func(to map[string]map[string]bool, function, place string) {
		if to[function] == nil {
			to[function] = map[string]bool{}
		}
		to[function][place] = true
	}
	for i := range frames {
		f := &frames[i]
		above := p.parent(f)
		if f.Function == "" || above == nil {
			continue
		}
		note(places, functionKey(f), f.Place)
		note(callers, functionKey(f), above.Place)
	}
	for function := range places {
		p.wrappers[function] = len(places[function]) == 1 && len(callers[function]) > 1
	}
	return p
}

// caller returns the first frame above a call site that is not in a wrapper; nil if no caller was recorded.
func (p *paths) caller(site int32) *run.Frame {
	if site < 0 || int(site) >= len(p.frames) {
		return nil
	}
	f := p.parent(&p.frames[site])
	for f != nil && p.wrappers[functionKey(f)] {
		above := p.parent(f)
		if above == nil {
			break
		}
		f = above
	}
	return f
}

// costs has the cost of the calls at each site, in ns.
type costs struct {
	computed *computing
	onPath   map[string]map[int32]int64 // by call, then by site
}

// costsOf returns the costs of a run with this critical path.
func costsOf(computed *computing, path *critical.Path) *costs {
	c := &costs{computed: computed, onPath: map[string]map[int32]int64{}}
	id := func(site int32) string { return strconv.Itoa(int(site)) }
	for _, g := range path.GroupBy([]critical.Key{critical.ByCallsite, critical.ByCall}, id) {
		site, err := strconv.ParseInt(g.Callsite, 10, 32)
		if ns := g.TotalNs() - g.Ns[critical.Compute]; err == nil && ns > 0 {
			if c.onPath[g.Call] == nil {
				c.onPath[g.Call] = map[int32]int64{}
			}
			c.onPath[g.Call][int32(site)] += ns
		}
	}
	return c
}

// bySiteOf returns the cost of a finding by call site, in ns.
func (c *costs) bySiteOf(f *Finding) map[int32]int64 {
	switch {
	case f.bySite != nil:
		return f.bySite
	case f.Rule == Variation:
		return c.deviations(f.sites)
	}
	return c.onPath[f.Call]
}

// deviations returns the standard deviations of computing before calls at some sites, summed as in mostVaried.
func (c *costs) deviations(sites []int32) map[int32]int64 {
	all := map[int32]int64{}
	for of, squares := range c.computed.squares {
		if slices.Contains(sites, of.site) {
			ns := float64(c.computed.ns[of])
			all[of.site] += int64(math.Sqrt(max(0, squares*float64(c.computed.rows[of])-ns*ns)))
		}
	}
	return all
}

// setCallers sets the callers of the function with the finding's call, and of the functions with the calls that wait.
func (f *Finding) setCallers(p *paths, c *costs) {
	f.Function, f.Callers = p.callers(f.sites, c.bySiteOf(f))
	for i := range f.Waits {
		w := &f.Waits[i]
		w.Function, w.Callers = p.callers(slices.Sorted(maps.Keys(w.bySite)), w.bySite)
	}
}

// callers returns the function with a call and its callers, the highest cost first. cost is in ns, by call site. It
// returns no callers if there is only one.
func (p *paths) callers(sites []int32, cost map[int32]int64) (function string, all []Caller) {
	known, sum := map[string]*Caller{}, int64(0)
	for _, site := range sites {
		above := p.caller(site)
		if above == nil || above.Place == "" {
			continue
		}
		function = p.frames[site].Function
		key := above.Function + " " + above.Place
		if known[key] == nil {
			known[key] = &Caller{Function: above.Function, Place: above.Place}
		}
		known[key].Ns += cost[site]
		sum += cost[site]
	}
	all = []Caller{}
	if len(known) < 2 {
		return function, all
	}
	for _, x := range known {
		if x.Ns > 0 {
			x.Share = float64(x.Ns) / float64(sum)
			all = append(all, *x)
		}
	}
	slices.SortFunc(all, func(a, b Caller) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Function, b.Function))
	})
	return function, all
}

// Called names the caller with the largest part of a finding whose call has several: "in send, called from exchange at
// halo.c:80 (62.0 %; 4 other callers)". It is "" for other findings.
func (f *Finding) Called() string { return calledFrom(f.Function, f.Callers) }

// calledFrom names the first of several callers of a function.
func calledFrom(function string, callers []Caller) string {
	if len(callers) == 0 {
		return ""
	}
	first := &callers[0]
	text := "called from " + first.text()
	if function != "" {
		text = "in " + function + ", " + text
	}
	if rest := len(callers) - 1; rest > 0 {
		return fmt.Sprintf("%s (%s; %s)", text, units.Percent(first.Share), units.Count(int64(rest), "other caller"))
	}
	return text
}

// sentence is the title with the caller.
func (f *Finding) sentence() string {
	if called := f.Called(); called != "" {
		return f.Title + "; " + called
	}
	return f.Title
}

func (c *Caller) text() string {
	if c.Function == "" || c.Function == c.Place {
		return c.Place
	}
	return c.Function + " at " + c.Place
}

// callersText lists the callers for people.
func (f *Finding) callersText(s *strings.Builder) {
	if len(f.Callers) == 0 {
		return
	}
	s.WriteString("\nby caller")
	if f.Function != "" {
		fmt.Fprintf(s, " of %s", f.Function)
	}
	s.WriteString("\n")
	rows := [][]string{}
	for i := range f.Callers {
		c := &f.Callers[i]
		rows = append(rows, []string{units.Duration(c.Ns), units.Percent(c.Share), c.text()})
	}
	writeColumns(s, rows, 2)
}
