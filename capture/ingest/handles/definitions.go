package handles

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// The numbers of predefined communicators, the same in every process.
const (
	World = 0
	Self  = 1
)

// Values of Comm.Parent that are not indexes in the rank's Comms.
const (
	parentUnknown = -1
	parentWorld   = -2
	parentSelf    = -3
)

// Definitions are the communicators and datatypes that one rank defined. Make them with NewDefinitions and add to
// them one by one. They can be encoded with gob; a decoded copy can be read, but not added to.
type Definitions struct {
	Rank int32
	// File is the name of one of the rank's files, for error messages.
	File string
	// UsesSelf means that a call of the rank may have used MPI_COMM_SELF.
	UsesSelf bool
	// SessionsOnly means that the rank used sessions and never called MPI_Init, so that it has no MPI_COMM_WORLD.
	SessionsOnly bool
	// Comms and Types are in order of definition.
	Comms []Comm
	Types []Type

	live map[int64]int // by the process's number: index in Comms
}

// Comm is a rank's definition of a communicator. Lists are nil if the definition does not have them.
type Comm struct {
	ID         int64         // the process's number
	Fixed      spool.CommDef // the fields before the lists
	Parent     int           // index in the rank's Comms, or parentUnknown, parentWorld, parentSelf
	ByTag      bool          // identified by tag, not by parent and instance; see madeByTag
	Predefined bool          // only names MPI_COMM_WORLD or MPI_COMM_SELF
	Named      bool
	Name       string
	Members    []int32 // by rank in the communicator: world ranks of its group
	Remote     []int32 // of an intercommunicator: the same of the other group
	Extents    []int32 // of a Cartesian topology, by dimension
	Periods    []int32 // likewise: 1 for a periodic dimension
	Edges      []int32 // of a graph topology: the edges of the rank

	global int32 // its id in the run
}

// Type is a rank's definition of a datatype.
type Type struct {
	ID    int64 // the process's number
	Name  string
	Fixed spool.TypeDef // the fields before the name

	global int32 // its id in the run
}

// NewDefinitions returns the definitions of a rank that has defined nothing yet. file is used in error messages.
func NewDefinitions(rank int32, file string) *Definitions {
	return &Definitions{Rank: rank, File: file, live: map[int64]int{}}
}

// Add adds a definition that follows a slot of the given call; 0 stands for the beginning of the file. It ignores
// definitions other than communicators and datatypes. After an error nothing has been added.
func (d *Definitions) Add(call schema.CallID, def *spool.Def, payload []byte) error {
	switch def.What {
	case spool.DefComm:
		c, err := parseComm(payload)
		if err != nil {
			return err
		}
		c.ID, c.Parent = def.ID, d.parentOf(c.Fixed.Parent)
		c.ByTag = madeByTag(call)
		d.live[def.ID] = len(d.Comms)
		d.Comms = append(d.Comms, c)
	case spool.DefCommName:
		d.name(def.ID, string(payload))
	case spool.DefCommFree:
		delete(d.live, def.ID)
	case spool.DefType:
		fixed, name, err := Payload[spool.TypeDef](payload)
		if err != nil {
			return err
		}
		if fixed.Bytes < 0 {
			return fmt.Errorf("datatype %d of %d bytes", def.ID, fixed.Bytes)
		}
		d.Types = append(d.Types, Type{ID: def.ID, Name: string(name), Fixed: fixed})
	}
	return nil
}

// name names a communicator. A predefined one has no definition before that, so it gets an entry just for its name.
func (d *Definitions) name(number int64, name string) {
	if i, ok := d.live[number]; ok {
		d.Comms[i].Name, d.Comms[i].Named = name, true
	} else if number == World || number == Self {
		d.Comms = append(d.Comms, Comm{ID: number, Parent: parentUnknown, Predefined: true, Name: name, Named: true})
		d.live[number] = len(d.Comms) - 1
	}
}

// parentOf turns the process's number of the parent into an index in Comms.
func (d *Definitions) parentOf(number int32) int {
	if i, ok := d.live[int64(number)]; ok && !d.Comms[i].Predefined {
		return i
	}
	switch number {
	case World:
		return parentWorld
	case Self:
		return parentSelf
	}
	return parentUnknown
}

// TypeBytes returns the size of the datatype that currently has the process's number; ok is false when there is none.
func (d *Definitions) TypeBytes(number int32) (bytes int64, ok bool) {
	for i := len(d.Types) - 1; i >= 0; i-- {
		if d.Types[i].ID == int64(number) {
			return d.Types[i].Fixed.Bytes, true
		}
	}
	return 0, false
}

// madeByTag reports whether the call makes communicators of only some of the parent's ranks, or of ranks with
// different parents.
func madeByTag(call schema.CallID) bool {
	switch call {
	case schema.CallCommCreateGroup, schema.CallIntercommCreate, schema.CallCommCreateFromGroup,
		schema.CallIntercommCreateFromGroups,
		schema.CallCommAccept, schema.CallCommConnect, schema.CallCommJoin:
		return true
	}
	return false
}

// parseComm reads the payload of DEF COMM.
func parseComm(data []byte) (Comm, error) {
	fixed, rest, err := Payload[spool.CommDef](data)
	c := Comm{Fixed: fixed}
	if err != nil {
		return c, err
	}
	if err := c.checkFixed(); err != nil {
		return c, err
	}
	f := &c.Fixed
	for _, l := range []struct {
		to *[]int32
		n  int32
	}{{&c.Members, f.Members}, {&c.Remote, f.RemoteMembers}, {&c.Extents, f.Dims}, {&c.Periods, f.Dims},
		{&c.Edges, f.Edges}} {
		if l.n < 0 || int64(l.n)*4 > int64(len(rest)) {
			return c, fmt.Errorf("a list of %d numbers in %d bytes", l.n, len(rest))
		}
		for i := range int(l.n) {
			v, _, _ := Payload[int32](rest[4*i:])
			*l.to = append(*l.to, v)
		}
		rest = rest[4*l.n:]
	}
	return c, nil
}

// checkFixed finds numbers that the fields before the lists cannot have.
func (c *Comm) checkFixed() error {
	f := &c.Fixed
	if f.Kind < 0 || int(f.Kind) >= len(schema.CommKindNames) || f.Size < 1 || f.Rank < 0 || f.Rank >= f.Size ||
		f.RemoteSize < 0 {
		return fmt.Errorf("communicator of kind %d, rank %d of %d, remote size %d", f.Kind, f.Rank, f.Size, f.RemoteSize)
	}
	if f.Members != 0 && f.Members != f.Size || f.RemoteMembers != 0 && f.RemoteMembers != f.RemoteSize {
		return fmt.Errorf("communicator with %d of %d and %d of %d members", f.Members, f.Size, f.RemoteMembers,
			f.RemoteSize)
	}
	return nil
}

// Payload reads the fixed fields at the front of a definition's payload and returns what follows them.
func Payload[T any](data []byte) (v T, rest []byte, err error) {
	if uintptr(len(data)) < unsafe.Sizeof(v) {
		return v, nil, errors.New("payload too short")
	}
	_, err = binary.Decode(data, binary.LittleEndian, &v)
	return v, data[unsafe.Sizeof(v):], err
}

// identify returns the number of a predefined communicator; ok is false when c is not one.
func (c *Comm) identify() (number int64, ok bool) {
	return c.ID, c.Predefined || c.ID == World && c.Fixed.Kind == int32(schema.CommWorld) ||
		c.ID == Self && c.Fixed.Kind == int32(schema.CommSelf)
}

// identifiedByTag reports whether the definition is identified by tag; so it is when its parent is not known.
func (c *Comm) identifiedByTag() bool { return c.ByTag || c.Parent == parentUnknown }

// leaders returns the world ranks of the leaders of the group, or of the two groups, the lower first. The second is
// -1 for an intracommunicator, and if a group's leader is outside MPI_COMM_WORLD.
func (c *Comm) leaders() (int32, int32) {
	a, b := c.Fixed.LeaderWorld, int32(-1)
	if c.Fixed.RemoteSize > 0 {
		b = c.Fixed.RemoteLeaderWorld
		if min(a, b) < 0 { // that group's leader is outside MPI_COMM_WORLD
			return max(a, b), -1
		}
		return min(a, b), max(a, b)
	}
	return a, b
}
