package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// filter decides which rows are played.
type filter struct {
	skip  []string // as Options.Skip
	ranks int
	comms *commTable
}

// unplayable are the recorders of calls that cannot be played, and why.
var unplayable = map[string]string{
	"psend_init":       "the number of a partitioned request's partitions is not recorded",
	"precv_init":       "the number of a partitioned request's partitions is not recorded",
	"session_init":     "sessions are not played",
	"session_finalize": "sessions are not played",
	"comm_from_group":  "sessions are not played",
	"abort":            "the program aborted there",
}

// check reports whether a row is played. If the row is left out, note explains it in a sentence. An error means that
// the run cannot be played.
func (f *filter) check(e *schema.Event) (ok bool, note string, err error) {
	if e.Rank < 0 || int(e.Rank) >= f.ranks {
		return false, "", fmt.Errorf("%s: the run has %d ranks", nameRow(e), f.ranks)
	}
	if e.Call < 0 || int(e.Call) >= len(schema.Calls) {
		return false, "", fmt.Errorf("rank %d, seq %d: no MPI call has the number %d", e.Rank, e.Seq, e.Call)
	}
	c := &schema.Calls[e.Call]
	switch c.Class {
	case schema.ClassRMA:
		return f.leaveOut(e, SkipRMA, "one-sided communication")
	case schema.ClassIO:
		return f.leaveOut(e, SkipIO, "I/O")
	case schema.ClassMark:
		if opcodeOf[e.Call] == 0 {
			return false, "Marks left out", nil
		}
	}
	switch c.Recorder {
	case "spawn", "comm_connect":
		return f.leaveOut(e, SkipSpawn, "communication with other programs")
	}
	if k, ok := f.comms.byID[e.Comm]; ok && f.comms.list[k].outside {
		return f.leaveOut(e, SkipSpawn, "communication with other programs")
	}
	if why, ok := unplayable[c.Recorder]; ok {
		return false, "", fmt.Errorf("%s: %s", nameRow(e), why)
	}
	if c.Facts&schema.FactPartitioned != 0 {
		return false, "", fmt.Errorf("%s: partitioned communication is not played", nameRow(e))
	}
	if !hasOperation(c.ID) {
		return false, "", fmt.Errorf("%s: this call cannot be played", nameRow(e))
	}
	if e.ErrorClass != schema.NullInt32 && !failedButDone(e) {
		return false, "Calls that failed and did nothing, left out", nil
	}
	return true, "", nil
}

// leaveOut returns the result of check for a row of a class that Options.Skip may name.
func (f *filter) leaveOut(e *schema.Event, class, what string) (ok bool, note string, err error) {
	if !slices.Contains(f.skip, class) {
		return false, "", fmt.Errorf("%s: %s cannot be played; leave it out with --skip %s", nameRow(e), what, class)
	}
	return false, strings.ToUpper(what[:1]) + what[1:] + " left out, calls", nil
}

// hasOperation reports whether the player has an operation for a call.
func hasOperation(call schema.CallID) bool {
	return opcodeOf[call] != 0 || call == schema.CallCommSplitType || call.Is(schema.FactCollective)
}

// failedButDone reports whether a call that returned an error did its work all the same: a receive of less than was
// sent, and the completion of one.
func failedButDone(e *schema.Event) bool {
	switch schema.Class(e.Class) {
	case schema.ClassComplete:
		return true
	case schema.ClassRecv, schema.ClassSendrecv:
		return e.RecvWorld != schema.NullInt32 && e.RecvTag != schema.NullInt32
	}
	return false
}
