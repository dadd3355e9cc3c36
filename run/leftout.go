package run

import (
	"fmt"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// LeftOut returns a sentence about the calls of the program that the run lacks and that reads needs: "cg.4 lacks all
// calls but MPI_I* (--calls): what they did is not in this answer". It is "" if none is lacking. where names what was
// derived from the run: "this answer".
func LeftOut(name string, m *schema.Manifest, reads schema.Reads, where string) string {
	parts := lackingCalls(m, reads)
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s lacks %s: what they did is not in %s", name, enumerate(parts), where)
}

// lackingCalls names the calls that the run lacks: those that were left out by request, and those that could not be
// recorded.
func lackingCalls(m *schema.Manifest, reads schema.Reads) (parts []string) {
	if m.Lacks(reads) {
		switch m.Record {
		case "messages":
			if reads&schema.ReadsMessageCalls != 0 {
				parts = append(parts, "the calls of its messages (--record messages)")
			}
		case "collectives":
			parts = append(parts, "messages and their calls (--record collectives)")
		}
		if m.SwitchedOff() {
			parts = append(parts, "calls made while MPI_Pcontrol had switched recording off")
		}
		if text := filteredCalls(m); text != "" {
			parts = append(parts, text+" (--calls)")
		}
	}
	if n := m.Counts.Dropped; n > 0 && reads != 0 {
		parts = append(parts, fmt.Sprintf("%s of %s, which could not be recorded", units.Comma(n),
			units.Count(m.Counts.Calls+n, "call")))
	}
	return parts
}

// filteredCalls names the calls that filters by name left out; "" if there are no such filters.
func filteredCalls(m *schema.Manifest) string {
	f := m.CallFilter()
	text := strings.Join(f.Out, ", ")
	if len(f.Kept) == 0 {
		return text
	}
	all := "all calls but " + strings.Join(f.Kept, ", ")
	if text != "" {
		all += " and also " + text
	}
	return all
}
