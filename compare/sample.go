package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Value is a measure of a run, or of a part of it.
type Value struct {
	// Measure is the measure's name in the query measures.
	Measure string
	// Item is the part: a call, a size, a place. Empty for the whole run.
	Item string
	// Value is the value in Unit: 1 (a count), bytes, ns, or - for a fingerprint, which can only be compared for
	// equality.
	Value int64
	Unit  string
	// Exact is true if the value depends only on the program.
	Exact bool
	// File and Line are its place in the source; empty and 0 if it has none.
	File string
	Line int32
}

// Key combines measure and part: calls/MPI_Send.
func (v *Value) Key() string {
	if v.Item == "" {
		return v.Measure
	}
	return v.Measure + "/" + v.Item
}

// Fingerprint is the unit of fingerprints, which can only be compared for equality.
const Fingerprint = "-"

// Sample is the measures of one run.
type Sample struct {
	// Run is the run's name.
	Run string
	// Ranks is the run's number of ranks.
	Ranks int32
	// Values are its measures, each key once.
	Values []Value
	// Hash is the kind of its payload hashes; "" is not known.
	Hash string
	// ComputeClock is the clock of its compute times; "" is not known.
	ComputeClock string
	// LeftOut are the keys of measures that a baseline left out, as they differ between its runs.
	LeftOut []string
}

// Find returns the value of a key. A part without a value counts as 0 if the run has the whole, unless it was left out.
func (s *Sample) Find(key string) (v Value, known bool) {
	measure, item, _ := strings.Cut(key, "/")
	for i := range s.Values {
		switch {
		case s.Values[i].Key() == key:
			return s.Values[i], true
		case item != "" && s.Values[i].Measure == measure && s.Values[i].Item == "":
			v, known = s.Values[i], true
			v.Item, v.Value, v.File, v.Line = item, 0, "", 0
		}
	}
	if slices.Contains(s.LeftOut, key) {
		return Value{}, false
	}
	return v, known
}

// has reports whether the sample has a value for the key.
func (s *Sample) has(key string) bool {
	return slices.ContainsFunc(s.Values, func(v Value) bool { return v.Key() == key })
}

// measure describes a measure for the reference, in Markdown.
type measure struct {
	name, unit string
	// items says what its parts are, with an example; empty if it has none.
	items string
	means string
	// needs is what a capture must have had; empty if every run has the measure.
	needs string
}

// exact reports whether the measure depends on the program alone.
func (m *measure) exact() bool { return m.unit != "ns" }

// measures lists the measures in the order in which they are shown; all others come last.
var measures = []measure{
	{"ranks", "1", "", "Ranks of the run.", ""},
	{"messages", "1", "sizes: `messages/<= 1 Ki`", "Point-to-point messages.", ""},
	{"message_bytes", "bytes", "", "Their payload.", ""},
	{"pairs", "1", "", "Ordered pairs of ranks with messages from the one to the other.", ""},
	{"partners_max", "1", "", "Other ranks that the rank with the most of them exchanges messages with.", ""},
	{"rank_messages_max", "1", "", "Messages of the rank that sends most.", ""},
	{"rank_bytes_max", "bytes", "", "Bytes of the rank that sends most.", ""},
	{"payloads", Fingerprint, "", "A fingerprint of all payloads with their senders and receivers, whatever their " +
		"order.", "`--hash`"},
	{"unmatched_sends", "1", "", "Sends that no receive met.", ""},
	{"unmatched_receives", "1", "", "Receives that no message met.", ""},
	{"calls", "1", "calls: `calls/MPI_Send`", "Calls of MPI functions.", recordAll},
	{"collective_calls", "1", "calls: `collective_calls/MPI_Bcast`", "Calls of collectives, of all ranks together.",
		""},
	{"collective_bytes", "bytes", "calls: `collective_bytes/MPI_Bcast`", "What all ranks send in them.", ""},
	{"sites", "1", places("sites"), "Lines of the source that call MPI.", recordAll},
	{"site_calls", "1", places("site_calls"), "Calls there.", recordAll},
	{"site_bytes", "bytes", places("site_bytes"), "Bytes sent there.", recordAll},
	{"end_ns", "ns", "", "From the run's start to its end.", ""},
	{"runtime_ns", "ns", "", "From the first rank's end of MPI_Init to the last rank's start of MPI_Finalize.",
		recordAll},
	{"compute_ns", "ns", "", "Time outside MPI on the run's compute clock, all ranks together: the steadiest time if " +
		"that is CPU time.", recordAll},
	{"compute_ns_max", "ns", "", "The same of the rank that computes most.", recordAll},
	{"mpi_ns", "ns", "", "Time in MPI, all ranks together, with failed tests and probes, without MPI_Init and " +
		"MPI_Finalize.", recordAll},
	{"point_to_point_ns", "ns", "", "Its part in sends and receives.", recordAll},
	{"completion_ns", "ns", "", "Its part in calls that complete nonblocking operations: MPI_Wait, MPI_Waitall and " +
		"the like, and tests that succeeded.", recordAll},
	{"collective_ns", "ns", "", "Its part in collectives.", ""},
	{"lost_ns", "ns", "", "Time lost waiting for other ranks, all ranks together: the row `all` of " +
		"[wait-states](../QUERIES.md#wait-states). The measure to guard against waiting.", recordAll},
	{Simulated, "ns", "", "Time on the machine of `commq diff --machine`.", ""},
}

const recordAll = "`--record all`"

// places describes the parts of a measure by place.
func places(name string) string { return "places: `" + name + "/MPI_Send in exchange (halo.c)`" }

// Simulated is the measure of a run's time on a simulated machine.
const Simulated = "simulated_ns"

// onComputeClock reports whether a measure is made of compute times, so that runs of one compute clock compare.
func onComputeClock(measure string) bool {
	return measure == "compute_ns" || measure == "compute_ns_max" || measure == Simulated
}

// compareKeys orders keys for display: the whole before its parts, sizes by size.
func compareKeys(a, b string) int {
	am, ai, _ := strings.Cut(a, "/")
	bm, bi, _ := strings.Cut(b, "/")
	place := func(m string) int {
		if i := slices.IndexFunc(measures, func(k measure) bool { return k.name == m }); i >= 0 {
			return i
		}
		return len(measures)
	}
	return cmp.Or(cmp.Compare(place(am), place(bm)), cmp.Compare(am, bm), cmp.Compare(size(ai), size(bi)),
		cmp.Compare(ai, bi))
}

// size returns the bytes in the name of a size class (<= 4 Ki, > 64 Mi); 0 for other items.
func size(item string) int64 {
	words := strings.Fields(item)
	if len(words) < 2 || words[0] != "<=" && words[0] != ">" {
		return 0
	}
	n, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return 0
	}
	switch words[len(words)-1] {
	case "Ki":
		n <<= 10
	case "Mi":
		n <<= 20
	}
	if words[0] == ">" {
		n++
	}
	return n
}

// keysOf returns the keys of all samples, in order.
func keysOf(sets ...[]Sample) []string {
	seen := map[string]bool{}
	var keys []string
	for _, set := range sets {
		for i := range set {
			for k := range set[i].Values {
				if key := set[i].Values[k].Key(); !seen[key] {
					seen[key] = true
					keys = append(keys, key)
				}
			}
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// CheckSet rejects an empty set of runs and one with different numbers of ranks. side names the set in the error.
func CheckSet(side string, set []Sample) error {
	if len(set) == 0 {
		return fmt.Errorf("%s: no run", side)
	}
	for i := range set {
		if set[i].Ranks != set[0].Ranks {
			return fmt.Errorf("%s: run %s has %d ranks and run %s %d; compare runs of one number of ranks at a time",
				side, set[0].Run, set[0].Ranks, set[i].Run, set[i].Ranks)
		}
	}
	return nil
}
