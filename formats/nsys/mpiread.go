package nsys

import (
	"bufio"
	"fmt"
	"io"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// mpiReader hands over the calls of a rank.
type mpiReader struct {
	in     io.Reader
	comms  *mpiComms
	me     int32
	path   string
	later  int64 // added to times
	rank   *calls.Rank
	args   calls.Args
	head   mpiCall // the next one, if there is one
	has    bool
	read   int64
	serial uint64
	counts mpiTally
}

// The handles of communicators in calls.Args: those of communicators of all ranks follow in their order.
const worldHandle, selfHandle, firstHandle = 0, 1, 2

// untold is added to the numbers of requests that nothing completes, which are greater than those of package calls.
const untold = 1 << 40

func (j *mpiJob) reader(rank int32, comms *mpiComms, later int64) (*mpiReader, error) {
	r := &mpiReader{in: bufio.NewReaderSize(j.kept.Reader(rank), 1<<16), comms: comms, me: rank,
		path: j.ranks[rank].export.path, later: later,
		rank: calls.NewRank(rank, comms.comms, comms.made, worldHandle, selfHandle)}
	for i := range comms.made { // as if the rank had made them by MPI_Comm_dup
		a, c := calls.Args{}, timed.Call{}
		a.Reset()
		a.Call, a.Comm, a.NewComm = schema.CallCommDup, calls.Named(worldHandle), calls.Named(firstHandle+int64(i))
		if _, err := r.rank.Fill(&a, &c); err != nil {
			return nil, err
		}
	}
	return r, r.advance()
}

// advance reads the next kept call.
func (r *mpiReader) advance() (err error) {
	r.has, err = r.head.next(r.in)
	return err
}

// Next reads the next call; false after the last.
func (r *mpiReader) Next(c *timed.Call) (bool, error) {
	if !r.has {
		return false, nil
	}
	x := r.head
	r.read += mpiCallBytes
	if err := r.advance(); err != nil {
		return false, err
	}
	requests := []uint64{uint64(x[mpiRequest])}
	if x[mpiRequest] == null64 {
		requests = nil
	}
	for call := schema.CallID(x[mpiName]); r.has && x.isSame(&r.head) &&
		schema.Calls[call].Class == schema.ClassComplete; {
		requests = append(requests, uint64(r.head[mpiRequest])) // a row for each request of MPI_Waitall
		r.read += mpiCallBytes
		if err := r.advance(); err != nil {
			return false, err
		}
	}
	if err := r.fill(&x, requests, c); err != nil {
		return false, fmt.Errorf("%s: rank %d, %s at %d ns: %w", r.path, r.me, schema.CallID(x[mpiName]), x[mpiStart],
			err)
	}
	return true, nil
}

// isSame reports whether two kept calls are rows of one call.
func (c *mpiCall) isSame(o *mpiCall) bool {
	return c[mpiStart] == o[mpiStart] && c[mpiEnd] == o[mpiEnd] && c[mpiThread] == o[mpiThread] &&
		c[mpiName] == o[mpiName] &&
		c[mpiRequest] != null64 && o[mpiRequest] != null64
}

// fill makes a call of a kept one.
func (r *mpiReader) fill(x *mpiCall, requests []uint64, c *timed.Call) error {
	a := &r.args
	a.Reset()
	a.Call, a.Thread = schema.CallID(x[mpiName]), int32(x[mpiThread])
	a.StartNs, a.EndNs = x[mpiStart]+r.later, x[mpiEnd]
	if a.EndNs != null64 {
		a.EndNs += r.later
	}
	filled := false
	switch schema.Calls[a.Call].Class {
	case schema.ClassSend, schema.ClassRecv, schema.ClassProbe:
		filled = r.message(x, a)
	case schema.ClassCollective:
		filled = r.collective(x, a)
	case schema.ClassComplete:
		r.complete(a, requests)
		filled = true
	case schema.ClassSendrecv:
		r.counts.exchanges++ // rows have one partner, and do not tell whether it is that of the send
	case schema.ClassOther:
		filled = a.Call.Is(schema.FactPersistent|schema.FactPointToPoint) && r.message(x, a)
	}
	if filled {
		if _, err := r.rank.Fill(a, c); err != nil {
			return err
		}
	} else {
		c.Reset()
		c.Row.Rank, c.Row.Thread, c.Row.Call, c.Row.Class = r.me, a.Thread, int16(a.Call),
			int16(schema.Calls[a.Call].Class)
		c.Row.StartNs, c.Row.EndNs = a.StartNs, a.EndNs
	}
	if a.Call.Is(schema.FactMakesRequest) && !a.Call.Is(schema.FactPersistent) && len(c.Posts) == 0 {
		r.serial++ // nothing that the export tells completes it
		c.Posts = append(c.Posts, untold+r.serial)
		c.Ends = append(c.Ends, timed.Ending{Request: untold + r.serial, Lost: true})
	}
	return nil
}

// handleOf returns the handle of a call's communicator; false if its members are not known.
func (r *mpiReader) handleOf(x *mpiCall) (calls.Handle, bool) {
	switch c := r.comms.commOf(x, r.me); {
	case c == nil:
		r.counts.foreign++
		return calls.Handle{}, false
	case c == r.comms.comms.World():
		return calls.Named(worldHandle), true
	case c.Kind == schema.CommSelf:
		return calls.Named(selfHandle), true
	default:
		for i, made := range r.comms.made {
			if made == c {
				return calls.Named(firstHandle + int64(i)), true
			}
		}
	}
	return calls.Handle{}, false
}

// message fills in the arguments of a send, a receive or a probe; false if the export does not tell them.
func (r *mpiReader) message(x *mpiCall, a *calls.Args) (ok bool) {
	if x[mpiRemote] == null64 || a.Call.Is(schema.FactMatched) || a.Call.Is(schema.FactSends) &&
		size(x[mpiSize]) == null64 {
		r.counts.silent++
		return false
	}
	if a.Comm, ok = r.handleOf(x); !ok {
		return false
	}
	a.Send, a.Recv = size(x[mpiSize]), size(x[mpiSize])
	a.Dest, a.Source = r.peer(x[mpiRemote], false), r.peer(x[mpiRemote], true)
	a.SendTag, a.RecvTag = int64(int32(x[mpiTag])), int64(int32(x[mpiTag]))
	if x[mpiTag] < 0 { // MPI_ANY_TAG, also where it is not told
		a.SendTag, a.RecvTag = int64(null32), calls.AnyTag
		if a.Call.Is(schema.FactSends) {
			r.counts.tagless++
		}
	}
	a.Failed = a.Call.Is(schema.FactTests)
	if x[mpiRequest] != null64 {
		a.Request = uint64(x[mpiRequest])
	}
	return true
}

// peer returns a rank. Of negative ones, Open MPI has -1 for MPI_ANY_SOURCE and -2 for MPI_PROC_NULL, MPICH the
// reverse.
func (r *mpiReader) peer(rank int64, source bool) int64 {
	if isAny := (rank == -1) != r.comms.mpich; rank < 0 && isAny && source {
		return calls.AnySource
	}
	if rank < 0 {
		return calls.ProcNull
	}
	return rank
}

// size returns a size of the export, null64 if it is none.
func size(bytes int64) int64 {
	if bytes < 0 || bytes > mostBytes {
		return null64
	}
	return bytes
}

// collective fills in the arguments of a collective; false if the export does not tell the communicator. Of operations
// in which an argument is for one rank and another for all, the documentation does not tell whether a size is for one
// or for all; those that are for the caller alone are.
func (r *mpiReader) collective(x *mpiCall, a *calls.Args) (ok bool) {
	if a.Comm, ok = r.handleOf(x); !ok {
		return false
	}
	sent, got := size(x[mpiSize]), size(x[mpiRecvSize])
	switch a.Call.Operation() {
	case schema.CallBcast, schema.CallReduce, schema.CallAllreduce, schema.CallScan, schema.CallExscan:
		a.Send = sent
	case schema.CallGather, schema.CallGatherv, schema.CallAllgatherv:
		a.Send = sent
	case schema.CallAllgather:
		a.Send, a.Recv = sent, sent
	case schema.CallScatter, schema.CallScatterv:
		a.Recv = got
	}
	if !a.Call.Is(schema.FactRooted) {
		return true
	}
	if x[mpiRoot] < 0 || x[mpiRoot] >= int64(len(r.comms.comms.World().Groups[0])) {
		r.counts.silent++
		return false
	}
	a.Root = x[mpiRoot]
	return true
}

// complete fills in the requests of a call that completes or starts them.
func (r *mpiReader) complete(a *calls.Args, requests []uint64) {
	a.Failed = a.Call.Is(schema.FactTests)
	switch {
	case a.Call.Is(schema.FactStarts):
		a.Requests = requests
		if len(requests) > 0 {
			a.Request = requests[0]
		}
	case a.Call == schema.CallWait || a.Call == schema.CallWaitall || len(requests) == 1 && !a.Failed:
		for _, q := range requests {
			a.Ends = append(a.Ends, calls.End{Request: q})
		}
	default:
		r.counts.vague++
	}
}

// Site returns the call site: there are none.
func (r *mpiReader) Site(id int32) int32 { return id }

// Read returns the bytes that were read.
func (r *mpiReader) Read() int64 { return r.read }

// Close does nothing: all ranks read one file.
func (r *mpiReader) Close() {}
