package predict

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Phase is a sequence of calls that ranks repeat: the outermost there is.
type Phase struct {
	// Node is the template's loop whose iterations it is; Place numbers the phases of a loop on a rank.
	Node  int32 `json:"node"`
	Place int32 `json:"place,omitempty"`
	// Weight is how often it is repeated; where ranks differ WeightMin and WeightMax are, and it is the largest.
	Weight    int64 `json:"weight"`
	WeightMin int64 `json:"weight_min"`
	WeightMax int64 `json:"weight_max"`
	// Ranks is how many ranks have it.
	Ranks int32 `json:"ranks"`
	// Events is the number of calls in a repetition, over the ranks; Forms how many different sequences of calls there are.
	EventsMin int64 `json:"events_min"`
	EventsMax int64 `json:"events_max"`
	Forms     int   `json:"forms"`
	// Ticks is the logical time of a repetition.
	Ticks float64 `json:"ticks"`
	// Calls is how many calls all repetitions have on all ranks, CallShare that part of the run's.
	Calls     int64   `json:"calls"`
	CallShare float64 `json:"call_share"`
	// TimeNs is the time of a repetition, the mean over ranks; TimeShare the part of the ranks' time that all have. Nil in an untimed run.
	TimeNs    *int64   `json:"time_ns,omitempty"`
	TimeShare *float64 `json:"time_share,omitempty"`
}

// Agrees says whether all ranks of the run repeat the phase as often: then it is one in the sense of PAS2P.
func (p *Phase) Agrees(ranks int32) bool { return p.Ranks == ranks && p.WeightMin == p.WeightMax }

// stretch is a phase on a rank: the calls from seq first to before seq end.
type stretch struct {
	node, place int32
	weight      int64
	first, end  int64
	shape       int32
}

// phaser finds phases: what is repeated whatever the calls' peers and sizes.
type phaser struct {
	sig    *Signature
	shapes [][]int32 // of values, by node; -1: not known
	bodies [][]int32 // shapes of iterations
	ids    map[string]int32
	events [][]int64 // of iterations, by node
	counts [][]int64 // of values
}

func newPhaser(s *Signature) *phaser {
	p := &phaser{sig: s, ids: map[string]int32{}, shapes: make([][]int32, len(s.nodes)), bodies: make([][]int32, len(s.nodes)),
		events: make([][]int64, len(s.nodes)), counts: make([][]int64, len(s.nodes))}
	for _, n := range slices.Backward(s.nodes) {
		p.node(n)
	}
	return p
}

// node finds the shapes of what ranks did at a node: equal ones have the same calls.
func (p *phaser) node(n *Node) {
	v := &p.sig.Values[n.ID]
	if !n.Loop {
		p.shapes[n.ID], p.counts[n.ID] = make([]int32, len(v.Events)), slices.Repeat([]int64{1}, len(v.Events))
		return
	}
	for _, b := range v.Bodies {
		var key []byte
		events := int64(0)
		for k := 0; k < len(b); k += 2 {
			child := n.Children[b[k]].ID
			key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(b[k])), uint64(p.shapes[child][b[k+1]]))
			events += p.counts[child][b[k+1]]
		}
		p.bodies[n.ID] = append(p.bodies[n.ID], p.id(n, 0, key))
		p.events[n.ID] = append(p.events[n.ID], events)
	}
	for _, l := range v.Loops {
		items, events := p.refold(n, l), int64(0)
		each(l, func(body int32) bool { events += p.events[n.ID][body]; return true })
		p.shapes[n.ID] = append(p.shapes[n.ID], p.id(n, 1, appendItems(nil, items)))
		p.counts[n.ID] = append(p.counts[n.ID], events)
	}
}

// refold is an execution of a loop by the shapes of its iterations.
func (p *phaser) refold(n *Node, l []Item) []Item {
	var f folder
	each(l, func(body int32) bool { f.add(p.bodies[n.ID][body]); return true })
	return f.items
}

func (p *phaser) id(n *Node, kind byte, key []byte) int32 {
	k := string(append(binary.AppendUvarint([]byte{kind}, uint64(n.ID)), key...))
	id, known := p.ids[k]
	if !known {
		id = int32(len(p.ids))
		p.ids[k] = id
	}
	return id
}

// stretches are the phases of a rank, in order.
func (p *phaser) stretches(rank int32) []stretch {
	x := &stretcher{phaser: p, places: map[int32]int32{}}
	x.loop(p.sig.nodes[0], p.sig.Roots[rank])
	return x.all
}

type stretcher struct {
	*phaser
	seq    int64
	places map[int32]int32
	all    []stretch
}

// loop goes through an execution of a loop: what is repeated is a phase, in other iterations there may be some.
func (x *stretcher) loop(n *Node, value int32) {
	v := &x.sig.Values[n.ID]
	var bodies []int32
	each(v.Loops[value], func(body int32) bool { bodies = append(bodies, body); return true })
	for _, item := range x.refold(n, v.Loops[value]) {
		now := bodies[:item.count()]
		bodies = bodies[len(now):]
		if item.Times > 0 {
			first := x.seq
			for _, body := range now {
				x.seq += x.events[n.ID][body]
			}
			x.all = append(x.all, stretch{n.ID, x.places[n.ID], item.Times, first, x.seq, x.id(n, 2, appendItems(nil, item.Items))})
			x.places[n.ID]++
			continue
		}
		b := v.Bodies[now[0]]
		for k := 0; k < len(b); k += 2 {
			if child := n.Children[b[k]]; child.Loop {
				x.loop(child, b[k+1])
			} else {
				x.seq++
			}
		}
	}
}

// phased are the phases of all ranks.
type phased struct {
	stretches [][]stretch // by rank
	keys      map[[2]int32]int
	phases    []Phase
	forms     []map[int32]bool
	time      []int64 // of all repetitions and ranks, ns
	share     []int64 // of one repetition, summed over ranks
	span      []int64
	borders   []ticksAt // by rank
	unmatched []string
}

// phases finds them, without times, and runs the logical clock.
func (s *Signature) phases() (*phased, error) {
	p := newPhaser(s)
	f := &phased{keys: map[[2]int32]int{}}
	borders := make([]ticksAt, s.Ranks)
	for r := range s.Ranks {
		f.stretches = append(f.stretches, p.stretches(r))
		for _, t := range f.stretches[r] {
			borders[r].seqs = append(borders[r].seqs, t.first-1, t.end-1)
		}
	}
	var err error
	s.Ticks, f.unmatched, err = s.ticks(func(rank int32, seq int64, tick int32) { borders[rank].note(seq, tick) })
	if err != nil {
		return nil, err
	}
	f.borders = borders
	for r, list := range f.stretches {
		for k := range list {
			f.add(&list[k], borders[r].ticks[2*k], borders[r].ticks[2*k+1])
		}
	}
	for i := range f.phases {
		q := &f.phases[i]
		q.Forms = len(f.forms[i])
		q.Ticks = float64(f.span[i]) / float64(q.Ranks) / float64(q.Weight)
		q.CallShare = float64(q.Calls) / float64(max(s.Calls, 1))
	}
	return f, nil
}

// ticksAt are the logical times of some calls of a rank; that of the call before the first is 0.
type ticksAt struct {
	seqs  []int64 // in order
	ticks []int32
	last  int32 // that of the rank's last call
}

// note takes the times of a rank's calls, in order.
func (x *ticksAt) note(seq int64, tick int32) {
	x.last = tick
	for len(x.ticks) < len(x.seqs) && x.seqs[len(x.ticks)] < 0 {
		x.ticks = append(x.ticks, 0)
	}
	for len(x.ticks) < len(x.seqs) && x.seqs[len(x.ticks)] == seq {
		x.ticks = append(x.ticks, tick)
	}
}

// add adds a rank's phase, between two logical times.
func (f *phased) add(t *stretch, from, to int32) {
	key := [2]int32{t.node, t.place}
	i, known := f.keys[key]
	events := (t.end - t.first) / t.weight
	if !known {
		i = len(f.phases)
		f.keys[key] = i
		f.phases = append(f.phases, Phase{Node: t.node, Place: t.place, WeightMin: t.weight, EventsMin: events})
		f.forms = append(f.forms, map[int32]bool{})
		f.time, f.share, f.span = append(f.time, 0), append(f.share, 0), append(f.span, 0)
	}
	q := &f.phases[i]
	q.Weight = max(q.Weight, t.weight)
	q.WeightMin, q.WeightMax = min(q.WeightMin, t.weight), q.Weight
	q.EventsMin, q.EventsMax = min(q.EventsMin, events), max(q.EventsMax, events)
	q.Ranks++
	q.Calls += t.end - t.first
	f.forms[i][t.shape] = true
	f.span[i] += int64(to - from)
}

// sorted are the phases in the order of the template.
func (f *phased) sorted() []Phase {
	slices.SortFunc(f.phases, func(a, b Phase) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Place, b.Place)) })
	return f.phases
}
