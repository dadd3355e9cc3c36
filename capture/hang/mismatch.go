package hang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/capture/ingest/handles"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// keptOperations is how many of the last collective operations of a rank on a communicator are remembered.
const keptOperations = 16

// lastOperations are the last collective operations of a rank on a communicator, the n-th at n modulo their number.
type lastOperations [keptOperations]struct {
	n    uint64 // from 1; 0: none
	call uint16
	root int32
}

// remember keeps a collective operation, the n-th from 0 on its communicator.
func (r *rank) remember(call *spool.Call, n uint64) {
	last := r.last[call.Comm]
	if last == nil {
		last = &lastOperations{}
		r.last[call.Comm] = last
	}
	x := &last[n%keptOperations]
	x.n, x.call, x.root = n+1, call.Call, call.Peer
}

// operation is a collective operation: the n-th, from 1, on a communicator of the run.
type operation struct {
	comm int32
	n    uint64
}

// participant is what a rank does as a collective operation.
type participant struct {
	rank int32
	call schema.CallID
	root int32 // in the world; -1: none, or not known
}

func (p *participant) text() string {
	if p.root < 0 {
		return p.call.String()
	}
	return fmt.Sprintf("%s with root %d", p.call, p.root)
}

// participants are the first rank that entered an operation, and the first that does another one.
type participants struct {
	first, other participant
	differ       bool
}

// mismatches finds the first operation of each communicator that ranks did differently, or are in, among the last ones.
// in has the ranks that are in such an operation.
func (a *analysis) mismatches() (out []Finding, in map[int32]bool) {
	entered := map[operation]*participants{}
	names := map[int32]string{}
	least := map[int32]uint64{} // the first mismatch, by communicator
	a.operations(func(at operation, v *handles.View, p participant) {
		all := entered[at]
		if all == nil {
			entered[at] = &participants{first: p}
			return
		}
		if all.differ || all.first.call == p.call && all.first.root == p.root {
			return
		}
		all.other, all.differ, names[at.comm] = p, true, v.Text()
		if n, known := least[at.comm]; !known || at.n < n {
			least[at.comm] = at.n
		}
	})
	for comm, n := range least {
		p := entered[operation{comm, n}]
		out = append(out, Finding{Kind: Mismatch, Ranks: []int32{p.first.rank, p.other.rank}, Text: fmt.Sprintf(
			"operation %d on %s is %s on rank %d, but %s on rank %d", n, names[comm], p.first.text(), p.first.rank,
			p.other.text(), p.other.rank)})
	}
	slices.SortFunc(out, func(x, y Finding) int { return strings.Compare(x.Text, y.Text) })
	in = map[int32]bool{}
	for _, r := range a.ranks {
		a.openOperations(r, func(at operation, _ *handles.View, p participant) {
			if n, known := least[at.comm]; known && n == at.n {
				in[p.rank] = true
			}
		})
	}
	return out, in
}

// operations passes the last collective operations of all ranks to each.
func (a *analysis) operations(each func(operation, *handles.View, participant)) {
	for _, r := range a.ranks {
		for number, last := range r.last {
			v := a.view(r, number)
			for i := range last {
				if x := &last[i]; v != nil && x.n > 0 {
					each(operation{v.ID, x.n}, v, participantOf(r, v, x.call, x.root))
				}
			}
		}
		a.openOperations(r, each)
	}
}

// openOperations passes the collective operations that the threads of a rank are in to each.
func (a *analysis) openOperations(r *rank, each func(operation, *handles.View, participant)) {
	for _, t := range r.threads {
		c := t.open
		if c == nil || !isCollective(c) {
			continue
		}
		if v := a.view(r, c.Comm); v != nil {
			each(operation{v.ID, r.next[c.Comm] + 1}, v, participantOf(r, v, c.Call, c.Peer))
		}
	}
}

func participantOf(r *rank, v *handles.View, call uint16, root int32) participant {
	p := participant{r.rank, schema.CallID(call).WithoutLargeCount(), -1}
	if p.call.Is(schema.FactRooted) && root != schema.NullInt32 && !v.Inter {
		p.root = worldRank(v, root)
	}
	return p
}

// unexplained leaves out that ranks wait for one of the given ranks, which are in operations that do not match.
func unexplained(all []Finding, in map[int32]bool) []Finding {
	return slices.DeleteFunc(all, func(f Finding) bool { return f.Kind == Waiting && f.For != nil && in[*f.For] })
}
