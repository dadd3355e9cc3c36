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

// Outline reads the rows of all messages of some streams. ok is false if they are not regular: if their rows take more
// than most pieces, some are never completed, or the same place receives at several call sites.
func (c *Census) Outline(rd *Reader, want map[ledger.Stream]*ledger.Outline, most int64) (ok bool, err error) {
	if c.Unhashed > 0 {
		return false, nil // such messages are left out elsewhere, and hashes are not read here
	}
	type place struct {
		key     streamKey
		known   bool
		outline *ledger.Outline
	}
	pieces, recent := int64(0), make([]place, recentStreams)
	err = rd.Messages(outlineColumns, func(b *schema.Messages, _ schema.Rest) error {
		for i := range b.Src {
			k := streamOf(b, i)
			at := &recent[slotOf(&k)]
			if !at.known || at.key != k {
				*at = place{k, true, want[k]}
			}
			if at.outline == nil {
				continue
			}
			more, same := at.outline.Add(b.SendSeq[i], b.RecvPostSeq[i], b.RecvDoneSeq[i], b.RecvCallsite[i])
			if pieces += more; !same || pieces > most || b.RecvDoneSeq[i] == schema.NullInt64 {
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
