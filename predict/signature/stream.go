package signature

import "github.com/commq/commq/schema"

// Stream makes the rows of all ranks of a signature epoch by epoch, as an untimed run has them: epoch n of a rank has
// the rows from seq n*window on. It holds the rows of one rank and epoch.
type Stream struct {
	// Epochs is the number of epochs, at least 1. Calls is the number of rows of each rank.
	Epochs int32
	Calls  []int64
	// Parts receives the rows of parts that belong to the rows, unless it is nil.
	Parts *schema.Parts

	window    int64
	epoch     []int32           // next epoch, by rank
	expanders []*Expander       // by rank
	callsites []map[int64]int32 // by rank: call sites of rows that complete rows of earlier epochs, by seq
}

// Stream starts a stream with window rows of a rank in an epoch. Rows get compute times if the signature has them:
// drawn so that their mean is that of equal calls, and their spread is that of the event's noise.
func (s *Signature) Stream(window int64) *Stream {
	t := &Stream{Epochs: 1, window: window, epoch: make([]int32, s.Ranks)}
	for r := range s.Ranks {
		late := findLateCompletions(s, r, window)
		x := s.Expander(r)
		x.doneLater, x.timed = late.doneSeq, s.ComputeClock != "none" && s.ComputeClock != ""
		t.Calls, t.expanders = append(t.Calls, late.rows), append(t.expanders, x)
		t.callsites = append(t.callsites, late.callsite)
		t.Epochs = max(t.Epochs, int32((late.rows+window-1)/window))
	}
	return t
}

// Next appends the rows of a rank's next epoch to b. It is an error if a call refers to one that is not there.
func (t *Stream) Next(rank int32, b *schema.Events) error {
	x := t.expanders[rank]
	rows, err := x.Next(t.window)
	for i := range rows {
		rows[i].Epoch = t.epoch[rank]
		b.Append(&rows[i])
		if t.Parts == nil {
			continue
		}
		for _, p := range x.calls[i].Parts {
			p.Rank, p.Seq, p.Epoch = rank, rows[i].Seq, rows[i].Epoch // the Call is shared by ranks
			t.Parts.Append(&p)
		}
	}
	t.epoch[rank]++
	return err
}

// Callsite returns the call site of a row that completes a row of an earlier epoch; null for other rows.
func (t *Stream) Callsite(rank int32, seq int64) int32 {
	if site, late := t.callsites[rank][seq]; late {
		return site
	}
	return schema.NullInt32
}
