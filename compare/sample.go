// Package compare says what differs between measures of runs, and whether it may: differences of two sets of runs, baselines to keep
// beside a program's source, and rules that a run passes or breaks. It knows neither runs nor files: measures come to it as values.
//
// Measures are of two kinds. Exact ones (messages, bytes, calls) depend on the program alone and are compared digit by digit. Times
// differ from run to run and are compared by a test of statistics, as benchstat does, with golang.org/x/perf/benchmath.
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
	// Measure is its name, as the query measures has it.
	Measure string
	// Item is the part: a call, a size, a place. Empty for the whole run.
	Item string
	// Value is the value in Unit: 1 (how many), bytes, ns, or - for a fingerprint, of which only equality means something.
	Value int64
	Unit  string
	// Exact says that the value depends on the program alone.
	Exact bool
	// File and Line are where in the source it is; empty and 0 where it is at no place.
	File string
	Line int32
}

// Key names a measure and its part: calls/MPI_Send.
func (v *Value) Key() string {
	if v.Item == "" {
		return v.Measure
	}
	return v.Measure + "/" + v.Item
}

// Fingerprint is the unit of values of which only equality means something.
const Fingerprint = "-"

// Sample is what was measured of one run.
type Sample struct {
	// Run is the run's name.
	Run string
	// Ranks is how many it has.
	Ranks int32
	// Values are its measures; none of them twice.
	Values []Value
}

// Find is the value of a key. A part that has no value, of a whole that has one, is 0.
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

// order is the order in which measures are shown; those that are not in it come last.
var order = []string{"ranks", "messages", "message_bytes", "pairs", "partners_max", "rank_messages_max", "rank_bytes_max", "payloads", "unmatched_sends",
	"unmatched_receives", "calls", "collective_calls", "collective_bytes", "sites", "site_calls", "site_bytes", "end_ns", "compute_ns", "compute_ns_max",
	"mpi_ns", "point_to_point_ns", "wait_ns", "collective_ns", Simulated}

// Simulated is the measure of the time that a run takes on a machine that is simulated.
const Simulated = "simulated_ns"

// compareKeys sorts keys as they are shown: the whole before its parts, sizes by their size.
func compareKeys(a, b string) int {
	am, ai, _ := strings.Cut(a, "/")
	bm, bi, _ := strings.Cut(b, "/")
	place := func(m string) int {
		if i := slices.Index(order, m); i >= 0 {
			return i
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(place(am), place(bm)), cmp.Compare(am, bm), cmp.Compare(size(ai), size(bi)), cmp.Compare(ai, bi))
}

// size is the number of bytes in the name of a class of sizes (<= 4 Ki, > 64 Mi); 0 for other items.
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

// keysOf are the keys of all samples, in order.
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

// CheckSet says what is wrong with a set of runs that are to be one: none, or of different numbers of ranks. side names it.
func CheckSet(side string, set []Sample) error {
	if len(set) == 0 {
		return fmt.Errorf("%s: no run", side)
	}
	for i := range set {
		if set[i].Ranks != set[0].Ranks {
			return fmt.Errorf("%s: run %s has %d ranks and run %s %d; compare runs of one number of ranks at a time", side, set[0].Run, set[0].Ranks, set[i].Run, set[i].Ranks)
		}
	}
	return nil
}
