package testruns

import (
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// WithRequests gives the nonblocking calls of a run requests: MPI_Waitall completes all that are open on its rank,
// MPI_Waitsome the two oldest, other waits the oldest.
func WithRequests(run *signature.Run) *signature.Run {
	events := run.Events
	run.Events = func(add func(*schema.Events) error) error {
		return events(func(b *schema.Events) error {
			open := map[int32][]int{} // rows, by rank
			for i := range b.Len() {
				rank, call := b.Rank[i], schema.CallID(b.Call[i])
				switch {
				case call.Is(schema.FactNonblocking):
					b.Request[i] = b.Seq[i]
					open[rank] = append(open[rank], i)
				case call.Is(schema.FactCompletes):
					n := 1
					switch call {
					case schema.CallWaitall, schema.CallTestall:
						n = len(open[rank])
					case schema.CallWaitsome:
						n = 2
					}
					n = min(n, len(open[rank]))
					for _, k := range open[rank][:n] {
						b.DoneSeq[k] = b.Seq[i]
						b.Request[i] = b.Request[k]
					}
					if n != 1 {
						b.Request[i] = schema.NullInt64
					}
					open[rank], b.Comm[i] = open[rank][n:], schema.NullInt32
				}
			}
			return add(b)
		})
	}
	return run
}
