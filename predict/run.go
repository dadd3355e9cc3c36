// Package predict says how a program communicates at process counts that it was not run at, after Panadero, Wong, Rexachs and Luque,
// "Predicting the communication pattern evolution for scalability analysis" (PAS2P). The first step is the signature of a run: a small
// thing that has what the run did, call by call, without its rows. docs/method/prediction.md has the method.
package predict

import "github.com/commq/commq/schema"

// Run is a run as prediction sees it.
type Run struct {
	// Name is what messages call it.
	Name string
	// Manifest is what the run says of itself.
	Manifest *schema.Manifest
	// Comms, Callsites and Datatypes are the rows of these tables, in their order.
	Comms     []schema.Comm
	Callsites []schema.Callsite
	Datatypes []schema.Datatype
	// Events gives the rows of events to add, in batches that add does not keep, each rank's in the order of seq. It is called several
	// times, and gives the same every time. It returns what add returns.
	Events func(add func(*schema.Events) error) error
	// Parts gives the rows of parts likewise, once; nil: what collectives with a count per peer send to each is not known.
	Parts func(add func(*schema.Parts) error) error
}

// Columns are the columns of events that Sign needs.
var Columns = []string{"rank", "seq", "thread", "call", "class", "compute_ns", "comm", "instance",
	"send_peer", "send_world", "send_tag", "send_count", "send_datatype", "send_bytes",
	"recv_peer", "recv_world", "recv_tag", "recv_count", "recv_datatype", "recv_bytes",
	"root_world", "reduce_op", "posted_any", "proc_null", "request", "done_seq", "init_seq", "error_class", "label", "callsite",
	"instructions", "cycles", "start_ns", "end_ns"}
