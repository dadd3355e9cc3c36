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
}

// Find returns the value of a key. A part without a value counts as 0 if the run has the whole.
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
	return v, known
}

// order is the order in which measures are shown; all others come last.
var order = []string{"ranks", "messages", "message_bytes", "pairs", "partners_max", "rank_messages_max",
	"rank_bytes_max", "payloads", "unmatched_sends",
	"unmatched_receives", "calls", "collective_calls", "collective_bytes", "sites", "site_calls", "site_bytes",
	"end_ns", "runtime_ns", "compute_ns", "compute_ns_max",
	"mpi_ns", "point_to_point_ns", "wait_ns", "collective_ns", Simulated}

// Simulated is the measure of a run's time on a simulated machine.
const Simulated = "simulated_ns"

// compareKeys orders keys for display: the whole before its parts, sizes by size.
func compareKeys(a, b string) int {
	am, ai, _ := strings.Cut(a, "/")
	bm, bi, _ := strings.Cut(b, "/")
	place := func(m string) int {
		if i := slices.Index(order, m); i >= 0 {
			return i
		}
		return len(order)
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
