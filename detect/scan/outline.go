package scan

import (
	"errors"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// outlineColumns are the columns of an outline.
var outlineColumns = []string{"src", "dst", "comm", "send_datatype", "tag", "send_callsite", "bytes", "send_seq",
	"recv_post_seq", "recv_done_seq", "recv_callsite"}

// errIrregular ends the reading of an outline.
var errIrregular = errors.New("irregular messages")

// Outline reads the rows of all messages of some streams. ok is false if they take more than most bytes, some messages
// are never completed, or the same place receives at several call sites.
func (c *Census) Outline(rd *Reader, want map[ledger.Stream]*ledger.Outline, most int64) (ok bool, err error) {
	if c.Unhashed > 0 {
		return false, nil // such messages are left out elsewhere, and hashes are not read here
	}
	bytes, t := int64(0), outlined{want: want, recent: make([]*outline, recentStreams)}
	err = rd.Messages(outlineColumns, func(b *schema.Messages, _ schema.Rest) error {
		for i := range b.Src {
			o := t.lookup(b, i)
			if o.Outline == nil {
				continue
			}
			more, same := o.Add(b.SendSeq[i], b.RecvPostSeq[i], b.RecvDoneSeq[i], b.RecvCallsite[i])
			if bytes += more; !same || bytes > most || b.RecvDoneSeq[i] == schema.NullInt64 {
				return errIrregular
			}
		}
		return nil
	})
	if errors.Is(err, errIrregular) {
		return false, nil
	}
	return err == nil, err
}

// outline is a stream that was met.
type outline struct {
	streamKey
	*ledger.Outline          // nil: not wanted
	after           *outline // what followed it the last time; nil: not known
}

// outlined finds the outlines of streams as streams does.
type outlined struct {
	want   map[ledger.Stream]*ledger.Outline
	recent []*outline
	last   *outline
}

// lookup returns the outline of row i's stream.
func (t *outlined) lookup(b *schema.Messages, i int) *outline {
	if last := t.last; last != nil && last.after != nil && hasRow(&last.after.streamKey, b, i) {
		t.last = last.after
		return t.last
	}
	k := streamOf(b, i)
	place := &t.recent[slotOf(&k)]
	if *place == nil || (*place).streamKey != k {
		*place = &outline{streamKey: k, Outline: t.want[k]}
	}
	if t.last != nil {
		t.last.after = *place
	}
	t.last = *place
	return t.last
}
