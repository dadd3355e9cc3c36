package detect

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// findingKey is what the instances of one finding have in common, beside a call site that sends. Communicators with the same members
// are one.
type findingKey struct {
	op         Operation
	comm       int32 // null where the finding is over a whole one
	ranks      string
	certainty  Certainty
	reductions string
	others     string
}

// report makes findings of instances.
func (d *detector) report() {
	index := map[findingKey][]*Finding{}
	var order []*Finding
	for _, i := range d.found {
		i.messages = d.wholes(i.messages)
	}
	slices.SortStableFunc(d.found, func(a, b *instance) int { return cmp.Compare(a.messages[0], b.messages[0]) })
	for _, i := range d.found {
		f := d.finding(i)
		k := findingKey{f.Operation, f.Comm, fmt.Sprint(f.Ranks), f.Certainty, fmt.Sprint(f.Reductions), fmt.Sprint(f.Others)}
		if f.Completeness < d.options.Completeness {
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
			old.Instances = 0 // it is part of another one
			return true
		})
		if into == &f {
			index[k] = append(index[k], &f)
			order = append(order, &f)
		}
	}
	order = slices.DeleteFunc(order, func(f *Finding) bool { return f.Instances == 0 })
	slices.SortStableFunc(order, func(a, b *Finding) int { return cmp.Compare(b.MessageBytes, a.MessageBytes) })
	for _, f := range order {
		if f.Operation.Neighborly() {
			d.result.Neighborhoods++
			if !d.options.Neighbors {
				continue
			}
			f.Neighbors = d.neighbors(f)
		}
		f.RootOrder = d.rootOrder(f)
		d.result.Findings = append(d.result.Findings, *f)
	}
}

// rootOrder are a finding's roots in turn, in the order in which its first rank takes part in the instances; nil where they take no turns.
func (d *detector) rootOrder(f *Finding) (turn []int32) {
	n := len(f.Roots)
	if n < 2 {
		return nil
	}
	begins := map[*instance]int64{}
	for _, i := range f.instances {
		begins[i] = math.MaxInt64
		for _, k := range i.messages {
			m := &d.messages[k]
			if m.src == f.Ranks[0] {
				begins[i] = min(begins[i], m.sendSeq)
			}
			if m.dst == f.Ranks[0] {
				begins[i] = min(begins[i], m.doneSeq)
			}
		}
	}
	inOrder := slices.Clone(f.instances)
	slices.SortStableFunc(inOrder, func(a, b *instance) int { return cmp.Compare(begins[a], begins[b]) })
	for k, i := range inOrder {
		if k < n {
			if slices.Contains(turn, i.root) {
				return nil
			}
			turn = append(turn, i.root)
		} else if i.root != turn[k%n] {
			return nil
		}
	}
	return turn
}

// finding is the finding of one instance.
func (d *detector) finding(i *instance) Finding {
	f := Finding{Operation: i.op, Ranks: i.ranks, PossibleRoots: i.possible, BytesMin: i.bytes, BytesMax: i.bytes, Segments: i.segments,
		Messages: int64(len(i.messages)), Instances: 1, instances: []*instance{i}}
	if i.op.Rooted() {
		f.Roots = []int32{i.root}
		f.PossibleRoots = union(f.PossibleRoots, f.Roots)
	}
	if i.repeat {
		f.Repeats = 1
	}
	if i.of != nil {
		f.Checks = i.checks
		f.Certainty, f.Reductions, f.Kept, f.Others = i.of.certainty, i.of.reductions, i.of.kept, i.of.others
	}
	one := Instance{Root: i.root, Bytes: i.bytes, RankBytes: i.rankBytes}
	comms := map[int32]bool{}
	for _, m := range i.messages {
		m := &d.messages[m]
		f.MessageBytes += m.bytes
		comms[m.comm] = true
		f.SendSites = append(f.SendSites, m.sendSite)
		if m.postSeq == m.doneSeq {
			f.RecvSites = append(f.RecvSites, m.recvSite)
		} else {
			f.DoneSites = append(f.DoneSites, m.recvSite)
		}
		if d.options.Messages {
			one.Messages = append(one.Messages, Message{m.src, m.dst, m.sendSeq, m.postSeq, m.doneRow()})
		}
	}
	f.SendSites, f.RecvSites, f.DoneSites = sites(f.SendSites), sites(f.RecvSites), sites(f.DoneSites)
	if d.options.Messages {
		f.List = []Instance{one}
	}
	d.over(&f, comms)
	return f
}

// doneRow is the row that completed the receive, as the table messages has it.
func (m *message) doneRow() int64 {
	if m.doneSeq == math.MaxInt64 {
		return schema.NullInt64
	}
	return m.doneSeq
}

// over says which communicator a finding is over: the one its messages are sent in, another with just its ranks, or part of one.
func (d *detector) over(f *Finding, comms map[int32]bool) {
	key := fmt.Sprint(f.Ranks, comms)
	if k, ok := d.placed[key]; ok {
		f.Comm, f.Missing, f.Completeness = k.Comm, k.Missing, k.Completeness
		return
	}
	defer func() { d.placed[key] = *f }()
	f.Comm, f.Completeness = schema.NullInt32, 1
	var part *Comm
	for k := range d.run.Comms {
		c := &d.run.Comms[k]
		same := len(c.Members) == len(f.Ranks) && holds(c, f.Ranks)
		switch {
		case same && comms[c.ID]:
			f.Comm = c.ID
			return
		case same && f.Comm == schema.NullInt32:
			f.Comm = c.ID
		case comms[c.ID] && (part == nil || len(c.Members) < len(part.Members)) && holds(c, f.Ranks):
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

// holds says whether a communicator has all these ranks.
func holds(c *Comm, ranks []int32) bool {
	members := map[int32]bool{}
	for _, r := range c.Members {
		members[r] = true
	}
	for _, r := range ranks {
		if !members[r] {
			return false
		}
	}
	return true
}

// merge adds instances of the same finding.
func (f *Finding) merge(g *Finding) {
	f.Roots, f.PossibleRoots = union(f.Roots, g.Roots), union(f.PossibleRoots, g.PossibleRoots)
	f.BytesMin, f.BytesMax = min(f.BytesMin, g.BytesMin), max(f.BytesMax, g.BytesMax)
	f.Segments = max(f.Segments, g.Segments)
	f.Repeats += g.Repeats
	f.Checks += g.Checks
	f.Kept = union(f.Kept, g.Kept)
	f.Messages += g.Messages
	f.MessageBytes += g.MessageBytes
	f.Instances += g.Instances
	f.SendSites, f.RecvSites, f.DoneSites = union(f.SendSites, g.SendSites), union(f.RecvSites, g.RecvSites), union(f.DoneSites, g.DoneSites)
	f.List = append(f.List, g.List...)
	f.instances = append(f.instances, g.instances...)
}

// shares says whether two sets of call sites have one in common; what has none shares with what has none.
func shares(a, b []int32) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return slices.ContainsFunc(a, func(s int32) bool { return slices.Contains(b, s) })
}

// union of sorted sets.
func union(a, b []int32) []int32 {
	if slices.Equal(a, b) {
		return a
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// sites are different call sites, sorted, without the unknown.
func sites(all []int32) []int32 {
	all = slices.DeleteFunc(all, func(s int32) bool { return s == schema.NullInt32 })
	slices.Sort(all)
	return slices.Compact(all)
}
