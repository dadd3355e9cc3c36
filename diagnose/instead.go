package diagnose

import (
	"cmp"
	"context"
	"fmt"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/run"
)

// A cause can make ranks wait long, and yet the run gains little without it: then they wait for something else. The run
// without the cause is explained as the run itself is, and what is waited for more then is named.

const (
	// smallGain is how many times longer a rank waits on average than the run gains, from which that is explained.
	smallGain = 4
	// largeWaits is the part of the run's time that such waits take at least, of a rank on average.
	largeWaits = 0.02
	// mostInstead is how many findings are explained at most, and mostInsteadCalls the number of calls of a run above
	// which none is: its rows are all in memory.
	mostInstead      = 3
	mostInsteadCalls = 2e6
)

// gainsLittle reports whether a finding gains little beside its waits.
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

// delaysByPlace are the times waited for what ranks do before, or in, each call of the program.
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

// inCall tells time in a call from computing before it.
const inCall = 1

// instead is the clause that says what keeps the run as long without a cause: what is waited for more, or else what the
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
