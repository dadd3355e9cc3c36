package detect

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/commq/commq/detect/evidence"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/neighbours"
	"github.com/commq/commq/detect/scan"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// findingKey identifies a finding: instances with equal keys and a common sending call site belong together.
// Communicators with the same members count as one.
type findingKey struct {
	op         ledger.Operation
	comm       int32 // null if the finding covers a whole communicator
	ranks      string
	basis      ledger.Basis
	reductions string
	others     string
}

// reporter turns the instances in a ledger into findings.
type reporter struct {
	ledger *ledger.Ledger
	census *scan.Census
	comms  []run.Comm
	listed bool               // findings list their messages
	placed map[string]Finding // cache: the communicators of findings
}

// report returns the findings.
func (r *reporter) report(o *Options) (out []Finding) {
	for _, i := range r.ledger.Found {
		i.Messages = r.ledger.Carriers(i.Messages)
	}
	slices.SortStableFunc(r.ledger.Found, func(a, b *ledger.Instance) int { return cmp.Compare(a.Messages[0], b.Messages[0]) })
	order := r.collect(r.ledger.Found, o)
	r.weigh(order)
	if winners := choose(order, len(r.ledger.Messages)); len(winners) > 0 {
		kept := slices.DeleteFunc(slices.Clone(r.ledger.Found), func(i *ledger.Instance) bool { return winners[i] != nil })
		order = r.collect(kept, o)
		r.weigh(order)
		addAlternatives(order, r.ledger.Found, winners)
	}
	for _, f := range order {
		if f.Operation.Neighborly() {
			f.Neighbors = r.neighbors(f)
		}
		f.RootOrder = r.rootOrder(f)
		out = append(out, *f)
	}
	return out
}

// collect merges instances of the same thing into findings, and sorts these by bytes.
func (r *reporter) collect(found []*ledger.Instance, o *Options) (order []*Finding) {
	index := map[findingKey][]*Finding{}
	for _, i := range found {
		f := r.finding(i)
		k := findingKey{f.Operation, f.Comm, fmt.Sprint(f.Ranks), f.Basis, fmt.Sprint(f.Reductions),
			fmt.Sprint(f.Others)}
		if f.Completeness < o.Completeness {
			continue
		}
		if len(f.Missing) == 0 {
			k.comm = schema.NullInt32
		}
		into := &f
		index[k] = slices.DeleteFunc(index[k], func(old *Finding) bool {
			if !shares(old.SendSites, f.SendSites) {
				return false
			}
			if into == &f {
				into = old
				old.merge(&f)
				return false
			}
			into.merge(old)
			old.Instances = 0 // merged into another one
			return true
		})
		if into == &f {
			index[k] = append(index[k], &f)
			order = append(order, &f)
		}
	}
	order = slices.DeleteFunc(order, func(f *Finding) bool { return f.Instances == 0 })
	slices.SortStableFunc(order, func(a, b *Finding) int { return cmp.Compare(b.MessageBytes, a.MessageBytes) })
	return order
}

// weigh sets the evidence and the certainty of findings.
func (r *reporter) weigh(list []*Finding) {
	var all []*evidence.Finding
	for _, f := range list {
		all = append(all, &evidence.Finding{Op: f.Operation, Ranks: f.Ranks,
			CommSize: len(f.Ranks) + len(f.Missing), Whole: f.Comm != schema.NullInt32 && len(f.Missing) == 0,
			Instances: f.instances, Basis: f.Basis})
	}
	w := evidence.NewWeigher(r.ledger, r.census.Sample, r.census.Used, all)
	for k, f := range list {
		f.Bits, f.Basis = w.Weigh(all[k])
		f.Certainty = evidence.Certainty(f.Bits, f.Basis)
	}
}

// rootOrder returns a finding's roots in turn, in the order in which its first rank takes part in the instances; nil
// if they do not take turns.
func (r *reporter) rootOrder(f *Finding) (turn []int32) {
	n := len(f.Roots)
	if n < 2 {
		return nil
	}
	begins := map[*ledger.Instance]int64{}
	for _, i := range f.instances {
		begins[i] = math.MaxInt64
		for _, k := range i.Messages {
			m := &r.ledger.Messages[k]
			if m.Src == f.Ranks[0] {
				begins[i] = min(begins[i], m.SendSeq)
			}
			if m.Dst == f.Ranks[0] {
				begins[i] = min(begins[i], m.DoneSeq)
			}
		}
	}
	inOrder := slices.Clone(f.instances)
	slices.SortStableFunc(inOrder, func(a, b *ledger.Instance) int { return cmp.Compare(begins[a], begins[b]) })
	for k, i := range inOrder {
		if k < n {
			if slices.Contains(turn, i.Root) {
				return nil
			}
			turn = append(turn, i.Root)
		} else if i.Root != turn[k%n] {
			return nil
		}
	}
	return turn
}

// finding returns the finding for one instance.
func (r *reporter) finding(i *ledger.Instance) Finding {
	f := Finding{Operation: i.Op, Ranks: i.Ranks, PossibleRoots: i.Possible, BytesMin: i.Bytes, BytesMax: i.Bytes,
		Segments: i.Segments,
		Messages: int64(len(i.Messages)) * i.Times(), Instances: i.Times(), instances: []*ledger.Instance{i}}
	if i.Op.Rooted() {
		f.Roots = []int32{i.Root}
		f.PossibleRoots = union(f.PossibleRoots, f.Roots)
	}
	if i.Op == ledger.NeighborAlltoall { // all its messages have one size
		f.BlockMin = r.ledger.Messages[i.Messages[0]].Bytes
		f.BlockMax = f.BlockMin
	}
	if i.Repeated {
		f.Repeats = 1
	}
	if i.Proof != nil {
		f.Checks = i.Checks
		f.Basis, f.Reductions, f.Kept, f.Others = i.Proof.Basis, i.Proof.Reductions, i.Proof.Unseen, i.Proof.Others
		f.Compared = i.Proof.Compared
	}
	if i.Proof == nil && (i.Op == ledger.Alltoall || i.Op == ledger.Alltoallv || i.Op == ledger.Barrier) {
		f.Basis = ledger.ByStructure
	}
	one := Instance{Root: i.Root, Bytes: i.Bytes, RankBytes: i.RankBytes}
	comms := map[int32]bool{}
	for _, m := range i.Messages {
		m := &r.ledger.Messages[m]
		f.MessageBytes += m.Bytes * i.Times()
		comms[m.Comm] = true
		f.Datatypes = append(f.Datatypes, m.Datatype)
		f.SendSites = append(f.SendSites, m.SendSite)
		if m.PostSeq == m.DoneSeq {
			f.RecvSites = append(f.RecvSites, m.RecvSite)
		} else {
			f.DoneSites = append(f.DoneSites, m.RecvSite)
		}
		if r.listed {
			one.Messages = append(one.Messages, Message{m.Src, m.Dst, m.SendSeq, m.PostSeq, doneRow(m)})
		}
	}
	f.SendSites, f.RecvSites, f.DoneSites = known(f.SendSites), known(f.RecvSites), known(f.DoneSites)
	f.Datatypes = known(f.Datatypes)
	if r.listed {
		f.List = []Instance{one}
	}
	r.over(&f, comms)
	return f
}

// doneRow returns the row that completed the receive, as in the table messages.
func doneRow(m *ledger.Message) int64 {
	if m.DoneSeq == math.MaxInt64 {
		return schema.NullInt64
	}
	return m.DoneSeq
}

// over determines the communicator of a finding: the one its messages are sent in, another with exactly its ranks, or
// part of one.
func (r *reporter) over(f *Finding, comms map[int32]bool) {
	key := fmt.Sprint(f.Ranks, comms)
	if k, ok := r.placed[key]; ok {
		f.Comm, f.Missing, f.Completeness = k.Comm, k.Missing, k.Completeness
		return
	}
	defer func() { r.placed[key] = *f }()
	f.Comm, f.Completeness = schema.NullInt32, 1
	var part *run.Comm
	for k := range r.comms {
		c := &r.comms[k]
		same := len(c.Members) == len(f.Ranks) && ledger.HasRanks(c, f.Ranks)
		switch {
		case same && comms[c.ID]:
			f.Comm = c.ID
			return
		case same && f.Comm == schema.NullInt32:
			f.Comm = c.ID
		case comms[c.ID] && (part == nil || len(c.Members) < len(part.Members)) && ledger.HasRanks(c, f.Ranks):
			part = c
		}
	}
	if f.Comm != schema.NullInt32 || part == nil {
		return
	}
	f.Comm = part.ID
	for _, r := range part.Members {
		if _, takes := slices.BinarySearch(f.Ranks, r); !takes {
			f.Missing = append(f.Missing, r)
		}
	}
	slices.Sort(f.Missing)
	f.Completeness = float64(len(f.Ranks)) / float64(len(part.Members))
}

// merge adds instances of the same finding.
func (f *Finding) merge(g *Finding) {
	f.Roots, f.PossibleRoots = union(f.Roots, g.Roots), union(f.PossibleRoots, g.PossibleRoots)
	f.BytesMin, f.BytesMax = min(f.BytesMin, g.BytesMin), max(f.BytesMax, g.BytesMax)
	f.BlockMin, f.BlockMax = min(f.BlockMin, g.BlockMin), max(f.BlockMax, g.BlockMax)
	f.Segments = max(f.Segments, g.Segments)
	f.Repeats += g.Repeats
	f.Checks += g.Checks
	f.Compared = max(f.Compared, g.Compared)
	f.Kept, f.Datatypes = union(f.Kept, g.Kept), union(f.Datatypes, g.Datatypes)
	f.Messages += g.Messages
	f.MessageBytes += g.MessageBytes
	f.Instances += g.Instances
	f.SendSites, f.RecvSites, f.DoneSites = union(f.SendSites, g.SendSites), union(f.RecvSites, g.RecvSites),
		union(f.DoneSites, g.DoneSites)
	f.List = append(f.List, g.List...)
	f.instances = append(f.instances, g.instances...)
}

// shares reports whether two sets of call sites have one in common; two empty sets do.
func shares(a, b []int32) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return slices.ContainsFunc(a, func(s int32) bool { return slices.Contains(b, s) })
}

// union returns the union of sorted sets.
func union(a, b []int32) []int32 {
	if slices.Equal(a, b) {
		return a
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// known returns the distinct known ids, sorted: of call sites or datatypes.
func known(all []int32) []int32 {
	all = slices.DeleteFunc(all, func(s int32) bool { return s == schema.NullInt32 })
	slices.Sort(all)
	return slices.Compact(all)
}

// neighbors returns the neighbours in a finding, from the sources and destinations of its messages.
func (r *reporter) neighbors(f *Finding) *neighbours.Neighbors {
	place := map[int32]int{}
	for i, rank := range r.order(f) {
		place[rank] = i
	}
	graph := make([]map[int]bool, len(f.Ranks))
	for i := range graph {
		graph[i] = map[int]bool{}
	}
	graphs := map[uint64]bool{}
	least, most := len(f.Ranks), 0
	for _, i := range f.instances {
		ways := make([]ledger.Way, 0, len(i.Messages))
		for _, m := range i.Messages {
			src, dst := place[r.ledger.Messages[m].Src], place[r.ledger.Messages[m].Dst]
			graph[src][dst], graph[dst][src] = true, true
			ways = append(ways, ledger.Way{Src: int32(min(src, dst)), Dst: int32(max(src, dst))})
		}
		slices.SortFunc(ways, ledger.CompareWays)
		ways = slices.Compact(ways)
		if key := hashOf(ways); !graphs[key] {
			graphs[key] = true
			low, high := degrees(ways, len(f.Ranks))
			least, most = min(least, low), max(most, high)
		}
	}
	x := neighbours.NeighborsOf(graph)
	if x.Dims == nil {
		x.Graphs, x.Least, x.Most = graphs, least, most
	}
	return x
}

// hashOf returns a hash of the edges of a graph.
func hashOf(edges []ledger.Way) uint64 {
	h := fnv.New64a()
	var b []byte
	for _, e := range edges {
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b[:0], uint32(e.Src)), uint32(e.Dst))
		h.Write(b)
	}
	return h.Sum64()
}

// degrees returns the least and the greatest number of neighbours of ranks in a graph of these edges.
func degrees(edges []ledger.Way, ranks int) (least, most int) {
	of := make([]int, ranks)
	for _, e := range edges {
		of[e.Src]++
		of[e.Dst]++
	}
	return slices.Min(of), slices.Max(of)
}

// order returns a finding's ranks in the order of its communicator.
func (r *reporter) order(f *Finding) []int32 {
	for k := range r.comms {
		if c := &r.comms[k]; c.ID == f.Comm && len(c.Members) == len(f.Ranks) {
			return c.Members
		}
	}
	return f.Ranks
}
