package derive

import "github.com/commq/commq/schema"

// Overlaps counts calls that have not ended when the next call of their thread begins. A thread cannot do that, so
// calls were captured twice or the clock is wrong. "commq query overlaps" lists them. The zero value is ready to use.
type Overlaps struct {
	threads map[uint64]callTimes
	n       int64
}

// callTimes are the times of a thread's last call.
type callTimes struct{ start, end int64 }

// Count returns the number of such calls so far.
func (o *Overlaps) Count() int64 { return o.n }

// Add adds rows, each thread's in the order of seq. A row with the same times as the row before it does not count.
func (o *Overlaps) Add(e *schema.Events) {
	if o.threads == nil {
		o.threads = map[uint64]callTimes{}
	}
	for i := 0; i < e.Len(); {
		rank, thread := e.Rank[i], e.Thread[i]
		key := uint64(rank)<<32 | uint64(uint32(thread))
		last, known := o.threads[key]
		if !known {
			last = callTimes{schema.NullInt64, schema.NullInt64}
		}
		for ; i < e.Len() && e.Rank[i] == rank && e.Thread[i] == thread; i++ {
			start, end := e.StartNs[i], e.EndNs[i]
			if start != schema.NullInt64 && start < last.end &&
				(start != last.start || end != schema.NullInt64 && end != last.end) {
				o.n++
			}
			last = callTimes{start, end}
		}
		o.threads[key] = last
	}
}
