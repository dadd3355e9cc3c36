package check

import (
	"slices"

	"github.com/commq/commq/schema"
)

// checkNulls looks for nulls in columns that are not nullable.
func checkNulls(_ *run, out *reporter) (batch func(schema.Batch), finish func()) {
	return func(b schema.Batch) {
		columns := b.Table().Columns
		for i := range columns {
			if c := &columns[i]; !c.Nullable {
				if row := firstNull(b.Data(i)); row >= 0 {
					out.badRow(b, row, "%s is null", c.Name)
				}
			}
		}
	}, nil
}

// firstNull returns the first row that is null, or -1.
func firstNull(data any) int {
	switch v := data.(type) {
	case []int32:
		return slices.Index(v, schema.NullInt32)
	case []int64:
		return slices.Index(v, schema.NullInt64)
	case []int16:
		return slices.Index(v, schema.NullEnum)
	case []string:
		return slices.Index(v, schema.NullText)
	}
	return -1
}

// checkSorted compares each row's key with that of the row before it in the file.
func checkSorted(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	lastKeys := map[string][]int64{} // by file
	return func(b schema.Batch) {
		t := b.Table()
		keys := make([]any, len(t.Key))
		for k, name := range t.Key {
			_, i := t.Column(name)
			keys[k] = b.Data(i)
		}
		last := lastKeys[r.place.file]
		for i := range b.Len() {
			order := 1 // of this row after the last
			if last == nil {
				last = make([]int64, len(keys))
			} else {
				order = compareKey(keys, i, last)
			}
			switch {
			case order == 0:
				out.badRow(b, i, "the row has the same key as the row before it")
			case order < 0:
				out.badRow(b, i, "the row belongs before the row that precedes it")
			}
			for k := range keys {
				last[k] = keyAt(keys[k], i)
			}
		}
		lastKeys[r.place.file] = last
	}, nil
}

func keyAt(data any, i int) int64 {
	if v, ok := data.([]int32); ok {
		return int64(v[i])
	}
	return data.([]int64)[i]
}

func compareKey(keys []any, i int, last []int64) int {
	for k := range keys {
		switch x := keyAt(keys[k], i); {
		case x > last[k]:
			return 1
		case x < last[k]:
			return -1
		}
	}
	return 0
}

// checkWorlds reads the table ranks and looks for world ranks that are not in it.
func checkWorlds(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	batch = func(b schema.Batch) {
		if t, ok := b.(*schema.RankInfos); ok {
			addRanks(r, out, t)
			return
		}
		ranks := len(r.ranks)
		for _, name := range b.Table().WorldColumns() {
			_, k := b.Table().Column(name)
			for i, x := range b.Data(k).([]int32) {
				if uint32(x) >= uint32(ranks) && x != schema.NullInt32 {
					out.badRow(b, i, "%s is %d in a run of %d ranks", name, x, ranks)
				}
			}
		}
	}
	return batch, func() {
		if len(r.ranks) != int(r.manifest.Ranks) {
			out.wrong("ranks has %d rows; the manifest says %d ranks", len(r.ranks), r.manifest.Ranks)
		}
	}
}

func addRanks(r *run, out *reporter, t *schema.RankInfos) {
	for i, rank := range t.Rank {
		if int(rank) != len(r.ranks) {
			out.bad(rank, schema.NullInt64, "row %d of ranks is of rank %d", len(r.ranks), rank)
		}
		if n := t.Threads[i]; n < 0 || n > schema.MaxThreads {
			out.bad(rank, schema.NullInt64, "the rank has %d threads; want 0 to %d", n, schema.MaxThreads)
		}
		if host := t.Host[i]; host < 0 || host >= r.manifest.Ranks {
			out.bad(rank, schema.NullInt64, "the rank's host is %d; want 0 to %d", host, r.manifest.Ranks-1)
		}
		r.ranks = append(r.ranks, rankState{events: t.Events[i], lastSeq: -1})
		r.totals.events += t.Events[i]
		r.totals.polls += t.Polls[i]
		r.totals.dropped += t.Dropped[i]
		if t.Ended[i] != schema.EndedFinalized {
			r.totals.unfinished++
		}
	}
}

func checkEnded(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	return nil, func() {
		if r.finalized() != (r.totals.unfinished == 0) {
			out.wrong("the run ended %s, but %d of its %d ranks did not finalize", r.manifest.Ended,
				r.totals.unfinished, len(r.ranks))
		}
	}
}

// checkEpochs checks the range of epochs and that they do not decrease along a rank.
func checkEpochs(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	return func(b schema.Batch) {
		_, k := b.Table().Column("epoch")
		for i, x := range b.Data(k).([]int32) {
			if x < 0 || x >= r.manifest.Epochs {
				out.badRow(b, i, "epoch %d of %d", x, r.manifest.Epochs)
			}
		}
		e, ok := b.(*schema.Events)
		if !ok {
			return
		}
		for i, x := range e.Epoch {
			if s := r.rank(e.Rank[i]); s != nil {
				if x < s.epoch {
					out.badRow(b, i, "epoch %d after %d", x, s.epoch)
				}
				s.epoch = x
			}
		}
	}, nil
}

// checkSeq counts along each rank.
func checkSeq(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	dense := r.dense()
	return func(b schema.Batch) {
		e := b.(*schema.Events)
		for i, seq := range e.Seq {
			s := r.rank(e.Rank[i])
			if s == nil {
				continue
			}
			if seq <= s.lastSeq || dense && seq != s.lastSeq+1 {
				out.bad(e.Rank[i], seq, "seq %d follows %d", seq, s.lastSeq)
			}
			s.lastSeq = seq
			s.rows++
		}
	}, nil
}

func checkFlags(_ *run, out *reporter) (batch func(schema.Batch), finish func()) {
	return func(b schema.Batch) {
		e := b.(*schema.Events)
		for i, x := range e.PostedAny {
			if x != schema.NullInt32 && x&^(schema.AnySource|schema.AnyTag) != 0 {
				out.badRow(b, i, "posted_any is %d", x)
			}
		}
		for i, x := range e.ProcNull {
			switch {
			case x == schema.NullInt32:
			case x&^(schema.ProcNullSend|schema.ProcNullRecv) != 0:
				out.badRow(b, i, "proc_null is %d", x)
			case x&schema.ProcNullSend != 0 && e.SendPeer[i] != schema.NullInt32:
				out.badRow(b, i, "a send to MPI_PROC_NULL has send_peer %d", e.SendPeer[i])
			case x&schema.ProcNullRecv != 0 && e.RecvPeer[i] != schema.NullInt32:
				out.badRow(b, i, "a receive from MPI_PROC_NULL has recv_peer %d", e.RecvPeer[i])
			}
		}
	}, nil
}

// lastDone is the greatest done_seq of a rank, and its row.
type lastDone struct{ done, seq int64 }

// checkRequests checks that done_seq is a later row of the rank.
func checkRequests(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	var last []lastDone // by rank
	batch = func(b schema.Batch) {
		e := b.(*schema.Events)
		for len(last) < len(r.ranks) {
			last = append(last, lastDone{done: -1})
		}
		for i, done := range e.DoneSeq {
			if done == schema.NullInt64 {
				continue
			}
			if done <= e.Seq[i] {
				out.badRow(b, i, "done_seq is %d, not a later row", done)
			}
			if rank := e.Rank[i]; r.rank(rank) != nil && done > last[rank].done {
				last[rank] = lastDone{done, e.Seq[i]}
			}
		}
	}
	return batch, func() {
		for i, x := range last {
			if end := r.ranks[i].lastSeq; r.dense() && x.done > end {
				out.bad(int32(i), x.seq, "done_seq is %d; the rank's last row is %d", x.done, end)
			}
		}
	}
}
