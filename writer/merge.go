package writer

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/commq/commq/schema"
)

// together returns the end of the row groups from g on that must be read together: those of one epoch of events,
// which splitEvents may have split. In other tables, and without statistics of epochs, that is only g.
func (r *tableReader) together(g int) int {
	end := g + 1
	if r.table != &schema.EventsTable || !r.hasEpochs() {
		return end
	}
	for epoch := r.firstEpoch(g); end < r.groups() && r.firstEpoch(end) == epoch; end++ {
	}
	return end
}

// hasEpochs reports whether the statistics have the epoch of every row group.
func (r *tableReader) hasEpochs() bool {
	if r.epochs == nil {
		known := true
		for g := 0; known && g < r.groups(); g++ {
			_, known = r.epochOf(g)
		}
		r.epochs = &known
	}
	return *r.epochs
}

// readTogether reads the row groups [g, end) in the order of the table's key, without those that lack a needed column.
func (r *tableReader) readTogether(ctx context.Context, g, end int, fn func(schema.Batch) error) error {
	m := merger{to: r.readBuffers, fn: fn}
	defer m.stop()
	switch groups := r.withNeeded(g, end); len(groups) {
	case 0:
		return nil
	case 1:
		return r.read(ctx, groups[0], fn)
	default:
		for _, k := range groups {
			if err := m.add(ctx, r, k); err != nil {
				return err
			}
		}
		return m.merge()
	}
}

// withNeeded lists the row groups of [g, end) that may have values in all needed columns.
func (r *tableReader) withNeeded(g, end int) (groups []int) {
	for ; g < end; g++ {
		if !slices.ContainsFunc(r.needed, func(c int) bool { return r.hasNoValue(g, c) }) {
			groups = append(groups, g)
		}
	}
	return groups
}

// merger merges the rows of sorted row groups of events. It first notes which rows come next, and copies them later,
// column by column: copying each stretch at once would go through all columns for a few rows.
type merger struct {
	to      *readBuffers
	fn      func(schema.Batch) error
	streams []*mergeStream
	rows    int // of the batch being filled, so far
}

// mergeStream is a row group with its current batch.
type mergeStream struct {
	next  func() (schema.Batch, error, bool)
	stop  func()
	batch *schema.Events
	at    int
	taken []stretch // rows of batch to copy
}

// maxStretches bounds the stretches that a stream notes before it copies them, and so their memory.
const maxStretches = 1 << 9

// errStopped ends the reading of a row group whose remaining rows are not wanted.
var errStopped = errors.New("stopped")

// add begins to read row group g of the file.
func (m *merger) add(ctx context.Context, r *tableReader, g int) error {
	for len(m.to.others) <= len(m.streams) {
		m.to.others = append(m.to.others, m.to.another())
	}
	reader := *r
	reader.readBuffers = m.to.others[len(m.streams)]
	s := &mergeStream{}
	s.next, s.stop = iter.Pull2(func(yield func(schema.Batch, error) bool) {
		err := reader.read(ctx, g, func(b schema.Batch) error {
			if !yield(b, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	})
	m.streams = append(m.streams, s)
	return m.advance(s)
}

// another returns a second set of buffers for the same columns.
func (b *readBuffers) another() *readBuffers {
	n := newReadBuffers(b.table, b.rows)
	if b.want != nil {
		n.want = b.want
		n.fillUnread()
	}
	return n
}

func (m *merger) stop() {
	for _, s := range m.streams {
		s.stop()
	}
}

// advance reads the next batch of a stream, and drops the stream at its end.
func (m *merger) advance(s *mergeStream) error {
	b, err, ok := s.next()
	if err != nil {
		return err
	}
	if !ok {
		for i := range m.streams {
			if m.streams[i] == s {
				m.streams = append(m.streams[:i], m.streams[i+1:]...)
				break
			}
		}
		return nil
	}
	s.batch, s.at = b.(*schema.Events), 0
	return nil
}

// merge gives the rows of all streams to fn in order, to.rows at a time.
func (m *merger) merge() error {
	for len(m.streams) > 0 {
		first, second := m.lowest()
		if err := m.take(first, second); err != nil {
			return err
		}
	}
	return m.flush()
}

// lowest returns the stream whose next row comes first, and the one after it; nil when there is none.
func (m *merger) lowest() (first, second *mergeStream) {
	for _, s := range m.streams {
		switch {
		case first == nil || compareRows(s.batch, s.at, first.batch, first.at) < 0:
			first, second = s, first
		case second == nil || compareRows(s.batch, s.at, second.batch, second.at) < 0:
			second = s
		}
	}
	return first, second
}

// compareRows compares row i of a with row j of b by the key of events.
func compareRows(a *schema.Events, i int, b *schema.Events, j int) int {
	if c := cmp.Compare(a.Epoch[i], b.Epoch[j]); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Rank[i], b.Rank[j]); c != 0 {
		return c
	}
	return cmp.Compare(a.Seq[i], b.Seq[j])
}

// take adds the rows of s that come before those of other, which may be nil.
func (m *merger) take(s, other *mergeStream) error {
	end := s.at + 1
	for n := s.batch.Len(); end < n && (other == nil || compareRows(s.batch, end, other.batch, other.at) < 0); end++ {
	}
	for s.at < end {
		if m.rows == 0 {
			m.to.batch.(resizer).Resize(m.to.rows)
		}
		n := min(end-s.at, m.to.rows-m.rows)
		s.taken = append(s.taken, stretch{span{s.at, s.at + n}, m.rows})
		s.at, m.rows = s.at+n, m.rows+n
		if len(s.taken) == maxStretches {
			m.copyTaken(s)
		}
		if m.rows == m.to.rows {
			if err := m.flush(); err != nil {
				return err
			}
		}
	}
	if s.at == s.batch.Len() {
		m.copyTaken(s)
		return m.advance(s)
	}
	return nil
}

// copyTaken copies the rows that s noted into the batch being filled.
func (m *merger) copyTaken(s *mergeStream) {
	for c := range m.to.table.Columns {
		if m.to.want == nil || m.to.want[c] {
			copyStretches(m.to.batch.Data(c), s.batch.Data(c), s.taken)
		}
	}
	s.taken = s.taken[:0]
}

// flush gives the rows filled so far to fn.
func (m *merger) flush() error {
	if m.rows == 0 {
		return nil
	}
	for _, s := range m.streams {
		m.copyTaken(s)
	}
	m.to.batch.(resizer).Resize(m.rows)
	m.rows = 0
	return m.fn(m.to.batch)
}
