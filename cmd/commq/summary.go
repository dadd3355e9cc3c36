package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// printSummary prints the contents of a run on one screen, after a capture or an ingest.
func printSummary(w io.Writer, m *schema.Manifest) {
	w = printable.Writer(w)
	c := &m.Counts
	fmt.Fprintf(w, "run %s: %s\n", m.Origin.Name, madeFrom(&m.Origin))
	var facts []run.Fact
	line := func(name, format string, args ...any) {
		facts = append(facts, run.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	line("ranks", "%s%s, %s", grouped(int64(m.Ranks)), run.HostsText(&m.Origin), m.Ended)
	switch sim := m.Origin.Simulation; {
	case m.TimeOrigin == "untimed":
	case sim != nil:
		line("time", "%s %s, machine %s", units.Duration(m.EndNs), m.TimeOrigin, run.MachineText(sim))
	case m.TimeOrigin == "simulated":
		line("time", "%s, with durations that were measured in places that were not", units.Duration(m.EndNs))
	default:
		line("time", "%s", units.Duration(m.EndNs))
	}
	line("calls", "%s, and %s", grouped(c.Calls), counted(c.Polls, "failed poll"))
	line("messages", "%s with %s", grouped(c.Messages), inBytes(c.MessageBytes))
	line("collectives", "%s%s", grouped(c.Collectives), collectivesText(m.Collectives))
	if c.UnmatchedSends+c.UnmatchedReceives > 0 {
		line("unmatched", "%s and %s (commq query unmatched)", counted(c.UnmatchedSends, "send"),
			counted(c.UnmatchedReceives, "receive"))
	}
	if c.Choices > 0 {
		line("open choices", "%s (MPI_ANY_SOURCE, MPI_Waitany and their like), %s out of virtual-time order",
			grouped(c.Choices), grouped(c.OutOfOrder))
	}
	if c.EarlyCollectives > 0 {
		line("early", "%s in a test", counted(c.EarlyCollectives, "nonblocking collective"))
	}
	if c.Dropped > 0 {
		line("dropped", "%s that could not be recorded: the counts above are too small", counted(c.Dropped, "call"))
	}
	if c.InProgress > 0 {
		line("in progress", "%s that never returned", counted(c.InProgress, "call"))
	}
	if c.OverlappingCalls > 0 {
		line("overlaps", "%s that ended after the next one of their thread began (commq query overlaps)",
			counted(c.OverlappingCalls, "call"))
	}
	if err := writeFacts(w, "  ", facts, output.Text{}); err != nil {
		return // nobody reads it
	}
	for _, warning := range m.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
}

// madeFrom is the command line of the program, or the source trace or run.
func madeFrom(o *schema.Origin) string {
	if o.Trace != nil {
		return run.TraceText(o.Trace)
	}
	if o.Replay != nil {
		return "replay of " + o.Replay.Run
	}
	return shellquote.Join(o.Command...)
}

// maxCollectives is the maximum number of kinds of collectives that the summary names where it leaves out several.
const maxCollectives = 6

// collectivesText lists collectives, the most frequent first.
func collectivesText(byName map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(byName), func(a, b string) int {
		return cmp.Or(cmp.Compare(byName[b], byName[a]), strings.Compare(a, b))
	})
	named := len(names)
	if named > maxCollectives+1 {
		named = maxCollectives
	}
	var parts []string
	for _, name := range names[:named] {
		parts = append(parts, fmt.Sprintf("%s %s", grouped(byName[name]), strings.TrimPrefix(name, "MPI_")))
	}
	if named < len(names) {
		parts = append(parts, fmt.Sprintf("%d other kinds", len(names)-named))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// counted returns a number and a noun, in the singular for 1.
func counted(n int64, noun string) string { return units.Count(n, noun) }

// bytesText returns an exact size; from 10 kB on a larger unit follows.
func bytesText(n int64) string { return units.ExactBytes(n) }

// grouped returns an integer with its digits in groups of three: 617,856.
func grouped(n int64) string { return units.Comma(n) }

// inBytes returns a size in a fitting unit: 9.4 MB.
func inBytes(n int64) string { return units.Bytes(n) }
