package derive

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/commq/commq/internal/payloads"
	"github.com/commq/commq/schema"
)

// RepeatSums makes the rows of the table repeats from those of messages in at least two passes: give all messages to
// Count, then to Add as long as Again returns true. payloads.Counter, and 24 bytes for each of mostWays, limit its
// memory. It must not be used concurrently.
type RepeatSums struct {
	counter *payloads.Counter

	// Each pass handles one part of the messages, selected by the highest bits of their payload's id, so that the
	// ways of a part fit into memory.
	part, parts uint64
	most        int  // most ways kept
	tooMuch     bool // the part has more ways: it is dropped and cut in two

	flows   []repeatFlow
	byKey   map[repeatKey]int32
	recent  [1 << 10]int32 // a cache of indexes in flows plus 1, by hash
	ways    [1 << wayBits][]repeatWay
	held    int
	lately  [1 << 14]repeatWay
	tooMany bool // more than repeatRows
}

const (
	// repeatRows is the largest number of rows in the table repeats. A run that needs more has no such table.
	repeatRows = 1 << 20
	// mostWays is the number of ways that are kept at a time, 800 MB.
	mostWays = 1 << 25
	wayBits  = 10
)

// repeatKey identifies a row of repeats.
type repeatKey struct {
	src, dst, callsite int32
	bytes              int64
	blank              int32
}

// repeatFlow is a row of repeats.
type repeatFlow struct {
	repeatKey
	again, copied int64
	sent          int64 // in this part: messages whose payload may have been sent more than once
}

// repeatWay is a message that may be the first one with its payload from its source to its destination. id and more
// are 96 bits of a hash of source and payload.
type repeatWay struct {
	id   uint64
	more uint32
	flow int32
	seq  int64
}

// NewRepeatSums returns a RepeatSums.
func NewRepeatSums() *RepeatSums {
	return &RepeatSums{counter: payloads.NewCounter(), most: mostWays, byKey: map[repeatKey]int32{}}
}

// RepeatColumns lists the columns of messages that RepeatSums reads. Add reads those of late only for some messages.
func RepeatColumns() (all, late []string) {
	late = []string{"dst", "send_count", "send_seq", "payload_head", "send_callsite"}
	return append([]string{"src", "bytes", "payload_hash"}, late...), late
}

// Count counts the payloads of messages. It reads only src, bytes and payload_hash.
func (r *RepeatSums) Count(m *schema.Messages) {
	for i, hash := range m.PayloadHash {
		if hash != schema.NullInt64 && m.Bytes[i] > 0 {
			r.counter.Add(payloadKey(m.Src[i], hash, m.Bytes[i]))
		}
	}
}

// payloadKey returns the key by which a rank's payload is counted.
func payloadKey(src int32, hash, bytes int64) uint64 {
	return payloads.Key(hash^int64(mixBits(uint64(src)+1)), bytes)
}

// mixBits spreads the bits of x over all 64 (the last step of SplitMix64).
func mixBits(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Again reports whether Add must get all messages (again). Call it after each pass, the first time after Count.
func (r *RepeatSums) Again() bool {
	switch {
	case r.parts == 0:
		const twice = 2
		_ = r.counter.Finish(twice) // it has no file
		if r.counter.Found() == 0 {
			r.counter = nil
			return false
		}
		r.parts = 1 + uint64(r.counter.Found())/uint64(r.most)
	case r.tooMuch:
		r.part, r.parts, r.tooMuch = 2*r.part, 2*r.parts, false
		for i := range r.flows {
			r.flows[i].sent = 0
		}
	default:
		r.endPart()
		r.part++
	}
	for k := range r.ways {
		r.ways[k] = r.ways[k][:0]
	}
	r.held = 0
	clear(r.lately[:])
	if r.part < r.parts && !r.tooMany {
		return true
	}
	r.counter = nil
	clear(r.ways[:])
	return false
}

// Add adds messages. If it needs more of a row than src, bytes and payload_hash it calls rest, whose error it
// returns.
func (r *RepeatSums) Add(m *schema.Messages, rest schema.Rest) error {
	complete := false // all columns of the rows from here on are read
	for i, hash := range m.PayloadHash {
		if hash == schema.NullInt64 || m.Bytes[i] <= 0 || !r.counter.Often(payloadKey(m.Src[i], hash, m.Bytes[i])) {
			continue
		}
		if !complete {
			if r.tooMuch || r.tooMany {
				return nil
			}
			if err := rest(i, m.Len()); err != nil {
				return err
			}
			complete = true
		}
		r.add(m, i)
	}
	return nil
}

// add adds a message whose payload may have been sent more than once.
func (r *RepeatSums) add(m *schema.Messages, i int) {
	a := mixBits(uint64(m.PayloadHash[i]) ^ mixBits(uint64(m.Bytes[i])+0x9e3779b97f4a7c15))
	b := mixBits(uint64(m.PayloadHead[i]) ^ mixBits(uint64(m.SendCount[i])+mixBits(uint64(m.Src[i])+7)))
	w := repeatWay{id: mixBits(a + bits.RotateLeft64(b, 23)), more: uint32(mixBits(a^b*0xd6e8feb86659fd93) >> 32),
		seq: m.SendSeq[i]}
	if (w.id>>32)*r.parts>>32 != r.part {
		return
	}
	if w.flow = r.flow(m, i); w.flow < 0 {
		return
	}
	r.flows[w.flow].sent++
	last := &r.lately[(w.id^uint64(m.Dst[i])*0x9e3779b97f4a7c15)>>(64-14)]
	if last.id == w.id && last.more == w.more && r.flows[last.flow].dst == m.Dst[i] && last.seq < w.seq {
		return // it is not the first
	}
	*last = w
	list := &r.ways[w.id&(1<<wayBits-1)]
	*list = append(*list, w)
	if r.held++; r.held > r.most {
		r.compact()
		r.tooMuch = r.held > r.most/2
	}
}

// flow returns the index in flows of the row of a message; -1 when there are too many rows.
func (r *RepeatSums) flow(m *schema.Messages, i int) int32 {
	key := repeatKey{m.Src[i], m.Dst[i], m.SendCallsite[i], m.Bytes[i], 0}
	if m.PayloadHead[i] == 0 {
		key.blank = 1
	}
	cached := &r.recent[mixBits(uint64(key.src)<<32^uint64(key.dst)<<16^uint64(key.callsite)^uint64(key.bytes)<<8)>>(64-10)]
	if *cached > 0 && r.flows[*cached-1].repeatKey == key {
		return *cached - 1
	}
	k, ok := r.byKey[key]
	if !ok {
		if len(r.flows) == repeatRows {
			r.tooMany = true
			return -1
		}
		k = int32(len(r.flows))
		r.flows = append(r.flows, repeatFlow{repeatKey: key})
		r.byKey[key] = k
	}
	*cached = k + 1
	return k
}

// compare orders ways by source and payload, destination and seq.
func (r *RepeatSums) compare(a, b repeatWay) int {
	switch {
	case a.id != b.id:
		return cmp.Compare(a.id, b.id)
	case a.more != b.more:
		return cmp.Compare(a.more, b.more)
	}
	return cmp.Or(cmp.Compare(r.flows[a.flow].dst, r.flows[b.flow].dst), cmp.Compare(a.seq, b.seq))
}

// compact sorts the ways and keeps only the first message of each.
func (r *RepeatSums) compact() {
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		all.Go(func() {
			for k := worker; k < len(r.ways); k += workers {
				slices.SortFunc(r.ways[k], r.compare)
				r.ways[k] = slices.CompactFunc(r.ways[k], func(a, b repeatWay) bool {
					return a.id == b.id && a.more == b.more && r.flows[a.flow].dst == r.flows[b.flow].dst
				})
			}
		})
	}
	all.Wait()
	r.held = 0
	for k := range r.ways {
		r.held += len(r.ways[k])
	}
}

// endPart adds a part to the sums. All messages but the first of each way count as sent again. The first of a way
// counts as copied, unless it is the very first from src.
func (r *RepeatSums) endPart() {
	r.compact()
	for i := range r.flows {
		f := &r.flows[i]
		f.again, f.sent = f.again+f.sent, 0
	}
	for _, ways := range r.ways {
		for i := 0; i < len(ways); {
			j, first := i, i
			for ; j < len(ways) && ways[j].id == ways[i].id && ways[j].more == ways[i].more; j++ {
				f := &r.flows[ways[j].flow]
				f.again, f.copied = f.again-1, f.copied+1
				if ways[j].seq < ways[first].seq {
					first = j
				}
			}
			r.flows[ways[first].flow].copied--
			i = j
		}
	}
}

// Rows returns the rows of repeats after Again has returned false; nil when there are too many.
func (r *RepeatSums) Rows() *schema.Repeats {
	if r.tooMany {
		return nil
	}
	slices.SortFunc(r.flows, func(a, b repeatFlow) int {
		return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst), cmp.Compare(a.callsite, b.callsite),
			cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.blank, b.blank))
	})
	out := &schema.Repeats{}
	last, nth := int32(-1), int64(0)
	for _, f := range r.flows {
		if f.again+f.copied == 0 {
			continue
		}
		if f.src != last {
			last, nth = f.src, 0
		}
		out.Append(&schema.Repeat{Src: f.src, Nth: nth, Dst: f.dst, Callsite: f.callsite, Bytes: f.bytes,
			Blank: f.blank,
			Again: f.again, Copied: f.copied})
		nth++
	}
	return out
}
