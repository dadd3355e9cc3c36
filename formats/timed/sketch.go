package timed

import (
	"context"

	"github.com/commq/commq/schema"
)

// Sketch is an estimate of a rank's number of rows and their times, from the first pass. No row may start before the
// earliest start.
type Sketch struct {
	// Sends and Recvs are the numbers of rows that send and receive, for which room is made.
	Sends, Recvs int64

	job     *Job
	rows    int64
	first   int64   // the earliest start
	samples []int64 // starts of every sampleRows-th row
	told    int64   // reported to the progress so far
}

// Start takes the start of a row, in ns.
func (s *Sketch) Start(ns int64) {
	s.first = min(s.first, ns)
	if s.rows%sampleRows == 0 {
		s.samples = append(s.samples, ns)
	}
	s.rows++
}

// Read tells how much of the rank was read so far, in the unit of Trace.Size.
func (s *Sketch) Read(now int64) {
	s.job.read.Add(now - s.told)
	s.told = now
	s.job.tell()
}

// row takes a row.
func (s *Sketch) row(row *schema.Event) {
	s.Start(row.StartNs)
	switch schema.Class(row.Class) {
	case schema.ClassSend:
		s.Sends++
	case schema.ClassRecv:
		s.Recvs++
	case schema.ClassSendrecv:
		s.Sends++
		s.Recvs++
	}
}

// skims reports whether the first pass only skims the trace.
func (j *Job) skims() bool { return j.trace.Skim != nil && !j.trace.AtMost && !j.o.Learn }

// skim makes the sketches of all ranks.
func (j *Job) skim(ctx context.Context) error {
	return Parallel(len(j.sketches), func(rank int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return j.trace.Skim(ctx, int32(rank), &j.sketches[rank])
	})
}
