package detect

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/crc"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/neighbours"
	"github.com/commq/commq/detect/spread"
	"github.com/commq/commq/schema"
)

// programsEnv names the variable that sets the number of random programs; without it a few hundred are tried.
const programsEnv = "COMMQ_DETECT_PROGRAMS"

func randomPrograms(t *testing.T) int {
	text := os.Getenv(programsEnv)
	if text == "" {
		return 300
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: want a number", programsEnv, text)
	}
	return n
}

// TestRandomPrograms makes programs with collectives by hand, and decoys, and wants exactly the findings that they
// were made with.
func TestRandomPrograms(t *testing.T) {
	wanted, got, right := map[string]int{}, map[string]int{}, map[string]int{}
	for seed := range uint64(randomPrograms(t)) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 7))}
		p := g.program()
		want := slices.Clone(g.want)
		slices.Sort(want)
		have := slices.DeleteFunc(found(t, p.run(t, g.Rand, g.noise()), Options{}), func(f string) bool {
			return slices.Contains(g.may, f)
		})
		for _, w := range want {
			wanted[operation(w)]++
			if slices.Contains(have, w) {
				right[operation(w)]++
			}
		}
		for _, h := range have {
			got[operation(h)]++
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("seed %d (%v): want, got:\n%s", seed, g.kinds, d)
		}
	}
	for op, n := range wanted {
		t.Logf("%-14s %6d wanted, %6d found, %6d of them right", op, n, got[op], right[op])
	}
}

func operation(finding string) string {
	var op string
	fmt.Sscan(finding, &op)
	return op
}

// generator makes random programs and the findings expected in them.
type generator struct {
	*rand.Rand
	p     *program
	next  int64 // payload
	heads int   // how payloads begin
	site  int32
	want  []string
	may   []string // findings that are right, but need not be made
	kinds []string
}

func (g *generator) payload() int64 { g.next++; return g.next * 0x1234567 }

func (g *generator) program() *program {
	g.p = newProgram(3 + g.IntN(31))
	kinds := []struct {
		name string
		add  func(ranks []int32)
	}{
		{"broadcast", g.broadcast}, {"broadcasts of one payload", g.again}, {"segments", g.segments},
		{"scatter and allgather", g.long},
		{"redundant", g.redundant}, {"ring allgather", g.ring}, {"trees allgather", g.trees},
		{"pairwise allgather", g.pairwise},
		{"alltoall", g.alltoall}, {"central barrier", g.central}, {"dissemination barrier", g.dissemination},
		{"loop of roots", g.roots},
		{"none: too early", g.early}, {"halo of a constant", g.halo}, {"none: a pair is missing", g.nearly},
		{"up a tree", g.upwards},
		{"none: two halves", g.halves}, {"none: sizes differ", g.sizes}, {"none: no release", g.arrive},
		{"scatter by a tree and allgather", g.cut}, {"allgather by doubling", g.doubling},
		{"neighbours", g.neighbours}, {"none: rings at random", g.rings},
		{"none: a pipeline that begins with zeros", g.zeros},
		{"halo on a grid", g.grid}, {"halo on a grid by shifts", g.shifts}, {"none: wavefront", g.wavefront},
	}
	for range 1 + g.IntN(2) {
		k := kinds[g.IntN(len(kinds))]
		g.kinds = append(g.kinds, k.name)
		g.site += 10
		k.add(g.ranks())
	}
	return g.p
}

// ranks returns all ranks, or at least three of them, in random order.
func (g *generator) ranks() []int32 {
	var all []int32
	for _, r := range g.Perm(g.p.ranks) {
		all = append(all, int32(r))
	}
	if g.IntN(3) > 0 {
		return all
	}
	return all[:3+g.IntN(len(all)-2)]
}

// noise returns messages with unique payloads between random ranks.
func (g *generator) noise() []sent {
	var out []sent
	for range g.IntN(3 * g.p.ranks) {
		a := g.IntN(g.p.ranks)
		b := (a + 1 + g.IntN(g.p.ranks-1)) % g.p.ranks
		out = append(out, sent{src: int32(a), dst: int32(b), payload: g.payload(), bytes: int64(1 + g.IntN(1<<20)),
			tag: 3, site: 5, buffer: schema.NullInt64})
	}
	return out
}

// tree returns a random tree over ranks as the place of each one's parent; the first is the root.
func (g *generator) tree(n int) []int {
	parent := make([]int, n)
	shape := g.IntN(4)
	for i := 1; i < n; i++ {
		switch shape {
		case 0: // linear
			parent[i] = i - 1
		case 1: // from the root
		case 2: // binomial
			parent[i] = i & (i - 1)
		default:
			parent[i] = g.IntN(i)
		}
	}
	return parent
}

// spread sends a payload down a tree.
func (g *generator) spread(ranks []int32, parent []int, like sent) int {
	order := make([][]int, len(ranks))
	at := make([]int, len(ranks))
	for i := 1; i < len(ranks); i++ {
		m := like
		m.src, m.dst = ranks[parent[i]], ranks[i]
		at[i] = g.p.message(m)
		order[parent[i]] = append(order[parent[i]], at[i])
	}
	for i := range ranks {
		if i > 0 {
			g.p.recv(at[i])
		}
		g.Shuffle(len(order[i]), func(a, b int) { order[i][a], order[i][b] = order[i][b], order[i][a] })
		for _, m := range order[i] {
			g.p.send(m)
		}
	}
	return len(ranks) - 1
}

func (g *generator) like() sent {
	return sent{payload: g.payload(), bytes: int64(8 * (1 + g.IntN(1000))), tag: 9, site: g.site,
		buffer: schema.NullInt64}
}

func sorted(ranks []int32) []int32 {
	out := slices.Clone(ranks)
	slices.Sort(out)
	return out
}

// wants adds an expected finding.
func (g *generator) wants(f Finding) { g.want = append(g.want, g.text(f)) }

// text is a finding as the test compares it.
func (g *generator) text(f Finding) string {
	f.Ranks = sorted(f.Ranks)
	f.Roots, f.PossibleRoots = sorted(f.Roots), sorted(f.PossibleRoots)
	f.Segments = max(f.Segments, 1)
	for r := range int32(g.p.ranks) {
		if !slices.Contains(f.Ranks, r) {
			f.Missing = append(f.Missing, r)
		}
	}
	return f.text()
}

// broadcast repeats broadcasts of different payloads.
func (g *generator) broadcast(ranks []int32) {
	like := g.like()
	parent := g.tree(len(ranks))
	times, messages := 1+g.IntN(4), 0
	for range times {
		like.payload = g.payload()
		messages += g.spread(ranks, parent, like)
	}
	g.wants(Finding{Operation: ledger.Bcast, Ranks: ranks, Roots: ranks[:1], PossibleRoots: ranks[:1], BytesMax: like.bytes,
		Instances: int64(times), Messages: int64(messages)})
}

// again repeats broadcasts of one payload.
func (g *generator) again(ranks []int32) {
	like := g.like()
	if g.IntN(2) == 0 {
		like.bytes = 0
	}
	parent := g.tree(len(ranks))
	times, messages := 1+g.IntN(4), 0
	for range times {
		messages += g.spread(ranks, parent, like)
	}
	g.wants(Finding{Operation: ledger.Bcast, Ranks: ranks, Roots: ranks[:1], PossibleRoots: ranks[:1], BytesMax: like.bytes,
		Instances: int64(times), Messages: int64(messages), Repeats: int64(times - 1)})
}

// segments broadcasts in segments.
func (g *generator) segments(ranks []int32) {
	like := g.like()
	like.buffer = 4096 * int64(1+g.IntN(1000))
	parent := g.tree(len(ranks))
	n, messages := 2+g.IntN(5), 0
	for range n {
		like.payload = g.payload()
		messages += g.spread(ranks, parent, like)
		like.buffer += like.bytes
	}
	g.wants(Finding{Operation: ledger.Bcast, Ranks: ranks, Roots: ranks[:1], PossibleRoots: ranks[:1],
		BytesMax: like.bytes * int64(n), Instances: 1, Messages: int64(messages), Segments: n})
}

// long broadcasts by a linear scatter and a ring allgather.
func (g *generator) long(ranks []int32) {
	like := g.like()
	n := len(ranks)
	blocks := make([]sent, n)
	for b := range blocks {
		blocks[b] = like
		blocks[b].payload = g.payload()
		blocks[b].buffer = 8192 + int64(b)*like.bytes
	}
	messages := 0
	for b := 1; b < n; b++ {
		m := blocks[b]
		m.src, m.dst = ranks[0], ranks[b]
		g.p.both(m)
		messages++
	}
	messages += g.roll(ranks, func(b int) sent { return blocks[b] }, 1)
	g.wants(Finding{Operation: ledger.Bcast, Ranks: ranks, Roots: ranks[:1], PossibleRoots: ranks[:1],
		BytesMax: like.bytes * int64(n), Instances: 1, Messages: int64(messages), Segments: n})
}

// roll returns the ring of an allgather: each step forwards the block received in the last one. With phase 1 all
// ranks send first, otherwise every other one does.
func (g *generator) roll(ranks []int32, block func(int) sent, phase int) int {
	n := len(ranks)
	ids := make([][]int, n-1)
	for s := range ids {
		ids[s] = make([]int, n)
		for i := range ranks {
			m := block((i - s + n) % n)
			m.src, m.dst = ranks[i], ranks[(i+1)%n]
			ids[s][i] = g.p.message(m)
		}
	}
	for i := range ranks {
		for s := range ids {
			out, in := ids[s][i], ids[s][(i-1+n)%n]
			if phase == 1 || i%2 == 0 {
				g.p.send(out)
				g.p.recv(in)
			} else {
				g.p.recv(in)
				g.p.send(out)
			}
		}
	}
	return n * (n - 1)
}

// redundant is a broadcast with one extra message between ranks that both have the payload.
func (g *generator) redundant(ranks []int32) {
	like := g.like()
	n := len(ranks)
	parent := make([]int, n)
	for i := 1; i < n; i++ {
		parent[i] = i - 1
	}
	messages := g.spread(ranks, parent, like)
	m := like
	m.src, m.dst = ranks[n-1], ranks[0]
	g.p.both(m)
	g.wants(Finding{Operation: ledger.Bcast, Ranks: ranks, Roots: ranks[:1], PossibleRoots: ranks[:2], BytesMax: like.bytes,
		Instances: 1, Messages: int64(messages) + 1})
}

// blocks returns the payloads of an allgather.
func (g *generator) blocks(n int) (blocks []sent, op ledger.Operation, bytes int64) {
	like := g.like()
	op = ledger.Allgather
	if g.IntN(3) == 0 {
		op = ledger.Allgatherv
	}
	for b := range n {
		m := like
		m.payload = g.payload()
		if op == ledger.Allgatherv {
			m.bytes += int64(8 * b)
		}
		bytes = max(bytes, m.bytes)
		blocks = append(blocks, m)
	}
	return
}

func (g *generator) wantsAllgather(op ledger.Operation, ranks []int32, bytes int64, times, messages int) {
	g.wants(Finding{Operation: op, Ranks: ranks, BytesMax: bytes, Instances: int64(times), Messages: int64(messages)})
}

func (g *generator) ring(ranks []int32) {
	phase := g.IntN(2)
	blocks, op, bytes := g.blocks(len(ranks))
	times, messages := 1+g.IntN(2), 0
	for range times {
		for b := range blocks {
			blocks[b].payload = g.payload()
		}
		messages += g.roll(ranks, func(b int) sent { return blocks[b] }, phase)
	}
	g.wantsAllgather(op, ranks, bytes, times, messages)
}

// trees is an allgather in which every block goes down its own tree, all started at once.
func (g *generator) trees(ranks []int32) {
	blocks, op, bytes := g.blocks(len(ranks))
	n := len(ranks)
	ids := make([][]int, n)
	parents := make([][]int, n)
	for b := range ids {
		parents[b] = g.tree(n)
		ids[b] = make([]int, n)
		for i := 1; i < n; i++ {
			m := blocks[b]
			m.src, m.dst = ranks[(parents[b][i]+b)%n], ranks[(i+b)%n]
			ids[b][i] = g.p.message(m)
			if parents[b][i] == 0 {
				g.p.send(ids[b][i])
			}
		}
	}
	for b := range ids {
		for i := 1; i < n; i++ {
			g.p.recv(ids[b][i])
			for j := range n {
				if j > 0 && parents[b][j] == i {
					g.p.send(ids[b][j])
				}
			}
		}
	}
	g.wantsAllgather(op, ranks, bytes, 1, n*(n-1))
}

// pairwise is an allgather in which each pair of ranks exchanges its blocks, the lower rank first.
func (g *generator) pairwise(ranks []int32) {
	blocks, op, bytes := g.blocks(len(ranks))
	n := len(ranks)
	for a := range n {
		for b := a + 1; b < n; b++ {
			x, y := blocks[a], blocks[b]
			x.src, x.dst, y.src, y.dst = ranks[a], ranks[b], ranks[b], ranks[a]
			g.p.both(x)
			g.p.both(y)
		}
	}
	g.wantsAllgather(op, ranks, bytes, 1, n*(n-1))
}

// exchange sends between all pairs of ranks, in rounds; with nearly set it leaves out one message.
func (g *generator) exchange(ranks []int32, like sent, differ, nearly bool) (messages int, bytes int64) {
	n := len(ranks)
	sum := make([]int64, n)
	for s := 1; s < n; s++ {
		ids := make([]int, n)
		for i := range ranks {
			m := like
			m.src, m.dst, m.payload = ranks[i], ranks[(i+s)%n], g.payload()
			if differ {
				m.bytes += int64(8 * s * i)
			}
			ids[i] = g.p.message(m)
			sum[i] += m.bytes
			bytes = max(bytes, sum[i])
		}
		for i := range ranks {
			if !nearly || s != 1 || i != 0 {
				g.p.send(ids[i])
				messages++
			}
			if from := (i - s + n) % n; !nearly || s != 1 || from != 0 {
				g.p.recv(ids[from])
			}
		}
	}
	return
}

func (g *generator) alltoall(ranks []int32) {
	like := g.like()
	op, differ := ledger.Alltoall, g.IntN(3) == 0
	if differ {
		op = ledger.Alltoallv
	}
	times, messages, bytes := 1+g.IntN(3), 0, int64(0)
	for range times {
		var m int
		m, bytes = g.exchange(ranks, like, differ, false)
		messages += m
	}
	g.wants(Finding{Operation: op, Ranks: ranks, BytesMax: bytes, Instances: int64(times), Messages: int64(messages)})
}

// central repeats a barrier that goes up a tree and down again.
func (g *generator) central(ranks []int32) {
	like := g.like()
	like.bytes = 0
	parent := g.tree(len(ranks))
	times, messages := 1+g.IntN(4), 0
	for range times {
		messages += g.up(ranks, parent, like) + g.spread(ranks, parent, like)
	}
	g.wants(Finding{Operation: ledger.Barrier, Ranks: ranks, Instances: int64(times), Messages: int64(messages)})
}

// up sends from the leaves of a tree to its root; a rank waits for its children.
func (g *generator) up(ranks []int32, parent []int, like sent) int {
	for i := len(ranks) - 1; i > 0; i-- {
		m := like
		m.src, m.dst = ranks[i], ranks[parent[i]]
		g.p.both(m)
	}
	return len(ranks) - 1
}

func (g *generator) dissemination(ranks []int32) {
	like := g.like()
	like.bytes = 0
	n := len(ranks)
	times, messages := 1+g.IntN(4), 0
	for range times {
		for s := 1; s < n; s *= 2 {
			ids := make([]int, n)
			for i := range ranks {
				m := like
				m.src, m.dst = ranks[i], ranks[(i+s)%n]
				ids[i] = g.p.message(m)
			}
			for i := range ranks {
				g.p.send(ids[i])
				g.p.recv(ids[(i-s+n)%n])
				messages++
			}
		}
	}
	g.wants(Finding{Operation: ledger.Barrier, Ranks: ranks, Instances: int64(times), Messages: int64(messages)})
}

// roots broadcasts from each root in turn. This is no allgather, as each broadcast may depend on those before.
func (g *generator) roots(ranks []int32) {
	like := g.like()
	messages := 0
	parent := g.tree(len(ranks))
	for r := range ranks {
		like.payload = g.payload()
		messages += g.spread(slices.Concat(ranks[r:], ranks[:r]), parent, like)
	}
	g.wants(Finding{Operation: ledger.Bcast, Ranks: ranks, Roots: ranks, PossibleRoots: ranks, BytesMax: like.bytes,
		Instances: int64(len(ranks)), Messages: int64(messages)})
}

// early forwards a payload before it has been received.
func (g *generator) early(ranks []int32) {
	like := g.like()
	var ids []int
	for i := 1; i < len(ranks); i++ {
		m := like
		m.src, m.dst = ranks[i-1], ranks[i]
		ids = append(ids, g.p.message(m))
		g.p.send(ids[i-1])
	}
	for _, m := range ids {
		g.p.recv(m)
	}
}

// halo sends one constant to both neighbours on a ring, repeatedly.
func (g *generator) halo(ranks []int32) {
	n := len(ranks)
	if n < 4 {
		return
	}
	like := g.like()
	if g.IntN(2) == 0 {
		like.bytes = 0
	}
	for range n {
		var ids []int
		for i := range ranks {
			for _, j := range []int{(i + 1) % n, (i + n - 1) % n} {
				m := like
				m.src, m.dst = ranks[i], ranks[j]
				ids = append(ids, g.p.message(m))
			}
		}
		for _, m := range ids {
			g.p.send(m)
		}
		for _, m := range ids {
			g.p.recv(m)
		}
	}
	if like.bytes > 0 { // no spreading, but an exchange between neighbours
		g.wants(Finding{Operation: ledger.NeighborAlltoall, Ranks: ranks, BytesMax: 2 * like.bytes, Instances: int64(n),
			Messages: int64(2 * n * n)})
	}
}

// nearly is an alltoall with one message missing.
func (g *generator) nearly(ranks []int32) { g.exchange(ranks, g.like(), g.IntN(3) == 0, true) }

// upwards sends different payloads of one size up a tree: a star is a gather, a tree a reduction, and a chain cannot
// be told from a pipeline.
func (g *generator) upwards(ranks []int32) {
	parent := g.tree(len(ranks))
	like := g.like()
	for i := len(ranks) - 1; i > 0; i-- {
		m := like
		m.payload = g.payload()
		m.src, m.dst = ranks[i], ranks[parent[i]]
		g.p.both(m)
	}
	children := map[int]int{}
	for _, p := range parent[1:] {
		children[p]++
	}
	n := len(ranks)
	f := Finding{Ranks: ranks, Roots: ranks[:1], PossibleRoots: ranks[:1], BytesMax: like.bytes, Instances: 1,
		Messages: int64(n - 1)}
	switch {
	case len(children) == n-1: // a chain
		return
	case n < g.p.ranks: // of a part of the communicator: it may not be one operation
		return
	case len(children) > 1:
		f.Operation = ledger.Reduce
	default:
		f.Operation, f.BytesMax = ledger.Gather, like.bytes*int64(n)
	}
	g.wants(f)
}

// halves sends one payload in each of many pairs.
func (g *generator) halves(ranks []int32) {
	like := g.like()
	for i := 1; i < len(ranks); i += 2 {
		m := like
		m.src, m.dst = ranks[i-1], ranks[i]
		g.p.both(m)
	}
}

// sizes forwards payloads with the same hash and another size.
func (g *generator) sizes(ranks []int32) {
	like := g.like()
	for i := 1; i < len(ranks); i++ {
		m := like
		m.bytes += int64(8 * i)
		m.src, m.dst = ranks[i-1], ranks[i]
		g.p.both(m)
	}
}

// arrive is a barrier without a release: empty messages to one rank.
func (g *generator) arrive(ranks []int32) {
	like := g.like()
	like.bytes = 0
	g.up(ranks, make([]int, len(ranks)), like)
}

// neighbours sends each rank's own payload to both neighbours on a ring, the left or the right one first.
func (g *generator) neighbours(ranks []int32) {
	n := len(ranks)
	if n < 4 {
		return
	}
	like := g.like()
	times := 1 + g.IntN(4)
	for range times {
		ids := make([][2]int, n)
		for i := range ranks {
			m := like
			m.src, m.payload = ranks[i], g.payload()
			for k, j := range [2]int{(i + 1) % n, (i + n - 1) % n} {
				m.dst = ranks[j]
				ids[i][k] = g.p.message(m)
			}
		}
		for i := range ranks {
			first := g.IntN(2)
			g.p.send(ids[i][first])
			g.p.send(ids[i][1-first])
			g.p.recv(ids[(i+1)%n][1])
			g.p.recv(ids[(i+n-1)%n][0])
		}
	}
	g.wants(Finding{Operation: ledger.NeighborAllgather, Ranks: ranks, BytesMax: like.bytes, Instances: int64(times),
		Messages: int64(2 * n * times)})
}

// lattice is a grid of one or two dimensions, open or periodic: for each rank the place of the next one up and down
// each dimension, -1 for none.
type lattice struct {
	n    int
	next [][4]int
	most int // most neighbours of a rank
}

// lattice returns a random grid of at most ranks ranks; dimensions of size two are open.
func (g *generator) lattice(ranks int) *lattice {
	a := 2 + g.IntN(5)
	b := ranks / a
	if b < 2 || g.IntN(2) == 0 {
		a, b = 1, ranks
	}
	closed := [2]bool{a > 2 && g.IntN(2) == 0, b > 2 && g.IntN(2) == 0}
	l := &lattice{n: a * b}
	for r := range l.n {
		x, y := r/b, r%b
		at := func(x, y int) int {
			if closed[0] {
				x = (x + a) % a
			}
			if closed[1] {
				y = (y + b) % b
			}
			if x < 0 || x >= a || y < 0 || y >= b {
				return -1
			}
			return x*b + y
		}
		next := [4]int{at(x+1, y), at(x-1, y), at(x, y+1), at(x, y-1)}
		if a == 1 {
			next[0], next[1] = -1, -1
		}
		l.next = append(l.next, next)
		has := 0
		for _, q := range next {
			if q >= 0 {
				has++
			}
		}
		l.most = max(l.most, has)
	}
	return l
}

// halo sends a different payload along each of the directions at once; it returns the number of messages and the most
// that a rank sends.
func (l *lattice) halo(g *generator, ranks []int32, like sent, directions ...int) (messages, most int) {
	ids := map[[2]int]int{} // by destination's place and direction
	for r := range l.n {
		n := 0
		for _, k := range directions {
			if q := l.next[r][k]; q >= 0 {
				m := like
				m.src, m.dst, m.payload = ranks[r], ranks[q], g.payload()
				m.site, m.tag = m.site+2*int32(k), m.tag+int32(k)
				ids[[2]int{q, k}] = g.p.message(m)
				g.p.send(ids[[2]int{q, k}])
				n++
			}
		}
		messages, most = messages+n, max(most, n)
	}
	for r := range l.n {
		for _, k := range directions {
			if m, ok := ids[[2]int{r, k}]; ok {
				g.p.recv(m)
			}
		}
	}
	return messages, most
}

// grid repeats exchanges with all neighbours at once.
func (g *generator) grid(ranks []int32) {
	l, like := g.lattice(len(ranks)), g.like()
	times := neighbours.MinInstances + g.IntN(4)
	messages, most := 0, 0
	for range times {
		messages, most = l.halo(g, ranks, like, 0, 1, 2, 3)
	}
	if messages == l.n*(l.n-1) { // a ring of three: all ranks are neighbours
		return
	}
	g.wants(Finding{Operation: ledger.NeighborAlltoall, Ranks: ranks[:l.n], BytesMax: int64(most) * like.bytes,
		Instances: int64(times), Messages: int64(times * messages)})
}

// shifts repeats exchanges in one direction after the other, along each dimension.
func (g *generator) shifts(ranks []int32) {
	l, like := g.lattice(len(ranks)), g.like()
	times := neighbours.MinInstances + g.IntN(4)
	var messages [4]int
	for range times {
		for k := range messages {
			messages[k], _ = l.halo(g, ranks, like, k)
		}
	}
	for k := 0; k < 4; k += 2 {
		most := 0
		for _, next := range l.next {
			has := 0
			for _, q := range next[k : k+2] {
				if q >= 0 {
					has++
				}
			}
			most = max(most, has)
		}
		if messages[k]+messages[k+1] == l.n*(l.n-1) { // all ranks are neighbours
			continue
		}
		f := Finding{Operation: ledger.NeighborAlltoall, Ranks: ranks[:l.n], BytesMax: int64(most) * like.bytes,
			Instances: int64(times), Messages: int64(times * (messages[k] + messages[k+1]))}
		if most < 2 { // pairs: an exchange only if others show that it is along an axis of a grid
			g.may = append(g.may, g.text(f))
			continue
		}
		g.wants(f)
	}
}

// wavefront forwards what came from two sides of a grid, and sweeps back.
func (g *generator) wavefront(ranks []int32) {
	l, like := g.lattice(len(ranks)), g.like()
	for range 2 + g.IntN(3) {
		for _, back := range []int{0, 1} {
			ids := map[[2]int]int{}
			for i := range l.n {
				r := i
				if back == 1 {
					r = l.n - 1 - i
				}
				for _, k := range []int{back, 2 + back} {
					if m, ok := ids[[2]int{r, k}]; ok {
						g.p.recv(m)
					}
				}
				for _, k := range []int{back, 2 + back} {
					if q := l.next[r][k]; q >= 0 && (back == 0) == (q > r) {
						m := like
						m.src, m.dst, m.payload = ranks[r], ranks[q], g.payload()
						m.site, m.tag = m.site+2*int32(k), m.tag+int32(k)
						ids[[2]int{q, k}] = g.p.message(m)
						g.p.send(ids[[2]int{q, k}])
					}
				}
			}
		}
	}
}

// rings imitates bandwidth benchmarks: each rank sends its own constant payload three times to the next rank on a
// ring, whose order is new each time.
func (g *generator) rings(ranks []int32) {
	like := g.like()
	like.bytes += 8
	payloads := map[int32]int64{}
	for _, r := range ranks {
		payloads[r] = g.payload()
	}
	n := len(ranks)
	for range 1 + g.IntN(6) {
		order := g.Perm(n)
		var ids []int
		for range 3 {
			for i := range order {
				m := like
				m.src, m.dst = ranks[order[i]], ranks[order[(i+1)%n]]
				m.payload = payloads[m.src]
				ids = append(ids, g.p.message(m))
			}
		}
		for _, m := range ids {
			g.p.send(m)
		}
		for _, m := range ids {
			g.p.recv(m)
		}
	}
}

// zeros is a pipeline over the ranks that forwards zeros first, and later each rank's results.
func (g *generator) zeros(ranks []int32) {
	like := g.like()
	zeros := 1 + g.IntN(3)
	for step := range zeros * (spread.MinUseShare + 1) {
		for i := 1; i < len(ranks); i++ {
			m := like
			m.src, m.dst, m.payload = ranks[i-1], ranks[i], g.payload()
			if step < zeros {
				m.payload = int64(crc.New(64).Repeated(0, m.bytes))
			}
			g.p.both(m)
		}
	}
}

// cutPayload is a payload cut into blocks, at one address per rank.
type cutPayload struct {
	blocks []sent
	at     map[int32]int64 // by rank
}

// cutPayload makes blocks of equal size except the last.
func (g *generator) cutPayload(ranks []int32, n int) *cutPayload {
	p := &cutPayload{at: map[int32]int64{}}
	like := g.like()
	for range n {
		like.payload = g.payload()
		p.blocks = append(p.blocks, like)
	}
	p.blocks[n-1].bytes += 8 * int64(g.IntN(n))
	for _, r := range ranks {
		p.at[r] = 1<<30 + int64(r)<<24 + 64*int64(g.IntN(1000))
	}
	return p
}

// message returns one message with the blocks from ... to-1.
func (p *cutPayload) message(src, dst int32, from, to int) sent {
	m := p.blocks[from]
	sum, hash, offset := crc.New(64), uint64(0), int64(0)
	for _, b := range p.blocks[:from] {
		offset += b.bytes
	}
	m.bytes = 0
	for _, b := range p.blocks[from:to] {
		hash = sum.Join(hash, uint64(b.payload), b.bytes)
		m.bytes += b.bytes
	}
	m.src, m.dst, m.payload, m.buffer, m.to = src, dst, int64(hash), p.at[src]+offset, p.at[dst]+offset
	return m
}

func (p *cutPayload) bytes() (n int64) {
	for _, b := range p.blocks {
		n += b.bytes
	}
	return n
}

// cut is a broadcast like HPL's long one: a tree scatters the blocks, one message for each subtree, and a ring
// gathers them. In half of the programs the first rank is not in the ring.
func (g *generator) cut(ranks []int32) {
	like := g.like()
	ring := ranks
	if g.IntN(2) == 0 && len(ranks) > 3 {
		ring = ranks[1:]
	}
	n, times, messages, bytes := len(ring), 1+g.IntN(2), 0, int64(0)
	most := &cutPayload{}
	for k := range times {
		p := g.cutPayload(ranks, n)
		if k > 0 { // the blocks' sizes stay, their contents change
			for b := range p.blocks {
				p.blocks[b].bytes = most.blocks[b].bytes
			}
			p.at = most.at
		}
		most, bytes = p, p.bytes()
		for b := range p.blocks {
			p.blocks[b].site = like.site
		}
		if n < len(ranks) {
			g.p.both(p.message(ring[0], ranks[0], 0, n))
			messages++
		}
		var spread func(lo, hi int)
		spread = func(lo, hi int) {
			if hi-lo < 2 {
				return
			}
			half := 1
			for 2*half < hi-lo {
				half *= 2
			}
			g.p.both(p.message(ring[lo], ring[lo+half], lo+half, hi))
			messages++
			spread(lo, lo+half)
			spread(lo+half, hi)
		}
		spread(0, n)
		ids := make([][]int, n-1)
		for s := range ids {
			for i := range ring {
				b := (i - s + n) % n
				ids[s] = append(ids[s], g.p.message(p.message(ring[i], ring[(i+1)%n], b, b+1)))
				messages++
			}
		}
		for i := range ring {
			for s := range ids {
				g.p.send(ids[s][i])
				g.p.recv(ids[s][(i-1+n)%n])
			}
		}
	}
	g.wants(Finding{Operation: ledger.Bcast, Ranks: ranks, Roots: ring[:1], PossibleRoots: ring[:1], BytesMax: bytes,
		Instances: int64(times), Messages: int64(messages), Segments: n})
}

// doubling is an allgather by recursive doubling: pairs exchange all that they have, over growing distances.
func (g *generator) doubling(ranks []int32) {
	n := 1
	for 2*n <= len(ranks) {
		n *= 2
	}
	if n < 4 {
		return
	}
	ranks = ranks[:n]
	p := g.cutPayload(ranks, n)
	p.blocks[n-1].bytes = p.blocks[0].bytes
	messages := 0
	for s := 1; s < n; s *= 2 {
		ids := make([]int, n)
		for i := range ranks {
			from := i &^ (s - 1)
			ids[i] = g.p.message(p.message(ranks[i], ranks[i^s], from, from+s))
			messages++
		}
		for i := range ranks {
			g.p.send(ids[i])
			g.p.recv(ids[i^s])
		}
	}
	g.wantsAllgather(ledger.Allgather, ranks, p.blocks[0].bytes, 1, messages)
}
