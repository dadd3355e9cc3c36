package run

import (
	"context"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Delivered tells of the sends and receives that name a peer and do not say how many bytes they moved, or failed,
// whether they moved a message: those that were cancelled did not, a receive that was too small for its message did.
type Delivered struct{ sent, received map[rowID]int64 } // bytes of the message; null: there is none

type rowID struct {
	rank int32
	seq  int64
}

var (
	doubtfulColumns = []string{"rank", "seq", "call", "class", "send_world", "send_bytes", "recv_world", "recv_bytes",
		"error_class"}
	deliveryColumns = []string{"src", "dst", "send_seq", "recv_post_seq", "bytes"}
)

// FindDelivered finds them in a run, which must have the rows of all calls.
func FindDelivered(ctx context.Context, from writer.Opened) (*Delivered, error) {
	d := &Delivered{sent: map[rowID]int64{}, received: map[rowID]int64{}}
	events, err := from.ReadEpochs(&schema.EventsTable, streamRows, doubtfulColumns...)
	if err != nil {
		return nil, err
	}
	err = events.All(ctx, func(b schema.Batch) error { d.addDoubtful(b.(*schema.Events)); return nil })
	if err != nil || len(d.sent)+len(d.received) == 0 {
		return d, err
	}
	messages, err := from.ReadEpochs(&schema.MessagesTable, streamRows, deliveryColumns...)
	if err != nil {
		return nil, err
	}
	return d, messages.All(ctx, func(b schema.Batch) error {
		m := b.(*schema.Messages)
		for i, bytes := range m.Bytes {
			d.deliver(d.sent, rowID{m.Src[i], m.SendSeq[i]}, bytes)
			d.deliver(d.received, rowID{m.Dst[i], m.RecvPostSeq[i]}, bytes)
		}
		return nil
	})
}

// addDoubtful adds rows of which the messages must tell. Receives of probed messages are none: their message is there,
// and names the probe.
func (d *Delivered) addDoubtful(b *schema.Events) {
	for i, class := range b.Class {
		class := schema.Class(class)
		both := class == schema.ClassSendrecv
		id := rowID{b.Rank[i], b.Seq[i]}
		if (both || class == schema.ClassSend) && b.SendWorld[i] != schema.NullInt32 &&
			(b.SendBytes[i] == schema.NullInt64 || b.ErrorClass[i] != schema.NullInt32) {
			d.sent[id] = schema.NullInt64
		}
		if (both || class == schema.ClassRecv) && b.RecvWorld[i] != schema.NullInt32 &&
			b.RecvBytes[i] == schema.NullInt64 && !schema.CallID(b.Call[i]).Is(schema.FactMatched) {
			d.received[id] = schema.NullInt64
		}
	}
}

func (d *Delivered) deliver(to map[rowID]int64, id rowID, bytes int64) {
	if _, doubtful := to[id]; doubtful {
		to[id] = bytes
	}
}

// Complete puts into a row the bytes of its messages. Of a side that moved no message it takes the peer away, as a
// receive from any source has none that got nothing. It reports whether the row is a send without a message.
func (d *Delivered) Complete(e *schema.Event) (voidSend bool) {
	id := rowID{e.Rank, e.Seq}
	if bytes, doubtful := d.sent[id]; doubtful {
		e.SendBytes = bytes
		if voidSend = bytes == schema.NullInt64; voidSend {
			e.SendPeer, e.SendWorld = schema.NullInt32, schema.NullInt32
		}
	}
	if bytes, doubtful := d.received[id]; doubtful {
		e.RecvBytes = bytes
		if bytes == schema.NullInt64 {
			e.RecvPeer, e.RecvWorld = schema.NullInt32, schema.NullInt32
		}
	}
	return voidSend
}
