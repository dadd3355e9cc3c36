package dim

import (
	"fmt"
	"io"

	"github.com/commq/commq/schema"
)

// action is what a task does next: a record that is neither a burst nor left out, and the burst before it.
type action struct {
	record
	// line is the record's line.
	line int64
	// computeNs is what the task computed since its last action; null when it has no burst there.
	computeNs int64
	what      actionKind
}

type actionKind uint8

const (
	actionRecord actionKind = iota
	actionMark              // a burst that follows a burst, or an event: only computeNs and eventType count
	actionEnd               // after the last record
)

// tally counts what has no row.
type tally struct {
	events, noops, pseudo int64
	// noBurst are the tasks whose first record is no burst, firstNoBurst the first of them.
	noBurst, firstNoBurst int64
}

// taskReader reads a task's records as actions.
type taskReader struct {
	t      *trace
	task   int32
	s      *scanner
	events bool // have an action each
	record record
	first  bool

	ps     int64 // of bursts since the last action
	carry  int64 // ps that were not a whole ns
	burst  bool  // the record before was a burst
	bursts bool  // there was one since the last action
	ended  bool
	counts *tally
}

func (t *trace) taskReader(task int32, buffer int, events bool, counts *tally) *taskReader {
	s := t.tasks[task]
	in := io.NewSectionReader(t.in, s.begin, s.end-s.begin)
	return &taskReader{t: t, task: task, s: newScanner(in, int(min(s.end-s.begin, int64(buffer))), s.begin, max(s.line, 1)), events: events, counts: counts, first: true}
}

// next is the task's next action; the last is actionEnd, and after it false.
func (r *taskReader) next(a *action) (bool, error) {
	if r.ended {
		return false, nil
	}
	for {
		if err := r.read(); err == io.EOF {
			r.ended = true
			*a = action{line: r.s.line, what: actionEnd, computeNs: r.take()}
			return true, nil
		} else if err != nil {
			return false, err
		}
		wasBurst := r.burst
		r.burst = r.record.kind == recordBurst
		if r.burst && wasBurst {
			*a = action{line: r.s.line, what: actionMark, computeNs: r.take()}
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
			if !r.events { // the CPU is given up between two bursts all the same
				r.burst = wasBurst
				continue
			}
			*a = action{record: r.record, line: r.s.line, what: actionMark, computeNs: r.take()}
			return true, nil
		case recordCollective:
			if r.record.comm <= 0 {
				r.counts.pseudo++
				continue
			}
		}
		*a = action{record: r.record, line: r.s.line, computeNs: r.take()}
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

// take is the time computed since it was taken last, in ns, null when there was no burst: to Dimemas one of no time is another thing
// than none. What is less than a ns is left for the next time, so that the sum along a task is off by half a ns at most.
func (r *taskReader) take() int64 {
	if !r.bursts {
		return schema.NullInt64
	}
	r.bursts = false
	ps := r.ps + r.carry
	ns := (ps + psPerNs/2) / psPerNs // carry is -psPerNs/2 at least
	r.ps, r.carry = 0, ps-ns*psPerNs
	return ns
}
