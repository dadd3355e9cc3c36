package replace

import (
	"slices"
	"sort"
)

// placing runs the changed program, without times, to find where each rank calls the new collectives: each thread
// runs until it waits for a message or for others in a collective. A new collective happens when all its ranks have
// reached its place.
type placing struct {
	p       *Plan
	streams []stream
	of      [][]int // streams per rank, by thread
	canon   []map[int64][]*joint
	last    []map[int64][]*joint
	come    map[syncKey]int32 // ranks that have reached an existing operation
	waiting map[syncKey][]int // streams
	counts  map[place]int64   // operations of a communicator (seq) that a rank has begun
	active  []*joint          // those that a rank has reached, and that have not happened
	queue   []int
	queued  []bool
}

// stream is the program of one thread.
type stream struct {
	rank    int32
	rows    []int64 // nil means all rows of the rank
	n       int64
	at      int64
	arrived bool
	listens []int // streams that wait for this one
}

// row returns the row that the stream is at; past the end, the number after its last row.
func (s *stream) row() int64 {
	if s.rows == nil {
		return s.at
	}
	if s.at < s.n {
		return s.rows[s.at]
	}
	return s.rows[s.n-1] + 1
}

// place finds the place of each new collective. If it finds none for some collective, it returns that one.
func (p *Plan) place() *joint {
	g := &placing{p: p, come: map[syncKey]int32{}, waiting: map[syncKey][]int{}, counts: map[place]int64{}}
	g.begin()
	for {
		g.run()
		if g.resolve() {
			continue
		}
		for _, j := range p.joints { // all streams are stuck
			if j.fired {
				continue
			}
			if len(g.active) > 0 {
				j = g.active[0]
			}
			return j
		}
		if !g.force() {
			return nil
		}
	}
}

func (g *placing) begin() {
	r := g.p.run
	g.canon, g.last = make([]map[int64][]*joint, len(r.ranks)), make([]map[int64][]*joint, len(r.ranks))
	for i := range r.ranks {
		q := &r.ranks[i]
		g.canon[i], g.last[i] = map[int64][]*joint{}, map[int64][]*joint{}
		g.of = append(g.of, nil)
		threads := int(max(r.source.Threads[i], 1))
		for t := range threads {
			s := stream{rank: int32(i), n: int64(len(q.thread))}
			if threads > 1 {
				s.rows = []int64{}
				for seq, of := range q.thread {
					if int(of) == t {
						s.rows = append(s.rows, int64(seq))
					}
				}
				s.n = int64(len(s.rows))
			}
			if s.n == 0 {
				s.rows = nil
			}
			g.of[i] = append(g.of[i], len(g.streams))
			g.streams = append(g.streams, s)
		}
	}
	for _, j := range g.p.joints {
		j.parked, j.fired, j.reached = 0, false, false
		for k := range j.parts {
			t := &j.parts[k]
			t.parked, t.slipped = false, false
			if t.canon < 0 {
				continue
			}
			if r.ranks[t.rank].thread[t.last] != t.thread {
				t.last = t.canon
			}
			g.canon[t.rank][t.canon] = append(g.canon[t.rank][t.canon], j)
			g.last[t.rank][t.last] = append(g.last[t.rank][t.last], j)
		}
	}
	g.queued = make([]bool, len(g.streams))
	for i := range g.streams {
		g.wake(i)
	}
}

func (g *placing) wake(i int) {
	if !g.queued[i] {
		g.queued[i] = true
		g.queue = append(g.queue, i)
	}
}

// run advances the streams until none can go on.
func (g *placing) run() {
	for len(g.queue) > 0 {
		i := g.queue[0]
		g.queue = g.queue[1:]
		g.queued[i] = false
		s := &g.streams[i]
		at := s.at
		arrived := s.arrived
		g.advance(i)
		if s.at != at || s.arrived != arrived {
			for _, k := range s.listens {
				g.wake(k)
			}
			s.listens = s.listens[:0]
		}
	}
}

// advance moves a stream forward as far as possible.
func (g *placing) advance(i int) {
	s := &g.streams[i]
	q := &g.p.run.ranks[s.rank]
	for s.at < s.n {
		seq := s.row()
		if !s.arrived && g.parks(s, seq) {
			return
		}
		if !g.p.removed[s.rank][seq] {
			if !g.passes(i, s, q, seq) {
				return
			}
		}
		s.at++
		s.arrived = false
	}
}

// parks reports whether a stream waits at a row for new collectives that have not happened.
func (g *placing) parks(s *stream, seq int64) bool {
	stays := false
	for _, j := range g.canon[s.rank][seq] {
		if t := j.part(s.rank); !j.fired && !t.slipped {
			stays = true
			g.park(j, t)
		}
	}
	for _, j := range g.last[s.rank][seq] {
		if t := j.part(s.rank); !j.fired && t.slipped {
			stays = true
			g.park(j, t)
		}
	}
	if !stays {
		return false
	}
	happened := false
	for _, list := range [2][]*joint{g.canon[s.rank][seq], g.last[s.rank][seq]} {
		for _, j := range list {
			if !j.fired && j.parked == len(j.parts) && g.even(j) {
				g.fire(j)
				happened = true
			}
		}
	}
	if happened {
		return g.parks(s, seq)
	}
	return true
}

func (j *joint) part(rank int32) *part {
	k, _ := slices.BinarySearchFunc(j.parts, rank, func(t part, rank int32) int { return int(t.rank) - int(rank) })
	return &j.parts[k]
}

func (g *placing) park(j *joint, t *part) {
	if t.parked {
		return
	}
	t.parked = true
	j.parked++
	if !j.reached {
		j.reached = true
		g.active = append(g.active, j)
	}
}

// stream returns the stream that does a rank's part.
func (g *placing) stream(t *part) *stream {
	if len(g.of[t.rank]) > 1 {
		return &g.streams[g.of[t.rank][t.thread]]
	}
	return &g.streams[g.of[t.rank][0]]
}

// even reports whether all ranks have begun equally many operations of the communicator.
func (g *placing) even(j *joint) bool {
	n := g.counts[place{j.parts[0].rank, int64(j.comm)}]
	for k := range j.parts {
		if g.counts[place{j.parts[k].rank, int64(j.comm)}] != n {
			return false
		}
	}
	return true
}

// fire makes a new collective happen where its ranks are.
func (g *placing) fire(j *joint) {
	j.fired = true
	j.number = g.counts[place{j.parts[0].rank, int64(j.comm)}]
	shifts := g.p.shifts[j.comm]
	j.own = j.number + int64(len(shifts))
	g.p.shifts[j.comm] = append(shifts, j.number)
	for k := range j.parts {
		t := &j.parts[k]
		s := g.stream(t)
		t.before = s.row()
		g.p.inserted[t.rank] = append(g.p.inserted[t.rank], insert{t.before, j, k})
		for _, i := range g.of[t.rank] {
			g.wake(i)
		}
	}
	g.p.collected[j.finding]++
	g.active = slices.DeleteFunc(g.active, func(x *joint) bool { return x == j })
}

// passes reports whether a stream gets past a row that stays in the run.
func (g *placing) passes(i int, s *stream, q *rank, seq int64) bool {
	first := !s.arrived
	s.arrived = true
	flags := q.flags[seq]
	if flags&rowSyncs != 0 {
		y := q.syncs[seq]
		if y.blocks && !g.together(i, syncKey{y.comm, y.instance}, first) {
			return false
		}
	}
	if flags&rowProbe != 0 {
		k := sort.Search(len(q.probes), func(k int) bool { return q.probes[k].seq >= seq })
		if n := &q.probes[k].found; n.src != none && !g.sent(i, n) {
			return false
		}
	}
	if flags&rowWaits != 0 {
		k := sort.Search(len(q.needs), func(k int) bool { return q.needs[k].done >= seq })
		for ; k < len(q.needs) && q.needs[k].done == seq; k++ {
			if !g.sent(i, &q.needs[k]) {
				return false
			}
		}
	}
	if flags&rowSyncs != 0 && q.syncs[seq].counts {
		g.counts[place{s.rank, int64(q.syncs[seq].comm)}]++
	}
	return true
}

// together reports whether all ranks have reached an existing operation.
func (g *placing) together(i int, key syncKey, first bool) bool {
	if first {
		g.come[key]++
	}
	if g.come[key] < g.p.run.syncs[key] {
		if first {
			g.waiting[key] = append(g.waiting[key], i)
		}
		return false
	}
	for _, k := range g.waiting[key] {
		if k != i {
			g.wake(k)
		}
	}
	delete(g.waiting, key)
	return true
}

// sent reports whether the message has been sent or is removed. If not, the stream is woken when the sender moves.
func (g *placing) sent(i int, n *need) bool {
	if n.src < 0 || int(n.src) >= len(g.of) || g.p.gone[place{n.src, n.sendSeq}] {
		return true
	}
	k := g.of[n.src][0]
	if len(g.of[n.src]) > 1 {
		k = g.of[n.src][g.p.run.ranks[n.src].thread[n.sendSeq]]
	}
	s := &g.streams[k]
	if s.at >= s.n || s.row() > n.sendSeq || s.row() == n.sendSeq && s.arrived {
		return true
	}
	if !slices.Contains(s.listens, i) {
		s.listens = append(s.listens, i)
	}
	return false
}

// resolve finds a way on when all streams wait. First, ranks go past the place of a new collective, up to its last
// row. Then a collective happens where its ranks are if they wait among its rows or, as a last resort, only receive
// and wait before its rows.
func (g *placing) resolve() bool {
	for _, j := range g.active {
		slipped := false
		for k := range j.parts {
			if t := &j.parts[k]; t.parked && !t.slipped && t.last > t.canon {
				t.parked, t.slipped, slipped = false, true, true
				j.parked--
				for _, i := range g.of[t.rank] {
					g.wake(i)
				}
			}
		}
		if slipped {
			return true
		}
	}
	for _, wide := range [2]bool{false, true} {
		for _, j := range g.active {
			if g.even(j) && g.can(j, wide) {
				g.fire(j)
				return true
			}
		}
	}
	return false
}

// can reports whether all ranks of a new collective can call it where they are. wide allows ranks that only receive
// to call it before their first row.
func (g *placing) can(j *joint, wide bool) bool {
	for k := range j.parts {
		t := &j.parts[k]
		if t.parked {
			continue
		}
		s := g.stream(t)
		row := s.row()
		switch {
		case s.arrived && g.p.run.halfway(t.rank, row): // its send is already on its way
			return false
		case t.canon < 0:
		case row >= t.first && (t.slipped || row <= t.canon):
		case wide && !t.sends && row < t.first:
		default:
			return false
		}
	}
	return true
}

// halfway reports whether a waiting row also sends.
func (r *Run) halfway(rank int32, seq int64) bool {
	q := &r.ranks[rank]
	return seq < int64(len(q.flags)) && q.flags[seq]&rowSends != 0
}

// force moves a stream past its row, for programs that wait for themselves, such as one that ended in a deadlock.
func (g *placing) force() bool {
	for i := range g.streams {
		if s := &g.streams[i]; s.at < s.n {
			seq := s.row()
			if y, ok := g.p.run.ranks[s.rank].syncs[seq]; ok && y.counts {
				g.counts[place{s.rank, int64(y.comm)}]++
			}
			s.at++
			s.arrived = false
			g.wake(i)
			for _, k := range s.listens {
				g.wake(k)
			}
			s.listens = s.listens[:0]
			return true
		}
	}
	return false
}
