package otf2

import (
	"fmt"
	"math"
	"slices"
)

// Global and local definitions.
const (
	localMapping, localClockOffset = 5, 6

	defClock, defString, defSystemTreeNode, defLocationGroup, defLocation, defRegion = 5, 10, 12, 13, 14, 15

	defGroup, defComm, defRmaWin, defCartDimension, defCartTopology = 18, 22, 24, 30, 31

	defSourceLocation, defCallingContext, defIoRegularFile, defIoHandle, defInterComm = 33, 34, 38, 40, 43
)

// Values of fields of definitions.
const (
	locationCPUThread          = 1
	locationGroupProcess       = 1
	groupCommLocations         = 4
	groupCommGroup             = 5
	groupCommSelf              = 6
	paradigmMPI                = 4
	locationGroupSystem        = 0
	firstUnknownDef      uint8 = defInterComm + 1
)

// The kinds of ids that local files map to global ones.
const (
	mapString, mapLocation, mapRegion, mapGroup, mapComm, mapWindow, mapContext, mapFile, mapHandle = 0, 2, 3, 4, 6,
		8, 10, 12, 13
	mapKinds = 32
)

type location struct {
	id     uint64
	kind   uint8
	events uint64
	group  uint32
}

type locationGroup struct {
	kind uint8
	node uint32
}

type region struct {
	name, file uint32
	line       uint32
}

type group struct {
	kind, paradigm uint8
	members        []uint64
}

type commDef struct {
	id             uint32
	name           uint32
	group, other   uint32 // other: the second group of an intercommunicator
	parent         uint32
	inter          bool
	dims, periodic []uint32
}

type window struct{ comm uint32 }

type callingContext struct{ region, source, parent uint32 }

type sourceLocation struct{ file, line uint32 }

type ioHandle struct{ file, comm uint32 }

type treeNode struct{ name, parent uint32 }

// definitions are the global definitions that an import needs.
type definitions struct {
	resolution, offset, length uint64 // ticks per second, first tick, ticks

	strings   map[uint32]string
	locations []location
	groups    map[uint32]locationGroup
	nodes     map[uint32]treeNode
	regions   map[uint32]region
	sets      map[uint32]group
	commDefs  []commDef
	windows   map[uint32]window
	dims      map[uint32][2]uint32 // size, periodicity
	contexts  map[uint32]callingContext
	sources   map[uint32]sourceLocation
	files     map[uint32]uint32 // name
	handles   map[uint32]ioHandle
	unknown   map[uint8]int64 // records of later versions, by number
}

// parseDefinitions reads the file of global definitions.
func parseDefinitions(data []byte, chunk uint64) (*definitions, error) {
	d := &definitions{resolution: 1, strings: map[uint32]string{}, groups: map[uint32]locationGroup{},
		nodes: map[uint32]treeNode{}, regions: map[uint32]region{}, sets: map[uint32]group{},
		windows: map[uint32]window{}, dims: map[uint32][2]uint32{}, contexts: map[uint32]callingContext{},
		sources: map[uint32]sourceLocation{}, files: map[uint32]uint32{}, handles: map[uint32]ioHandle{},
		unknown: map[uint8]int64{}}
	err := eachDefinition(data, chunk, func(id uint8, r *cursor) {
		if id >= firstUnknownDef {
			d.unknown[id]++
		}
		d.define(id, r)
	})
	if err != nil {
		return nil, err
	}
	if d.resolution == 0 {
		return nil, fmt.Errorf("the clock has 0 ticks per second")
	}
	return d, nil
}

// eachDefinition calls fn for each record of a definition file with chunks of chunk bytes.
func eachDefinition(data []byte, chunk uint64, fn func(id uint8, r *cursor)) error {
	c := cursor{data: data}
	for c.err == nil {
		at := c.at
		if uint64(at)%chunk == 0 {
			if at > 0 && c.remaining() == 0 {
				break
			}
			c.header()
			if c.need(16) { // the numbers of the first and the last record
				c.at += 16
			}
			continue
		}
		id := c.uint8()
		if id == recordEndOfChunk && c.err == nil {
			c.at = int(min((uint64(at)/chunk+1)*chunk, uint64(len(data))))
			if c.remaining() == 0 {
				break
			}
			continue
		}
		if id == recordEndOfFile || id == recordEndOfBuffer {
			break
		}
		r := c.record()
		if c.err == nil {
			fn(id, &r)
			c.err = r.err
		}
		if c.err != nil {
			return fmt.Errorf("byte %d: definition %d: %w", at, id, c.err)
		}
	}
	if c.err != nil {
		return fmt.Errorf("byte %d: %w", c.at, c.err)
	}
	return nil
}

// define keeps a definition.
func (d *definitions) define(id uint8, r *cursor) {
	switch id {
	case defClock:
		d.resolution, d.offset, d.length = r.uint64(), r.uint64(), r.uint64()
	case defString:
		self := r.uint32()
		d.strings[self] = r.text()
	case defSystemTreeNode:
		self, name, _ := r.uint32(), r.uint32(), r.uint32()
		d.nodes[self] = treeNode{name, r.uint32()}
	case defLocationGroup:
		self, _ := r.uint32(), r.uint32()
		d.groups[self] = locationGroup{r.uint8(), r.uint32()}
	case defLocation:
		self, _ := r.uint64(), r.uint32()
		d.locations = append(d.locations, location{self, r.uint8(), r.uint64(), r.uint32()})
	case defRegion:
		self, name, _, _ := r.uint32(), r.uint32(), r.uint32(), r.uint8()
		d.regions[self] = region{name, r.uint32(), r.uint32()}
	case defGroup:
		d.defineGroup(r)
	case defComm, defInterComm:
		d.defineComm(id, r)
	case defRmaWin:
		self, _ := r.uint32(), r.uint32()
		d.windows[self] = window{r.uint32()}
	case defCartDimension:
		self, _ := r.uint32(), r.uint32()
		d.dims[self] = [2]uint32{r.uint32(), uint32(r.uint8())}
	case defCartTopology:
		d.defineTopology(r)
	default:
		d.definePlace(id, r)
	}
}

// definePlace keeps definitions of sources and files.
func (d *definitions) definePlace(id uint8, r *cursor) {
	switch id {
	case defSourceLocation:
		self := r.uint32()
		d.sources[self] = sourceLocation{r.uint32(), r.uint32()}
	case defCallingContext:
		self := r.uint32()
		d.contexts[self] = callingContext{r.uint32(), r.uint32(), r.uint32()}
	case defIoRegularFile:
		self := r.uint32()
		d.files[self] = r.uint32()
	case defIoHandle:
		self, _, file, _, _ := r.uint32(), r.uint32(), r.uint32(), r.uint8(), r.uint32()
		d.handles[self] = ioHandle{file, r.uint32()}
	}
}

func (d *definitions) defineGroup(r *cursor) {
	self, _ := r.uint32(), r.uint32()
	r.uint8() // the type of OTF2 before 1.2
	g := group{members: make([]uint64, r.count())}
	for i := range g.members {
		g.members[i] = r.uint64()
	}
	g.kind, g.paradigm = r.uint8(), r.uint8()
	d.sets[self] = g
}

func (d *definitions) defineComm(id uint8, r *cursor) {
	c := commDef{id: r.uint32(), name: r.uint32(), group: r.uint32(), other: undefined32}
	if id == defInterComm {
		c.inter, c.other = true, r.uint32()
	}
	c.parent = r.uint32()
	d.commDefs = append(d.commDefs, c)
}

func (d *definitions) defineTopology(r *cursor) {
	_, _, comm, n := r.uint32(), r.uint32(), r.uint32(), int(r.uint8())
	i := slices.IndexFunc(d.commDefs, func(c commDef) bool { return c.id == comm })
	for range n {
		dim := d.dims[r.uint32()]
		if i >= 0 && r.err == nil {
			d.commDefs[i].dims, d.commDefs[i].periodic = append(d.commDefs[i].dims, dim[0]), append(d.commDefs[i].periodic, dim[1])
		}
	}
}

// local has the definitions of a location's own file: which global ids its ids stand for, and its clock.
type local struct {
	maps   [mapKinds]*idMap
	clocks []clockOffset
}

// idMap gives the global id for a local one; ids that are not in it are global.
type idMap struct {
	dense  []uint64
	sparse map[uint64]uint64
}

type clockOffset struct {
	time   uint64
	offset int64
}

// parseLocal reads the definitions of a location.
func parseLocal(data []byte, chunk uint64) (*local, error) {
	l := &local{}
	err := eachDefinition(data, chunk, func(id uint8, r *cursor) {
		switch id {
		case localMapping:
			kind := r.uint8()
			if m := readMap(r); kind < mapKinds {
				l.maps[kind] = m
			}
		case localClockOffset:
			o := clockOffset{r.full64(), int64(r.uint64())}
			if n := len(l.clocks); n > 0 && l.clocks[n-1].time >= o.time && r.err == nil {
				r.err = fmt.Errorf("a clock offset at %d, which is not after the one before it", o.time)
			}
			l.clocks = append(l.clocks, o)
		}
	})
	return l, err
}

func readMap(r *cursor) *idMap {
	n, sparse := r.uint64(), r.uint8() != 0
	if n > uint64(r.remaining()) && r.err == nil {
		r.err = fmt.Errorf("%d mapped ids in a record with %d bytes left", n, r.remaining())
	}
	if r.err != nil {
		return nil
	}
	m := &idMap{}
	if sparse {
		m.sparse = make(map[uint64]uint64, n)
	}
	for range n {
		if sparse {
			from := r.uint64()
			m.sparse[from] = r.uint64()
		} else {
			m.dense = append(m.dense, r.uint64())
		}
	}
	return m
}

// global returns the global id for a local one.
func (l *local) global(kind int, id uint32) uint32 {
	m := l.maps[kind]
	if m == nil || id == undefined32 {
		return id
	}
	if m.sparse != nil {
		if to, ok := m.sparse[uint64(id)]; ok {
			return uint32(to)
		}
		return id
	}
	if uint64(id) < uint64(len(m.dense)) {
		return uint32(m.dense[id])
	}
	return id
}

// clock corrects the times of a location. Between two offsets it interpolates; before the first and after the last it
// goes on with the nearest pair.
type clock struct {
	offsets []clockOffset
	at      int // the pair that held the last time
}

// correct returns the time on the clock of the trace. Times of a location do not decrease.
func (c *clock) correct(t uint64) uint64 {
	if len(c.offsets) < 2 {
		return t
	}
	for c.at+2 < len(c.offsets) && t > c.offsets[c.at+1].time {
		c.at++
	}
	a, b := c.offsets[c.at], c.offsets[c.at+1]
	slope := float64(b.offset-a.offset) / float64(b.time-a.time)
	return t + uint64(a.offset+int64(math.RoundToEven(slope*float64(int64(t-a.time)))))
}
