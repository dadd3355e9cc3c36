package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/model/join"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/predict/slots"
	"github.com/commq/commq/schema"
)

// fitNumbers finds the laws of the numbers of all sites, and of the iterations of all loops, which it returns by node.
func fitNumbers(m *Model, found *slots.Slots) ([]*law.Law, error) {
	var grids []*pattern.Grid
	for i := range m.Pattern.Grids {
		grids = append(grids, &m.Pattern.Grids[i][0])
	}
	twins := slices.Clone(m.Pattern.Twins)
	for _, alike := range m.Pattern.Grids {
		twins = append(twins, alike[1:]...)
	}
	ofComms := gridsOfComms(m)
	f := law.NewFitter(grids, append(twins, ofComms...), m.Pattern.Open)
	countable := append(slices.Clone(m.Pattern.Possible), ofComms...)
	for _, x := range m.Sites {
		fitSite(x, m.Joint, gridOf(m.Pattern, x), f, countable)
	}
	nodes := m.Joint.Sig.Nodes()
	iterations := make([]*law.Law, len(nodes))
	grid := gridOf(m.Pattern, nil)
	samples := map[int32][]law.Sample{}
	for _, n := range nodes {
		if n.Loop {
			samples[n.ID] = iterationSamples(n, found, m.Training)
			iterations[n.ID] = f.FitNumber(samples[n.ID], grid)
		}
	}
	if err := f.Settle(); err != nil {
		return nil, err
	}
	for loop, of := range samples {
		if found.Directions[loop] > 0 { // as many as the runs show
			continue
		}
		hasMessages := slices.ContainsFunc(m.Sites, func(x *Site) bool {
			return (x.Sends || x.Receives) && x.Event.IsIn(nodes[loop])
		})
		iterations[loop] = law.WithExtents(iterations[loop], of, countable, m.Pattern.Open, hasMessages)
	}
	return iterations, nil
}

// sideSamples are the samples of one side of a site, and the counts and bytes of messages that are not empty.
type sideSamples struct {
	tag, count, bytes []law.Sample
	full              struct{ count, bytes []law.Sample }
	peers             peerBytes
}

// add adds the numbers of a call's side at a point, on a communicator with some members, and takes the side as an
// example. Of a message to or from MPI_PROC_NULL it adds the tag at most: it has no bytes, whatever its count is.
func (s *sideSamples) add(laws *SideLaws, at law.Point, members int64, side signature.Side, isNull bool) {
	if side == nil {
		return
	}
	if isNull {
		tag := side[signature.SideTag]
		if laws.NullTags = tag != signature.Null; laws.NullTags {
			s.tag = append(s.tag, law.Sample{Point: at, Value: int64(tag)})
		}
		if count := side[signature.SideCount]; count != signature.Null {
			laws.nulls = append(laws.nulls, law.Sample{Point: at, Value: int64(count)})
		}
		return
	}
	laws.HasPeers = true
	s.peers.add(members, at.Root, int64(side[signature.SideCount]), int64(side[signature.SideBytes]))
	if bytes := side[signature.SideBytes]; bytes != signature.Null {
		laws.NeverEmpty = (len(s.bytes) == 0 || laws.NeverEmpty) && bytes > 0
	}
	at.PeerRank = side.PeerOf(at.Rank)
	for _, x := range []struct {
		samples *[]law.Sample
		value   signature.Int
	}{{&s.tag, side[signature.SideTag]}, {&s.count, side[signature.SideCount]}, {&s.bytes, side[signature.SideBytes]}} {
		if x.value != signature.Null {
			*x.samples = append(*x.samples, law.Sample{Point: at, Value: int64(x.value)})
		}
	}
	if count, bytes := side[signature.SideCount], side[signature.SideBytes]; count != signature.Null && bytes > 0 {
		s.full.count = append(s.full.count, law.Sample{Point: at, Value: int64(count)})
		s.full.bytes = append(s.full.bytes, law.Sample{Point: at, Value: int64(bytes)})
	}
	if at.Root {
		laws.LikeRoot = side
	} else {
		laws.Like = side
	}
}

// NullCount returns the count of a message to or from MPI_PROC_NULL at a point: what its rank would send or receive
// otherwise, if the runs have that in all such messages; false if they do not, or no law tells it for sure.
func (laws *SideLaws) NullCount(p *law.Point) (count int64, known bool) {
	laws.checkNulls.Do(func() {
		laws.nullsFit = !slices.ContainsFunc(laws.nulls, func(s law.Sample) bool {
			v, some := laws.countAt(&s.Point)
			return !some || v != s.Value
		})
	})
	if !laws.nullsFit {
		return 0, false
	}
	return laws.countAt(p)
}

// countAt returns the count that laws give at a point if they are sure of it.
func (laws *SideLaws) countAt(p *law.Point) (count int64, known bool) {
	of, unit := laws.Count, int64(1)
	if laws.ElementBytes > 0 {
		of, unit = laws.Bytes, laws.ElementBytes
	}
	if of.IsEmpty() {
		return 0, false
	}
	e, known := of.Evaluate(p)
	return e.Value / unit, known && e.Exact && e.Value >= 0
}

// fit finds the laws of a side.
func (s *sideSamples) fit(laws *SideLaws, grid *pattern.Grid, f *law.Fitter) {
	laws.Tag, laws.Bytes = f.FitNumber(s.tag, grid), f.FitSize(s.bytes, max(laws.ElementBytes, s.unit()), grid)
}

// unit returns the size of an element, of messages of which some ranks have a count but no bytes, or neither, as
// those of a broadcast; 0 if sizes differ or are not known.
func (s *sideSamples) unit() int64 { return elementBytes(s.full.count, s.full.bytes) }

// fitCount finds the law of counts that do not follow from bytes.
func (s *sideSamples) fitCount(laws *SideLaws, grid *pattern.Grid, f *law.Fitter) {
	if laws.ElementBytes == 0 {
		laws.Count = f.FitSize(s.count, 1, grid)
	}
}

// peerBytes finds the size of an element of sides whose bytes are a number of elements for each member of the
// communicator.
type peerBytes struct {
	element     int64
	fails       bool
	full, empty [2]bool // some call has bytes, or none; of roots, and of others
	uneven      bool    // members do not divide the elements of some call
}

// add adds the count and bytes of a call on a communicator with some members; 0 members are not known.
func (p *peerBytes) add(members int64, isRoot bool, count, bytes int64) {
	kind := 0
	if isRoot {
		kind = 1
	}
	if bytes == 0 {
		p.empty[kind] = p.empty[kind] || count != 0
		return
	}
	p.full[kind] = true
	p.uneven = p.uneven || members < 1 || count < 1 || count%members != 0
	if members < 1 || count < 1 || bytes < 1 || count > bytes/members || bytes%(count*members) != 0 {
		p.fails = true
		return
	}
	size := bytes / (count * members)
	p.fails = p.fails || p.element != 0 && p.element != size
	p.element = size
}

// size returns the size of an element; 0 if bytes are another number, or some calls of a kind have none.
func (p *peerBytes) size() int64 {
	if p.fails || p.full[0] && p.empty[0] || p.full[1] && p.empty[1] {
		return 0
	}
	return p.element
}

// membersOf returns the number of members of a call's communicator, if it has one with one group; else 0.
func membersOf(t *join.Training, c *signature.Call) int64 {
	if c.Comm == signature.Null {
		return 0
	}
	if comm := t.Comm(c.Comm); comm != nil && len(comm.Remote) == 0 {
		return int64(len(comm.Members))
	}
	return 0
}

// siteSamples are the samples of a site.
type siteSamples struct {
	send, recv sideSamples
	root       []law.Sample
}

// fitSite finds the laws of the numbers of a site. A root may be a rank on one of the grids possible.
func fitSite(x *Site, t *join.Training, grid *pattern.Grid, f *law.Fitter, possible []pattern.Grid) {
	s := sampleSite(x, t)
	s.send.fit(&x.Send, grid, f)
	s.recv.fit(&x.Recv, grid, f)
	x.Root = law.WithPlaces(f.FitNumber(s.root, grid), s.root, possible)
	s.send.fitCount(&x.Send, grid, f)
	s.recv.fitCount(&x.Recv, grid, f)
}

// sampleSite samples the numbers of a site, and sets what a predicted call takes from calls of the runs.
func sampleSite(x *Site, t *join.Training) (all siteSamples) {
	var rootInComm []law.Sample
	x.SizesOfFirst = haveSizesOfFirst(x, t)
	for _, s := range x.Calls.Slots {
		for i, calls := range s.Runs {
			for r, c := range calls {
				if c == nil {
					continue
				}
				if x.Like == nil {
					x.Like, x.Send.Like, x.Recv.Like = c, c.Send, c.Recv
				}
				at := law.Point{Ranks: t.Runs[i].Ranks, Rank: int32(r), PeerRank: pattern.None, Index: s.Index()}
				at.Root = c.Root != nil && *c.Root == t.First[i]+int32(r)
				sizes := at
				if x.SizesOfFirst {
					sizes.Rank = firstOf(t, c, i)
				}
				null, members := nulls.Value(c.ProcNull, 0), membersOf(t, c)
				all.send.add(&x.Send, sizes, members, c.Send, x.Sends && null&schema.ProcNullSend != 0)
				all.recv.add(&x.Recv, sizes, members, c.Recv, x.Receives && null&schema.ProcNullRecv != 0)
				if c.Root != nil {
					at.Root = false
					world := *c.Root - t.First[i]
					all.root = append(all.root, law.Sample{Point: at, Value: int64(world)})
					if rank, member := rankInGroup(x, t, c, world); member {
						rootInComm = append(rootInComm, law.Sample{Point: at, Value: int64(rank)})
					}
				}
			}
		}
	}
	if x.Sends || x.Receives {
		x.tags = map[int64]bool{}
		for _, s := range slices.Concat(all.send.tag, all.recv.tag) {
			x.tags[s.Value] = true
		}
	}
	x.Send.ElementBytes = elementBytes(all.send.count, all.send.bytes)
	x.Recv.ElementBytes = elementBytes(all.recv.count, all.recv.bytes)
	x.Send.PeerBytes, x.Recv.PeerBytes = all.send.peers.size(), all.recv.peers.size()
	send, recv := haveTotals(t.Sig.Symbols[x.Event.Symbol].CallID)
	if send && !all.send.peers.uneven {
		x.Send.EvenShares = all.send.unit()
	}
	if recv && !all.recv.peers.uneven {
		x.Recv.EvenShares = all.recv.unit()
	}
	if x.RootInComm = len(all.root) > 0 && len(rootInComm) == len(all.root); x.RootInComm {
		all.root = rootInComm
	}
	return all
}

// haveTotals reports which sides of a call have the elements of all members together, in parts that may differ.
func haveTotals(call schema.CallID) (send, recv bool) {
	switch call.Operation() {
	case schema.CallScatterv, schema.CallReduceScatter:
		return true, false
	case schema.CallGatherv, schema.CallAllgatherv:
		return false, true
	case schema.CallAlltoallv:
		return true, true
	}
	return false, false
}

// haveSizesOfFirst reports whether the calls of a site have one size for all members of a communicator, as MPI wants it
// of collectives without counts for each peer, and which member it is about matters: communicators have some of the
// ranks, or roots move.
func haveSizesOfFirst(x *Site, t *join.Training) bool {
	call := t.Sig.Symbols[x.Event.Symbol].CallID
	if !call.Is(schema.FactCollective) || call.IsAny(schema.FactVariableCounts|schema.FactNeighborhood) {
		return false
	}
	matters := isOnParts(x)
	roots := map[int]int32{} // by run
	for _, s := range x.Calls.Slots {
		for i, calls := range s.Runs {
			seen := map[signature.Int]*signature.Call{} // the first call, by communicator
			sizes := map[sizeAt]signature.Int{}
			for _, c := range calls {
				if c == nil {
					continue
				}
				if !isInWorld(t.Comm(c.Comm)) { // or not known, as in imported traces
					return false
				}
				first := seen[c.Comm]
				if first == nil {
					first, seen[c.Comm] = c, c
				}
				sameRoot := (first.Root == nil) == (c.Root == nil) && (c.Root == nil || *first.Root == *c.Root)
				if !sameRoot || !sharesSizes(c, sizes) {
					return false
				}
				root, some := roots[i]
				roots[i] = firstOf(t, c, i)
				matters = matters || some && root != roots[i]
			}
		}
	}
	return matters
}

// isInWorld reports whether a communicator has one group, which begins with a rank of MPI_COMM_WORLD.
func isInWorld(c *signature.Comm) bool {
	return c != nil && len(c.Members) > 0 && c.Members[0] >= 0 && len(c.Remote) == 0
}

// sizeAt is a size of one side of the calls on a communicator.
type sizeAt struct {
	comm   signature.Int
	side   int
	column int
}

// sharesSizes reports whether the sizes of a call are those of the calls before on its communicator. Sides without data
// have no size.
func sharesSizes(c *signature.Call, sizes map[sizeAt]signature.Int) bool {
	for i, side := range [2]signature.Side{c.Send, c.Recv} {
		if side == nil {
			continue
		}
		for _, column := range [2]int{signature.SideCount, signature.SideBytes} {
			k := sizeAt{c.Comm, i, column}
			v := side[column]
			if had, some := sizes[k]; v > 0 && some && v != had {
				return false
			}
			if v > 0 {
				sizes[k] = v
			}
		}
	}
	return true
}

// firstOf returns the world rank, in a run, of a call's root or, if it has none, of the first member of its
// communicator.
func firstOf(t *join.Training, c *signature.Call, run int) int32 {
	if c.Root != nil {
		return *c.Root - t.First[run]
	}
	return t.Comm(c.Comm).Members[0]
}

// isOnParts reports whether the calls of a site are on communicators that do not have all ranks.
func isOnParts(x *Site) bool { return x.CommAt != nil || x.Comm != nil && x.Comm.World < 0 }

// rankInGroup returns the rank of a world rank in the communicator of a call; false if the communicator has all ranks
// or does not have this one.
func rankInGroup(x *Site, t *join.Training, c *signature.Call, world int32) (int32, bool) {
	if !isOnParts(x) || c.Comm == signature.Null {
		return 0, false
	}
	return t.Comm(c.Comm).RankOf(world)
}

// elementBytes returns the size of an element if bytes are always count times it; else 0.
func elementBytes(counts, bytes []law.Sample) (size int64) {
	if len(counts) != len(bytes) {
		return 0
	}
	for i, c := range counts {
		b := bytes[i].Value
		switch {
		case c.Value == 0 && b == 0:
		case c.Value <= 0 || b <= 0 || b%c.Value != 0 || size != 0 && size != b/c.Value:
			return 0
		default:
			size = b / c.Value
		}
	}
	return size
}

// iterationSamples samples the number of iterations of a loop: on each rank if the loop's iterations are equal there,
// else the most that a rank has.
func iterationSamples(n *template.Node, found *slots.Slots, training []int32) (samples []law.Sample) {
	around := 0 // components of the place around the loop
	for l := n.Parent; l != nil; l = l.Parent {
		if !found.Uniform[l.ID] {
			around += len(slots.Components(l, found.Periods[l.ID]))
		}
	}
	most := map[int32]int64{}
	for p, count := range found.Iterations[n.ID] {
		ranks := training[p.Run]
		most[ranks] = max(most[ranks], int64(count))
		if found.Uniform[n.ID] {
			samples = append(samples, law.Sample{Point: law.Point{Ranks: ranks, Rank: p.Rank, PeerRank: pattern.None,
				Index: slices.Clone(p.Place[:around])}, Value: int64(count)})
		}
	}
	if !found.Uniform[n.ID] {
		for _, ranks := range slices.Sorted(maps.Keys(most)) {
			samples = append(samples,
				law.Sample{Point: law.Point{Ranks: ranks, PeerRank: pattern.None}, Value: most[ranks]})
		}
	}
	slices.SortFunc(samples, func(a, b law.Sample) int {
		return cmp.Or(cmp.Compare(a.Point.Ranks, b.Point.Ranks), cmp.Compare(a.Point.Rank, b.Point.Rank),
			slices.Compare(a.Point.Index, b.Point.Index))
	})
	return samples
}

// shareTags gives one tag to all sites whose tags have no law, and to those that have tags in common with them. A tag
// that a program does not compute from its grid only has to be the same on both sides. It returns a warning if there
// are such sites.
func shareTags(sites []*Site) (warnings []string) {
	lawless := map[int64]bool{} // tags
	for _, x := range sites {
		if x.tags != nil && (!x.Send.Tag.IsExact() || !x.Recv.Tag.IsExact()) {
			for t := range x.tags {
				lawless[t] = true
			}
		}
	}
	if len(lawless) == 0 {
		return nil
	}
	for changed := true; changed; {
		changed = false
		for _, x := range sites {
			some, all := false, true
			for t := range x.tags {
				some, all = some || lawless[t], all && lawless[t]
			}
			if some && !all {
				changed = true
				for t := range x.tags {
					lawless[t] = true
				}
			}
		}
	}
	n := 0
	least := slices.Min(slices.Collect(maps.Keys(lawless)))
	for _, x := range sites {
		for t := range x.tags {
			if lawless[t] {
				n++
				l := law.NewConstant(least)
				if x.Sends {
					x.Send.Tag = l
				}
				if x.Receives {
					x.Recv.Tag = l
				}
				break
			}
		}
	}
	return []string{fmt.Sprintf("tags of %d calls have no law: tag %d is used for all of them", n, least)}
}
