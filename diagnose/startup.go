package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Ranks that begin MPI_Init less than leastLateNs after the others are not named: launchers start processes one by one.
const leastLateNs = 100e6

// start has when a rank began MPI_Init and when that returned, in ns.
type start struct {
	rank, site int32
	from, to   int64
}

// lateStart finds the ranks that begin MPI_Init late while the others wait in it; nil if there are none. Its gain is
// not part of the diagnosed time, which begins when MPI_Init has returned. Only measured times have it. few says that
// ranks had too few cores, which may make them late; nil if they had enough.
func lateStart(ctx context.Context, r *run.Run, few *lack) (*Finding, error) {
	if r.Manifest.TimeOrigin != "measured" {
		return nil, nil
	}
	starts, err := readStarts(ctx, r)
	if err != nil || len(starts) < 2 {
		return nil, err
	}
	late, ns := lateOf(starts)
	if ns < leastLateNs {
		return nil, nil
	}
	f := newFinding(LateStart, "")
	for _, s := range late {
		f.Ranks = append(f.Ranks, s.rank)
	}
	slices.Sort(f.Ranks)
	f.Title = lateTitle(f.Ranks, starts[:len(starts)-len(late)], ns)
	if few != nil {
		f.Title += "; " + few.of + ", which delays the start of some"
	}
	f.Place, f.Call, f.GainNs, f.Bound = r.Place(ctx)(late[0].site), schema.CallInit.String(), ns, true
	return &f, nil
}

// lateTitle says that these ranks begin MPI_Init ns after the early ones.
func lateTitle(late []int32, early []start, ns int64) string {
	begin, others := "begin", "the others, which wait in it"
	if len(late) == 1 {
		begin = "begins"
	}
	if len(early) == 1 {
		others = fmt.Sprintf("rank %d, which waits in it", early[0].rank)
	}
	return fmt.Sprintf("%s %s MPI_Init %s after %s", rankText(late), begin, units.Duration(ns), others)
}

// lateOf returns the starts after the longest pause between two starts, and the length of that pause. It returns none
// if an earlier rank left MPI_Init before the first late one began: then MPI_Init does not wait for all ranks.
func lateOf(starts []start) (late []start, ns int64) {
	slices.SortFunc(starts,
		func(a, b start) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.rank, b.rank)) })
	for i := 1; i < len(starts); i++ {
		if pause := starts[i].from - starts[i-1].from; pause > ns {
			late, ns = starts[i:], pause
		}
	}
	for _, s := range starts[:len(starts)-len(late)] {
		if len(late) > 0 && s.to < late[0].from {
			return nil, 0
		}
	}
	return late, ns
}

// readStarts reads the first rows of all ranks, which are MPI_Init unless the program uses sessions.
func readStarts(ctx context.Context, r *run.Run) (starts []start, err error) {
	epochs, err := r.EventEpochs("rank", "call", "callsite", "start_ns", "end_ns")
	if err != nil {
		return nil, err
	}
	seen := map[int32]bool{}
	for len(seen) < int(r.Manifest.Ranks) {
		err := epochs.Next(ctx, func(b *schema.Events) error {
			for i, rank := range b.Rank {
				if seen[rank] {
					continue
				}
				seen[rank] = true
				if schema.CallID(b.Call[i]).Is(schema.FactInitializes) && b.StartNs[i] != schema.NullInt64 &&
					b.EndNs[i] != schema.NullInt64 {
					starts = append(starts, start{rank, b.Callsite[i], b.StartNs[i], b.EndNs[i]})
				}
			}
			return nil
		})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return starts, nil
}

// Late ranks are shown only if they are late by at least leastStart of the run's time.
const leastStart = 0.01

// LateStart returns the finding of ranks that begin MPI_Init late; nil if there is none, or if the delay is short
// beside the time of the run.
func (d *Diagnosis) LateStart() *Finding {
	if d.Start == nil || d.share(d.Start.GainNs) < leastStart {
		return nil
	}
	return d.Start
}

// startGain returns the gain of ranks that begin on time, in words. It is not part of the run's time.
func (d *Diagnosis) startGain() string {
	return "at most " + units.Duration(d.Start.GainNs) + " before that of the diagnosis"
}

// startText writes the finding of late ranks for people.
func (d *Diagnosis) startText(s *strings.Builder) {
	if f := d.LateStart(); f != nil {
		fmt.Fprintf(s, "\nBefore that time, %s: gain at most %s\n   %s.\n   %s\n", f.Rule, units.Duration(f.GainNs),
			f.Title, f.Advice)
	}
}
