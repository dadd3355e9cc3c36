package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/evidence"
	"github.com/commq/commq/detect/ledger"
)

// add adds a finding of one group. It joins the findings of other groups that are the same thing to do: the same
// operation, on the same basis, at the same lines.
func (p *Report) add(f Finding) {
	for i := range p.Findings {
		if into := &p.Findings[i]; into.sameThing(&f) {
			into.join(&f)
			return
		}
	}
	p.Findings = append(p.Findings, f)
}

// number orders findings by their bytes, and their groups by their ranks, and writes where each is done.
func (p *Report) number() {
	slices.SortStableFunc(p.Findings, func(a, b Finding) int { return cmp.Compare(b.MessageBytes, a.MessageBytes) })
	for i := range p.Findings {
		f := &p.Findings[i]
		f.Finding = i + 1
		slices.SortStableFunc(f.Groups, func(a, b Group) int { return slices.Compare(a.Ranks, b.Ranks) })
		f.Where = f.where()
	}
}

// sameThing reports whether two findings are the same change of the program. A line that exchanges blocks of one size
// in some places, or at some times, and of several sizes in others, needs the call for several sizes.
func (f *Finding) sameThing(g *Finding) bool {
	return (f.Operation == g.Operation || general(f.Operation) == general(g.Operation) && f.hasLines()) && f.Basis == g.Basis && slices.Equal(f.Reductions, g.Reductions) &&
		slices.Equal(f.Others, g.Others) && slices.EqualFunc(placesOf(f.SendSites), placesOf(g.SendSites), isKnownAndEqual) &&
		slices.Equal(placesOf(f.ReceiveSites), placesOf(g.ReceiveSites))
}

// hasLines reports whether the lines of all sends are known: the calls of one function need not belong together.
func (f *Finding) hasLines() bool {
	return !slices.ContainsFunc(f.SendSites, func(s Site) bool { return s.Line == 0 })
}

// general returns the operation for blocks of several sizes if this one is for blocks of one size, else itself.
func general(operation string) string {
	switch operation {
	case ledger.Alltoall.String():
		return ledger.Alltoallv.String()
	case ledger.NeighborAlltoall.String():
		return ledger.NeighborAlltoallv.String()
	}
	return operation
}

// isKnownAndEqual reports whether two places are the same; of unknown ones nobody can tell.
func isKnownAndEqual(a, b string) bool { return a == b && a != "" }

// placesOf returns the different places of call sites, sorted. A place has several sites if several paths lead there.
func placesOf(sites []Site) (places []string) {
	for i := range sites {
		places = append(places, sites[i].Place)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// join adds the groups of a finding that is the same thing.
func (f *Finding) join(g *Finding) {
	if f.Operation != g.Operation {
		f.generalize()
		other := *g
		other.generalize()
		g = &other
	}
	f.PayloadBytesMin, f.PayloadBytesMax = min(f.PayloadBytesMin, g.PayloadBytesMin), max(f.PayloadBytesMax, g.PayloadBytesMax)
	if f.Datatype != g.Datatype {
		countInBytes(f)
		other := *g
		countInBytes(&other)
		g = &other
	}
	f.CountMin, f.CountMax = min(f.CountMin, g.CountMin), max(f.CountMax, g.CountMax)
	if f.weighTogether(g); g.extent > f.extent {
		f.extent, f.Compared = g.extent, g.Compared
	}
	f.Segments = max(f.Segments, g.Segments)
	f.Instances += g.Instances
	f.Repeats += g.Repeats
	f.Messages += g.Messages
	f.MessageBytes += g.MessageBytes
	f.Checks += g.Checks
	for _, group := range g.Groups {
		f.joinGroup(group)
	}
	f.joinAlternatives(g.Alternatives)
	f.SendSites, f.ReceiveSites = joinSites(f.SendSites, g.SendSites), joinSites(f.ReceiveSites, g.ReceiveSites)
	f.CompletionSites = joinSites(f.CompletionSites, g.CompletionSites)
}

// joinGroup adds a group. The ranks and the communicator of another one are the same group: several paths lead to the
// lines.
func (f *Finding) joinGroup(g Group) {
	k := slices.IndexFunc(f.Groups, func(o Group) bool {
		return slices.Equal(o.Ranks, g.Ranks) && o.Communicator != nil && g.Communicator != nil &&
			*o.Communicator == *g.Communicator && o.Neighbors.sameGrid(g.Neighbors)
	})
	if k < 0 {
		f.Groups = append(f.Groups, g)
		return
	}
	o := &f.Groups[k]
	o.Neighbors.join(g.Neighbors)
	o.Roots, o.PossibleRoots = joinRanks(o.Roots, g.Roots), joinRanks(o.PossibleRoots, g.PossibleRoots)
	o.KeptRanks, o.RootOrder = joinRanks(o.KeptRanks, g.KeptRanks), nil // nothing tells which path comes first
	o.Instances += g.Instances
	o.Messages += g.Messages
	o.MessageBytes += g.MessageBytes
	o.List = append(o.List, g.List...)
}

// sameGrid reports whether two exchanges are on the same grid, or both on graphs, or both not between neighbours.
func (n *Neighbors) sameGrid(o *Neighbors) bool {
	if n == nil || o == nil {
		return n == o
	}
	return slices.Equal(n.Dims, o.Dims) && slices.Equal(n.Periods, o.Periods) && slices.Equal(n.Along, o.Along)
}

// join adds the graphs of another exchange.
func (n *Neighbors) join(o *Neighbors) {
	if n == nil || n.Dims != nil {
		return
	}
	all := map[uint64]bool{}
	maps.Copy(all, n.graphs)
	maps.Copy(all, o.graphs)
	n.graphs, n.Graphs, n.Least, n.Most = all, max(1, len(all)), min(n.Least, o.Least), max(n.Most, o.Most)
}

// joinRanks returns the ranks of both lists, ascending.
func joinRanks(a, b []int32) []int32 {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// generalize makes a finding of blocks of one size one of several sizes, whose count is that of all blocks: the
// payload.
func (f *Finding) generalize() {
	if to := general(f.Operation); to != f.Operation {
		f.CountMin, f.CountMax = f.PayloadBytesMin/f.elementBytes, f.PayloadBytesMax/f.elementBytes
		f.Operation = to
	}
}

// countInBytes makes the counts of a finding ones of bytes.
func countInBytes(f *Finding) {
	f.CountMin, f.CountMax = f.CountMin*f.elementBytes, f.CountMax*f.elementBytes
	f.Datatype, f.elementBytes = bytesType, 1
}

// weighTogether joins the evidence of two findings: it adds up if they have different ranks; otherwise the stronger one
// counts.
func (f *Finding) weighTogether(g *Finding) {
	before, ranks := f.Bits, f.union(func(g *Group) []int32 { return g.Ranks })
	apart := !slices.ContainsFunc(g.Groups[0].Ranks, func(r int32) bool { return slices.Contains(ranks, r) })
	if f.Bits = max(f.Bits, g.Bits); apart {
		f.Bits = evidence.Joined(before, g.Bits)
	}
	for _, b := range []ledger.Basis{ledger.ByPayload, ledger.ByAddress, ledger.ByStructure} {
		if b.String() == f.Basis {
			f.Certainty = evidence.Certainty(f.Bits, b).String()
		}
	}
}

// joinAlternatives adds alternatives; equal ones are joined and their instances added.
func (f *Finding) joinAlternatives(list []Alternative) {
	for _, a := range list {
		k := slices.IndexFunc(f.Alternatives, func(b Alternative) bool { return a.text() == b.text() })
		if k < 0 {
			f.Alternatives = append(f.Alternatives, a)
			continue
		}
		f.Alternatives[k].Instances += a.Instances
	}
}

// joinSites adds the sites of b that are at places which a lacks.
func joinSites(a, b []Site) []Site {
	have := placesOf(a)
	for _, s := range b {
		if _, found := slices.BinarySearch(have, s.Place); !found {
			a = append(a, s)
		}
	}
	return a
}

// bytesType is the datatype of counts of bytes.
const bytesType = "MPI_BYTE"

// count sets what the call of the collective takes as count and datatype.
func (k *maker) count(p *Finding, f *detect.Finding) {
	p.CountMin, p.CountMax, p.Datatype, p.elementBytes = f.BytesMin, f.BytesMax, bytesType, 1
	if f.Operation == ledger.NeighborAlltoall {
		p.CountMin, p.CountMax = f.BlockMin, f.BlockMax
	}
	if n := blocks(f); n > 1 && f.BytesMin%n == 0 && f.BytesMax%n == 0 {
		p.CountMin, p.CountMax = f.BytesMin/n, f.BytesMax/n
	}
	if len(f.Datatypes) != 1 {
		return
	}
	t := k.types[f.Datatypes[0]]
	if t == nil || t.Combiner != "named" || t.Bytes <= 0 || p.CountMin%t.Bytes != 0 || p.CountMax%t.Bytes != 0 {
		return
	}
	p.CountMin, p.CountMax, p.Datatype, p.elementBytes = p.CountMin/t.Bytes, p.CountMax/t.Bytes, t.Name, t.Bytes
}

// blocks is the number of blocks that the payload of an instance consists of, one for each call's count: an alltoall
// has one for each other rank, a gather one of each rank.
func blocks(f *detect.Finding) int64 {
	switch f.Operation {
	case ledger.Alltoall:
		return int64(len(f.Ranks)) - 1
	case ledger.Gather, ledger.Scatter, ledger.ReduceScatterBlock:
		return int64(len(f.Ranks))
	}
	return 1
}

// perRank says which ranks a count is for; "" for the one payload of the operation.
func (f *Finding) perRank() string {
	switch f.Operation {
	case ledger.Alltoall.String():
		return " to each rank"
	case ledger.NeighborAlltoall.String():
		return " to each neighbour"
	case ledger.Allgather.String(), ledger.Gather.String():
		return " of each rank"
	case ledger.Scatter.String(), ledger.ReduceScatterBlock.String():
		return " for each rank"
	case ledger.Alltoallv.String(), ledger.Allgatherv.String(), ledger.Gatherv.String(), ledger.Scatterv.String(),
		ledger.ReduceScatter.String():
		return " in all"
	}
	return ""
}
