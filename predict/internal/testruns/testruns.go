// Package testruns makes small runs for tests of prediction: each rank's calls are given by a script or a function.
package testruns

import (
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// Scripts makes a run whose ranks send 4097 bytes to the next rank at call sites: one letter each.
func Scripts(scripts ...string) *signature.Run {
	run := empty(len(scripts))
	run.Events = func(add func(*schema.Events) error) error {
		b := &schema.Events{}
		for r, script := range scripts {
			for seq, c := range script {
				to := (r + 1) % len(scripts)
				e := call(r, seq, c)
				e.Call, e.Class = int16(schema.CallSend), int16(schema.ClassSend)
				setSend(&e, to, 9, 4097)
				b.Append(&e)
			}
		}
		return add(b)
	}
	return run
}

// empty makes a run without calls that has MPI_COMM_WORLD and a call site for each letter.
func empty(ranks int) *signature.Run {
	run := &signature.Run{Name: "test", Manifest: &schema.Manifest{Ranks: int32(ranks), Record: "all"}}
	for r := range ranks {
		run.Comms = append(run.Comms, schema.Comm{CommRank: int32(r), WorldRank: int32(r), Name: schema.NullText,
			Parent:   schema.NullInt32,
			CartDims: schema.NullText, CartPeriods: schema.NullText, GraphEdges: schema.NullText})
	}
	for c := 'a'; c <= 'z'; c++ {
		addFrame(run, c, schema.NullInt32, string(c))
	}
	return run
}

func addFrame(run *signature.Run, id, parent int32, function string) {
	f := schema.NullCallsite
	f.ID, f.Parent, f.Function = id, parent, function
	run.Callsites = append(run.Callsites, f)
}

func call(rank, seq int, callsite int32) schema.Event {
	e := schema.NullEvent
	e.Rank, e.Seq, e.Callsite, e.Comm = int32(rank), int64(seq), callsite, 0
	return e
}

func setSend(e *schema.Event, to, tag, bytes int) {
	e.SendPeer, e.SendWorld, e.SendTag = int32(to), int32(to), int32(tag)
	e.SendCount, e.SendDatatype, e.SendBytes = int64(bytes), 5, int64(bytes)
}

// Sends makes a run whose ranks send to others: destination tells to whom rank r sends at each of steps call sites, and
// how many bytes; a negative rank means that it does not.
func Sends(ranks, steps int, destination func(r, step int) (to, bytes int)) *signature.Run {
	return Messages(ranks, func(r int) (all []Message) {
		for i := range steps {
			if to, bytes := destination(r, i); to >= 0 {
				all = append(all, Message{i, to, 9, bytes})
			}
		}
		return all
	})
}

// Message is a message that a rank sends at a call site, numbered from 0.
type Message struct{ Site, To, Tag, Bytes int }

// Step is a message that a rank sends, or receives: then To is the rank that sent it.
type Step struct {
	Message
	Receives bool
}

// Messages makes a run whose ranks send these messages.
func Messages(ranks int, messages func(rank int) []Message) *signature.Run {
	return Steps(ranks, func(rank int) (all []Step) {
		for _, m := range messages(rank) {
			all = append(all, Step{Message: m})
		}
		return all
	})
}

// Steps makes a run whose ranks send and receive these messages.
func Steps(ranks int, steps func(rank int) []Step) *signature.Run {
	run := empty(ranks)
	run.Events = func(add func(*schema.Events) error) error {
		b := &schema.Events{}
		for r := range ranks {
			for seq, s := range steps(r) {
				e := call(r, seq, 'a'+int32(s.Site))
				if s.Receives {
					e.Call, e.Class = int16(schema.CallRecv), int16(schema.ClassRecv)
					e.RecvPeer, e.RecvWorld, e.RecvTag = int32(s.To), int32(s.To), int32(s.Tag)
					e.RecvCount, e.RecvDatatype, e.RecvBytes = int64(s.Bytes), 5, int64(s.Bytes)
				} else {
					e.Call, e.Class = int16(schema.CallSend), int16(schema.ClassSend)
					setSend(&e, s.To, s.Tag, s.Bytes)
				}
				b.Append(&e)
			}
		}
		return add(b)
	}
	return run
}

// Exchange makes a run of two ranks that send to and receive from each other in the order of their scripts: s sends, r
// receives, x does both at once.
func Exchange(scripts [2]string) *signature.Run {
	run := empty(2)
	run.Events = func(add func(*schema.Events) error) error {
		b := &schema.Events{}
		for r, script := range scripts {
			for seq, c := range script {
				e := call(r, seq, c)
				switch c {
				case 's':
					e.Call, e.Class = int16(schema.CallSend), int16(schema.ClassSend)
				case 'r':
					e.Call, e.Class = int16(schema.CallRecv), int16(schema.ClassRecv)
				case 'x':
					e.Call, e.Class = int16(schema.CallSendrecv), int16(schema.ClassSendrecv)
				}
				if c != 'r' {
					e.SendPeer, e.SendWorld, e.SendTag = int32(1-r), int32(1-r), 9
				}
				if c != 's' {
					e.RecvPeer, e.RecvWorld, e.RecvTag = int32(1-r), int32(1-r), 9
				}
				b.Append(&e)
			}
		}
		return add(b)
	}
	return run
}

// WithTimes sets the compute times of a run's rows, and counters where cycles are not 0.
func WithTimes(run *signature.Run, clock string,
	times func(e *schema.Event) (ns, instructions, cycles int64)) *signature.Run {
	rows := run.Events
	run.Manifest.ComputeClock = clock
	run.Events = func(add func(*schema.Events) error) error {
		return rows(func(b *schema.Events) error {
			var e schema.Event
			for i := range b.Rank {
				b.Row(i, &e)
				ns, instructions, cycles := times(&e)
				b.ComputeNs[i] = ns
				if cycles > 0 {
					b.Instructions[i], b.Cycles[i] = instructions, cycles
				}
			}
			return add(b)
		})
	}
	return run
}

// WithElements makes the counts of a run's messages those of elements of this many bytes.
func WithElements(run *signature.Run, bytes int64) *signature.Run {
	rows := run.Events
	run.Events = func(add func(*schema.Events) error) error {
		return rows(func(b *schema.Events) error {
			for i := range b.Rank {
				for _, count := range []*int64{&b.SendCount[i], &b.RecvCount[i]} {
					if *count > 0 {
						*count /= bytes
					}
				}
			}
			return add(b)
		})
	}
	return run
}
