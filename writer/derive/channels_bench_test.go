package derive

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/commq/commq/schema"
)

// BenchmarkChannels measures what a message adds to the time of writing a run: cpu-ns/message is right on a busy
// machine too.
func BenchmarkChannels(b *testing.B) {
	for _, c := range []struct{ neighbours, sizes int32 }{{8, 4}, {60, 16}} {
		b.Run(fmt.Sprintf("%d-neighbours-%d-sizes", c.neighbours, c.sizes), func(b *testing.B) {
			m := &schema.Messages{}
			for i := range int32(1 << 17) {
				src := i / 512
				row := message(src, (src+i%c.neighbours)%256, i%c.neighbours, 1<<(4+i/c.neighbours%c.sizes), 8)
				m.Append(&row)
			}
			s := NewChannelSums()
			s.Add(m)
			before := cpuTime(b)
			for b.Loop() {
				s.Add(m)
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N*m.Len()), "cpu-ns/message")
		})
	}
}

// cpuTime returns the time that this process has computed, in ns.
func cpuTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
