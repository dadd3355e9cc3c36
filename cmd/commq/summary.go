package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/schema"
)

// printSummary says on one screen what a run holds: after a capture or an ingest.
func printSummary(w io.Writer, m *schema.Manifest) {
	w = printable.Writer(w)
	c := &m.Counts
	fmt.Fprintf(w, "run %s: %s\n", m.Origin.Name, madeFrom(&m.Origin))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	line("ranks", "%s%s, %s", grouped(int64(m.Ranks)), onHosts(len(m.Origin.Hosts)), m.Ended)
	switch sim := m.Origin.Simulation; {
	case m.TimeOrigin == "untimed":
	case sim != nil:
		line("time", "%s %s, machine %s", time.Duration(m.EndNs), m.TimeOrigin, machineText(sim))
	default:
		line("time", "%s", time.Duration(m.EndNs).Round(time.Microsecond))
	}
	line("calls", "%s, and %s", grouped(c.Calls), counted(c.Polls, "failed poll"))
	line("messages", "%s with %s", grouped(c.Messages), bytesText(c.MessageBytes))
	line("collectives", "%s%s", grouped(c.Collectives), collectivesText(m.Collectives))
	if c.UnmatchedSends+c.UnmatchedReceives > 0 {
		line("unmatched", "%s and %s (commq query unmatched)", counted(c.UnmatchedSends, "send"), counted(c.UnmatchedReceives, "receive"))
	}
	if c.Choices > 0 {
		line("open choices", "%s (MPI_ANY_SOURCE, MPI_Waitany and their like), %s out of virtual-time order", grouped(c.Choices), grouped(c.OutOfOrder))
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
		line("overlaps", "%s that ended after the next one of their thread began (commq query overlaps)", counted(c.OverlappingCalls, "call"))
	}
	t.Flush()
	for _, warning := range m.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
}

// madeFrom is the program that ran, or the trace that the run was made from.
func madeFrom(o *schema.Origin) string {
	if o.Trace != nil {
		return traceText(o.Trace)
	}
	if o.Replay != nil {
		return "replay of " + o.Replay.Run
	}
	return shellquote.Join(o.Command...)
}

// traceText names a trace of another tool.
func traceText(t *schema.Trace) string {
	text := fmt.Sprintf("%s (%s)", t.File, t.Format)
	if t.Program != "" {
		text += " of " + t.Program
	}
	return text
}

// maxCollectives is how many collectives the summary names.
const maxCollectives = 6

// collectivesText lists collectives, the most frequent first.
func collectivesText(byName map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(byName), func(a, b string) int {
		return cmp.Or(cmp.Compare(byName[b], byName[a]), strings.Compare(a, b))
	})
	var parts []string
	for _, name := range names[:min(len(names), maxCollectives)] {
		parts = append(parts, fmt.Sprintf("%s %s", grouped(byName[name]), strings.TrimPrefix(name, "MPI_")))
	}
	if len(names) > maxCollectives {
		parts = append(parts, fmt.Sprintf("%d other kinds", len(names)-maxCollectives))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// counted is a number and a noun in singular or plural.
func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return grouped(n) + " " + noun
}

// bytesText is a number of bytes, in a larger unit too where it is long.
func bytesText(n int64) string {
	if n < 1<<10 {
		return counted(n, "byte")
	}
	return fmt.Sprintf("%s bytes (%s)", grouped(n), inBytes(n))
}
