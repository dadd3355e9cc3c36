package scan

import (
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// Reader reads the rows of messages.
type Reader struct {
	Messages func(columns []string, add func(b *schema.Messages, rest schema.Rest) error) error
	Shared   map[Stretch]bool // where payloads may be frequent; nil: anywhere
}

const HashColumn = "payload_hash"

// Columns that the passes use. All others, except those of a kept message, are read only where they are needed.
var (
	payloadColumns = []string{"bytes", HashColumn}
	rankColumns    = append([]string{"src", "dst"}, payloadColumns...)
	streamColumns  = append([]string{"comm", "send_datatype", "tag", "send_callsite"}, rankColumns...)
	bufferColumns  = append([]string{"src_buffer", "dst_buffer"}, streamColumns...)
)

// rows visits batches of messages with these columns and the list of rows whose payload is known. rest reads the
// other columns of the batch.
func (r *Reader) rows(columns []string, visit func(b *schema.Messages, list []int32, rest schema.Rest) error) error {
	var list []int32
	return r.Messages(columns, func(b *schema.Messages, rest schema.Rest) error {
		list = list[:0]
		for i := range b.Src {
			if ledger.HasHash(b, i) {
				list = append(list, int32(i))
			}
		}
		return visit(b, list, rest)
	})
}

// sharedRows is rows for visitors that need hashes only where payloads may be frequent. looked reports whether the
// batch's hashes were read; if not, all its payloads count as known and infrequent.
func (r *Reader) sharedRows(columns []string,
	visit func(b *schema.Messages, list []int32, looked bool, rest schema.Rest) error) error {
	if r.Shared == nil {
		return r.rows(columns, func(b *schema.Messages, list []int32, rest schema.Rest) error { return visit(b, list, true, rest) })
	}
	columns = slices.DeleteFunc(append([]string{"epoch", "src"}, columns...),
		func(name string) bool { return name == HashColumn })
	var list []int32
	return r.Messages(columns, func(b *schema.Messages, rest schema.Rest) error {
		looked := r.anyShared(b)
		if looked {
			if err := rest(0, b.Len(), HashColumn); err != nil {
				return err
			}
		}
		list = list[:0]
		for i := range b.Src {
			if !looked || ledger.HasHash(b, i) {
				list = append(list, int32(i))
			}
		}
		return visit(b, list, looked, rest)
	})
}

// anyShared reports whether a batch may have frequent payloads.
func (r *Reader) anyShared(b *schema.Messages) bool {
	for i, src := range b.Src {
		if (i == 0 || src != b.Src[i-1] || b.Epoch[i] != b.Epoch[i-1]) && r.Shared[Stretch{b.Epoch[i], src}] {
			return true
		}
	}
	return false
}

// ReadCells reads all messages of some cells.
func (r *Reader) ReadCells(ranks int32, want map[ledger.Cell]bool) (*ledger.Sample, error) {
	all := ledger.NewSample(ranks)
	all.Only = want
	err := r.rows(streamColumns, func(b *schema.Messages, list []int32, rest schema.Rest) error {
		for _, i := range list {
			if w := all.WayOf(ledger.CellOf(b, int(i)), ledger.Way{Src: b.Src[i], Dst: b.Dst[i]}); w != nil {
				if err := rest(int(i), b.Len()); err != nil {
					return err
				}
				all.Add(w, b, int(i))
			}
		}
		return nil
	})
	return all, err
}

// Stretch is the messages that a rank sends in an epoch.
type Stretch struct{ Epoch, Src int32 }

// Columns are the columns of messages that Detect reads; the others may be null.
var Columns = []string{"src", "dst", "epoch", "comm", "tag", "bytes", "send_datatype", "send_seq", "recv_post_seq",
	"recv_done_seq",
	"payload_hash", "payload_sum", "payload_head", "src_buffer", "dst_buffer", "send_callsite", "recv_callsite"}
