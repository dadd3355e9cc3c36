// Package replay makes of a run's rows a schedule that a program of ours plays: the same MPI calls, on the same communicators, with as many
// bytes, after as much computing. docs/method/replay-run.md has the method.
package replay

import (
	"fmt"
	"slices"
	"strings"

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
	// Events gives the rows of events to add, in batches that add does not keep, each rank's in the order of seq. It is called several
	// times, and gives the same every time. It returns what add returns.
	Events func(add func(*schema.Events) error) error
	// Messages gives the rows of messages likewise; it is asked for windows only, and may be nil without.
	Messages func(add func(*schema.Messages) error) error
}

// Columns are the columns of events that a schedule is made of.
var Columns = []string{"rank", "seq", "thread", "call", "class", "start_ns", "end_ns", "compute_ns", "comm", "instance",
	"send_peer", "send_world", "send_tag", "send_count", "send_datatype", "send_bytes",
	"recv_peer", "recv_world", "recv_tag", "recv_count", "recv_datatype", "recv_bytes",
	"root_world", "reduce_op", "posted_any", "proc_null", "request", "done_seq", "init_seq", "error_class", "label"}

// Classes that are not played, by the names that Options.Skip has.
const (
	SkipRMA   = "rma"
	SkipIO    = "io"
	SkipSpawn = "spawn"
)

// Options say what to leave out. The zero value leaves out nothing.
type Options struct {
	// Skip are the classes of calls to leave out, of SkipRMA, SkipIO and SkipSpawn: none of them can be played, and without its name here a run
	// that has some is refused.
	Skip []string
	// Windows are the parts to play, in this order, instead of the whole run; nil: the whole run. See Window.
	Windows []Window
	// Repeat is how often each window is played.
	Repeat int
}

// Schedule is what the ranks of a run do, ready to be written for the player.
type Schedule struct {
	// Ranks is the number of processes.
	Ranks int
	// Notes are what is played otherwise than it was, or not at all, a sentence each.
	Notes []string

	types  []typeWords
	names  []byte
	comms  int
	ranks  []rankSchedule
	init   int64 // thread level; 0: MPI_Init
	phases int
	repeat int
}

// rankSchedule is what a rank does.
type rankSchedule struct {
	words              []int64
	sendArea, recvArea int64
	requests, messages int64
	bsend              int64
	self               int64 // communicator; -1: not used
}

// New makes the schedule of a run. An error names the rank and the row that cannot be played, and why. Whether the ranks would wait for each other
// for ever is not looked at: models/simulate tells that.
func New(src *Source, o *Options) (*Schedule, error) {
	b := &builder{src: src, o: o, out: &Schedule{Ranks: len(src.Ranks)}, notes: map[string]int64{}, early: map[int]bool{}}
	for i := range src.Ranks {
		r := &src.Ranks[i]
		switch {
		case r.Threads > 1:
			return nil, fmt.Errorf("rank %d has %d threads that call MPI; what they do at the same time has no order that could be played", r.Rank, r.Threads)
		case r.Dropped > 0:
			return nil, fmt.Errorf("rank %d misses %d calls that could not be recorded; capture the run again with more space for the spool", r.Rank, r.Dropped)
		}
		if r.ThreadLevel != schema.NullInt32 {
			b.level = max(b.level, r.ThreadLevel)
		}
	}
	if err := b.checkWindows(); err != nil {
		return nil, err
	}
	if err := b.readComms(); err != nil {
		return nil, err
	}
	b.readTypes()
	if err := b.survey(); err != nil {
		return nil, err
	}
	b.assignComms()
	if err := b.prepareWindows(); err != nil {
		return nil, err
	}
	if err := b.build(); err != nil {
		return nil, err
	}
	b.out.comms = len(b.comms) + b.extra
	b.out.phases, b.out.repeat = len(o.Windows), o.Repeat
	for what, n := range b.notes {
		b.out.Notes = append(b.out.Notes, fmt.Sprintf("%s: %d", what, n))
	}
	slices.Sort(b.out.Notes)
	return b.out, nil
}

// builder makes a schedule.
type builder struct {
	src   *Source
	o     *Options
	out   *Schedule
	notes map[string]int64
	level int32

	comms  []*commInfo
	commOf map[int32]int32 // index by id
	extra  int             // communicators beside those of the run
	typeOf map[int32]int64 // index by id
	byName map[string]int64
	parts  map[rowKey][]schema.Part

	ranks     []rankState
	early     map[int]bool // communicators that are made before the first call
	instances map[instanceKey]*instance

	windows    []*windowState
	used       map[int32]bool       // communicators that windows use, or that those are made from
	makers     map[instanceKey]bool // constructors that make one for some rank
	persistent map[rowKey]bool      // rows that make persistent requests which windows start
}

// rowKey is a row.
type rowKey struct {
	rank int32
	seq  int64
}

// instanceKey is a collective operation.
type instanceKey struct {
	comm     int32
	instance int64
}

// instance is what the ranks of a collective send and receive, by world rank.
type instance struct{ send, recv map[int32]int64 }

func (b *builder) skips(class string) bool { return slices.Contains(b.o.Skip, class) }

func (b *builder) note(what string) { b.notes[what]++ }

// at names a row.
func at(e *schema.Event) string {
	return fmt.Sprintf("rank %d, seq %d, %s", e.Rank, e.Seq, schema.CallID(e.Call))
}

// alone are the recorders of calls that have no place in a replay, and why.
var alone = map[string]string{
	"psend_init": "the number of a partitioned request's partitions is not recorded", "precv_init": "the number of a partitioned request's partitions is not recorded",
	"pready": "partitioned communication is not played", "pready_list": "partitioned communication is not played", "pready_range": "partitioned communication is not played",
	"parrived": "partitioned communication is not played", "session_init": "sessions are not played", "session_finalize": "sessions are not played",
	"comm_from_group": "sessions are not played", "abort": "the program aborted there",
}

// playable says whether a row is played; an error says why the run cannot be.
func (b *builder) playable(e *schema.Event) (bool, error) {
	if e.Rank < 0 || int(e.Rank) >= len(b.ranks) {
		return false, fmt.Errorf("%s: the run has %d ranks", at(e), len(b.ranks))
	}
	if e.Call < 0 || int(e.Call) >= len(schema.Calls) {
		return false, fmt.Errorf("rank %d, seq %d: no MPI call has the number %d", e.Rank, e.Seq, e.Call)
	}
	c := &schema.Calls[e.Call]
	skip := func(class, what string) (bool, error) {
		if !b.skips(class) {
			return false, fmt.Errorf("%s: %s cannot be played; leave it out with --skip %s", at(e), what, class)
		}
		b.note(strings.ToUpper(what[:1]) + what[1:] + " left out, calls")
		return false, nil
	}
	switch c.Class {
	case schema.ClassRMA:
		return skip(SkipRMA, "one-sided communication")
	case schema.ClassIO:
		return skip(SkipIO, "I/O")
	case schema.ClassMark:
		if opcodeOf[e.Call] == 0 {
			b.note("Marks left out")
			return false, nil
		}
	}
	switch c.Recorder {
	case "spawn", "comm_connect":
		return skip(SkipSpawn, "communication with other programs")
	}
	if k, ok := b.commOf[e.Comm]; ok && b.comms[k].outside {
		return skip(SkipSpawn, "communication with other programs")
	}
	if why, ok := alone[c.Recorder]; ok {
		return false, fmt.Errorf("%s: %s", at(e), why)
	}
	if _, coll := collectives[schema.CallID(e.Call).Operation()]; opcodeOf[e.Call] == 0 && e.Call != int16(schema.CallCommSplitType) && !(coll && schema.CallID(e.Call).Operation() != 0) && c.Recorder != "collective_init" {
		return false, fmt.Errorf("%s: this call cannot be played", at(e))
	}
	if e.ErrorClass != schema.NullInt32 && !b.failedAndDone(e) {
		b.note("Calls that failed and did nothing, left out")
		return false, nil
	}
	return true, nil
}

// failedAndDone says whether a call that returned an error did what it should all the same: a receive of less than was sent, and what waits for one.
func (b *builder) failedAndDone(e *schema.Event) bool {
	switch schema.Class(e.Class) {
	case schema.ClassComplete:
		return true
	case schema.ClassRecv, schema.ClassSendrecv:
		return e.RecvWorld != schema.NullInt32 && e.RecvTag != schema.NullInt32
	}
	return false
}
