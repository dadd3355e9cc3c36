package derive

import (
	"fmt"
	"slices"
	"testing"

	"github.com/commq/commq/schema"
)

// BenchmarkCollectives measures what a row of events adds to the time of writing a run: where every row is a
// collective, of which a rank makes so many different ones, and where none is.
func BenchmarkCollectives(b *testing.B) {
	for _, different := range []int32{0, 3, 40} {
		b.Run(fmt.Sprintf("%d-different", different), func(b *testing.B) {
			e := &schema.Events{}
			row := schema.NullEvent
			row.Call, row.Class = int16(slices.Index(schema.CallNames, "MPI_Send")), int16(schema.ClassSend)
			if different > 0 {
				row.Call, row.Class = int16(slices.Index(schema.CallNames, "MPI_Reduce")), int16(schema.ClassCollective)
			}
			for i := range int32(1 << 17) {
				row.Rank, row.Seq, row.Comm, row.Instance = i/4096, int64(i%4096), 0, int64(i%4096)
				if different > 0 {
					row.RootWorld, row.SendBytes = i%different%5, 8<<(i%different/5)
				}
				e.Append(&row)
			}
			s := NewCollectiveSums()
			s.Add(e)
			before := cpuTime(b)
			for b.Loop() {
				s.Add(e)
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N*e.Len()), "cpu-ns/row")
		})
	}
}
