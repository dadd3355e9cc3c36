package paraver

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// typeValue is a type of events with a value.
type typeValue struct{ typ, value int64 }

// tally counts what a scan reads and skips.
type tally struct {
	states, eventRecords, messages, calls int64

	types    map[int64]int64     // events of types that are not read
	numbers  map[typeValue]int64 // calls whose number is not known
	mute     map[schema.CallID]int64
	kinds    map[string]int64 // records of unknown kinds
	kindAt   map[string]int64 // the first line of each
	unpaired int64            // ends of calls that did not begin
	nested   int64            // calls that began inside of another
	noComm   int64            // collectives on a communicator that the rank does not have
	wrapped  int64            // sizes that were written as negative numbers
	// bytesUnsaid are collectives with bytes that do not add up.
	bytesUnsaid int64
}

func newTally() tally {
	return tally{types: map[int64]int64{}, numbers: map[typeValue]int64{}, mute: map[schema.CallID]int64{},
		kinds: map[string]int64{}, kindAt: map[string]int64{}}
}

// add adds the counts of a rank.
func (n *joined) add(o *joined) {
	n.outsideSends += o.outsideSends
	n.outsideReceives += o.outsideReceives
	n.silentSends += o.silentSends
	n.silentReceives += o.silentReceives
	n.noComm += o.noComm
}

func (j *job) manifest(origin schema.Origin) *schema.Manifest {
	origin.Trace = &schema.Trace{Format: "prv", File: filepath.Base(j.scan.in.path)}
	m := j.Manifest(origin, j.warnings())
	m.TimeResolutionNs = j.scan.scale
	m.Stack = j.scan.sites.depth
	m.Callsites = m.Stack > 0
	return m
}

// warnings tell what the format lacks, and what was skipped.
func (j *job) warnings() []string {
	s := j.scan
	t := &s.tally
	w := []string{"Paraver has no payload hashes, datatypes, buffers and reduction operations, and does not tell " +
		"whether a receive was posted with a wildcard, nor what completed sends and nonblocking collectives; these " +
		"columns are null. It does not tell the communicators of messages either: all count as MPI_COMM_WORLD's."}
	if len(s.lacks) > 0 {
		w = append(w, fmt.Sprintf("There is no %s beside the trace: names from it are missing.",
			strings.Join(s.lacks, " and no ")))
	}
	w = append(w, fmt.Sprintf("Read: %d states, %d event records with %d calls of MPI, %d communications.", t.states,
		t.eventRecords, t.calls, t.messages))
	w = append(w, j.skipped()...)
	say := func(n int64, format string) {
		if n > 0 {
			w = append(w, fmt.Sprintf(format, n))
		}
	}
	var n joined
	for _, r := range j.second {
		n.add(&r.counts)
	}
	if len(s.first) > 1 {
		w = append(w, fmt.Sprintf("The trace has %d applications: their tasks are ranks of one run, one after the other.",
			len(s.first)))
	}
	say(t.unpaired, "Ends of calls that did not begin: %d.")
	say(t.nested, "Calls that began before the one before ended, which counts as never returned: %d.")
	say(n.silentSends, "Sends without a communication (to MPI_PROC_NULL, or never received in the trace): %d.")
	say(n.silentReceives, "Receives without a communication (from MPI_PROC_NULL, cancelled, or never sent in the "+
		"trace): %d.")
	say(n.outsideSends, "Communications that no call of MPI sent: %d.")
	say(n.outsideReceives, "Communications that no call of MPI received: %d.")
	say(n.noComm, "Collectives without a communicator, which have no instance: %d.")
	say(t.noComm, "Of them on communicators that the trace does not define for their ranks: %d.")
	say(s.foreign, "Communicators with tasks that their application does not have, skipped: %d.")
	say(int64(len(s.halves)), "Groups of intercommunicators whose other group the trace does not define, skipped: %d.")
	say(t.bytesUnsaid, "Neighbourhood collectives and collectives on intercommunicators, whose bytes the trace does not "+
		"tell as they were: %d.")
	say(t.wrapped, "Sizes of 2 to 4 GiB that are negative numbers in the trace, read as such: %d.")
	return w
}

// mostListed is the number of types of events that are listed by name.
const mostListed = 20

// skipped lists calls without a row, and what was not read.
func (j *job) skipped() (w []string) {
	s := j.scan
	t := &s.tally
	var words []string
	for _, id := range slices.Sorted(maps.Keys(t.mute)) {
		words = append(words, fmt.Sprintf("%d %s", t.mute[id], id))
	}
	if len(words) > 0 {
		w = append(w, "Calls without a row: "+strings.Join(words, ", ")+".")
	}
	if of := listed(t.numbers, func(x typeValue) string { return fmt.Sprintf("%d:%d", x.typ, x.value) }); of != "" {
		w = append(w, "Calls of MPI whose number (type:value) is not known, skipped: "+of+".")
	}
	if of := listed(t.types, s.typeName); of != "" {
		w = append(w, "Events of other types, skipped: "+of+".")
	}
	if of := listed(t.kinds, func(kind string) string {
		return fmt.Sprintf("%q (the first at line %d)", kind+":", t.kindAt[kind])
	}); of != "" {
		w = append(w, "Records of unknown kinds, skipped: "+of+".")
	}
	return w
}

// listed lists counts with their names, the largest first.
func listed[K comparable](counts map[K]int64, name func(K) string) string {
	type one struct {
		name  string
		count int64
	}
	var all []one
	for k, n := range counts {
		all = append(all, one{name(k), n})
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name)) })
	var words []string
	for i, x := range all {
		if i == mostListed {
			return fmt.Sprintf("%s, and %d other types", strings.Join(words, ", "), len(all)-i)
		}
		words = append(words, fmt.Sprintf("%d %s", x.count, x.name))
	}
	return strings.Join(words, ", ")
}
