package signature

import "github.com/commq/commq/schema"

// Run is a run as prediction reads it.
type Run struct {
	// Name is used in messages.
	Name string
	// Manifest is the run's manifest.
	Manifest *schema.Manifest
	// Comms, Callsites and Datatypes are the rows of these tables, in their order.
	Comms     []schema.Comm
	Callsites []schema.Callsite
	Datatypes []schema.Datatype
	// Events passes the rows of events to add, in batches that add must not keep, each rank's rows ordered by seq. It
	// is called several times and must give the same rows every time. It returns add's error.
	Events func(add func(*schema.Events) error) error
	// Parts passes the rows of parts in the same way, and is called once. It is nil if the run does not have what
	// collectives with a count per peer send to each peer.
	Parts func(add func(*schema.Parts) error) error
}

// Columns are the columns of events that signing a run needs.
var Columns = []string{"rank", "seq", "thread", "call", "class", "compute_ns", "comm", "instance",
	"send_peer", "send_world", "send_tag", "send_count", "send_datatype", "send_bytes",
	"recv_peer", "recv_world", "recv_tag", "recv_count", "recv_datatype", "recv_bytes",
	"root_world", "reduce_op", "posted_any", "proc_null", "request", "done_seq", "init_seq", "error_class", "label",
	"callsite",
	"instructions", "cycles", "start_ns", "end_ns"}
