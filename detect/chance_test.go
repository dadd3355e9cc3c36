package detect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// chanceEnv names the variable that sets the number of random programs without any collective.
const chanceEnv = "COMMQ_DETECT_CHANCE"

// chanceKinds are kinds of traffic whose payloads repeat though there is no collective.
var chanceKinds = []struct {
	name       string
	add        func(g *generator)
	neighbours bool // it does exchange with neighbours
}{
	{"sorting network", (*generator).sorting, false}, {"gossip", (*generator).gossip, false},
	{"work stealing", (*generator).stealing, false}, {"cache", (*generator).cache, false},
	{"particles", (*generator).particles, false}, {"game of life", (*generator).life, true},
	{"master and workers", (*generator).master, false}, {"token", (*generator).token, false},
	{"request and reply", (*generator).requests, false}, {"random walk", (*generator).walk, false},
}

// chanceTableEnv names the variable with the file to which TestChance writes its table as CSV.
const chanceTableEnv = "COMMQ_DETECT_CHANCE_TABLE"

// mostChanceBits is the last row of the table of chance.
const mostChanceBits = 24

// chanceRow counts the findings in the programs of a kind.
type chanceRow struct {
	programs  int
	certainty [3]int                  // findings
	atLeast   [mostChanceBits + 1]int // programs with a finding of so many bits or more
}

// TestChance makes programs without collectives, and wants no finding that is verified, and no more findings of any
// number of bits than these bits predict.
func TestChance(t *testing.T) {
	programs := 300
	if text := os.Getenv(chanceEnv); text != "" {
		var err error
		if programs, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s=%s: want a number", chanceEnv, text)
		}
	}
	rows := make([]chanceRow, len(chanceKinds))
	t.Run("kinds", func(t *testing.T) {
		for kind := range chanceKinds {
			t.Run(chanceKinds[kind].name, func(t *testing.T) {
				t.Parallel()
				for seed := kind; seed < programs; seed += len(chanceKinds) {
					rows[kind].add(t, uint64(seed), kind)
				}
			})
		}
	})
	for k, row := range rows {
		t.Logf("%-20s %6d programs, findings: %6d verified, %6d inferred, %6d candidates", chanceKinds[k].name, row.programs,
			row.certainty[Verified], row.certainty[Inferred], row.certainty[Candidate])
	}
	table := chanceTable(rows)
	t.Log("\n" + table)
	if name := os.Getenv(chanceTableEnv); name != "" {
		if err := os.WriteFile(name, []byte(table), 0o666); err != nil {
			t.Error(err)
		}
	}
	for bits := 1; bits <= mostChanceBits; bits++ {
		observed := 0
		for _, row := range rows {
			observed += row.atLeast[bits]
		}
		// three standard deviations of a Poisson distribution
		if want := math.Ldexp(float64(programs), -bits); float64(observed) > want+3*math.Sqrt(want)+1 {
			t.Errorf("%d of %d programs have a finding of %d bits or more, want at most about %.1f", observed, programs, bits, want)
		}
	}
}

// add looks at one program of a kind.
func (row *chanceRow) add(t *testing.T, seed uint64, kind int) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 11)), site: 10}
	g.p, g.heads = newProgram(5+g.IntN(28)), g.IntN(headKinds)
	chanceKinds[kind].add(g)
	r, err := Detect(g.p.run(t, g.Rand, nil), Options{})
	if err != nil {
		t.Fatal(err)
	}
	row.programs++
	most := -1.0
	for i := range r.Findings {
		f := &r.Findings[i]
		if chanceKinds[kind].neighbours && f.Operation.Neighborly() {
			continue
		}
		row.certainty[f.Certainty]++
		most = max(most, f.Bits)
		if f.Certainty == Verified {
			t.Errorf("seed %d: verified with %.1f bits: %s", seed, f.Bits, f.text())
		}
	}
	for bits := 0; bits <= mostChanceBits && float64(bits) <= most; bits++ {
		row.atLeast[bits]++
	}
}

// chanceTable returns how many programs have a finding of so many bits or more, as predicted and of each kind.
func chanceTable(rows []chanceRow) string {
	var s strings.Builder
	s.WriteString("bits,predicted,observed")
	programs := 0
	for k, row := range rows {
		programs += row.programs
		s.WriteString("," + strings.ReplaceAll(chanceKinds[k].name, " ", "_"))
	}
	s.WriteString("\n")
	for bits := range mostChanceBits + 1 {
		observed, kinds := 0, ""
		for _, row := range rows {
			observed += row.atLeast[bits]
			kinds += fmt.Sprintf(",%d", row.atLeast[bits])
		}
		fmt.Fprintf(&s, "%d,%.4g,%d%s\n", bits, math.Ldexp(float64(programs), -bits), observed, kinds)
	}
	return s.String()
}

// pass sends a payload from one rank to another, which receives it at once.
func (g *generator) pass(src, dst int, payload, bytes int64, site int32) {
	g.p.both(sent{src: int32(src), dst: int32(dst), payload: payload, bytes: bytes, tag: 9, site: g.site + site,
		buffer: schema.NullInt64, head: g.head(payload)})
}

// swap sends payloads both ways between two ranks; both send first.
func (g *generator) swap(a, b int, x, y, bytes int64) {
	var ids []int
	for _, m := range []sent{{src: int32(a), dst: int32(b), payload: x}, {src: int32(b), dst: int32(a), payload: y}} {
		m.bytes, m.tag, m.site, m.buffer, m.head = bytes, 9, g.site, schema.NullInt64, g.head(m.payload)
		ids = append(ids, g.p.message(m))
		g.p.send(ids[len(ids)-1])
	}
	g.p.recv(ids[0])
	g.p.recv(ids[1])
}

// The first numbers of the payloads of a program.
const (
	zeros    = iota // all zero
	ascend          // whole numbers in the order of the payloads
	scramble        // any
	headKinds
)

// head returns the first number of a payload.
func (g *generator) head(payload int64) int64 {
	switch {
	case payload == 0 || g.heads == zeros:
		return 0
	case g.heads == ascend:
		return int64(math.Float64bits(float64(payload / 0x1234567)))
	}
	return int64(math.Float64bits(1 / float64(uint64(payload)*0x9e3779b97f4a7c15|1)))
}

// other returns a random rank but one.
func (g *generator) other(rank int) int { return (rank + 1 + g.IntN(g.p.ranks-1)) % g.p.ranks }

// size returns the bytes of the payloads of a program.
func (g *generator) size() int64 { return int64(8 * (1 + g.IntN(200))) }

// values returns so many payloads: all different, or of a few values.
func (g *generator) values(n int) []int64 {
	out, few := make([]int64, n), g.IntN(2*n)
	for k := range out {
		if out[k] = g.payload(); few > 1 && few < n {
			out[k] = int64(1+g.IntN(few)) * 0x7654321
		}
	}
	return out
}

// sorting compares and exchanges keys between ranks: odd-even, bitonic, or of random pairs, perhaps several times.
func (g *generator) sorting() {
	n, bytes := g.p.ranks, g.size()
	for range 1 + g.IntN(5) {
		keys := g.values(n)
		g.Shuffle(n, func(a, b int) { keys[a], keys[b] = keys[b], keys[a] })
		exchange := func(a, b int, up bool) {
			g.swap(a, b, keys[a], keys[b], bytes)
			if keys[a] > keys[b] == up {
				keys[a], keys[b] = keys[b], keys[a]
			}
		}
		switch g.IntN(3) {
		case 0:
			for round := range n {
				for a := round % 2; a+1 < n; a += 2 {
					exchange(a, a+1, true)
				}
			}
		case 1:
			for size := 2; size <= n; size *= 2 {
				for d := size / 2; d > 0; d /= 2 {
					for a := range n &^ (size - 1) {
						if a&d == 0 {
							exchange(a, a|d, a&size == 0)
						}
					}
				}
			}
		default:
			for range n * n / 2 {
				a := g.IntN(n)
				b := g.other(a)
				exchange(min(a, b), max(a, b), true)
			}
		}
	}
}

// gossip tells rumours to random ranks, each time one that the teller knows.
func (g *generator) gossip() {
	n, bytes := g.p.ranks, g.size()
	known, rumours := make([][]int64, n), g.values(1+g.IntN(2*n))
	for _, r := range rumours {
		at := g.IntN(n)
		known[at] = append(known[at], r)
	}
	fresh := g.IntN(2) == 0 // the newest rumour is told
	for range n * (1 + g.IntN(10)) {
		a := g.IntN(n)
		if len(known[a]) == 0 {
			continue
		}
		b, r := g.other(a), known[a][g.IntN(len(known[a]))]
		if fresh {
			r = known[a][len(known[a])-1]
		}
		g.pass(a, b, r, bytes, 0)
		if !slices.Contains(known[b], r) {
			known[b] = append(known[b], r)
		}
	}
}

// stealing moves tasks to ranks that ask for one; tasks may move again.
func (g *generator) stealing() {
	n, bytes := g.p.ranks, g.size()
	tasks := make([][]int64, n)
	for range n * (1 + g.IntN(4)) {
		at := g.IntN(1 + g.IntN(n))
		tasks[at] = append(tasks[at], g.payload())
	}
	for range n * (2 + g.IntN(10)) {
		thief := g.IntN(n)
		victim := g.other(thief)
		g.pass(thief, victim, 0, 0, 2)
		if k := len(tasks[victim]); k > 0 {
			g.pass(victim, thief, tasks[victim][k-1], bytes, 0)
			tasks[thief] = append(tasks[thief], tasks[victim][k-1])
			tasks[victim] = tasks[victim][:k-1]
		} else {
			g.pass(victim, thief, 0, 0, 4)
		}
		if k := len(tasks[thief]); k > 0 && g.IntN(3) == 0 {
			tasks[thief] = tasks[thief][:k-1] // done
		}
	}
}

// cache sends blocks to ranks that ask for them; some blocks are popular, and ranks keep a few.
func (g *generator) cache() {
	n, bytes := g.p.ranks, g.size()
	blocks, room := g.values(1+g.IntN(4*n)), 1+g.IntN(6)
	kept := make([][]int, n)
	for range n * (2 + g.IntN(20)) {
		rank, b := g.IntN(n), min(g.IntN(len(blocks)), g.IntN(len(blocks)))
		owner := b % n
		if rank == owner || slices.Contains(kept[rank], b) {
			continue
		}
		g.pass(rank, owner, int64(b+1), 4, 2)
		g.pass(owner, rank, blocks[b], bytes, 0)
		if kept[rank] = append(kept[rank], b); len(kept[rank]) > room {
			kept[rank] = kept[rank][1:]
		}
	}
}

// particles move to a neighbour on a ring, each with its own speed, and do not change.
func (g *generator) particles() {
	n, bytes := g.p.ranks, g.size()
	count := 1 + g.IntN(3*n)
	at, speed, what := make([]int, count), make([]int, count), g.values(count)
	for k := range at {
		at[k], speed[k] = g.IntN(n), g.IntN(3)-1
	}
	for range 1 + g.IntN(3*n) {
		for k := range at {
			if g.IntN(4) == 0 {
				continue
			}
			if next := (at[k] + speed[k] + n) % n; next != at[k] {
				g.pass(at[k], next, what[k], bytes, 0)
				at[k] = next
			}
			if g.IntN(20) == 0 {
				speed[k] = g.IntN(3) - 1
			}
		}
	}
}

// life exchanges borders on a ring, most of which are constant.
func (g *generator) life() {
	n, bytes := g.p.ranks, g.size()
	states := g.values(1 + g.IntN(20))
	border := make([]int64, 2*n)
	for k := range border {
		border[k] = states[0]
	}
	for range 2 + g.IntN(30) {
		for k := range border {
			if g.IntN(5) == 0 {
				border[k] = states[g.IntN(len(states))]
			}
		}
		var ids []int
		for r := range n {
			for side, to := range []int{(r + 1) % n, (r + n - 1) % n} {
				ids = append(ids, g.p.message(sent{src: int32(r), dst: int32(to), payload: border[2*r+side], bytes: bytes,
					tag: 9, site: g.site + 2*int32(side), buffer: schema.NullInt64}))
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

// master gives tasks to workers, which send results; at last each is told to stop.
func (g *generator) master() {
	n, bytes := g.p.ranks, g.size()
	tasks, results := g.values(n*(1+g.IntN(6))), g.values(1+g.IntN(10*n))
	var busy []int
	next := 0
	for w := 1; w < n && next < len(tasks); w++ {
		g.pass(0, w, tasks[next], bytes, 0)
		busy = append(busy, w)
		next++
	}
	for len(busy) > 0 {
		k := g.IntN(len(busy))
		w := busy[k]
		busy = slices.Delete(busy, k, k+1)
		g.pass(w, 0, results[g.IntN(len(results))], bytes, 2)
		if next < len(tasks) {
			g.pass(0, w, tasks[next], bytes, 0)
			busy = append(busy, w)
			next++
		} else {
			g.pass(0, w, 0, 0, 0)
		}
	}
}

// token passes a token on, mostly to the next rank; its content stays, or changes with each hop.
func (g *generator) token() {
	n, bytes, content := g.p.ranks, g.size(), g.payload()
	at, same := 0, g.IntN(2) == 0
	for range n * (1 + g.IntN(8)) {
		next := (at + 1) % n
		if g.IntN(8) == 0 {
			next = g.other(at)
		}
		if !same && g.IntN(3) > 0 {
			content = g.payload()
		}
		g.pass(at, next, content, bytes, 0)
		at = next
	}
}

// requests asks random servers, whose answers have few values.
func (g *generator) requests() {
	n, bytes := g.p.ranks, g.size()
	answers, servers := g.values(1+g.IntN(3*n)), 1+g.IntN(n)
	for range n * (1 + g.IntN(20)) {
		client := g.IntN(n)
		server := g.IntN(servers)
		if server == client {
			continue
		}
		question := g.IntN(len(answers))
		g.pass(client, server, int64(question+1), 8, 2)
		g.pass(server, client, answers[question], bytes, 0)
	}
}

// walk forwards packets to random ranks, some steps each.
func (g *generator) walk() {
	n, bytes := g.p.ranks, g.size()
	for range 1 + g.IntN(4*n) {
		at, packet := g.IntN(n), g.payload()
		for g.IntN(n) > 0 {
			next := g.other(at)
			g.pass(at, next, packet, bytes, 0)
			at = next
		}
	}
}
