package dimemas

import (
	"fmt"
	"io"

	"github.com/commq/commq/schema"
)

// action is the next thing a task does: a record other than a burst, with the burst before it.
type action struct {
	record
	// line is the record's line.
	line int64
	// computeNs is the compute time since the last action; null without a burst.
	computeNs int64
	what      actionKind
}

type actionKind uint8

const (
	actionRecord actionKind = iota
	actionMark              // a burst that follows a burst, or an event: only computeNs and eventType count
	actionEnd               // after the last record
)

// tally counts records that get no row.
type tally struct {
	events, noops, pseudo int64
	// noBurst counts the tasks whose first record is not a burst; firstNoBurst is the first of them.
	noBurst, firstNoBurst int64
}

// taskReader turns a task's records into actions.
type taskReader struct {
	t      *trace
	task   int32
	s      *scanner
	events bool // each is an action
	record record
	first  bool

	ps     int64 // sum of bursts since the last action
	carry  int64 // rest below one ns
	burst  bool  // the last record was a burst
	bursts bool  // there was a burst since the last action
	ended  bool
	counts *tally
}

func (t *trace) taskReader(task int32, buffer int, events bool, counts *tally) *taskReader {
	s := t.tasks[task]
	in := io.NewSectionReader(t.in, s.begin, s.end-s.begin)
	return &taskReader{t: t, task: task, s: newScanner(in, int(min(s.end-s.begin, int64(buffer))), s.begin,
		max(s.line, 1)), events: events, counts: counts, first: true}
}

// next returns the task's next action; the last is actionEnd, after which it returns false.
func (r *taskReader) next(a *action) (bool, error) {
	if r.ended {
		return false, nil
	}
	for {
		if err := r.read(); err == io.EOF {
			r.ended = true
			*a = action{line: r.s.line, what: actionEnd, computeNs: r.takeComputeNs()}
			return true, nil
		} else if err != nil {
			return false, err
		}
		wasBurst := r.burst
		r.burst = r.record.kind == recordBurst
		if r.burst && wasBurst {
			*a = action{line: r.s.line, what: actionMark, computeNs: r.takeComputeNs()}
			r.ps, r.bursts = r.record.ps, true
			return true, nil
		}
		r.bursts = r.bursts || r.burst
		switch r.record.kind {
		case recordBurst:
			if r.ps += r.record.ps; r.ps > maxPs {
				return false, r.t.bad(r.s.line, "task %d computes more than 53 days without communication", r.task)
			}
			continue
		case recordNoop:
			r.counts.noops++
			r.burst = false
			continue
		case recordEvent:
			r.counts.events++
			if !r.events { // the CPU is given up between two bursts even so
				r.burst = wasBurst
				continue
			}
			*a = action{record: r.record, line: r.s.line, what: actionMark, computeNs: r.takeComputeNs()}
			return true, nil
		case recordCollective:
			if r.record.comm <= 0 {
				r.counts.pseudo++
				continue
			}
		}
		*a = action{record: r.record, line: r.s.line, computeNs: r.takeComputeNs()}
		return true, nil
	}
}

// read reads the next record.
func (r *taskReader) read() error {
	for {
		line, err := r.s.read()
		if err == io.EOF {
			return err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.t.name, err)
		}
		if len(trimEnd(line)) == 0 {
			continue
		}
		if err := parseRecord(line, &r.record); err != nil {
			return r.t.bad(r.s.line, "%w", err)
		}
		if r.first && r.record.kind != recordBurst {
			if r.counts.noBurst == 0 {
				r.counts.firstNoBurst = int64(r.task)
			}
			r.counts.noBurst++
		}
		r.first = false
		return nil
	}
}

// takeComputeNs returns the compute time since its last call in ns, null if there was no burst: Dimemas distinguishes
// a burst of zero length from none. The rest below one ns is carried over, so that the sum along a task is at most
// half a ns off.
func (r *taskReader) takeComputeNs() int64 {
	if !r.bursts {
		return schema.NullInt64
	}
	r.bursts = false
	ps := r.ps + r.carry
	ns := (ps + psPerNs/2) / psPerNs // carry is at least -psPerNs/2
	r.ps, r.carry = 0, ps-ns*psPerNs
	return ns
}
