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

// LeftOut tells what the run, which the sentence calls name, lacks by request (--calls, --record) of what a rule reads;
// "" for nothing. where is what lacks it too. What a program itself switches off with MPI_Pcontrol is no part of what
// is checked.
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

// lacks tells what the run lacks of the calls that a measure counts, or of those that fit if it is a pattern: they were
// left out by name. A measure that needs --record all is not there without it.
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
