package ingest

import (
	"fmt"
	"math"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// failure returns the error class that the call returned, and whether it is MPI_ERR_TRUNCATE; 0 means success.
func (g *group) failure() (class int32, truncated bool) {
	for i := 1; i < len(g.slots); i++ {
		if g.slots[i].Kind == spool.KindErr {
			e := g.slots[i].AsErr()
			return e.ErrorClass, e.Flags&spool.TruncateError != 0
		}
	}
	return 0, false
}

// eachDone calls take for every request that a completion call completed.
func (g *group) eachDone(take func(spool.DoneEntry)) {
	c := g.call()
	if c.Req != 0 {
		take(spool.DoneEntry{Req: c.Req, Source: c.Peer, Tag: c.Tag, Flags: uint32(c.Flags), Bytes: c.Count})
	}
	for i := 1; i < len(g.slots); i++ {
		if g.slots[i].Kind == spool.KindDone {
			d := g.slots[i].AsDone()
			for _, e := range d.Done[:d.N] {
				take(e)
			}
		}
	}
}

// wide returns the value of the first WIDE slot for what; ok is false when there is none.
func (g *group) wide(what uint16) (value int64, ok bool) {
	for i := 1; i < len(g.slots); i++ {
		if w := g.slots[i].AsWide(); w.Kind == spool.KindWide && w.What == what {
			return w.Value, true
		}
	}
	return 0, false
}

// message returns the serial number of the matched message that an MPI_Mrecv or MPI_Imrecv received, or 0.
func (g *group) message() uint32 {
	for i := 1; i < len(g.slots); i++ {
		if w := g.slots[i].AsWide(); w.Kind == spool.KindWide && w.What == spool.WideMessage && w.Value > 0 &&
			w.Value <= math.MaxUint32 {
			return uint32(w.Value)
		}
	}
	return 0
}

// receivedBytes returns the number of bytes that a blocking receive got; null when it is not known.
func (g *group) receivedBytes() int64 {
	if c := &g.slots[0]; c.Req != math.MaxUint32 {
		return int64(c.Req)
	}
	if n, ok := g.wide(spool.WideRecvBytes); ok {
		return n
	}
	return schema.NullInt64
}

// receivedHash returns the hash of what the call received: for the request with that serial number or, with 0, for
// the call itself. null means that there is none.
func (g *group) receivedHash(req uint32) int64 {
	for i := 1; i < len(g.slots); i++ {
		h := g.slots[i].AsHashes()
		if h.Kind == spool.KindHash && h.What == spool.HashReceived && h.Req == req && h.Flags&spool.HasHash != 0 {
			return int64(h.Hash)
		}
	}
	return schema.NullInt64
}

// hashes finds receivedHash for a call that may have completed 10^5 requests, each with a hash: many are looked up in a
// map.
type hashes struct {
	group *group
	all   map[uint32]int64 // nil: there are few
}

// receivedHashes returns the hashes of what the call received.
func (g *group) receivedHashes() hashes {
	const few = 8
	h := hashes{group: g}
	if len(g.slots) <= few {
		return h
	}
	h.all = map[uint32]int64{}
	for i := 1; i < len(g.slots); i++ {
		s := g.slots[i].AsHashes()
		if s.Kind != spool.KindHash || s.What != spool.HashReceived || s.Flags&spool.HasHash == 0 {
			continue
		}
		if _, twice := h.all[s.Req]; !twice {
			h.all[s.Req] = int64(s.Hash)
		}
	}
	return h
}

// get returns the hash for a request; null means that there is none.
func (h *hashes) get(req uint32) int64 {
	if h.all == nil {
		return h.group.receivedHash(req)
	}
	if hash, ok := h.all[req]; ok {
		return hash
	}
	return schema.NullInt64
}

// setSentHashes puts the hashes of what the call sends into the row: for the request with that serial number or, with
// 0, for the call itself. They are written before the call, so that even a call that never returned has them.
func (g *group) setSentHashes(req uint32, r *schema.Event) {
	for i := 1; i < len(g.slots); i++ {
		h := g.slots[i].AsHashes()
		if h.Kind != spool.KindHash || h.What != spool.HashSent || h.Req != req {
			continue
		}
		if h.Flags&spool.HasHash != 0 {
			r.PayloadHash = int64(h.Hash)
		}
		if h.Flags&spool.HasSum != 0 {
			r.PayloadSum = int64(h.Sum)
		}
		if h.Flags&spool.HasHead != 0 {
			r.PayloadHead = int64(h.Head)
		}
		return
	}
}

// find returns the first slot of a kind after the CALL slot; nil when there is none or the call never returned.
func (g *group) find(kind spool.Kind) *spool.Call {
	for i := 1; i < len(g.slots) && g.slots[0].T1 != 0; i++ {
		if g.slots[i].Kind == kind {
			return &g.slots[i]
		}
	}
	return nil
}

// mustFind does the same as find, for calls that must have such a slot if they returned.
func (g *group) mustFind(kind spool.Kind, name string) (*spool.Call, error) {
	s := g.find(kind)
	if s == nil && g.slots[0].T1 != 0 {
		return nil, fmt.Errorf("no %s slot follows", name)
	}
	return s, nil
}

// side returns the SIDE slot of a sendrecv; nil when the call never returned.
func (g *group) side() (*spool.Side, error) {
	s, err := g.mustFind(spool.KindSide, "SIDE")
	if s == nil {
		return nil, err
	}
	return s.AsSide(), nil
}

// rma returns the RMA slot of the call; nil when the call never returned.
func (g *group) rma() (*spool.RMA, error) {
	s, err := g.mustFind(spool.KindRMA, "RMA")
	if s == nil {
		return nil, err
	}
	return s.AsRMA(), nil
}

// io returns the IO slot of the call; nil when the call never returned.
func (g *group) io() (*spool.IO, error) {
	s, err := g.mustFind(spool.KindIO, "IO")
	if s == nil {
		return nil, err
	}
	return s.AsIO(), nil
}

// coll returns the COLL slot of the call; nil when it has none or never returned.
func (g *group) coll() *spool.Coll {
	var coll *spool.Coll
	for i := 1; i < len(g.slots) && g.slots[0].T1 != 0; i++ {
		if g.slots[i].Kind == spool.KindColl { // the last one counts
			coll = g.slots[i].AsColl()
		}
	}
	return coll
}
