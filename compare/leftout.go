package compare

import (
	"slices"
	"strings"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Measures by what they count, of commq query measures and, with - for _, of commq query scaling. Others count calls.
var (
	// measuresOfAll count everything that was captured, whatever rows were kept.
	measuresOfAll = []string{"ranks", "calls", "calls_per_rank", "unmatched_sends", "unmatched_receives", "end_ns"}
	// measuresOfMessages count messages.
	measuresOfMessages = []string{"messages", "message_bytes", "pairs", "partners_max", "rank_messages_max",
		"rank_bytes_max", "payloads", "messages_per_rank", "bytes", "bytes_per_rank", "mean_message_bytes"}
)

// LeftOut returns a sentence about calls that the capture left out by request (--calls, --record) and that reads needs;
// "" if there are none. name is the run in the sentence, and where is the answer that lacks these calls too.
// Recording that only the program switched off, with MPI_Pcontrol, is not reported.
func (r *Run) LeftOut(name string, reads schema.Reads, where string) string {
	if r.Manifest.Record == "all" && !r.filtersCalls() {
		return ""
	}
	text := run.LeftOut(name, r.Manifest, reads, where)
	if text != "" {
		text += "; capture it again with all calls"
	}
	return text
}

// filtersCalls reports whether calls were left out by name.
func (r *Run) filtersCalls() bool {
	f := r.Manifest.CallFilter()
	return len(f.Kept)+len(f.Out) > 0
}

// lacks returns a sentence about calls that were left out by name and that a measure, or one that fits the pattern,
// counts; "" if there are none. A measure that needs --record all does not exist without it.
func (r *Run) lacks(pattern string) string {
	measure, item, isPart := strings.Cut(strings.ReplaceAll(pattern, "-", "_"), "/")
	call, _, _ := strings.Cut(item, " in ")
	name, where := "run "+r.Name, "the measure "+pattern
	isCounted := func(c schema.Call) bool {
		return c.Name != "" && !r.Manifest.KeepsCall(c.ID) && counts(measure, c.Name) && (!isPart || matched(call, c.Name))
	}
	switch {
	case !r.filtersCalls(), !isPart && slices.Contains(measuresOfAll, measure):
		return ""
	case slices.Contains(measuresOfMessages, measure):
		return r.LeftOut(name, schema.ReadsMessages, where)
	}
	for _, prefix := range []string{"calls", "site", "collective_calls", "collectives_per_rank", "collective_bytes",
		"collective_ns"} {
		if strings.HasPrefix(measure, prefix) && !slices.ContainsFunc(schema.Calls, isCounted) {
			return ""
		}
	}
	return r.LeftOut(name, schema.ReadsAll, where)
}
