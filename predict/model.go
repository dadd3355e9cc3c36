package predict

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/commq/commq/predict/pattern"
)

// Model says what a program does at any number of ranks, as far as its runs tell.
type Model struct {
	// Pattern has the laws of who takes part and who talks to whom.
	Pattern *pattern.Program
	// Training are the numbers of ranks of the runs.
	Training []int32
	// Traffic is the number of messages of the largest run, Unexplained of those whose destinations have no law.
	Traffic, Unexplained int64
	// Warnings say what an answer may hang on.
	Warnings []string

	t      *training
	sites  []*siteModel
	byNode []*siteModel
	loops  []*valueLaw // by node: iterations
	unif   []bool
	period []int32 // of loops, by node; 0: none
	slots  []pattern.Slot
	comms  []*commModel
	makers map[int32]bool       // events that make persistent requests
	times  func() *computeTimes // found when they are first asked for
}

// commModel is communicators that are made alike: one that has all ranks, or several that each have some.
type commModel struct {
	world int // which of those that have all ranks, in the order of their ids; -1: none
	slot  string
	kind  string
	like  *Comm     // that of the largest run; nil where runs do not agree on its kind
	runs  []subComm // one of each run, where these have not all ranks
}

// siteModel is what is known of a site.
type siteModel struct {
	*site
	in, to, from       string // families: who takes part, whom it sends to and receives from; empty: all, none
	sendTag            *valueLaw
	sendCount          *valueLaw
	sendBytes          *valueLaw
	recvTag            *valueLaw
	recvCount          *valueLaw
	recvBytes          *valueLaw
	root               *valueLaw
	rootPlace          bool  // root is the rank in the communicator
	like               *Call // what is the same in all calls
	sendLike           Side
	recvLike           Side
	sendRoot, recvRoot Side // of roots of collectives; nil: as of the others
	comm               *commModel
	completes          completing
	of                 map[int32]bool   // events whose requests it completes
	sendUnit, recvUnit int64            // bytes of an element, where bytes are always count times it; 0
	tags               map[int64]bool   // of its messages in all runs
	mixed              bool             // its calls send or receive: they start persistent requests of both kinds
	classes            map[place]string // then: of the calls at a place
	parts              partsKind
	postedAny          *int32   // of those that receive
	inits              initRule // which calls made the requests that it starts
}

// completing is which requests a call completes.
type completing uint8

const (
	completesNone   completing = iota
	completesAll               // all that are not completed, of its events
	completesOldest            // one
	completesLatest
	completesUnknown
)

// NewModel finds the laws of runs of a program, which are given by their signatures. Those on the same number of ranks are captures of one run, see Pool.
func NewModel(runs []*Signature) (*Model, error) {
	runs, err := Pool(runs)
	if err != nil {
		return nil, err
	}
	t, err := join(runs)
	if err != nil {
		return nil, err
	}
	sites, s, err := t.slots()
	if err != nil {
		return nil, err
	}
	m := &Model{t: t, byNode: make([]*siteModel, len(t.nodes)), loops: make([]*valueLaw, len(t.nodes)), unif: s.uniform, period: s.periods}
	for _, r := range t.runs {
		m.Training = append(m.Training, r.Ranks)
	}
	for _, w := range sites {
		x := &siteModel{site: w}
		m.persistent(x)
		m.sites = append(m.sites, x)
		m.byNode[w.node.ID] = x
		m.patterns(x)
	}
	m.partners()
	m.commSlots()
	if m.Pattern, err = pattern.Fit(m.slots, pattern.Options{Sizes: m.Training}); err != nil {
		return nil, err
	}
	v := &values{ranks: m.Training, known: map[string]*valueLaw{}}
	for i := range m.Pattern.Grids {
		v.grids = append(v.grids, &m.Pattern.Grids[i][0])
	}
	for _, x := range m.sites {
		m.values(x, v)
	}
	for _, n := range t.nodes {
		if n.Loop {
			m.loops[n.ID] = m.iterations(n, s, v)
		}
	}
	if err := v.settle(); err != nil {
		return nil, err
	}
	m.tags()
	m.requests()
	m.starts()
	m.partsLaws()
	m.count()
	m.times = sync.OnceValue(m.computeTimes)
	m.Warnings = append(m.Warnings, m.Pattern.Warnings...)
	return m, nil
}

// index is the place of a slot as laws have it.
func (x *slot) index() []int32 {
	if len(x.site.loops) == 0 {
		return nil
	}
	return slices.Clone(x.place[:len(x.site.loops)])
}

// where says in which loops a slot is, and where in them.
func (x *slot) where() string {
	var b strings.Builder
	for i, r := range x.site.loops {
		fmt.Fprint(&b, r.loop.ID, r.within, x.place[i], " ")
	}
	return b.String()
}

// patterns makes the tables of a site: who takes part, and the peers.
func (m *Model) patterns(x *siteModel) {
	everyone, null := len(x.loops) == 0, false
	for _, s := range x.slots {
		for _, run := range s.runs {
			for _, c := range run {
				everyone = everyone && c != nil
				if c != nil {
					null = null || x.sends && peerless(c.Send) || x.receives && peerless(c.Recv)
				}
			}
		}
	}
	// Who sends is who takes part, but where somebody sends to MPI_PROC_NULL.
	if x.sends {
		x.to = m.family(x, "to", func(rank int32, c *Call) int32 { return peerOf(rank, c.Send) })
	}
	if x.receives {
		x.from = m.family(x, "from", func(rank int32, c *Call) int32 { return peerOf(rank, c.Recv) })
	}
	if (!everyone || x.mixed) && (null || !x.sends && !x.receives) {
		x.in = m.family(x, "in", func(rank int32, _ *Call) int32 { return rank })
	}
}

func peerless(s Side) bool { return len(s) == 0 || s[SidePeer] == null }

func peerOf(rank int32, s Side) int32 {
	if peerless(s) {
		return pattern.None
	}
	return rank + s[SidePeer].int32()
}

// family makes the slots of a site, and returns its name.
func (m *Model) family(x *siteModel, kind string, of func(rank int32, c *Call) int32) string {
	name := fmt.Sprintf("%d %s", x.node.ID, kind)
	var slots []pattern.Slot
	for _, s := range x.slots {
		p := pattern.Slot{Name: slotName(name, s.index()), Site: name, Index: s.index()}
		for i, calls := range s.runs {
			largest := null
			t := pattern.Mapping{Ranks: m.Training[i], Dst: make([]int32, len(calls))}
			some := false
			for r, c := range calls {
				t.Dst[r] = pattern.None
				if c != nil {
					t.Dst[r] = of(int32(r), c)
					some = some || t.Dst[r] != pattern.None
					if len(c.Send) > 0 && kind == "to" {
						largest = max(largest, c.Send[SideBytes])
					}
				}
			}
			if some {
				p.Runs = append(p.Runs, t)
				if largest != null {
					p.Bytes = append(p.Bytes, int64(largest))
				}
			}
		}
		if len(p.Runs) > 0 {
			slots = append(slots, p)
		}
	}
	if len(slots) == 0 {
		return ""
	}
	m.slots = append(m.slots, slots...)
	return name
}

func slotName(family string, index []int32) string {
	if len(index) == 0 {
		return family
	}
	return fmt.Sprintf("%s %v", family, index)
}

// partners finds of each slot those that may be the other side of its messages: they have the same messages, by ranks and tags, in all runs.
func (m *Model) partners() {
	named := map[string]*pattern.Slot{}
	for i := range m.slots {
		named[m.slots[i].Name] = &m.slots[i]
	}
	places := map[string]string{}     // by name of a slot: in which loops it is, and where
	sides := map[string][2][]string{} // by messages: names of slots that send and that receive them
	for _, x := range m.sites {
		for _, s := range x.slots {
			for i, side := range []struct {
				family string
				of     func(*Call) Side
			}{{x.to, func(c *Call) Side { return c.Send }}, {x.from, func(c *Call) Side { return c.Recv }}} {
				if side.family == "" {
					continue
				}
				var messages [][4]int32
				for run, calls := range s.runs {
					for r, c := range calls {
						if c == nil || peerless(side.of(c)) {
							continue
						}
						from, to := int32(r), peerOf(int32(r), side.of(c))
						if i == 1 {
							from, to = to, from
						}
						messages = append(messages, [4]int32{int32(run), from, to, side.of(c)[SideTag].int32()})
					}
				}
				slices.SortFunc(messages, func(a, b [4]int32) int { return slices.Compare(a[:], b[:]) })
				var key []byte
				for _, x := range messages {
					for _, number := range x {
						key = binary.AppendVarint(key, int64(number))
					}
				}
				k := string(key)
				both := sides[k]
				name := slotName(side.family, s.index())
				places[name] = s.where()
				both[i] = append(both[i], name)
				sides[k] = both
			}
		}
	}
	for _, both := range sides {
		for i, names := range both {
			if len(both[1-i]) == 0 {
				continue
			}
			for _, name := range names {
				if s := named[name]; s != nil {
					s.Partners = both[1-i]
					if i == 1 { // what is posted may be more than comes
						s.Bytes = nil
						if k := slices.IndexFunc(both[0], func(sends string) bool { return places[sends] == places[name] }); k >= 0 && named[both[0][k]] != nil {
							s.Bytes = named[both[0][k]].Bytes
						}
					}
				}
			}
		}
	}
}

// wholeComms are the communicators that have all ranks in their order, in the order of their ids.
func (s *Signature) wholeComms() (all []*Comm) {
	for k := range s.Comms {
		if c := &s.Comms[k]; len(c.Remote) == 0 && len(c.Members) == int(s.Ranks) && slices.IsSorted(c.Members) && (s.Ranks > 1 || c.Kind != "self") {
			all = append(all, c)
		}
	}
	return all
}

// commSlots finds which communicators sites use, and the tables of those that have not all ranks: each member with the next one.
func (m *Model) commSlots() {
	worlds := make([]map[int32]int, len(m.t.runs)) // of a run's communicators, which of those that have all ranks
	for i, s := range m.t.runs {
		worlds[i] = map[int32]int{}
		for k, c := range s.wholeComms() {
			worlds[i][c.ID] = k
		}
	}
	byKey := map[string]*commModel{}
	for _, x := range m.sites {
		key, world, mixed, some := strings.Builder{}, -1, false, false
		var like *Comm
		kinds := map[string]bool{}
		var parts []subComm
		var maps []pattern.Mapping
		for i := range m.t.runs {
			next := pattern.Mapping{Ranks: m.Training[i], Dst: slices.Repeat([]int32{pattern.None}, int(m.Training[i]))}
			for _, s := range x.slots {
				for r, c := range s.runs[i] {
					if c == nil || c.Comm == null {
						continue
					}
					of := m.t.commOf[c.Comm].comm
					w, all := worlds[i][of.ID]
					if !all {
						w = -2
					}
					if some && w != world {
						mixed = true
					}
					world, some = w, true
					if like, kinds[of.Kind+" "+of.Name] = of, true; len(parts) == 0 || parts[len(parts)-1].run != m.t.runs[i] {
						parts = append(parts, subComm{m.t.runs[i], of})
					}
					if p, is := of.places[int32(r)]; is {
						next.Dst[r] = of.Members[(int(p)+1)%len(of.Members)]
					}
				}
			}
			fmt.Fprint(&key, next)
			maps = append(maps, next)
		}
		if !some {
			continue
		}
		k := fmt.Sprint("world ", world)
		if world < 0 || mixed {
			k = key.String()
		}
		c := byKey[k]
		if c == nil {
			c = &commModel{world: world, kind: "split"}
			byKey[k] = c
			if world < 0 || mixed {
				c.world, c.slot = -1, fmt.Sprintf("%d comm", x.node.ID)
				m.slots = append(m.slots, pattern.Slot{Name: c.slot, Site: c.slot, Runs: maps})
			}
			if len(kinds) == 1 {
				c.kind, c.like, c.runs = like.Kind, like, parts
			}
			m.comms = append(m.comms, c)
		}
		x.comm = c
	}
}

// values finds the laws of numbers of a site; those that are open, v settles.
func (m *Model) values(x *siteModel, v *values) {
	var tagS, countS, bytesS, tagR, countR, bytesR, root, rootPlace []sample
	grid := m.grid(x)
	for _, s := range x.slots {
		for i, calls := range s.runs {
			for r, c := range calls {
				if c == nil {
					continue
				}
				if x.like == nil {
					x.like, x.sendLike, x.recvLike = c, c.Send, c.Recv
				}
				at := point{ranks: m.Training[i], rank: int32(r), peerRank: pattern.None, index: s.index()}
				at.root = c.Root != nil && *c.Root == m.t.base[i]+int32(r)
				add := func(list *[]sample, p point, v Int) {
					if v != null {
						*list = append(*list, sample{p, int64(v)})
					}
				}
				if c.Send != nil {
					p := at
					p.peerRank = peerOf(int32(r), c.Send)
					add(&tagS, p, c.Send[SideTag])
					add(&countS, p, c.Send[SideCount])
					add(&bytesS, p, c.Send[SideBytes])
					if at.root {
						x.sendRoot = c.Send
					} else {
						x.sendLike = c.Send
					}
				}
				if c.Recv != nil {
					p := at
					p.peerRank = peerOf(int32(r), c.Recv)
					add(&tagR, p, c.Recv[SideTag])
					add(&countR, p, c.Recv[SideCount])
					add(&bytesR, p, c.Recv[SideBytes])
					if at.root {
						x.recvRoot = c.Recv
					} else {
						x.recvLike = c.Recv
					}
				}
				if c.Root != nil {
					at.root = false
					world := *c.Root - m.t.base[i]
					add(&root, at, Int(world))
					if p, is := m.place(x, c, world); is {
						add(&rootPlace, at, Int(p))
					}
				}
			}
		}
	}
	if x.sends || x.receives {
		x.tags = map[int64]bool{}
		for _, t := range slices.Concat(tagS, tagR) {
			x.tags[t.value] = true
		}
	}
	x.sendTag, x.sendBytes = v.fit(tagS, grid, false), v.fit(bytesS, grid, true)
	x.recvTag, x.recvBytes = v.fit(tagR, grid, false), v.fit(bytesR, grid, true)
	if x.rootPlace = len(root) > 0 && len(rootPlace) == len(root); x.rootPlace {
		root = rootPlace
	}
	x.root = v.fit(root, grid, false)
	if x.sendUnit = unit(countS, bytesS); x.sendUnit == 0 {
		x.sendCount = v.fit(countS, grid, true)
	}
	if x.recvUnit = unit(countR, bytesR); x.recvUnit == 0 {
		x.recvCount = v.fit(countR, grid, true)
	}
}

// place is the rank in the communicator of a call, where that has not all ranks of the run.
func (m *Model) place(x *siteModel, c *Call, rank int32) (int32, bool) {
	if x.comm == nil || x.comm.world >= 0 || c.Comm == null {
		return 0, false
	}
	p, is := m.t.commOf[c.Comm].comm.places[rank]
	return p, is
}

// unit is how many bytes an element has, where bytes are always count times it; 0: they are not.
func unit(counts, bytes []sample) (u int64) {
	if len(counts) != len(bytes) {
		return 0
	}
	for i, c := range counts {
		b := bytes[i].value
		switch {
		case c.value == 0 && b == 0:
		case c.value <= 0 || b <= 0 || b%c.value != 0 || u != 0 && u != b/c.value:
			return 0
		default:
			u = b / c.value
		}
	}
	return u
}

// grid is the grid that goes with a site: that of its peers' law, else the program's.
func (m *Model) grid(x *siteModel) *pattern.Grid {
	for _, family := range []string{x.to, x.from, x.in} {
		for i := range m.Pattern.Laws {
			l := &m.Pattern.Laws[i]
			if family != "" && l.Site == family && len(l.Forms) > 0 && len(l.Forms[0].Grids) > 0 && l.Forms[0].Grids[0].Axes > 1 {
				return &l.Forms[0].Grids[0]
			}
		}
	}
	if len(m.Pattern.Grids) > 0 && len(m.Pattern.Grids[0]) > 0 {
		return &m.Pattern.Grids[0][0]
	}
	return nil
}

// tags gives calls one tag whose tags have no law, and those that have tags in common with them: a tag that a program makes of something else than its
// grid only has to be the same on both sides.
func (m *Model) tags() {
	lost := map[int64]bool{}
	for _, x := range m.sites {
		if x.tags != nil && (!x.sendTag.exact() || !x.recvTag.exact()) {
			for t := range x.tags {
				lost[t] = true
			}
		}
	}
	if len(lost) == 0 {
		return
	}
	for more := true; more; {
		more = false
		for _, x := range m.sites {
			some, all := false, true
			for t := range x.tags {
				some, all = some || lost[t], all && lost[t]
			}
			if some && !all {
				more = true
				for t := range x.tags {
					lost[t] = true
				}
			}
		}
	}
	n := 0
	least := slices.Min(sortedKeys(lost))
	for _, x := range m.sites {
		for t := range x.tags {
			if lost[t] {
				n++
				law := &valueLaw{Constant: &least}
				if x.sends {
					x.sendTag = law
				}
				if x.receives {
					x.recvTag = law
				}
				break
			}
		}
	}
	m.Warnings = append(m.Warnings, fmt.Sprintf("tags of %d calls have no law: %d stands for all of them", n, least))
}

// requests finds which requests calls complete.
func (m *Model) requests() {
	rules := m.t.completions()
	for _, x := range m.sites {
		r := rules[x.node.ID]
		if r == nil {
			continue
		}
		x.of = r.of
		switch {
		case r.all:
			x.completes = completesAll
		case r.oldest:
			x.completes = completesOldest
		case r.latest:
			x.completes = completesLatest
		default:
			x.completes = completesUnknown
			m.Warnings = append(m.Warnings, fmt.Sprintf("%s completes requests in an order that has no rule; the oldest ones are taken", m.t.name(x.node)))
		}
	}
}

// iterations finds how many iterations a loop has: of one whose iterations are alike on a rank, else the most that a rank has.
func (m *Model) iterations(n *Node, s *slotter, v *values) *valueLaw {
	var samples []sample
	around := 0
	for l := n.parent; l != nil; l = l.parent {
		if !m.unif[l.ID] {
			around += len(rounds(l, m.period[l.ID]))
		}
	}
	most := map[int32]int64{}
	for w, count := range s.iterations[n.ID] {
		ranks := m.Training[w.run]
		most[ranks] = max(most[ranks], int64(count))
		if m.unif[n.ID] {
			samples = append(samples, sample{point{ranks: ranks, rank: w.rank, peerRank: pattern.None, index: slices.Clone(w.place[:around])}, int64(count)})
		}
	}
	if !m.unif[n.ID] {
		for _, ranks := range sortedKeys(most) {
			samples = append(samples, sample{point{ranks: ranks, peerRank: pattern.None}, most[ranks]})
		}
	}
	slices.SortFunc(samples, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.at.ranks, b.at.ranks), cmp.Compare(a.at.rank, b.at.rank), slices.Compare(a.at.index, b.at.index))
	})
	return v.fit(samples, m.grid(&siteModel{site: &site{}}), false)
}

// count adds up the traffic that is not explained.
func (m *Model) count() {
	gone := map[string]bool{}
	for _, u := range m.Pattern.Unexplained {
		gone[u.Slot] = true
	}
	last := len(m.t.runs) - 1
	explained := map[int32]bool{}
	for _, x := range m.sites {
		explained[x.node.ID] = true
		for _, s := range x.slots {
			if gone[slotName(x.to, s.index())] || gone[slotName(x.from, s.index())] {
				explained[x.node.ID] = false
			}
		}
	}
	occurrences := m.t.occurrencesOf(m.t.Roots[m.t.base[last]:])
	for _, x := range m.sites {
		for i, c := range m.t.Values[x.node.ID].Events {
			if !m.t.sends(x.node, c) {
				continue
			}
			times := occurrences[x.node.ID][i]
			m.Traffic += times
			if !explained[x.node.ID] {
				m.Unexplained += times
			}
		}
	}
}
