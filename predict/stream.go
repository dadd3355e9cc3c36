package predict

import "github.com/commq/commq/schema"

// Stream gives the rows of all ranks of a signature epoch by epoch, as an untimed run has them: epoch n are the rows of each rank from seq
// n times the window on. It holds an epoch's rows of one rank, and what is under way.
type Stream struct {
	// Epochs is how many epochs there are, at least 1; Calls the number of rows of each rank.
	Epochs int32
	Calls  []int64
	// Parts, where it is not nil, is given the rows of parts that the rows have.
	Parts *schema.Parts

	window int64
	epoch  []int32 // of each rank: the next one
	ranks  []*expansion
	sites  []map[int64]int32 // of each rank, call sites of rows that complete those of epochs before, by seq
}

// Stream begins to give the rows, so many of a rank in an epoch. They have compute times where the signature has: their means are those of equal calls, and
// around these they spread as the event's do.
func (s *Signature) Stream(window int64) *Stream {
	t := &Stream{Epochs: 1, window: window, epoch: make([]int32, s.Ranks)}
	for r := range s.Ranks {
		rows, done, sites := s.late(r, window)
		x := s.expansion(r)
		x.done, x.timed = done, s.ComputeClock != "none" && s.ComputeClock != ""
		t.Calls, t.ranks, t.sites = append(t.Calls, rows), append(t.ranks, x), append(t.sites, sites)
		t.Epochs = max(t.Epochs, int32((rows+window-1)/window))
	}
	return t
}

// Next adds the rows of a rank's next epoch to b. It is an error when a call refers to one that is not there.
func (t *Stream) Next(rank int32, b *schema.Events) error {
	rows, err := t.ranks[rank].next(t.window)
	for i := range rows {
		rows[i].Epoch = t.epoch[rank]
		b.Append(&rows[i])
		if t.Parts == nil {
			continue
		}
		for _, p := range t.ranks[rank].calls[i].parts {
			p.Rank, p.Seq, p.Epoch = rank, rows[i].Seq, rows[i].Epoch // ranks that do the same have one call
			t.Parts.Append(&p)
		}
	}
	t.epoch[rank]++
	return err
}

// Callsite is the call site of a row that completes one of an epoch before; null of others.
func (t *Stream) Callsite(rank int32, seq int64) int32 {
	if site, late := t.sites[rank][seq]; late {
		return site
	}
	return schema.NullInt32
}
