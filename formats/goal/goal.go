// Package goal writes GOAL schedules (Group Operation Assembly Language; Hoefler, Siebert and Lumsdaine 2009), which
// LogGOPSim and ATLAHS simulate: for each rank sends, receives and computing, and what must be done before each.
// docs/reference/simulators.md says how a run becomes one.
package goal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/commq/commq/formats/schedule"
	"github.com/commq/commq/formats/spill"
)

// Export writes the run in folder dir as a schedule to w. Its notes are sentences about what the schedule lacks or
// represents differently. Intermediate data goes to a temporary file.
func Export(ctx context.Context, dir string, w io.Writer) (notes []string, err error) {
	x := &exporter{changed: schedule.Notes{}}
	defer func() {
		if x.spill != nil {
			err = errors.Join(err, x.spill.Close())
		}
	}()
	o := schedule.Options{Begin: func(ranks int32) (err error) {
		x.ranks = make([]rank, ranks)
		x.spill, err = spill.Create(ranks)
		return err
	}}
	_, all, err := schedule.Each(ctx, dir, o, x.action)
	if err != nil {
		return nil, err
	}
	for what, n := range x.changed {
		all[what] += n
	}
	return all.Texts(), x.assemble(w)
}

// exporter turns actions into operations.
type exporter struct {
	ranks   []rank
	spill   *spill.File
	changed schedule.Notes
	text    []byte
}

// rank is the state of one rank.
type rank struct {
	labels int64
	// after are the operations that must be done before the next one, begun is one that must have begun; 0 for none.
	after []int64
	begun int64
	open  map[int64]int64 // labels of operations that are waited for, by their ID
}

// action adds the operation of an action.
func (x *exporter) action(a *schedule.Action) error {
	r := &x.ranks[a.Rank]
	switch a.Kind {
	case schedule.Compute:
		return x.add(a, fmt.Sprintf("calc %d", a.Ns))
	case schedule.Send:
		return x.add(a, fmt.Sprintf("send %db to %d tag %d", x.size(a.Bytes), a.Peer, a.Tag))
	case schedule.Recv:
		return x.add(a, fmt.Sprintf("recv %db from %d tag %d", x.size(a.Bytes), a.Peer, a.Tag))
	case schedule.Wait:
		r.after = append(r.after, r.open[a.ID])
		delete(r.open, a.ID)
	}
	return nil
}

// size returns the bytes of a message: LogGOPSim counts the gaps between bytes, and has no messages without any.
func (x *exporter) size(bytes int64) int64 {
	if bytes > 0 {
		return bytes
	}
	x.changed["Ends of messages without data, written with a byte"]++
	return 1
}

// add adds an operation with what it requires. The next one requires it, or, if it is only begun here, requires that it
// has begun: that keeps the order of messages.
func (x *exporter) add(a *schedule.Action, operation string) error {
	r := &x.ranks[a.Rank]
	r.labels++
	me := r.labels
	x.text = append(label(x.text[:0], me), ": "...)
	x.text = append(append(x.text, operation...), '\n')
	for _, before := range r.after {
		x.require(me, " requires ", before)
	}
	if r.begun > 0 {
		x.require(me, " irequires ", r.begun)
	}
	r.after, r.begun = r.after[:0], 0
	if a.ID == 0 {
		r.after = append(r.after, me)
		return x.spill.Append(a.Rank, x.text)
	}
	r.begun = me
	if r.open == nil {
		r.open = map[int64]int64{}
	}
	if !a.Unwaited {
		r.open[a.ID] = me
	}
	return x.spill.Append(a.Rank, x.text)
}

func (x *exporter) require(me int64, how string, before int64) {
	x.text = append(label(x.text, me), how...)
	x.text = append(label(x.text, before), '\n')
}

func label(text []byte, n int64) []byte { return strconv.AppendInt(append(text, 'l'), n, 10) }

// assemble writes the ranks one after another. A rank that does nothing computes for no time.
func (x *exporter) assemble(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<20)
	fmt.Fprintf(out, "num_ranks %d\n", len(x.ranks))
	for i := range x.ranks {
		fmt.Fprintf(out, "\nrank %d {\n", i)
		if x.ranks[i].labels == 0 {
			fmt.Fprintln(out, "l1: calc 0")
		}
		if err := x.spill.CopyTo(int32(i), out); err != nil {
			return err
		}
		fmt.Fprintln(out, "}")
	}
	return out.Flush() // returns the first error of all writes
}
