package scan

import (
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// Kept are the candidate messages.
type Kept struct {
	Ledger   ledger.Ledger
	Plan     *Plan // set if they do not all fit: what passes look at
	Replayed int64 // number of candidates
	LeftOut  int64 // candidates beyond the limit for one payload
}

// Keep reads the messages with a frequent payload or piece, and those of complete exchanges. If there are more than
// most, it only counts them, for passes of about partRoom messages.
func (c *Census) Keep(rd *Reader, most, partRoom int64) (*Kept, error) {
	columns, exchanged := payloadColumns, c.Streams.Exchangers.hasExchange()
	switch {
	case exchanged:
		columns = streamColumns
	case c.Streams.selves:
		columns = rankColumns
	}
	ordinal, full, counted, whole := int64(-1), newPayloadLimit(), newPlan(), true
	out := &Kept{Ledger: ledger.Ledger{Pieces: map[int32][]ledger.Piece{}}}
	l := &out.Ledger
	// growing step by step would take more than twice the memory
	l.Messages = make([]ledger.Message, 0, min(c.counter.Found(), most))
	var rows []int32 // kept rows of the batch
	err := rd.sharedRows(columns, func(b *schema.Messages, list []int32, looked bool, rest schema.Rest) error {
		rows = rows[:0]
		if some, err := c.readHashes(b, list, looked, exchanged, rest); err != nil || !some {
			return err
		}
		for _, i := range list {
			if c.Streams.selves && b.Src[i] == b.Dst[i] {
				continue
			}
			ordinal++
			hash, bytes := ledger.PayloadOf(b, int(i))
			of := ledger.Payload{Hash: hash, Bytes: bytes}
			pieces, often := c.frequent(ordinal, of)
			if len(pieces) == 0 && !often && !(exchanged && c.Streams.inExchange(b, int(i))) {
				continue
			}
			counted.count(of, often, pieces)
			if whole && full.reached(of, l.Messages) {
				out.LeftOut++
				continue
			}
			if whole && int64(len(l.Messages)) >= most {
				whole = false
				l.Messages, l.Pieces, rows = nil, nil, nil
			}
			if full.add(of); !whole {
				continue
			}
			if len(pieces) > 0 {
				l.Pieces[int32(len(l.Messages))] = pieces
			}
			l.Messages = append(l.Messages, ledger.Message{Hash: hash, Bytes: bytes})
			rows = append(rows, i)
		}
		if len(rows) == 0 {
			return nil
		}
		if err := rest(int(rows[0]), int(rows[len(rows)-1])+1); err != nil {
			return err
		}
		added := l.Messages[len(l.Messages)-len(rows):]
		for k, i := range rows {
			added[k] = ledger.MessageOf(b, int(i))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if whole {
		out.Replayed = int64(len(l.Messages))
		return out, nil
	}
	if counted.LastOrdinal, out.LeftOut, err = c.fullPayloads(rd, full); err != nil {
		return nil, err
	}
	counted.deal(partRoom)
	out.Plan, out.Replayed = counted, counted.all-out.LeftOut
	return out, nil
}

// fullPayloads finds the payloads with more than maxOfPayload candidate messages, in classes that reached the limit.
// full has the last message to look at for each; beyond is the number of messages after these.
func (c *Census) fullPayloads(rd *Reader, kept *payloadLimit) (full map[ledger.Payload]int64, beyond int64, err error) {
	full = map[ledger.Payload]int64{}
	some := false
	for _, n := range kept.classes {
		some = some || n >= maxOfPayload
	}
	if !some {
		return full, 0, nil
	}
	counts := map[ledger.Payload]int32{}
	err = c.Candidates(rd, true, nil, func(next *Candidate) bool {
		if kept.classes[kept.class(next.Payload)] >= maxOfPayload {
			if counts[next.Payload]++; counts[next.Payload] == maxOfPayload {
				full[next.Payload] = next.Ordinal
			}
			if counts[next.Payload] > maxOfPayload {
				beyond++
			}
		}
		return false
	}, nil)
	return full, beyond, err
}
