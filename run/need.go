package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// Need lists what an engine requires of a run. The zero value accepts every run.
type Need struct {
	// Command begins the error, for example "simulate"; "" leaves it out.
	Command string
	// AllCalls asks for the rows of all calls: recorded with --record all and without filters.
	AllCalls bool
	// NoneDropped asks for a run in which every call could be recorded.
	NoneDropped bool
	// ComputeTimes asks for compute_ns.
	ComputeTimes bool
	// Messages asks for the rows of messages.
	Messages bool
	// Hashes asks for payload hashes.
	Hashes bool
	// Times asks for start_ns and end_ns. TimesAdvice tells how an untimed run gets them; "" recommends
	// commq simulate --name.
	Times       bool
	TimesAdvice string
	// Playable asks for a run whose ranks all reached MPI_Finalize: only such a run can be played again.
	Playable bool
}

// lack is one thing that a run lacks.
type lack struct {
	what     string   // completes "the run ..."
	captures []string // complete "capture it again ..."; nil where that would not help
	advice   string   // what to do instead; "" for nothing
}

// Check returns an error that names everything that the run with this name and manifest lacks, and how to capture it
// again; nil if it lacks nothing.
func (n *Need) Check(name string, m *schema.Manifest) error {
	lacks := n.lacks(m)
	if len(lacks) == 0 {
		return nil
	}
	var whats, captures, advice []string
	for _, l := range lacks {
		whats = append(whats, l.what)
		for _, c := range l.captures {
			if !slices.Contains(captures, c) {
				captures = append(captures, c)
			}
		}
		if l.advice != "" {
			advice = append(advice, l.advice)
		}
	}
	text := fmt.Sprintf("run %q %s", name, enumerate(whats))
	switch {
	case len(captures) == 0:
	case m.Origin.Trace != nil:
		text += fmt.Sprintf("; its trace (%s) does not tell that: record the program with commq capture, %s",
			m.Origin.Trace.Format, enumerate(captures))
	default:
		text += "; capture it again " + enumerate(captures)
	}
	for _, a := range advice {
		text += "; " + a
	}
	if n.Command != "" {
		text = n.Command + ": " + text
	}
	return errors.New(text)
}

// lacks lists what the run lacks, in a fixed order.
func (n *Need) lacks(m *schema.Manifest) (lacks []lack) {
	if n.Times && m.TimeOrigin == "untimed" {
		lacks = append(lacks, lack{what: "is untimed",
			advice: cmp.Or(n.TimesAdvice, "commq simulate --name NAME gives it the times of a machine")})
	}
	if n.Hashes && HashBits(m) == 0 {
		lacks = append(lacks, lack{what: without(m) + " payload hashes",
			captures: []string{"with --hash crc64"}})
	}
	if n.AllCalls && (m.Record != "all" || len(m.Filters) > 0) {
		lacks = append(lacks, rowsLack(m))
	}
	if n.Messages && m.Record == "collectives" {
		lacks = append(lacks, lack{what: fmt.Sprintf("has no messages (record %s)", m.Record),
			captures: []string{"with --record all"}})
	}
	if n.ComputeTimes && m.ComputeClock == "none" {
		lacks = append(lacks, lack{what: without(m) + " compute times", captures: []string{"with --clock cpu"}})
	}
	if n.NoneDropped && m.Counts.Dropped > 0 {
		lacks = append(lacks, lack{what: fmt.Sprintf("misses %s that could not be recorded",
			units.Count(m.Counts.Dropped, "call")),
			captures: []string{"with more space for the spool"}})
	}
	if n.Playable && m.Ended != "finalized" {
		lacks = append(lacks, lack{what: fmt.Sprintf("was %s before its end", m.Ended),
			advice: "only a run whose ranks all reached MPI_Finalize can be played"})
	}
	return lacks
}

// without begins what is missing in a run.
func without(m *schema.Manifest) string {
	if m.Origin.Trace != nil {
		return "has no"
	}
	return "was captured without"
}

// rowsLack explains why the run lacks the rows of some calls.
func rowsLack(m *schema.Manifest) lack {
	var l lack
	var why []string
	if m.Record != "all" {
		why, l.captures = append(why, "record "+m.Record), append(l.captures, "with --record all")
	}
	if len(m.Filters) > 0 {
		why = append(why, m.Filters...)
	}
	byName := len(m.Filters)
	if m.SwitchedOff() {
		byName--
	}
	if byName > 0 {
		l.captures = append(l.captures, "without filters")
	}
	if m.SwitchedOff() {
		l.captures = append(l.captures, "with a program that does not switch recording off (MPI_Pcontrol)")
	}
	l.what = fmt.Sprintf("does not have the rows of all calls (%s)", strings.Join(why, ", "))
	return l
}

// HashBits returns the width of the payload hashes of a run; 0 when it has none.
func HashBits(m *schema.Manifest) int {
	switch m.Hash {
	case "crc64":
		return 64
	case "crc32":
		return 32
	}
	return 0
}

// enumerate joins parts of a sentence: a, b and c.
func enumerate(parts []string) string {
	last := len(parts) - 1
	if last == 0 {
		return parts[0]
	}
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
