package diagnose

import (
	"context"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// groups is a set of groups of calls, one bit for each of at most eight.
type groups uint8

// marks tell to which groups of calls the cost of each row belongs. The cost of a group is the cost of the operations
// that its calls do or complete: messages that they send or receive, collectives that they enter or wait for, one-sided
// transfers, files.
type marks struct {
	of      func(site int32, call schema.CallID) groups
	mostSeq int64 // rows above it are not marked: only damaged runs have them
	// own are the groups of a row's call, cost the groups to which the cost of its operation belongs; by rank and seq.
	own, cost [][]groups
	open      []openRows // by rank
	probes    groups     // groups with calls that probe
}

// openRows are rows of a rank whose operations are not complete yet.
type openRows struct {
	byDone    map[int64][]int64 // seqs, by the seq of the row that completes them
	transfers []int64           // seqs of one-sided transfers
}

// markRows reads the run and marks its rows. of returns the groups of a call.
func markRows(ctx context.Context, r *run.Run, of func(site int32, call schema.CallID) groups) (*marks, error) {
	ranks := int(r.Manifest.Ranks)
	m := &marks{of: of, mostSeq: 2*r.Manifest.Counts.Calls + 1<<10, own: make([][]groups, ranks),
		cost: make([][]groups, ranks), open: make([]openRows, ranks)}
	err := r.Events(ctx, "rank", "seq", "call", "callsite", "done_seq")(func(b *schema.Events) error {
		for i, rank := range b.Rank {
			if rank >= 0 && int(rank) < ranks && b.Seq[i] >= 0 && b.Seq[i] <= m.mostSeq {
				m.addRow(b, i)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.open = nil
	return m, r.Messages(ctx, "src", "dst", "send_seq", "recv_post_seq",
		"recv_done_seq")(func(b *schema.Messages) error {
		for i, src := range b.Src {
			if to := groupsAt(m.own, b.Dst[i], b.RecvDoneSeq[i]); to != 0 {
				m.add(src, b.SendSeq[i], to)
			}
			// A probe waits for the message whose receive comes next.
			if to := groupsAt(m.own, b.Dst[i], b.RecvPostSeq[i]-1) & m.probes; to != 0 {
				m.add(src, b.SendSeq[i], to)
			}
		}
		return nil
	})
}

// addRow marks a row, and the rows that it completes.
func (m *marks) addRow(b *schema.Events, i int) {
	rank, seq, call, open := b.Rank[i], b.Seq[i], schema.CallID(b.Call[i]), &m.open[b.Rank[i]]
	own := m.of(b.Callsite[i], call)
	for int64(len(m.own[rank])) <= seq {
		m.own[rank], m.cost[rank] = append(m.own[rank], 0), append(m.cost[rank], 0)
	}
	m.own[rank][seq] = own
	if call.Is(schema.FactProbes) {
		m.probes |= own
	}
	m.add(rank, seq, own)
	for _, started := range open.byDone[seq] {
		m.add(rank, started, own)
	}
	delete(open.byDone, seq)
	if done := b.DoneSeq[i]; done > seq {
		if open.byDone == nil {
			open.byDone = map[int64][]int64{}
		}
		open.byDone[done] = append(open.byDone[done], seq)
	}
	switch {
	case call.Is(schema.FactOneSided | schema.FactTransfers):
		open.transfers = append(open.transfers, seq)
	case call.Is(schema.FactCompletesTransfers):
		for _, transfer := range open.transfers {
			m.add(rank, transfer, own)
		}
		open.transfers = open.transfers[:0]
	}
}

func (m *marks) add(rank int32, seq int64, more groups) {
	if rank >= 0 && int(rank) < len(m.cost) && seq >= 0 && seq < int64(len(m.cost[rank])) {
		m.cost[rank][seq] |= more
	}
}

// groupsAt returns an element of own or cost; 0 if there is no such row.
func groupsAt(all [][]groups, rank int32, seq int64) groups {
	if rank < 0 || int(rank) >= len(all) || seq < 0 || seq >= int64(len(all[rank])) {
		return 0
	}
	return all[rank][seq]
}

// free sets the cost of operations that belong to any of these groups to 0.
func (m *marks) free(some groups) simulate.Keep {
	return func(rank int32, seq int64, _ int32, _ schema.CallID) simulate.Kept {
		if groupsAt(m.cost, rank, seq)&some != 0 {
			return simulate.Kept{}
		}
		return simulate.KeptAll
	}
}
