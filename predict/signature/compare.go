package signature

import (
	"fmt"

	"github.com/commq/commq/schema"
)

// Compare checks that the signature expands to the run's rows: the calls of each rank with their peers, bytes, tags
// and communicators, and which call completes which. The error names the first row that differs.
func (s *Signature) Compare(run *Run) error {
	if run.Manifest.Ranks != s.Ranks {
		return fmt.Errorf("the signature has %d ranks, run %q has %d", s.Ranks, run.Name, run.Manifest.Ranks)
	}
	seen := make([]int64, s.Ranks)
	expanded := make([][]schema.Event, s.Ranks)
	requests := make([]map[int64]int64, s.Ranks) // request number of the expansion, by that of the run
	var e schema.Event
	err := run.Events(func(b *schema.Events) error {
		for i, rank := range b.Rank {
			if expanded[rank] == nil {
				rows, err := s.Expand(rank)
				if err != nil {
					return err
				}
				expanded[rank], requests[rank] = rows, map[int64]int64{}
			}
			b.Row(i, &e)
			if e.Seq >= int64(len(expanded[rank])) {
				return fmt.Errorf("rank %d, seq %d: the signature ends before", rank, e.Seq)
			}
			got := &expanded[rank][e.Seq]
			want := expandedColumns(&e)
			if x, known := requests[rank][e.Request]; known {
				want.Request = x
			} else if e.Request != schema.NullInt64 && got.Request != schema.NullInt64 {
				requests[rank][e.Request] = got.Request
				want.Request = got.Request
			}
			if *got != want {
				return fmt.Errorf("rank %d, seq %d, %s: the signature has %+v, the run %+v", rank, e.Seq,
					schema.CallID(e.Call), *got, want)
			}
			seen[rank]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for rank, rows := range seen {
		if want := int64(len(expanded[rank])); rows != want {
			return fmt.Errorf("rank %d: the signature has %d calls, the run %d", rank, want, rows)
		}
	}
	return nil
}

// expandedColumns returns a row with only those columns that an expansion has.
func expandedColumns(e *schema.Event) schema.Event {
	c := schema.NullEvent
	c.Rank, c.Seq, c.Thread, c.Call, c.Class = e.Rank, e.Seq, e.Thread, e.Call, e.Class
	c.Comm, c.Instance = e.Comm, e.Instance
	c.SendPeer, c.SendWorld, c.SendTag = e.SendPeer, e.SendWorld, e.SendTag
	c.SendCount, c.SendDatatype, c.SendBytes = e.SendCount, e.SendDatatype, e.SendBytes
	c.RecvPeer, c.RecvWorld, c.RecvTag = e.RecvPeer, e.RecvWorld, e.RecvTag
	c.RecvCount, c.RecvDatatype, c.RecvBytes = e.RecvCount, e.RecvDatatype, e.RecvBytes
	c.RootWorld, c.ReduceOp, c.PostedAny, c.ProcNull = e.RootWorld, e.ReduceOp, e.PostedAny, e.ProcNull
	c.Request, c.DoneSeq, c.InitSeq = e.Request, e.DoneSeq, e.InitSeq
	c.ErrorClass, c.Label, c.Callsite = e.ErrorClass, e.Label, e.Callsite
	return c
}
