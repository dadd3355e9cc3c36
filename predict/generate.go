package predict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/schema"
)

// Extrapolation is what a model says of a number of ranks.
type Extrapolation struct {
	// Signature is that of the run that would be, Run the run itself.
	Signature *Signature
	Run       *Run
	// Unmatched says of sends that nobody would receive, and of receives that would get nothing, which they are; a run has none where the program
	// is right.
	Unmatched []string
	// Inexact is how many numbers (bytes, counts, tags) are from laws that do not have all runs, or that others that do disagree with; Numbers how
	// many there are.
	Inexact, Numbers int64
	// Compute is what ranks compute; nil where nothing is said of it, see Model.TimesRefused.
	Compute *ComputeTime
	// Loops are those of which it is not certain how often they are repeated, Unknown the communications that are not known, and why.
	Loops   []UncertainLoop
	Unknown []string
	// Warnings say what else was not known.
	Warnings []string
	// Settled are the communications of which one law was taken of several that disagree (ExtrapolateUndecided); SettledMessages of all Messages go where
	// they are sent by their calls.
	Settled                   []string
	SettledMessages, Messages int64

	told map[*valueLaw]map[int64][2]int64 // bounds of numbers that are not exact, by law and number
}

// tell notes the bounds of a number that is not exact.
func (x *Extrapolation) tell(l *valueLaw, s said) {
	if x.told == nil {
		x.told = map[*valueLaw]map[int64][2]int64{}
	}
	if x.told[l] == nil {
		x.told[l] = map[int64][2]int64{}
	}
	b, known := x.told[l][s.value]
	if !known {
		b = [2]int64{s.low, s.high}
	}
	x.told[l][s.value] = [2]int64{min(b[0], s.low), max(b[1], s.high)}
}

// generator makes what ranks do at a number of ranks.
type generator struct {
	*Model
	ranks    int32
	maps     map[string]*pattern.Map
	missing  map[string]string // families and slots that cannot be asked, and why
	comms    []schema.Comm
	commIDs  map[*commModel][]int32    // by rank
	place    map[int32]map[int32]int32 // world rank: rank, by communicator
	result   *Extrapolation
	warned   map[string]bool
	extents  map[int32]said            // iterations of loops, by node
	families map[string][]*pattern.Law // of a site
	asked    map[madeCall]*askedMaps
	signer   *signer
	said     *timesSaid
	worlds   int // communicators that have all ranks
	// partTotals is what members of communicators send and receive in collectives with a count per peer, partRows how many parts these have.
	partTotals map[totalsOf]*totals
	partRows   int64
	// undecided says that of laws that disagree one is taken; settled has it, by slot; wasRival says that there were others, rivalSite of which
	// sites.
	undecided bool
	settled   map[string]*pattern.Map
	wasRival  map[string]bool
	rivalSite map[string]bool
}

// askedMaps are the maps of a site's families at a place: who takes part, whom it sends to, whom it receives from.
type askedMaps struct{ in, to, from *pattern.Map }

// Progress is told how many of how many ranks are made.
type Progress func(done, all int32)

// Extrapolate makes the run at a number of ranks, as a signature; progress may be nil. It is an error when the training runs do not tell enough of it, or
// when what they tell cannot be: sends without receives, or ranks that wait for one another. Its memory grows with what ranks do that is different, not
// with what they do. It ends when ctx does.
func (m *Model) Extrapolate(ctx context.Context, ranks int32, progress Progress) (*Extrapolation, error) {
	return m.extrapolate(ctx, ranks, progress, false)
}

func (m *Model) extrapolate(ctx context.Context, ranks int32, progress Progress, undecided bool) (*Extrapolation, error) {
	if ranks < 1 {
		return nil, fmt.Errorf("%d ranks: want at least 1", ranks)
	}
	g := &generator{Model: m, ranks: ranks, maps: map[string]*pattern.Map{}, missing: map[string]string{}, commIDs: map[*commModel][]int32{},
		place: map[int32]map[int32]int32{}, warned: map[string]bool{}, extents: map[int32]said{}, families: map[string][]*pattern.Law{},
		asked: map[madeCall]*askedMaps{}, result: &Extrapolation{}, undecided: undecided, settled: map[string]*pattern.Map{}, partTotals: map[totalsOf]*totals{}, wasRival: map[string]bool{}, rivalSite: map[string]bool{}}
	g.said = newTimesSaid()
	if why := m.thin(ranks); why != "" {
		return g.result, errors.New(why)
	}
	if why := m.unused(); why != "" && ranks > m.Training[len(m.Training)-1] {
		g.result.Warnings = append(g.result.Warnings, why)
	}
	for i := range m.Pattern.Laws {
		l := &m.Pattern.Laws[i]
		g.families[l.Site] = append(g.families[l.Site], l)
	}
	if err := g.communicators(); err != nil {
		return g.result, err
	}
	last := m.t.runs[len(m.t.runs)-1]
	run := &Run{Name: fmt.Sprintf("%s at %d", last.Run, ranks), Comms: g.comms,
		Manifest: &schema.Manifest{SchemaVersion: schema.Version, Ranks: ranks, TimeOrigin: "untimed", ComputeClock: m.times().clock, Record: "all", Hash: "none",
			Callsites: len(m.t.Frames) > 0, Stack: last.Stack, Ended: "finalized"}}
	g.tables(run)
	run.Events = func(add func(*schema.Events) error) error { return g.signer.sig.rows(add) }
	err := g.sign(ctx, run, progress)
	if ctx.Err() != nil {
		return g.result, ctx.Err()
	}
	if len(g.missing) > 0 {
		var why []string
		for _, k := range sortedKeys(g.missing) {
			why = append(why, k+": "+g.missing[k])
		}
		g.result.Unknown = why
		if err == nil {
			err = fmt.Errorf("%d communications are not known there: %s", len(why), strings.Join(why[:min(3, len(why))], "; "))
		} else {
			err = fmt.Errorf("%d communications are not known there: %s; what is left cannot run: %w", len(why), strings.Join(why[:min(3, len(why))], "; "), err)
		}
	}
	if err != nil {
		return g.result, fmt.Errorf("at %d ranks: %w", ranks, err)
	}
	g.tellSettled()
	g.result.Signature, g.result.Run, g.result.Unmatched, g.result.Compute = g.signer.sig, run, g.signer.unmatched, g.computeTime()
	return g.result, nil
}

// sign makes what each rank does, on the template of the training runs, and looks whether it can be.
func (g *generator) sign(ctx context.Context, run *Run, progress Progress) error {
	s := emptySigner(run)
	g.signer = s
	s.sig.Symbols, s.sig.Template = g.t.Symbols, g.t.Template.clone()
	s.sig.link()
	s.begin()
	for r := range g.ranks {
		if err := ctx.Err(); err != nil {
			return err
		}
		calls, err := g.rank(r)
		if err != nil {
			return err
		}
		s.sig.Calls += calls
		if progress != nil {
			progress(r+1, g.ranks)
		}
	}
	return s.findPhases()
}

// tables makes the small tables of the run: those of all training runs.
func (g *generator) tables(run *Run) {
	for i := range g.t.Frames {
		f := &g.t.Frames[i]
		row := schema.NullCallsite
		row.ID, row.Parent = f.ID, value(f.Parent, schema.NullInt32)
		row.Module, row.BuildID, row.Function, row.File = orNull(f.Module), orNull(f.BuildID), orNull(f.Function), orNull(f.File)
		row.Offset, row.Line = value(f.Offset, schema.NullInt64), value(f.Line, schema.NullInt32)
		run.Callsites = append(run.Callsites, row)
	}
	for _, d := range g.t.Datatypes {
		row := schema.NullDatatype
		row.ID, row.Name, row.Combiner, row.Bytes, row.ExtentBytes = d.ID, orNull(d.Name), "named", d.Bytes, d.Bytes
		if d.Name == "" {
			row.Combiner = "other"
		}
		run.Datatypes = append(run.Datatypes, row)
	}
}

// worldLike is the communicator of the largest run that is the number-th of those with all ranks; nil where there is none, or runs do not agree on its kind
// and name.
func (g *generator) worldLike(number int) (like *Comm) {
	for i, s := range g.t.runs {
		of := s.wholeComms()
		if number >= len(of) {
			return nil
		}
		c := of[number]
		if i > 0 && (like == nil || c.Kind != like.Kind || c.Name != like.Name) {
			return nil
		}
		like = c
	}
	return like
}

// cart is the extents of the Cartesian topology of the number-th communicator with all ranks, and along which axes it is periodic, as the table comms has them; null
// where runs have none, or where laws do not say one thing.
func (g *generator) cart(number int) (dims, periods string) {
	seen := map[int32][]int32{}
	for i, s := range g.t.runs {
		of := s.wholeComms()
		if number >= len(of) || i > 0 && of[number].Periods != periods {
			return schema.NullText, schema.NullText
		}
		periods = of[number].Periods
		if seen[s.Ranks] = of[number].extents(); seen[s.Ranks] == nil {
			return schema.NullText, schema.NullText
		}
	}
	extents, ok := pattern.Extents(seen, g.ranks)
	if !ok {
		return schema.NullText, schema.NullText
	}
	var all []string
	for _, n := range extents {
		all = append(all, strconv.Itoa(int(n)))
	}
	return strings.Join(all, ","), orNull(periods)
}

// extents are those of the communicator's Cartesian topology; nil where it has none.
func (c *Comm) extents() (dims []int32) {
	if c.Dims == "" {
		return nil
	}
	for _, field := range strings.Split(c.Dims, ",") {
		n, err := strconv.ParseInt(field, 10, 32)
		if err != nil {
			return nil
		}
		dims = append(dims, int32(n))
	}
	return dims
}

// subgrid is the topology of communicators that are parts of a Cartesian grid of all ranks (MPI_Cart_sub), as the table comms has it: the axes of the grid
// which have the extents and the periods of the part in all runs; null where none have, or where several have that differ here.
func (g *generator) subgrid(c *commModel) (dims, periods string) {
	if c.like == nil || c.like.Parent == nil {
		return schema.NullText, schema.NullText
	}
	number := int(g.parent(c.like)) // those with all ranks come first, in this order
	if number < 0 {
		return schema.NullText, schema.NullText
	}
	of, _ := g.cart(number)
	here := (&Comm{Dims: text(of)}).extents()
	if here == nil {
		return schema.NullText, schema.NullText
	}
	var found []string
	around := strings.Split(g.t.runs[0].wholeComms()[number].Periods, ",") // the same in all runs
	axes := len(strings.Split(c.like.Dims, ","))
	for keep := uint32(1); keep < 1<<len(here); keep++ {
		if bits.OnesCount32(keep) != axes || slices.ContainsFunc(c.runs, func(part subComm) bool { return !part.keeps(keep, number) }) {
			continue
		}
		var extents, periodic []string
		for a, n := range here {
			if keep>>a&1 == 1 {
				extents, periodic = append(extents, strconv.Itoa(int(n))), append(periodic, around[a])
			}
		}
		found = append(found, strings.Join(extents, ",")+" "+strings.Join(periodic, ","))
	}
	if found = slices.Compact(found); len(found) != 1 {
		return schema.NullText, schema.NullText
	}
	dims, periods, _ = strings.Cut(found[0], " ")
	return dims, periods
}

// subComm is a communicator of a run.
type subComm struct {
	run  *Signature
	comm *Comm
}

// keeps says whether the communicator has those axes (bits) of the grid of its run's number-th communicator with all ranks.
func (c subComm) keeps(axes uint32, number int) bool {
	whole := c.run.wholeComms()
	if number >= len(whole) {
		return false
	}
	extents, around := whole[number].extents(), strings.Split(whole[number].Periods, ",")
	if len(extents) != len(around) {
		return false
	}
	var dims []int32
	var periods []string
	for a := range extents {
		if axes>>a&1 == 1 {
			dims, periods = append(dims, extents[a]), append(periods, around[a])
		}
	}
	return slices.Equal(dims, c.comm.extents()) && strings.Join(periods, ",") == c.comm.Periods
}

// parent is the id of the parent of a communicator of the largest run, where it has all ranks; else null.
func (g *generator) parent(c *Comm) int32 {
	if c.Parent == nil {
		return schema.NullInt32
	}
	of := g.t.runs[len(g.t.runs)-1].wholeComms()
	i := slices.IndexFunc(of, func(x *Comm) bool { return x.ID == *c.Parent })
	if i < 0 || i >= g.worlds {
		return schema.NullInt32
	}
	return int32(i) // those with all ranks come first, in this order
}

// communicators makes those of the run.
func (g *generator) communicators() error {
	next := int32(0)
	add := func(members []int32, kind string, like *Comm) int32 {
		id := next
		next++
		g.place[id] = map[int32]int32{}
		for p, world := range members {
			row := schema.NullComm
			row.Comm, row.CommRank, row.WorldRank = id, int32(p), world
			row.Kind = int16(max(0, slices.Index(schema.CommKindNames, kind)))
			if like != nil {
				row.Name, row.Parent = orNull(like.Name), g.parent(like)
			}
			g.comms = append(g.comms, row)
			g.place[id][world] = int32(p)
		}
		return id
	}
	all := make([]int32, g.ranks)
	for r := range all {
		all[r] = int32(r)
	}
	g.worlds = 1
	for _, c := range g.Model.comms {
		g.worlds = max(g.worlds, c.world+1)
	}
	ids := []int32{}
	for w := range g.worlds {
		kind := "dup"
		if w == 0 {
			kind = "world"
		}
		like := g.worldLike(w)
		if like != nil {
			kind = like.Kind
		}
		first := len(g.comms)
		ids = append(ids, add(all, kind, like))
		dims, periods := g.cart(w)
		for i := range g.comms[first:] {
			g.comms[first+i].CartDims, g.comms[first+i].CartPeriods = dims, periods
		}
	}
	var parts []*partition
	for _, c := range g.Model.comms {
		if c.world >= 0 {
			g.commIDs[c] = slices.Repeat([]int32{ids[c.world]}, int(g.ranks))
			continue
		}
		m, err := g.Pattern.At(c.slot, g.ranks)
		if err != nil {
			return fmt.Errorf("communicators of %s at %d ranks are not known: %w", c.slot, g.ranks, err)
		}
		p := &partition{commModel: c, next: m, of: slices.Repeat([]int32{-1}, int(g.ranks))}
		p.dims, p.periods = g.subgrid(c)
		parts = append(parts, p)
		g.commIDs[c] = p.of
	}
	slices.SortStableFunc(parts, func(a, b *partition) int { return cmp.Compare(a.made(), b.made()) })
	for r := range g.ranks { // as captures number them: by the first rank that is in one, in the order in which that has made them
		for _, p := range parts {
			if p.of[r] >= 0 {
				continue
			}
			members := []int32{}
			for at, more := r, true; more && p.of[at] < 0; {
				members, p.of[at] = append(members, at), next
				at, more = p.next.Dst(at)
				if more && (at < 0 || at >= g.ranks) {
					return fmt.Errorf("communicators of %s at %d ranks: rank %d is none", p.slot, g.ranks, at)
				}
			}
			if _, in := p.next.Dst(r); !in {
				p.of[r] = -1
				continue
			}
			first := len(g.comms)
			add(members, p.kind, p.like)
			dims, periods := p.topology(len(members))
			for i := range g.comms[first:] {
				g.comms[first+i].CartDims, g.comms[first+i].CartPeriods = dims, periods
			}
		}
	}
	return nil
}

// partition is communicators that are made alike and have some of the ranks each.
type partition struct {
	*commModel
	next          *pattern.Map // of a member: the next one
	of            []int32      // by rank; -1: in none
	dims, periods string
}

// made is the number of the first of them in the largest run.
func (p *partition) made() int32 {
	if n := len(p.runs); n > 0 {
		return p.runs[n-1].comm.ID
	}
	return math.MaxInt32
}

// topology is that of a communicator with so many members; null where its extents do not have as many.
func (p *partition) topology(members int) (dims, periods string) {
	all := 1
	for _, n := range (&Comm{Dims: text(p.dims)}).extents() {
		all *= int(n)
	}
	if p.dims == schema.NullText || all != members {
		return schema.NullText, schema.NullText
	}
	return p.dims, p.periods
}

// ask is the map of a slot of a family; nil where there is none, or it is not known.
func (g *generator) ask(x *siteModel, family string, index []int32) *pattern.Map {
	name := slotName(family, index)
	if m, known := g.maps[name]; known {
		return m
	}
	m, err := g.answer(family, name, index)
	if err != nil && g.undecided {
		if m = g.settle(x, family, name, index); m != nil {
			g.wasRival[name], g.rivalSite[family], err = true, true, nil
		}
	}
	if err != nil {
		g.missing[name] = err.Error()
		m = nil
	}
	g.maps[name] = m
	return m
}

// answer is what the laws of a family say of a place; nil where it is not there.
func (g *generator) answer(family, name string, index []int32) (*pattern.Map, error) {
	if s := g.slot(name); s != nil {
		if g.gone(s) {
			return nil, nil
		}
		return g.Pattern.At(name, g.ranks)
	}
	laws := g.families[family]
	if len(laws) != 1 || len(index) == 0 || len(laws[0].Members) < 2 {
		return nil, nil
	}
	m, err := laws[0].At(g.ranks, index)
	if err != nil {
		if all, e := laws[0].Indices(g.ranks); e == nil && !slices.ContainsFunc(all, func(x []int32) bool { return slices.Equal(x, index) }) {
			return nil, nil // there is no such place
		}
	}
	return m, err
}

// gone says whether a slot is there on few ranks only: the two largest runs or more do not have it. What is done where an axis has one rank is not done
// where it has more.
func (g *generator) gone(s *pattern.Slot) bool {
	last := int32(0)
	for _, m := range s.Runs {
		last = max(last, m.Ranks)
	}
	n := len(g.Training)
	return g.ranks > last && n > 2 && last < g.Training[n-2]
}

// slot is the slot of a name, nil if there is none.
func (m *Model) slot(name string) *pattern.Slot {
	i := slices.IndexFunc(m.slots, func(s pattern.Slot) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &m.slots[i]
}

// ask3 are the maps of a site at a place.
func (g *generator) ask3(x *siteModel, index []int32) *askedMaps {
	k := madeCall{x.node.ID, placeOf(index)}
	a, known := g.asked[k]
	if !known {
		a = &askedMaps{}
		for _, f := range []struct {
			family string
			to     **pattern.Map
		}{{x.in, &a.in}, {x.to, &a.to}, {x.from, &a.from}} {
			if f.family != "" {
				*f.to = g.ask(x, f.family, index)
			}
		}
		g.asked[k] = a
	}
	return a
}

// takes says whether a rank makes a site's call at a place.
func (g *generator) takes(x *siteModel, rank int32, index []int32) bool {
	var m *pattern.Map
	switch a := g.ask3(x, index); {
	case x.in != "":
		m = a.in
	case x.to != "":
		m = a.to
	case x.from != "":
		m = a.from
	default:
		return len(index) == 0 || x.at[placeOf(index)] != nil || len(x.slots) == 0
	}
	if m == nil {
		return false
	}
	_, takes := m.Dst(rank)
	return takes
}

func placeOf(index []int32) (p place) {
	copy(p[:], index)
	return p
}

// rank makes what a rank does, and says how many calls that are.
func (g *generator) rank(rank int32) (calls int64, err error) {
	s := g.signer
	w := &rankWriter{generator: g, rank: rank, at: map[int32]int32{}, done: map[madeCall]*doneCall{},
		p: &signedRank{open: []openLoop{{node: s.sig.nodes[0]}}, made: make([]int32, len(s.sig.nodes))}, started: g.newStarter()}
	w.body(g.t.nodes[0])
	s.sig.Roots = append(s.sig.Roots, s.endLoop(&w.p.open[0]))
	return w.calls, w.err
}

// rankWriter writes what a rank does.
type rankWriter struct {
	*generator
	rank  int32
	p     *signedRank
	at    map[int32]int32 // iteration of each loop that has places
	open  []post          // calls whose requests are not completed
	done  map[madeCall]*doneCall
	calls int64
	err   error
	// started are the persistent requests so far.
	started starter
}

// doneCall is a call that the rank makes again and again, but for what it completes.
type doneCall struct {
	call  Call
	value int32 // where it completes nothing; -1: not asked yet
	makes bool  // a request
}

// mostRows bounds the calls of a rank.
const mostRows = 1 << 28

// loop writes all iterations of a loop.
func (w *rankWriter) loop(n *Node) {
	if !w.some(n) {
		return
	}
	p := point{ranks: w.ranks, rank: w.rank, peerRank: pattern.None, index: w.around(n)}
	said, known := w.times(n, &p)
	if !known {
		w.missing[w.t.name(n)] = "how often it is repeated is not known"
		return
	}
	if !said.exact && !w.warned[w.t.name(n)] {
		w.warned[w.t.name(n)] = true
		w.result.Loops = append(w.result.Loops, UncertainLoop{w.t.name(n), said.low, said.high})
	}
	s := w.signer
	depth := len(w.p.open)
	w.p.open = append(w.p.open, openLoop{node: s.sig.nodes[n.ID]})
	last := int32(-1)
	for i := int64(0); i < said.value; i++ {
		if w.err != nil {
			return
		}
		var before rankState
		if w.unif[n.ID] {
			before = w.state()
		} else {
			w.at[n.ID] = int32(i)
		}
		w.body(n)
		l := &w.p.open[depth]
		if len(l.body) == 0 {
			if w.unif[n.ID] {
				break // the others are the same
			}
			continue
		}
		id := s.endIteration(l)
		if w.unif[n.ID] && id == last && slices.Equal(before.open, w.open) {
			l.items.repeat(id, said.value-i-1) // what follows is the same: no request is left over
			w.again(&before, said.value-i-1)
			break
		}
		last = id
	}
	delete(w.at, n.ID)
	if len(w.p.open[depth].items.items) == 0 {
		w.p.open = w.p.open[:depth]
		return
	}
	s.leave(w.p)
}

// rankState is what a rank had done before an iteration.
type rankState struct {
	made  []int32
	open  []post
	calls int64
}

func (w *rankWriter) state() rankState {
	return rankState{slices.Clone(w.p.made), slices.Clone(w.open), w.calls}
}

// again counts what was done since a state again, some times.
func (w *rankWriter) again(since *rankState, times int64) {
	for i := range w.p.made {
		w.p.made[i] += (w.p.made[i] - since.made[i]) * int32(times)
	}
	w.count((w.calls - since.calls) * times)
}

func (w *rankWriter) count(calls int64) {
	if w.calls += calls; w.calls > mostRows && w.err == nil {
		w.err = fmt.Errorf("rank %d has more than %d calls", w.rank, mostRows)
	}
}

// times says how many iterations a loop has: where they have places, by what is known of those.
func (w *rankWriter) times(n *Node, p *point) (said, bool) {
	if w.unif[n.ID] {
		return w.loops[n.ID].at(p)
	}
	if s, known := w.extents[n.ID]; known {
		return s, true
	}
	s, known := w.extent(n)
	if all := w.loops[n.ID].Constant; !known {
		s, known = w.loops[n.ID].at(p)
	} else if all != nil && *all > s.high { // slots that are in no family come after the last of those that are
		s = exactly(*all)
	}
	if known {
		w.extents[n.ID] = s
	}
	return s, known
}

// extent is how many iterations a loop has by the families of slots in it: by those whose index goes farthest.
func (g *generator) extent(n *Node) (said, bool) {
	r, some := said{}, false
	for _, x := range g.sites {
		d := slices.IndexFunc(x.loops, func(r round) bool { return r.loop == n && !r.within })
		if d < 0 {
			continue
		}
		times := int64(max(x.loops[d].period, 1))
		for _, family := range []string{x.to, x.from, x.in} {
			for _, l := range g.families[family] {
				if least, most, ok := l.Last(g.ranks, d); ok {
					r.low, r.high, some = max(r.low, (int64(least)+1)*times), max(r.high, (int64(most)+1)*times), true
				}
			}
		}
	}
	r.value, r.exact = r.low, r.low == r.high
	return r, some
}

// around are the iterations of the loops around a node that have places.
func (w *rankWriter) around(n *Node) (index []int32) {
	for l := n.parent; l != nil; l = l.parent {
		if !w.unif[l.ID] {
			var mine []int32
			for _, r := range rounds(l, w.period[l.ID]) {
				mine = append(mine, r.of(w.at[l.ID]))
			}
			index = append(mine, index...)
		}
	}
	return index
}

// some says whether a rank makes any call of a loop.
func (w *rankWriter) some(n *Node) bool {
	for _, c := range n.Children {
		if c.Loop {
			if w.some(c) {
				return true
			}
			continue
		}
		x := w.byNode[c.ID]
		inside := false // a loop that is not gone through yet has the site's place
		for _, l := range x.loops {
			_, now := w.at[l.loop.ID]
			inside = inside || !now
		}
		if inside || w.takes(x, w.rank, w.index(x)) {
			return true
		}
	}
	return false
}

func (w *rankWriter) body(n *Node) {
	for _, c := range n.Children {
		if c.Loop {
			w.loop(c)
		} else if x := w.byNode[c.ID]; w.takes(x, w.rank, w.index(x)) {
			w.call(x)
		}
	}
}

// index is where a site is now.
func (w *rankWriter) index(x *siteModel) (index []int32) {
	for _, l := range x.loops {
		index = append(index, l.of(w.at[l.loop.ID]))
	}
	return index
}

// call makes a call.
func (w *rankWriter) call(x *siteModel) {
	index := w.index(x)
	k := madeCall{x.node.ID, placeOf(index)}
	n := w.signer.sig.nodes[x.node.ID]
	d, known := w.done[k]
	if !known { // loops come here again and again
		e := w.row(x, index)
		d = &doneCall{call: w.signer.callOf(n, &e), value: -1, makes: x.like.Request && x.of == nil}
		d.call.Instance, d.call.Request = x.like.Instance, d.makes
		d.call.ComputeNs, d.call.parts = w.compute(x, k), w.partsOf(x, k, &e, index)
		w.done[k] = d
	}
	value := d.value
	if completes, init := w.complete(x), w.init(x); completes != nil || init != nil {
		c := d.call
		c.Completes, c.Request = completes, x.like.Request
		if x.inits.about {
			c.About = init
		} else {
			c.Init = init
		}
		value = w.signer.intern(n, &c)
	} else if value < 0 {
		value = w.signer.intern(n, &d.call)
		d.value = value
	}
	if d.makes {
		w.open = append(w.open, post{n.ID, w.p.made[n.ID]})
	}
	w.started.note(n, w.p.made[n.ID])
	w.signer.take(w.p, n, value)
	w.count(1)
}

// madeCall is a call at a place.
type madeCall struct {
	node  int32
	place place
}

// row is the row of a call, but for what depends on those before.
func (w *rankWriter) row(x *siteModel, index []int32) schema.Event {
	p := point{ranks: w.ranks, rank: w.rank, peerRank: pattern.None, index: index}
	sym := &w.t.Symbols[x.node.Symbol]
	e := schema.NullEvent
	e.Rank = w.rank
	e.Call, e.Class = int16(sym.call), int16(schema.Calls[sym.call].Class)
	a := w.ask3(x, index)
	class, sends, receives := w.class(x, placeOf(index), a)
	if class != "" {
		e.Class = int16(slices.Index(schema.ClassNames, class))
	}
	e.Callsite = value(sym.Frame, schema.NullInt32)
	e.PostedAny, e.ProcNull = value(x.like.PostedAny, schema.NullInt32), value(x.like.ProcNull, schema.NullInt32)
	if x.mixed {
		if e.PostedAny = schema.NullInt32; receives {
			e.PostedAny = value(x.postedAny, schema.NullInt32)
		}
	}
	e.Label = value(x.like.Label, schema.NullText)
	if x.like.ReduceOp != "" {
		e.ReduceOp = int16(slices.Index(schema.OpNames, x.like.ReduceOp))
	}
	if x.comm != nil {
		e.Comm = w.commIDs[x.comm][w.rank]
		if e.Comm < 0 {
			w.err = fmt.Errorf("rank %d makes %s, and is in none of its communicators", w.rank, w.t.name(x.node))
			return e
		}
	}
	if v, ok := w.number(x, "root", x.root, &p); ok {
		if e.RootWorld = v.int32(); x.rootPlace {
			e.RootWorld = w.member(x, e.Comm, v.int32())
		}
		p.root = e.RootWorld == w.rank
	}
	if x.sendLike != nil && sends {
		q := p
		e.SendWorld, e.SendPeer = w.peer(x, a.to, e.Comm, &q)
		w.side(x, x.sendTag, x.sendCount, x.sendBytes, x.sendUnit, likeOf(x.sendLike, x.sendRoot, p.root), &q, &e.SendTag, &e.SendCount, &e.SendDatatype, &e.SendBytes)
		if x.sends && e.SendWorld == schema.NullInt32 {
			e.SendTag, e.ProcNull = schema.NullInt32, max(e.ProcNull, 0)|schema.ProcNullSend
		}
	}
	if x.recvLike != nil && receives {
		q := p
		e.RecvWorld, e.RecvPeer = w.peer(x, a.from, e.Comm, &q)
		w.side(x, x.recvTag, x.recvCount, x.recvBytes, x.recvUnit, likeOf(x.recvLike, x.recvRoot, p.root), &q, &e.RecvTag, &e.RecvCount, &e.RecvDatatype, &e.RecvBytes)
	}
	return e
}

// likeOf is a side of what a rank's call is like.
func likeOf(others, root Side, isRoot bool) Side {
	if isRoot && root != nil {
		return root
	}
	return others
}

// member is the rank at a place in a communicator.
func (w *rankWriter) member(x *siteModel, comm, place int32) int32 {
	for world, p := range w.place[comm] {
		if p == place {
			return world
		}
	}
	w.missing[w.t.name(x.node)+", root"] = fmt.Sprintf("its law says rank %d of a communicator of %d, which cannot be", place, len(w.place[comm]))
	return schema.NullInt32
}

// peer is who is at the other side.
func (w *rankWriter) peer(x *siteModel, m *pattern.Map, comm int32, p *point) (world, peer int32) {
	if m == nil {
		return schema.NullInt32, schema.NullInt32
	}
	dst, some := m.Dst(w.rank)
	if !some {
		return schema.NullInt32, schema.NullInt32
	}
	p.peerRank = dst
	at, member := w.place[comm][dst]
	if !member {
		w.err = fmt.Errorf("rank %d, %s: rank %d is not in its communicator", w.rank, w.t.name(x.node), dst)
	}
	return dst, at
}

// number is what a law says of a site's tag, count or other number.
func (w *rankWriter) number(x *siteModel, what string, l *valueLaw, p *point) (Int, bool) {
	if l == nil || l.Constant == nil && l.Root == nil && l.Group == nil && l.Lone == nil && len(l.Sums)+len(l.Places) == 0 { // there is no such number
		return null, false
	}
	s, known := l.at(p)
	if !known {
		w.missing[fmt.Sprintf("%s, %s", w.t.name(x.node), what)] = "no run has that place in the loops, and no law says it"
		return null, false
	}
	if s.value < 0 && what != "tag" {
		w.missing[fmt.Sprintf("%s, %s", w.t.name(x.node), what)] = fmt.Sprintf("its law says %d on rank %d, which cannot be", s.value, w.rank)
		return null, false
	}
	w.result.Numbers++
	if w.uncertain(x, what) { // of a level that is not known
		s.low, s.high, s.exact = 0, math.MaxInt64, false
	}
	if !s.exact {
		w.result.Inexact++
		w.result.tell(l, s)
	}
	return Int(s.value), true
}

// side writes the numbers of a side.
func (w *rankWriter) side(x *siteModel, tag, count, bytes *valueLaw, unit int64, like Side, p *point, toTag *int32, toCount *int64, toType *int32, toBytes *int64) {
	if v, ok := w.number(x, "tag", tag, p); ok {
		*toTag = v.int32()
	}
	*toType = like[SideDatatype].int32()
	if v, ok := w.number(x, "bytes", bytes, p); ok {
		*toBytes = int64(v)
		if unit > 0 && like[SideCount] != null {
			*toCount = int64(v) / unit
		}
	}
	if unit == 0 && like[SideCount] != null {
		if v, ok := w.number(x, "count", count, p); ok {
			*toCount = int64(v)
		}
	}
}

// complete completes requests, and says which.
func (w *rankWriter) complete(x *siteModel) (all []Completion) {
	if x.completes == completesNone {
		return nil
	}
	var mine []int
	for i, r := range w.open {
		if x.of[r.node] {
			mine = append(mine, i)
		}
	}
	switch {
	case len(mine) == 0:
		return nil
	case x.completes == completesLatest:
		mine = mine[len(mine)-1:]
	case x.completes != completesAll:
		mine = mine[:1]
	}
	for _, i := range mine {
		all = w.p.completion(all, w.open[i])
	}
	for _, i := range slices.Backward(mine) {
		w.open = slices.Delete(w.open, i, i+1)
	}
	return all
}
