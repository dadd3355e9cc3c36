package schema

// Overlaps counts calls that are under way when the next call of their thread begins, which a thread cannot do. commq query overlaps lists
// them. The zero value has counted none.
type Overlaps struct {
	threads map[uint64]callTimes
	n       int64
}

// callTimes are the times of a thread's last call.
type callTimes struct{ start, end int64 }

// Count is how many there were.
func (o *Overlaps) Count() int64 { return o.n }

// Add looks at the rows of e, which come in the order of each thread's seq. A row that has the times of the one before it is not counted.
func (o *Overlaps) Add(e *Events) {
	if o.threads == nil {
		o.threads = map[uint64]callTimes{}
	}
	for i := 0; i < e.Len(); {
		rank, thread := e.Rank[i], e.Thread[i]
		key := uint64(rank)<<32 | uint64(uint32(thread))
		last, known := o.threads[key]
		if !known {
			last = callTimes{NullInt64, NullInt64}
		}
		for ; i < e.Len() && e.Rank[i] == rank && e.Thread[i] == thread; i++ {
			start, end := e.StartNs[i], e.EndNs[i]
			if start != NullInt64 && start < last.end && (start != last.start || end != NullInt64 && end != last.end) {
				o.n++
			}
			last = callTimes{start, end}
		}
		o.threads[key] = last
	}
}
