package scan

import (
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/internal/payloads"
)

// Plan divides messages that do not fit in memory into passes, by payload. What is found among the messages of one
// payload does not depend on others, so all passes together find what a single one would.
type Plan struct {
	all         int64                    // messages
	sizes       []int64                  // messages and pieces, by bucket of their payloads
	Cut         map[ledger.Payload]bool  // payloads of messages that carry several
	LastOrdinal map[ledger.Payload]int64 // for payloads with too many messages: the last message to look at
	Todo        []Part
}

// Part is the payloads of one pass, given by their buckets.
type Part struct {
	first, end int
	Carriers   bool // includes messages that carry several payloads, as wholes
	Size       int64
}

// buckets is the number of classes into which payloads are hashed; a pass covers one or more.
const buckets = 1 << 14

func bucketOf(hash, bytes int64) int { return int(payloads.Key(hash, bytes) % buckets) }

func newPlan() *Plan {
	return &Plan{sizes: make([]int64, buckets), Cut: map[ledger.Payload]bool{}, LastOrdinal: map[ledger.Payload]int64{}}
}

// count counts a candidate message, and its pieces, by payload.
func (p *Plan) count(of ledger.Payload, often bool, pieces []ledger.Piece) {
	p.all++
	if often || len(pieces) > 0 {
		p.sizes[bucketOf(of.Hash, of.Bytes)]++
	}
	for _, x := range pieces {
		p.sizes[bucketOf(x.Hash, x.Bytes)]++
		p.Cut[of] = true
	}
}

// deal divides the buckets into passes of about room messages.
func (p *Plan) deal(room int64) {
	withCut := map[int]bool{}
	for of := range p.Cut {
		withCut[bucketOf(of.Hash, of.Bytes)] = true
	}
	for _, wholes := range []bool{true, false} {
		at := Part{Carriers: wholes}
		for b, n := range p.sizes {
			if wholes && !withCut[b] {
				n = 0
			}
			if at.Size > 0 && at.Size+n > room {
				at.end = b
				p.Todo = append(p.Todo, at)
				at = Part{first: b, Carriers: wholes}
			}
			at.Size += n
		}
		if at.end = len(p.sizes); at.Size > 0 {
			p.Todo = append(p.Todo, at)
		}
	}
}

// Has reports whether a payload belongs to the part.
func (t *Part) Has(hash, bytes int64) bool {
	b := bucketOf(hash, bytes)
	return b >= t.first && b < t.end
}
