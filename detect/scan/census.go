package scan

import (
	"math"
	"slices"
	"sync"

	"github.com/commq/commq/detect/crc"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/internal/payloads"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// maxOfPayload limits how many messages with one payload are looked at: the first ones.
const maxOfPayload = 1 << 20

// Source is the run as the passes over its messages see it.
type Source struct {
	Ranks    int32
	HashBits int
	Comms    []run.Comm
	MinRanks int
	Named    map[int32]bool // datatypes
	Crc      *crc.Arithmetic
	Shared   func(least int) (map[Stretch]bool, error) // as Run.Shared
	Spill    func() (payloads.Spill, error)            // as Run.Spill
	MaxHeld  int64                                     // payloads counted in memory
}

// Census is the result of counting all messages.
type Census struct {
	Messages, Unhashed int64
	FalseMatch         float64
	Sample             *ledger.Sample
	Used               map[ledger.Place]int64 // number of messages sent at each place
	Shared             map[Stretch]bool       // where payloads may be frequent; nil: anywhere
	counter            *payloads.Counter
	Streams            *streams
	pieces             map[int64][]ledger.Piece // by ordinal, of messages that carry several payloads
}

// Count reads the messages to count them, and once more to divide messages if any can be divided. It tells the reader
// where frequent payloads may be.
func (in *Source) Count(rd *Reader) (*Census, error) {
	c := &Census{Sample: ledger.NewSample(in.Ranks), Used: map[ledger.Place]int64{}, pieces: map[int64][]ledger.Piece{}}
	l := &streams{sample: c.Sample, used: c.Used, Exchangers: newExchangers(in.Comms, in.MinRanks),
		perSize: map[int64]int64{}, all: map[streamKey]*stream{}, layout: newLayout(in.Named)}
	often := min(in.MinRanks-1, payloads.MostCounted)
	var err error
	if rd.Shared, err = in.askShared(often); err != nil {
		return nil, err
	}
	counter := in.newCounter()
	if err := c.count(rd, counter, l); err != nil {
		return nil, err
	}
	if l.layout.mayTile() {
		whole := rd.Shared != nil // pieces are counted with the messages sent whole, so all must be counted
		if whole {
			rd.Shared, counter = nil, in.newCounter()
		}
		if c.pieces, err = in.cut(rd, counter, whole); err != nil {
			return nil, err
		}
	}
	l.layout = nil
	if err := counter.Finish(often); err != nil {
		return nil, err
	}
	l.tally()
	c.Sample.Closed = true
	c.FalseMatch = falseMatch(l.perSize, in.HashBits)
	c.Shared, c.counter, c.Streams = rd.Shared, counter, l
	return c, nil
}

// askShared asks where messages with frequent payloads are.
func (in *Source) askShared(least int) (map[Stretch]bool, error) {
	if in.Shared == nil {
		return nil, nil
	}
	shared, err := in.Shared(least)
	if err == nil && shared == nil {
		shared = map[Stretch]bool{}
	}
	return shared, err
}

func (in *Source) newCounter() *payloads.Counter {
	c := payloads.NewCounter()
	c.Bound(in.MaxHeld, in.Spill)
	return c
}

// count counts payloads and gathers the statistics of streams.
func (c *Census) count(rd *Reader, counter *payloads.Counter, l *streams) error {
	return rd.sharedRows(bufferColumns, func(b *schema.Messages, list []int32, looked bool, rest schema.Rest) (err error) {
		c.Messages += int64(len(b.Src))
		c.Unhashed += int64(len(b.Src) - len(list))
		var counted sync.WaitGroup
		if looked {
			counted.Go(func() {
				for _, i := range list {
					if b.Src[i] != b.Dst[i] {
						counter.Add(payloads.Key(ledger.PayloadOf(b, int(i))))
					}
				}
			})
		}
		defer counted.Wait()
		for _, i := range list {
			if err := l.add(b, int(i), rest); err != nil {
				return err
			}
		}
		return nil
	})
}

// cut finds the messages that carry several payloads and counts the pieces; with whole also the messages as they are.
func (in *Source) cut(rd *Reader, counter *payloads.Counter, whole bool) (cuts map[int64][]ledger.Piece, err error) {
	cuts = map[int64][]ledger.Piece{}
	c := newCutter(in.Crc, in.Named, func(ordinal int64, pieces []ledger.Piece) {
		cuts[ordinal] = pieces
		for _, p := range pieces {
			counter.Add(payloads.Key(p.Hash, p.Bytes))
		}
	})
	err = rd.rows(Columns, func(b *schema.Messages, list []int32, _ schema.Rest) error {
		for _, i := range list {
			if b.Src[i] != b.Dst[i] {
				m := ledger.MessageOf(b, int(i))
				if whole {
					counter.Add(payloads.Key(m.Hash, m.Bytes))
				}
				c.add(&m, b.Epoch[i])
			}
		}
		return nil
	})
	if err == nil {
		c.flush()
	}
	return cuts, err
}

// falseMatch returns the birthday bound on the probability of a false match, summed over sizes.
func falseMatch(perSize map[int64]int64, width int) float64 {
	pairs := 0.0
	for size, n := range perSize {
		if size == 0 {
			continue // there is only one empty payload
		}
		pairs += float64(n) * float64(n-1) / 2
	}
	return min(1, math.Ldexp(pairs, -width))
}

// Candidate is a message that may be part of an operation.
type Candidate struct {
	Batch    *schema.Messages
	Row      int
	Ordinal  int64
	Payload  ledger.Payload
	Pieces   []ledger.Piece // those whose payloads are frequent
	Frequent bool           // its own payload is frequent
}

// Candidates calls add with the messages that may be part of a spreading operation (with exchanges: also of an
// exchange) and that want accepts. want sees only the columns in streamColumns, and for spreading operations only
// messages with frequent payloads; add sees all columns.
func (c *Census) Candidates(rd *Reader, exchanges bool, full map[ledger.Payload]int64, want func(c *Candidate) bool, add func(c *Candidate, m ledger.Message)) error {
	columns, exchanged := payloadColumns, exchanges && c.Streams.Exchangers.hasExchange()
	switch {
	case exchanges:
		columns = streamColumns
	case c.Streams.selves:
		columns = rankColumns
	}
	ordinal := int64(-1)
	var wanted []Candidate
	return rd.sharedRows(columns, func(b *schema.Messages, list []int32, looked bool, rest schema.Rest) error {
		wanted = wanted[:0]
		some, err := c.readHashes(b, list, looked, exchanged, rest)
		if err != nil {
			return err
		}
		for _, i := range list {
			if c.Streams.selves && b.Src[i] == b.Dst[i] {
				continue
			}
			if ordinal++; !some {
				continue
			}
			next := Candidate{Batch: b, Row: int(i), Ordinal: ordinal}
			next.Payload.Hash, next.Payload.Bytes = ledger.PayloadOf(b, next.Row)
			next.Pieces, next.Frequent = c.frequent(ordinal, next.Payload)
			if !next.Frequent && len(next.Pieces) == 0 && !(exchanged && c.Streams.inExchange(b, next.Row)) {
				continue
			}
			if last, some := full[next.Payload]; some && ordinal > last {
				continue
			}
			if want(&next) {
				wanted = append(wanted, next)
			}
		}
		if len(wanted) == 0 {
			return nil
		}
		if err := rest(wanted[0].Row, wanted[len(wanted)-1].Row+1); err != nil {
			return err
		}
		for k := range wanted {
			add(&wanted[k], ledger.MessageOf(b, wanted[k].Row))
		}
		return nil
	})
}

// readHashes reads the hashes of a batch that were skipped because none is frequent, if it has messages of exchanges.
// some reports whether any message can be part of an operation.
func (c *Census) readHashes(b *schema.Messages, list []int32, looked, exchanged bool, rest schema.Rest) (some bool,
	err error) {
	if looked {
		return true, nil
	}
	if !exchanged || !slices.ContainsFunc(list, func(i int32) bool { return c.Streams.inExchange(b, int(i)) }) {
		return false, nil
	}
	return true, rest(0, b.Len(), HashColumn)
}

// frequent reports whether a message's payload is sent often enough, and which of its pieces are.
func (c *Census) frequent(ordinal int64, of ledger.Payload) (pieces []ledger.Piece, often bool) {
	if len(c.pieces) > 0 {
		for _, p := range c.pieces[ordinal] {
			if c.counter.Often(payloads.Key(p.Hash, p.Bytes)) {
				pieces = append(pieces, p)
			}
		}
	}
	return pieces, c.counter.Often(payloads.Key(of.Hash, of.Bytes))
}
