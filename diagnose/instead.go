package diagnose

import (
	"cmp"
	"context"
	"fmt"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/run"
)

// A cause may make ranks wait long while its removal gains little, because ranks then wait for something else. For such
// findings the run without the cause is explained too, and what ranks wait for instead is named.

const (
	// A finding gains little if a rank waits on average at least smallGain times as long as the run gains.
	smallGain = 4
	// Only waits that take at least largeWaits of the run's time, on average over the ranks, are explained.
	largeWaits = 0.02
	// At most mostInstead findings are explained, and none in runs of more than mostInsteadCalls calls: explaining
	// needs all rows in memory.
	mostInstead      = 3
	mostInsteadCalls = 2e6
)

// gainsLittle reports whether a finding gains little compared with its waits.
func (q *search) gainsLittle(f *Finding) bool {
	waits := float64(f.WaitNs) / float64(max(1, q.d.Ranks))
	return f.without != nil && !f.Bound && waits >= largeWaits*float64(q.d.TimeNs) &&
		waits >= smallGain*float64(f.GainNs)
}

// sayInstead adds to the titles of findings that gain little what the ranks would wait for instead.
func (q *search) sayInstead(ctx context.Context, r *run.Run) error {
	if q.w.bounds || r.Manifest.Counts.Calls > mostInsteadCalls {
		return nil
	}
	var found []*Finding
	for i := range q.d.Findings {
		if f := &q.d.Findings[i]; len(found) < mostInstead && q.gainsLittle(f) {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return nil
	}
	if q.w.explainable() != nil {
		return nil
	}
	without, err := q.w.explainEach(ctx, found)
	if err != nil {
		return err
	}
	place := r.Place(ctx)
	before := delaysByPlace(q.w.explained, place)
	for i, f := range found {
		f.Title += instead(f, before, delaysByPlace(without[i], place), without[i].Path, place)
	}
	return nil
}

// delaysByPlace returns the time waited, in ns, for what ranks do before each call of the program, or in it (inCall).
func delaysByPlace(e *critical.Explained, place func(int32) string) map[causeKey]int64 {
	all := map[causeKey]int64{}
	for _, x := range e.Delays {
		k := causeKey{place: place(x.Site), call: x.Call}
		if x.Kind != critical.Compute {
			k.imbalance = inCall
		}
		all[k] += x.Ns
	}
	return all
}

// inCall marks keys of time in a call; the others are of computing before it.
const inCall = 1

// instead returns a clause about the run without the cause: what ranks wait longer for, or, if that is little, what its
// critical path has most of.
func instead(f *Finding, before, after map[causeKey]int64, path *critical.Path, place func(int32) string) string {
	var most causeKey
	mostNs, sum := int64(0), int64(0)
	for k, ns := range after {
		more := ns - before[k]
		if more > 0 {
			sum += more
		}
		if more > mostNs || more == mostNs && more > 0 && compareKeys(k, most) < 0 {
			most, mostNs = k, more
		}
	}
	if float64(sum) >= float64(f.WaitNs)/smallGain {
		what := "computing before"
		if most.imbalance == inCall {
			what = "time in"
		}
		return fmt.Sprintf("; without it ranks wait %s longer elsewhere, most for %s %s", units.Duration(sum), what,
			run.SiteText(most.call.String(), "", most.place))
	}
	top := path.GroupBy([]critical.Key{critical.ByCallsite, critical.ByCall}, place)
	if len(top) == 0 {
		return ""
	}
	return "; without it the critical path is about as long, most of it before or in " + run.SiteText(top[0].Call,
		"", top[0].Callsite)
}

func compareKeys(a, b causeKey) int {
	return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.call, b.call), cmp.Compare(a.imbalance, b.imbalance))
}
