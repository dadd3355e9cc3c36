package replay

import (
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// Source is a run that is to be played.
type Source struct {
	// Ranks, Comms and Datatypes are the rows of these tables, in their order.
	Ranks     []schema.RankInfo
	Comms     []schema.Comm
	Datatypes []schema.Datatype
	// Parts are the rows of the table parts.
	Parts []schema.Part
	// Events passes the rows of events to add, in batches that add does not keep, each rank's in the order of seq. It
	// is called several times, and must pass the same rows every time. It returns the error of add.
	Events func(add func(*schema.Events) error) error
	// Messages passes the rows of messages likewise. Only windows need it; without them it may be nil.
	Messages func(add func(*schema.Messages) error) error
}

// Columns are the columns of events that a schedule is made of.
var Columns = []string{"rank", "seq", "thread", "call", "class", "start_ns", "end_ns", "compute_ns", "comm", "instance",
	"send_peer", "send_world", "send_tag", "send_count", "send_datatype", "send_bytes",
	"recv_peer", "recv_world", "recv_tag", "recv_count", "recv_datatype", "recv_bytes",
	"root_world", "reduce_op", "posted_any", "proc_null", "request", "done_seq", "init_seq", "error_class", "label"}

// Classes of calls that cannot be played, by the names that Options.Skip takes.
const (
	SkipRMA   = "rma"
	SkipIO    = "io"
	SkipSpawn = "spawn"
)

// Options select what to play. The zero value plays everything.
type Options struct {
	// Skip are the classes of calls to leave out, of SkipRMA, SkipIO and SkipSpawn. A run with calls of one of these
	// classes is refused unless the class is named here.
	Skip []string
	// Windows are the parts to play, in this order, instead of the whole run; nil: the whole run. See Window.
	Windows []Window
	// Repeat is how often each window is played.
	Repeat int
}

// Schedule lists the operations of each rank of a run, ready to be written for the player.
type Schedule struct {
	// Ranks is the number of processes.
	Ranks int
	// Notes name what is played differently from the run, or not at all, a sentence each.
	Notes []string

	types  []typeWords
	names  []byte
	comms  int
	ranks  []rankSchedule
	init   int64 // thread level; 0: MPI_Init
	phases int
	repeat int
}

// rankSchedule lists the operations of one rank, and the memory and handles they need.
type rankSchedule struct {
	words              []int64
	sendArea, recvArea int64 // bytes
	requests, messages int64
	bsend              int64 // bytes of the buffer for buffered sends
	self               int64 // index of MPI_COMM_SELF; -1: not used
}

// New makes the schedule of a run. An error names the rank and the row that cannot be played, and why. New does not
// check for deadlock: models/simulate does.
func New(src *Source, o *Options) (*Schedule, error) {
	level, err := checkRanks(src.Ranks)
	if err != nil {
		return nil, err
	}
	if err := checkWindows(o, len(src.Ranks)); err != nil {
		return nil, err
	}
	comms, err := readComms(src)
	if err != nil {
		return nil, err
	}
	types := readTypes(src.Datatypes)
	notes := notes{}
	f := &filter{skip: o.Skip, ranks: len(src.Ranks), comms: comms}
	found, err := survey(src, f, comms, notes)
	if err != nil {
		return nil, err
	}
	assignComms(comms, found.ranks)
	windows, err := planWindows(src, o, comms, found.ranks, notes)
	if err != nil {
		return nil, err
	}
	s := &scheduler{comms: comms, types: types, found: found, windows: windows, notes: notes,
		skipping: len(o.Skip) > 0}
	ranks, err := s.schedule(src, f)
	if err != nil {
		return nil, err
	}
	out := &Schedule{Ranks: len(src.Ranks), types: types.words, names: types.names, init: int64(level),
		phases: len(o.Windows), repeat: o.Repeat, Notes: notes.sentences()}
	spares := 0
	for _, r := range ranks {
		out.ranks = append(out.ranks, r.out)
		spares = max(spares, r.spares)
	}
	out.comms = len(comms.list) + spares
	return out, nil
}

// checkRanks returns the highest thread level of the ranks, and an error when one of them cannot be played.
func checkRanks(ranks []schema.RankInfo) (level int32, err error) {
	for i := range ranks {
		r := &ranks[i]
		switch {
		case r.Threads > 1:
			return 0, fmt.Errorf("rank %d has %d threads that call MPI; the order of their calls is not known, so "+
				"they cannot be played", r.Rank, r.Threads)
		case r.Dropped > 0:
			return 0, fmt.Errorf("rank %d misses %d calls that could not be recorded; capture the run again with "+
				"more space for the spool", r.Rank, r.Dropped)
		}
		if r.ThreadLevel != schema.NullInt32 {
			level = max(level, r.ThreadLevel)
		}
	}
	return level, nil
}

// notes counts, by sentence, the calls that are not played as they were.
type notes map[string]int64

func (n notes) count(sentence string) { n[sentence]++ }

// sentences lists the notes with their counts, sorted.
func (n notes) sentences() (list []string) {
	for what, count := range n {
		list = append(list, fmt.Sprintf("%s: %d", what, count))
	}
	slices.Sort(list)
	return list
}

// rowKey names a row of events.
type rowKey struct {
	rank int32
	seq  int64
}

// instanceKey names a collective operation.
type instanceKey struct {
	comm     int32
	instance int64
}

// nameRow names a row in errors.
func nameRow(e *schema.Event) string {
	return fmt.Sprintf("rank %d, seq %d, %s", e.Rank, e.Seq, schema.CallID(e.Call))
}
