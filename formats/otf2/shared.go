package otf2

import (
	"fmt"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// shared holds operations that one thread of a rank begins and another may complete. Calls use it only when they are
// taken, in the order of their starts: readers are ahead of that.
type shared struct {
	threads int32
	// begun are one-sided accesses and I/O operations that no call completed yet; false for those of blocking calls.
	begun map[threadKey]bool
	// probes are messages that a probe matched, by their number; imrecvs the same by the request that receives them.
	probes, imrecvs map[threadKey]matched
}

func newShared(threads int) *shared {
	return &shared{threads: int32(threads), begun: map[threadKey]bool{}, probes: map[threadKey]matched{},
		imrecvs: map[threadKey]matched{}}
}

// threadKey is a number that a trace gives out by thread.
type threadKey struct {
	thread int32
	number uint64
}

// takeOf removes and returns what a thread began under a number, else what another one did.
func takeOf[V any](s *shared, all map[threadKey]V, thread int32, number uint64, fits func(V) bool) (v V, ok bool) {
	key := threadKey{thread, number}
	v, ok = all[key]
	for t := int32(0); !ok && t < s.threads; t++ {
		key.thread = t
		v, ok = all[key]
		ok = ok && fits(v)
	}
	if ok {
		delete(all, key)
	}
	return v, ok
}

// matched is the origin of a message that a probe found and matched.
type matched struct{ comm, peer, world, tag int32 }

// take returns what a probe found or a request receives; all null if the trace does not have it.
func (s *shared) take(all map[threadKey]matched, thread int32, number uint64) matched {
	m, ok := takeOf(s, all, thread, number, func(matched) bool { return true })
	if !ok {
		return matched{null32, null32, null32, null32}
	}
	return m
}

// put fills in all of the message but its bytes.
func (m matched) put(got *timed.Outcome) {
	got.Comm, got.RecvPeer, got.RecvWorld, got.RecvTag = m.comm, m.peer, m.world, m.tag
}

// sized fills in the bytes of a message whose probe has the rest.
func sized(got *timed.Outcome, bytes uint64) error {
	if fault(bytes) {
		return fmt.Errorf("a message of %d bytes", bytes)
	}
	got.RecvBytes = int64(bytes)
	return nil
}

// later has something done to the current call when it is taken.
func (r *reader) later(do func(c *timed.Call)) {
	r.late = append(r.late, do)
	r.current.Settle = r.settle
}

// settle does what was put off until the call is taken.
func (r *reader) settle(c *timed.Call) {
	for _, do := range r.late {
		do(c)
	}
	r.late = r.late[:0]
	c.Poll = c.Poll && len(c.Ends) == 0
	if schema.Class(c.Row.Class) == schema.ClassRecv {
		c.Row.ProcNull = noPeer(c, schema.CallID(c.Row.Call))
	}
}

// begins notes that a call begins an access or an operation. Another call completes it if it is a nonblocking one.
func (r *reader) begins(request uint64) {
	s, thread := r.shared, r.thread
	nonblocking := schema.CallID(r.current.Row.Call).Is(schema.FactMakesRequest)
	if nonblocking {
		r.current.Posts = append(r.current.Posts, request)
	}
	if nonblocking || s.threads > 1 {
		r.later(func(*timed.Call) { s.begun[threadKey{thread, request}] = nonblocking })
	}
}

// completes notes that the call completes what a nonblocking one began. If it does not, otherwise is done, unless nil.
func (r *reader) completes(request uint64, otherwise func(c *timed.Call)) {
	s, thread := r.shared, r.thread
	r.later(func(c *timed.Call) {
		nonblocking, ok := takeOf(s, s.begun, thread, request, func(nonblocking bool) bool { return nonblocking })
		switch {
		case ok && nonblocking:
			c.Ends = append(c.Ends, timed.Ending{Request: request})
		case otherwise != nil:
			otherwise(c)
		}
	})
}
