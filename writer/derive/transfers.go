package derive

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// transferSums makes the rows of the table transfers: how many messages of each size there were, and how long those
// with known times took.
type transferSums struct {
	sizes       map[sizeKey]*int64
	recentSizes [256]recentSize // a cache of sizes, by hash
	times       map[transferKey]*transferTimes
	lastTimed   lastTimed
	tooMany     bool // more than transferRows sizes or times
}

// transferRows is the largest number of rows in the table transfers. A run that needs more has no such table.
const transferRows = 1 << 20

type sizeKey struct {
	bytes    int64
	sameHost int32
}

// recentSize is a size with its count; nil in an empty cache entry.
type recentSize struct {
	key      sizeKey
	messages *int64
}

type transferKey struct {
	sizeKey
	step int32
}

type transferTimes struct{ messages, min, max int64 }

// lastTimed caches the time counted last.
type lastTimed struct {
	size  sizeKey
	ns    int64
	times *transferTimes
}

func newTransferSums() transferSums {
	return transferSums{sizes: map[sizeKey]*int64{}, times: map[transferKey]*transferTimes{}}
}

// count counts a message of a size.
func (s *transferSums) count(key sizeKey) {
	last := &s.recentSizes[(uint64(key.bytes)*0x9e3779b97f4a7c15^uint64(key.sameHost)<<56)>>56]
	if last.messages == nil || last.key != key {
		n := s.sizes[key]
		if n == nil {
			if s.tooMany = s.tooMany || len(s.sizes) == transferRows; s.tooMany {
				return
			}
			n = new(int64)
			s.sizes[key] = n
		}
		*last = recentSize{key, n}
	}
	*last.messages++
}

// time counts a message that took ns.
func (s *transferSums) time(size sizeKey, ns int64) {
	last := &s.lastTimed
	if last.times != nil && last.ns == ns && last.size == size { // nearly always true with rounded times
		last.times.messages++
		return
	}
	key := transferKey{size, transferStep(ns)}
	t := s.times[key]
	if t == nil {
		if s.tooMany = s.tooMany || len(s.times) == transferRows; s.tooMany {
			return
		}
		t = &transferTimes{min: ns, max: ns}
		s.times[key] = t
	}
	t.messages++
	t.min, t.max = min(t.min, ns), max(t.max, ns)
	*last = lastTimed{size, ns, t}
}

// transferStep returns the step of a time on a scale of 128 steps per factor e; -1 for times of 0 and less.
func transferStep(ns int64) int32 {
	if ns <= 0 {
		return -1
	}
	return int32(math.Floor(math.Log(float64(ns)) * 128))
}

// rows returns the rows of transfers: for each size one with all its messages, then those with times, by step. nil
// when there are too many.
func (s *transferSums) rows() *schema.Transfers {
	if s.tooMany {
		return nil
	}
	out := &schema.Transfers{}
	var rows []schema.Transfer
	for key, t := range s.times {
		rows = append(rows, schema.Transfer{SameHost: key.sameHost, Bytes: key.bytes, Timed: 1, Step: key.step,
			Messages: t.messages, MinNs: t.min, MaxNs: t.max})
	}
	for key, n := range s.sizes {
		rows = append(rows, schema.Transfer{SameHost: key.sameHost, Bytes: key.bytes, Messages: *n,
			MinNs: schema.NullInt64, MaxNs: schema.NullInt64})
	}
	slices.SortFunc(rows, func(a, b schema.Transfer) int {
		return cmp.Or(cmp.Compare(a.SameHost, b.SameHost), cmp.Compare(a.Bytes, b.Bytes),
			cmp.Compare(a.Timed, b.Timed), cmp.Compare(a.Step, b.Step))
	})
	for i := range rows {
		out.Append(&rows[i])
	}
	return out
}
