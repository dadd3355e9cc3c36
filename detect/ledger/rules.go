package ledger

import (
	"github.com/commq/commq/detect/crc"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Rules are the criteria, apart from the messages themselves, by which messages form an operation.
type Rules struct {
	MinRanks    int
	MemoryBytes int64
	Named       map[int32]bool // datatypes
	Crc         *crc.Arithmetic
	Sent        map[Place]int64 // number of messages sent at each place
	Lines       map[int32]int32 // line of each call site, which has a site per path to it
	Filled      map[Lane]bool   // where messages that are not empty are sent
	Sets        rankset.Room    // room for the sets of one search
	Stopped     func() error    // an error if the caller no longer wants an answer
}

// NewSetRoom returns the room of one search.
func (r *Rules) NewSetRoom() *rankset.Room {
	room := r.Sets
	return &room
}

// Fill notes where the messages of a sample, none of which is empty, are sent.
func (r *Rules) Fill(s *Sample) {
	r.Filled = map[Lane]bool{}
	for _, of := range s.Order {
		r.Filled[r.lane(of.Cell.Comm, of.Cell.Tag, of.Cell.Site)] = true
	}
}

// IsFilled reports whether messages that are not empty are sent where this one is.
func (r *Rules) IsFilled(m *Message) bool { return r.Filled[r.lane(m.Comm, m.Tag, m.SendSite)] }

func (r *Rules) lane(comm, tag, site int32) Lane { return Lane{comm, tag, r.Line(site)} }

// Line returns the line of a call site, or a number of its own if it is unknown.
func (r *Rules) Line(site int32) int32 {
	if line, known := r.Lines[site]; known {
		return line
	}
	return ^site
}

// OnlyNamedType returns the only named datatype of messages; null if there are none or several.
func (r *Rules) OnlyNamedType(messages []Message, list []int32) int32 {
	only := schema.NullInt32
	for _, i := range list {
		if t := messages[i].Datatype; r.Named[t] && t != only {
			if only != schema.NullInt32 {
				return schema.NullInt32
			}
			only = t
		}
	}
	return only
}

// ElementType returns the named datatype of a message. A derived datatype agrees with the only named one.
func (r *Rules) ElementType(m *Message, only int32) int32 {
	switch {
	case m.Bytes == 0:
		return 0
	case r.Named[m.Datatype]:
		return m.Datatype
	}
	return only
}

// Blank reports whether a payload says nothing about its origin: it is empty, or one element of up to 8 bytes
// repeated.
func (r *Rules) Blank(m *Message) bool {
	return m.Bytes == 0 || r.Crc.Repeated(m.Head, m.Bytes) == uint64(m.Hash)
}

// HasRanks reports whether a communicator has all these ranks.
func HasRanks(c *run.Comm, ranks []int32) bool {
	members := map[int32]bool{}
	for _, r := range c.Members {
		members[r] = true
	}
	for _, r := range ranks {
		if !members[r] {
			return false
		}
	}
	return true
}

// DefaultMinRanks is the least number of ranks of a finding: between two ranks, every message would be a broadcast.
const DefaultMinRanks = 3
