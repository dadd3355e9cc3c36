package model

import (
	"fmt"
	"slices"
	"sync"

	"github.com/commq/commq/predict/model/compute"
	"github.com/commq/commq/predict/model/join"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/predict/slots"
)

// Model has the laws of a program: what it does at any number of ranks, as far as its runs tell.
type Model struct {
	// Pattern has the laws of who takes part in a call and who communicates with whom.
	Pattern *pattern.Program
	// Training has the numbers of ranks of the runs, ascending.
	Training []int32
	// Traffic is the number of messages of the largest run, Unexplained the number of those whose destinations have no
	// law.
	Traffic, Unexplained int64
	// Warnings describe assumptions behind the laws.
	Warnings []string

	// Joint has the runs.
	Joint *join.Training
	// Sites are the events with their laws, in template order.
	Sites []*Site
	// Comms are the groups of communicators that sites use.
	Comms []*CommGroup
	// Iterations has, by node, the laws of the numbers of iterations of loops.
	Iterations []*law.Law
	// IterationsSeen has, by node, how many iterations of loops there were in the runs.
	IterationsSeen []Range
	// IterationsAt has, by node, the number of iterations in each run of Training; nil if a run has none, or different
	// ones.
	IterationsAt [][]int64
	// Ragged tells, by node, of which loops ranks of one run have different numbers of iterations.
	Ragged []bool
	// Uniform and Periods describe loops, by node; see slots.Slots.
	Uniform []bool
	Periods []int32
	// RequestMakers are the events that make persistent requests.
	RequestMakers map[int32]bool

	byEvent      []*Site
	patternSlots []pattern.Slot
	slotAt       func() map[string]int // of patternSlots, by name; made when it is first needed
	times        func() *compute.Laws
	exchanges    func() *Exchanges
	partitions   func() map[*CommGroup]*pattern.PartitionLaw
}

// Range is a range of numbers, with its ends.
type Range struct{ Least, Most int64 }

// Site is an event with the laws of its calls.
type Site struct {
	Event *template.Node
	// Calls has what the runs did at the event.
	Calls *slots.Site
	// Sends and Receives tell whether the calls send messages and receive them; persistent requests count.
	Sends, Receives bool
	// In, To and From name the families of slots in the model's Pattern: who makes the call, to whom it sends, from
	// whom it receives. In is empty if To or From already shows who makes the call, or if all ranks make it. To and
	// From are empty if there are no messages.
	In, To, From string
	// AllCall tells that all ranks make the call, some of them with MPI_PROC_NULL; then In is empty.
	AllCall bool
	// Send and Recv are the laws of the two sides.
	Send, Recv SideLaws
	// Root is the law of a collective's root. RootInComm means that it is a rank of the communicator.
	Root       *law.Law
	RootInComm bool
	// SizesOfFirst means that all members of a communicator have the sizes of its root or, without roots, of its first
	// member: the laws of sizes are about that rank.
	SizesOfFirst bool
	// Like is a call of the training runs; a predicted call takes from it all that is the same in every run.
	Like *signature.Call
	// Comm is the group of the communicator; nil if there is none, or if calls of one rank use several. Then CommAt has
	// the groups by the place of the call.
	Comm   *CommGroup
	CommAt map[slots.Place]*CommGroup
	// MembersCall tells that the ranks that make a call are the members of its communicators; then In is empty.
	MembersCall bool
	// Completes is the rule for which requests a call completes; nil if it completes none.
	Completes *CompletionRule
	// StartsBoth means that the calls start persistent requests of which some send and some receive. Then Classes has
	// the class of rows at each place, and PostedAny the column of those that receive.
	StartsBoth bool
	Classes    map[slots.Place]string
	PostedAny  *int32
	// Maker is the rule for which call made the persistent request that a call uses; nil if it uses none.
	Maker *MakerRule
	// Parts is the rule for what collectives send to each peer.
	Parts signature.PartsRule

	tags map[int64]bool // in all runs
}

// CommOf returns the group of the communicator of a call at a place; nil if there is none, or if the runs do not have
// that place.
func (x *Site) CommOf(index []int32) *CommGroup {
	if x.CommAt != nil {
		return x.CommAt[slots.PlaceOf(index)]
	}
	return x.Comm
}

// FollowsRequests reports whether who makes the calls follows from who made the requests that they complete, if no law
// tells it.
func (x *Site) FollowsRequests() bool {
	return x.Completes != nil && x.Completes.Follows && x.Comm == nil && x.CommAt == nil
}

// HasNoPartner reports whether the calls send or receive messages, all to or from MPI_PROC_NULL.
func (x *Site) HasNoPartner() bool {
	return (x.Sends && x.Send.Like != nil || x.Receives && x.Recv.Like != nil) && !x.Send.HasPeers && !x.Recv.HasPeers
}

// UsesComm reports whether calls use a group of communicators.
func (x *Site) UsesComm(g *CommGroup) bool {
	if x.Comm == g {
		return true
	}
	for _, at := range x.CommAt {
		if at == g {
			return true
		}
	}
	return false
}

// SideLaws are the laws of one side of a site's calls.
type SideLaws struct {
	Tag, Count, Bytes *law.Law
	// ElementBytes is the size of an element if bytes are always count times it, and then Count is nil; else 0.
	ElementBytes int64
	// PeerBytes is the size of an element if the bytes of calls that move any are always count elements for each member
	// of the communicator, as at the root of a scatter: then Count tells them, too. Else it is 0.
	PeerBytes int64
	// EvenShares is the size of an element if the sides have those of all members together, and members divided them
	// evenly in all runs: where they do not, nothing shows whether each gets as many, and how that is rounded. Else it
	// is 0.
	EvenShares int64
	// Like is a side of a training run; a predicted side takes from it all that is the same in every run. It is nil
	// if there is none. LikeRoot does the same for the root of a collective if that differs.
	Like, LikeRoot signature.Side
	// HasPeers tells that some call's side is not to or from MPI_PROC_NULL, NullTags that those which are have a tag:
	// the receiving side of MPI_Sendrecv has none.
	HasPeers, NullTags bool
	// NeverEmpty tells that in all runs all have bytes, but for those of MPI_PROC_NULL.
	NeverEmpty bool

	nulls      []law.Sample // the counts of MPI_PROC_NULL
	checkNulls sync.Once
	nullsFit   bool
}

// New finds the laws of a program's runs. Several signatures on the same number of ranks are captures of one run, see
// join.Pool.
func New(runs []*signature.Signature) (*Model, error) {
	runs, err := join.Pool(runs)
	if err != nil {
		return nil, err
	}
	m, found, err := assemble(runs)
	if err != nil {
		return nil, err
	}
	if m.Pattern, err = fitPatterns(m); err != nil {
		return nil, err
	}
	for i := range m.Pattern.Laws {
		l := &m.Pattern.Laws[i]
		l.Doubtful = isReshaped(m, l.Site)
		if l.Inverse != nil { // it answers for the law, and is no surer
			l.Inverse.Doubtful = l.Doubtful || isReshaped(m, l.Inverse.Site)
		}
	}
	if m.Iterations, err = fitNumbers(m, found); err != nil {
		return nil, err
	}
	if addBoxes(m) { // numbers may have other laws on them
		if m.Iterations, err = fitNumbers(m, found); err != nil {
			return nil, err
		}
	}
	m.Warnings = append(shareTags(m.Sites), m.finish()...)
	m.times = sync.OnceValue(func() *compute.Laws { return m.fitTimes(found.Sites) })
	return m, nil
}

// fitPatterns finds the laws of messages and callers, and those of the next members in communicators. The latter do not
// choose the program's grids, where the former do: a few communicators fit many.
func fitPatterns(m *Model) (*pattern.Program, error) {
	isComm := func(s pattern.Slot) bool {
		return slices.ContainsFunc(m.Comms, func(g *CommGroup) bool { return g.Slot != "" && g.Slot == s.Name })
	}
	messages := slices.DeleteFunc(slices.Clone(m.patternSlots), isComm)
	comms := slices.DeleteFunc(slices.Clone(m.patternSlots), func(s pattern.Slot) bool { return !isComm(s) })
	o := pattern.Options{Sizes: m.Training}
	p, err := pattern.Fit(messages, o)
	if err != nil || len(comms) == 0 {
		return p, err
	}
	of, err := pattern.Fit(comms, o)
	if err != nil {
		return nil, err
	}
	if len(p.Grids) == 0 {
		p.Grids, p.Twins, p.Possible, p.Open, p.Warnings = of.Grids, of.Twins, of.Possible, of.Open, of.Warnings
	}
	p.Laws, p.Unexplained = append(p.Laws, of.Laws...), append(p.Unexplained, of.Unexplained...)
	return p, nil
}

// assemble puts runs side by side and divides them into sites and slots: all of a model but its laws. There is one run
// for each number of ranks.
func assemble(runs []*signature.Signature) (*Model, *slots.Slots, error) {
	t, err := join.Runs(runs)
	if err != nil {
		return nil, nil, err
	}
	found, err := slots.Find(t.Sig, t.SlotRuns())
	if err != nil {
		return nil, nil, err
	}
	m := &Model{Joint: t, byEvent: make([]*Site, len(t.Sig.Nodes())), Uniform: found.Uniform, Periods: found.Periods}
	for _, r := range t.Runs {
		m.Training = append(m.Training, r.Ranks)
	}
	for _, counts := range found.Iterations {
		m.IterationsSeen = append(m.IterationsSeen, rangeOf(counts))
		m.Ragged = append(m.Ragged, areRagged(counts))
		m.IterationsAt = append(m.IterationsAt, iterationsByRun(counts, len(m.Training)))
	}
	for _, s := range found.Sites {
		x := &Site{Event: s.Event, Calls: s, Sends: s.Sends, Receives: s.Receives}
		findPersistent(x, &t.Sig.Symbols[s.Event.Symbol])
		m.Sites = append(m.Sites, x)
		m.byEvent[s.Event.ID] = x
		m.patternSlots = append(m.patternSlots, addFamilies(x, m.Training)...)
	}
	pairPartners(m.Sites, m.patternSlots)
	var commSlots []pattern.Slot
	m.Comms, commSlots = groupComms(m.Sites, t)
	m.patternSlots = append(dropCallers(m.Sites, m.patternSlots), commSlots...)
	m.exchanges = sync.OnceValue(m.findExchanges)
	m.partitions = sync.OnceValue(m.findPartitions)
	m.slotAt = sync.OnceValue(func() map[string]int {
		at := make(map[string]int, len(m.patternSlots))
		for i, s := range slices.Backward(m.patternSlots) { // of several with one name the first counts
			at[s.Name] = i
		}
		return at
	})
	return m, found, nil
}

// dropCallers drops, from all slots, the families of callers that are the members of communicators.
func dropCallers(sites []*Site, all []pattern.Slot) []pattern.Slot {
	for _, x := range sites {
		if x.MembersCall && x.In != "" {
			all = slices.DeleteFunc(all, func(s pattern.Slot) bool { return s.Site == x.In })
			x.In = ""
		}
	}
	return all
}

// rangeOf returns the range of numbers of iterations.
func rangeOf(counts map[slots.Position]int32) (r Range) {
	first := true
	for _, n := range counts {
		if first {
			r = Range{int64(n), int64(n)}
		}
		first = false
		r.Least, r.Most = min(r.Least, int64(n)), max(r.Most, int64(n))
	}
	return r
}

// iterationsByRun returns the number of iterations in each run; nil if a run has none, or different ones.
func iterationsByRun(counts map[slots.Position]int32, runs int) []int64 {
	by := slices.Repeat([]int64{-1}, runs)
	for p, n := range counts {
		if had := by[p.Run]; had >= 0 && had != int64(n) {
			return nil
		}
		by[p.Run] = int64(n)
	}
	if slices.Contains(by, -1) {
		return nil
	}
	return by
}

// areRagged reports whether numbers of iterations differ in a run.
func areRagged(counts map[slots.Position]int32) bool {
	of := map[int32]int32{} // by run
	for p, n := range counts {
		if seen, known := of[p.Run]; known && seen != n {
			return true
		}
		of[p.Run] = n
	}
	return false
}

// finish finds the rules that need no search, and counts what has laws. It returns assumptions behind the laws.
func (m *Model) finish() (warnings []string) {
	warnings = findCompletionRules(m.Sites, m.Joint.Sig)
	makers, more := findMakerRules(m.Sites, m.Joint.Sig)
	m.RequestMakers, warnings = makers, append(warnings, more...)
	findPartsRules(m.Sites, m.Joint)
	m.countTraffic()
	return append(warnings, m.Pattern.Warnings...)
}

// fitTimes finds the laws of compute times.
func (m *Model) fitTimes(sites []*slots.Site) *compute.Laws {
	gridOfSite := func(s *slots.Site) *pattern.Grid { return gridOf(m.Pattern, m.byEvent[s.Event.ID]) }
	return compute.Fit(m.Joint, sites, gridOfSite)
}

// Times returns the laws of compute times. They are found when they are first needed.
func (m *Model) Times() *compute.Laws { return m.times() }

// Runs returns the signatures of the training runs, by number of ranks.
func (m *Model) Runs() []*signature.Signature { return m.Joint.Runs }

// LargestRun returns the number of ranks of the largest run.
func (m *Model) LargestRun() int32 { return m.Training[len(m.Training)-1] }

// SiteOf returns the site of an event.
func (m *Model) SiteOf(event int32) *Site { return m.byEvent[event] }

// NodeName describes a node of the joint template for people.
func (m *Model) NodeName(n *template.Node) string { return m.Joint.Sig.NodeName(n) }

// PatternSlot returns the slot with this name that the model's Pattern was found from; nil if there is none.
func (m *Model) PatternSlot(name string) *pattern.Slot {
	i, has := m.slotAt()[name]
	if !has {
		return nil
	}
	return &m.patternSlots[i]
}

// Partners returns the families that are the other side of a slot's messages; family is that of the slot.
func (m *Model) Partners(family string, s *slots.Slot) (families []string) {
	if family == "" {
		return nil
	}
	slot := m.PatternSlot(SlotName(family, s.Index()))
	if slot == nil {
		return nil
	}
	for _, name := range slot.Partners {
		if partner := m.PatternSlot(name); partner != nil {
			families = append(families, partner.Site)
		}
	}
	return families
}

// NearPartners are those of Partners at the same place in the same loops, if there are any: elsewhere the same messages
// may be a coincidence of few ranks.
func (m *Model) NearPartners(family string, s *slots.Slot) (near []string) {
	all := m.Partners(family, s)
	for _, partner := range all {
		if m.PatternSlot(SlotName(partner, s.Index())) != nil && m.loopsOf(partner) == m.loopsOf(family) {
			near = append(near, partner)
		}
	}
	if len(near) == 0 {
		return all
	}
	return near
}

// loopsOf returns a string that is equal for families whose places are in the same loops.
func (m *Model) loopsOf(family string) (text string) {
	for _, x := range m.Sites {
		if family == x.To || family == x.From || family == x.In {
			for _, c := range x.Calls.Components {
				text += fmt.Sprint(c.Loop.ID, c.Within, " ")
			}
		}
	}
	return text
}

// SlotName returns the name of the pattern slot of a family at a place in the loops.
func SlotName(family string, index []int32) string {
	if len(index) == 0 {
		return family
	}
	return fmt.Sprintf("%s %v", family, index)
}

// gridOf returns the process grid that goes with a site: that of the law of its peers, else the program's; nil if
// neither has one. A nil site means the program's.
func gridOf(p *pattern.Program, x *Site) *pattern.Grid {
	if x != nil {
		for _, family := range []string{x.To, x.From, x.In} {
			for i := range p.Laws {
				l := &p.Laws[i]
				if family != "" && l.Site == family && len(l.Forms) > 0 && len(l.Forms[0].Grids) > 0 &&
					l.Forms[0].Grids[0].Axes > 1 {
					return &l.Forms[0].Grids[0]
				}
			}
		}
	}
	if len(p.Grids) > 0 && len(p.Grids[0]) > 0 {
		return &p.Grids[0][0]
	}
	return nil
}

// countTraffic counts the messages of the largest run, and those that are not explained.
func (m *Model) countTraffic() {
	unexplained := map[string]bool{}
	for _, u := range m.Pattern.Unexplained {
		unexplained[u.Slot] = true
	}
	first := m.Joint.First[len(m.Joint.First)-1]
	occurrences := m.Joint.Sig.Occurrences(m.Joint.Sig.Roots[first:])
	for _, x := range m.Sites {
		explained := !slices.ContainsFunc(x.Calls.Slots, func(s *slots.Slot) bool {
			return unexplained[SlotName(x.To, s.Index())] || unexplained[SlotName(x.From, s.Index())]
		})
		for i, c := range m.Joint.Sig.Values[x.Event.ID].Events {
			if !m.Joint.Sig.SendsMessage(x.Event, c) {
				continue
			}
			times := occurrences[x.Event.ID][i]
			m.Traffic += times
			if !explained {
				m.Unexplained += times
			}
		}
	}
}
