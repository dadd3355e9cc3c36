package predict

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/schema"
)

// Communication is one communication of the program: an event of the template at which ranks send, at those places of its loops where each has the same
// destination. It has what section 4.2 of the paper asks of a communication before its general equation is looked for: the numbers of EC1 and EC2,
// dependency, static or dynamic, and the matrix of distances.
type Communication struct {
	// Phase is the number of the phase whose loop the event is in, from 1 in the order of the signature's Phases; of several phases of a loop the one
	// with most calls. 0: it is in none. It is #Phase of EC1 and EC2.
	Phase int `json:"phase,omitempty"`
	// Number counts the communications of the phase, from 1: #Comm.
	Number int `json:"communication"`
	// Event is the node of the template.
	Event int32 `json:"event"`
	// Places is at how many places of the event's loops this is what ranks do; loops that do not matter for it have none.
	Places int `json:"places"`
	// Calls is how often ranks send at the event in all, Bytes how much: of all communications of the event together.
	Calls int64 `json:"event_calls"`
	Bytes int64 `json:"event_bytes"`
	// Dynamic says that the destination is an exchange or a permutation of the bits of the source, which EC1 has; else the pattern is static. On two
	// ranks a shift is an exchange too.
	Dynamic bool         `json:"dynamic"`
	EC1     *pattern.EC1 `json:"ec1,omitempty"`
	// Dependent says that messages go on: somebody's destination sends to a third rank (pattern.Mapping.Dependent).
	Dependent bool `json:"dependent"`
	// Distances is the matrix of distances, destination minus source in world ranks, which has one entry in the row of each source: as the displacements of
	// EC2 with their repetitions. Of a static pattern it is its EC2.
	Distances pattern.EC2 `json:"distances"`
	// Topology is the ring, mesh or torus whose neighbours a static pattern goes to, and which; nil where it is none of these. The extents of the grid are
	// those that all communications of the phase have together.
	Topology *pattern.Topology `json:"topology,omitempty"`
}

// Equation is the local equation: EC1 of a dynamic communication, else EC2.
func (c *Communication) Equation() string {
	if c.EC1 != nil {
		return c.EC1.String()
	}
	return c.Distances.String()
}

// Bounds of what a signature says of communications.
const (
	mostCommunicated   = 1 << 20 // calls that are not alike
	mostCommunications = 16      // communications of an event: those at most places
)

// FindCommunications finds the communications of a signature, which has its phases. Sign does so; a file of an earlier version may lack them.
func (s *Signature) FindCommunications() {
	s.Communications, s.Irregular = nil, ""
	t := &training{Signature: s, runs: []*Signature{s}, base: []int32{0}}
	found, err := t.places(mostCommunicated)
	if err != nil {
		s.Irregular = err.Error()
		return
	}
	number, tablesIn := map[int]int{}, map[int][]pattern.Mapping{}
	occurrences := s.occurrences()
	for _, w := range found.sites {
		tables := s.tablesOf(w)
		if len(tables) == 0 {
			continue
		}
		calls, bytes := s.sent(w.node, occurrences[w.node.ID])
		phase := s.phaseOf(w.node)
		for _, table := range tables {
			number[phase]++
			e := pattern.Slot{Runs: []pattern.Mapping{table.Mapping}}.LocalEquations()[0]
			tablesIn[phase] = append(tablesIn[phase], table.Mapping)
			s.Communications = append(s.Communications, Communication{Phase: phase, Number: number[phase], Event: w.node.ID, Places: table.places, Calls: calls, Bytes: bytes,
				Dynamic: e.Dynamic, EC1: e.EC1, Dependent: e.Dependent, Distances: table.EC2()})
		}
	}
	of := map[int][]*pattern.Topology{}
	for phase, tables := range tablesIn {
		of[phase] = pattern.Topologies(tables)
	}
	for i := range s.Communications {
		if c := &s.Communications[i]; !c.Dynamic {
			c.Topology = of[c.Phase][c.Number-1]
		}
	}
}

// sends says whether a call of an event sends a message to a rank.
func (s *Signature) sends(n *Node, c *Call) bool {
	class := s.classOf(n, c)
	return (class == schema.ClassSend || class == schema.ClassSendrecv) && !peerless(c.Send)
}

// destination is whom a rank sends to at an event; pattern.None where it does not send to a rank of the run.
func (s *Signature) destination(n *Node, rank int32, c *Call) int32 {
	if !s.sends(n, c) {
		return pattern.None
	}
	if to := peerOf(rank, c.Send); to >= 0 && to < s.Ranks {
		return to
	}
	return pattern.None
}

// placedTable is a table of destinations, and at how many places it is that.
type placedTable struct {
	pattern.Mapping
	places int
	first  place
}

// tablesOf are the different tables of destinations of a site, those at most places first; of more than mostCommunications the others are left out.
func (s *Signature) tablesOf(w *site) (all []*placedTable) {
	slices.SortFunc(w.all, func(a, b done) int {
		return cmp.Or(slices.Compare(a.place[:], b.place[:]), cmp.Compare(a.rank, b.rank))
	})
	known := map[string]*placedTable{}
	events := s.Values[w.node.ID].Events
	for from, to := 0, 0; from < len(w.all); from = to {
		var key []byte
		for to = from; to < len(w.all) && w.all[to].place == w.all[from].place; to++ {
			d := w.all[to]
			if dst := s.destination(w.node, d.rank, events[d.call]); dst != pattern.None {
				key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(d.rank)), uint64(dst))
			}
		}
		if len(key) == 0 {
			continue
		}
		table := known[string(key)]
		if table == nil {
			table = &placedTable{first: w.all[from].place, Mapping: pattern.Mapping{Ranks: s.Ranks, Dst: slices.Repeat([]int32{pattern.None}, int(s.Ranks))}}
			for _, d := range w.all[from:to] {
				if dst := s.destination(w.node, d.rank, events[d.call]); dst != pattern.None {
					table.Dst[d.rank] = dst
				}
			}
			known[string(key)] = table
			all = append(all, table)
		}
		table.places++
	}
	slices.SortStableFunc(all, func(a, b *placedTable) int { return cmp.Compare(b.places, a.places) })
	all = all[:min(len(all), mostCommunications)]
	slices.SortStableFunc(all, func(a, b *placedTable) int { return slices.Compare(a.first[:], b.first[:]) })
	return all
}

// sent is how often ranks send at an event, and how many bytes; times is how often each of its calls is made.
func (s *Signature) sent(n *Node, times []int64) (calls, bytes int64) {
	for i, c := range s.Values[n.ID].Events {
		if s.sends(n, c) {
			calls += times[i]
			bytes += times[i] * int64(max(c.Send[SideBytes], 0))
		}
	}
	return calls, bytes
}

// phaseOf is the number of the phase that an event is in, 0 for none.
func (s *Signature) phaseOf(n *Node) (number int) {
	for l := n.parent; l != nil && number == 0; l = l.parent {
		most := int64(-1)
		for i := range s.Phases {
			if p := &s.Phases[i]; p.Node == l.ID && p.Calls > most {
				number, most = i+1, p.Calls
			}
		}
	}
	return number
}

// CallName says where in the program an event of the template is, for people: the call, function, file and line as far as they are known.
func (s *Signature) CallName(event int32) string { return s.name(s.nodes[event]) }

// Loops is how many loops the template has, Events how many events.
func (s *Signature) Loops() (loops, events int) {
	for _, n := range s.nodes[1:] {
		if n.Loop {
			loops++
		} else {
			events++
		}
	}
	return loops, events
}
