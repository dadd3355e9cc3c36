package pattern

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// random generates programs whose destinations are known at every process count.
type random struct{ *rand.Rand }

func (r random) of(n int32) int32 { return r.Int32N(n) }

func (r random) sign() int32 { return 2*r.of(2) - 1 }

// someGrid returns a law of extents and the process counts for which it is defined, ascending.
func (r random) someGrid() (dims func(int32) []int32, sizes []int32, name string) {
	up := func(d []int32) []int32 { return d }
	down := func(d []int32) []int32 {
		out := make([]int32, len(d))
		for i, e := range d {
			out[len(d)-1-i] = e
		}
		return out
	}
	order := up
	if r.of(2) == 1 {
		order = down
	}
	powers := []int32{2, 4, 8, 16, 32, 64, 128, 256}
	squares := []int32{4, 9, 16, 25, 36, 49, 64, 81}
	any := []int32{4, 6, 8, 9, 12, 16, 18, 20, 24, 30, 32, 36, 48, 64}
	switch r.of(7) {
	case 0:
		return square, squares, "squares"
	case 1:
		return func(p int32) []int32 { return order(bits2(p)) }, powers, "bits to 2 axes"
	case 2:
		o := r.of(3)
		return func(p int32) []int32 {
			n, d := log2(p), make([]int32, 3)
			for i := range d {
				d[(int32(i)+o)%3] = 1 << ((n + int32(i)) / 3)
			}
			return order(d)
		}, powers, "bits to 3 axes"
	case 3:
		return func(p int32) []int32 { return order(divisor2(p)) }, any, "divisors"
	case 4:
		return func(p int32) []int32 { return order(greedy(p, 3)) }, any, "greedy 3-D"
	case 5:
		return func(p int32) []int32 { return order([]int32{2, p / 2}) }, []int32{4, 6, 8, 10, 12, 16, 20, 24, 32}, "two columns"
	}
	return line, []int32{3, 4, 5, 6, 8, 9, 12, 16, 20, 32}, "line"
}

// someProgram draws a grid and a few communications on it or on the line of ranks.
func (r random) someProgram() program {
	dims, sizes, name := r.someGrid()
	n := 3 + r.IntN(3)
	from := r.IntN(3)
	p := program{name: name, train: sizes[from : from+n]}
	p.test = sizes[from+n:]
	axes := int32(len(dims(p.train[0])))
	wrap := r.of(2) == 1
	for k := range 1 + r.of(4) {
		site := fmt.Sprintf("s%d", k)
		a := r.of(axes)
		one := func(dst func(p, r int32) (int32, bool)) {
			p.slots = append(p.slots, truth{name: site, site: site, dst: dst})
		}
		switch kind := r.of(14); kind {
		case 0, 1, 2: // neighbours along all axes, both ways
			for b := range int(axes) {
				for _, s := range []int32{1, -1} {
					p.slots = append(p.slots,
						truth{name: fmt.Sprintf("%s.%d%+d", site, b, s), site: fmt.Sprintf("%s.%d%+d", site, b, s),
							dst: on(dims, shiftIn(b, s, wrap))})
				}
			}
		case 3: // a diagonal
			s, u := r.sign(), r.sign()
			one(on(dims, func(x, g []int32) bool {
				return shiftIn(0, s, wrap)(x, g) && (len(g) == 1 || shiftIn(1, u, wrap)(x, g))
			}))
		case 4:
			root := r.of(2)
			one(func(p, r int32) (int32, bool) { return root, r != root })
		case 5: // to the first of the row or column
			one(on(dims, func(x, g []int32) bool { ok := x[a] != 0; x[a] = 0; return ok }))
		case 6:
			one(on(dims, func(x, g []int32) bool { x[a] = g[a] - 1 - x[a]; return true }))
		case 7:
			one(func(p, r int32) (int32, bool) { return r & (r - 1), r > 0 })
		case 8: // odd to even along an axis
			one(on(dims, func(x, g []int32) bool { ok := x[a]%2 == 1; x[a]--; return ok }))
		case 9: // only the border sends
			one(on(dims, func(x, g []int32) bool { ok := x[a] == 0; x[a] = g[a] - 1; return ok }))
		default:
			p.slots = append(p.slots, r.someFamily(kind, site, p.train, sizes)...)
		}
	}
	return p
}

// someFamily returns the steps of a collective written by hand on the line of ranks.
func (r random) someFamily(kind int32, site string, train, sizes []int32) []truth {
	count := log2up
	dst := func(p, r, i int32) (int32, bool) { return r + 1<<i, r < 1<<i && r+1<<i < p }
	switch kind {
	case 10:
		dst = func(p, r, i int32) (int32, bool) { return r - 1<<i, r%(2<<i) == 1<<i }
	case 11:
		dst = func(p, r, i int32) (int32, bool) { return (r + 1<<i) % p, true }
	case 12:
		count = func(p int32) int32 { return p - 1 }
		dst = func(p, r, i int32) (int32, bool) { return (r + i + 1) % p, true }
	}
	return family(site, count, dst, train, sizes).slots
}

// unlawful returns a communication whose destinations follow no law: random graphs, and a master that hands out work
// on demand.
func (r random) unlawful(site string, train []int32) []Slot {
	s := Slot{Name: site, Site: site}
	master := r.of(2) == 0
	if !master {
		for _, p := range train {
			s.Runs = append(s.Runs, mapping(p, func(int32) (int32, bool) { return r.of(p), r.of(8) != 0 }))
		}
		return []Slot{s}
	}
	var out []Slot
	for i := range int32(12) {
		s := Slot{Name: fmt.Sprintf("%s[%d]", site, i), Site: site, Index: []int32{i}}
		for _, p := range train {
			to := 1 + r.of(p-1)
			s.Runs = append(s.Runs, mapping(p, func(q int32) (int32, bool) { return to, q == 0 }))
		}
		out = append(out, s)
	}
	return out
}

// lawText prints the laws of a slot.
func lawText(p *Program, slot string) string {
	for _, l := range p.Laws {
		for _, m := range l.Members {
			if m.Slot == slot {
				return fmt.Sprintf("%v %v", l.Borrowed, l.Forms)
			}
		}
	}
	return ""
}

// TestRandomPrograms fits random programs and evaluates them at process counts that were held out: no answer may be
// wrong, and nearly all must be given.
func TestRandomPrograms(t *testing.T) {
	programs := uint64(40)
	if n, err := strconv.ParseUint(os.Getenv("COMMQ_PROGRAMS"), 10, 64); err == nil {
		programs = n
	}
	count := map[verdict]int{}
	var invented int
	for seed := range programs {
		r := random{rand.New(rand.NewPCG(seed, 7))}
		pr := r.someProgram()
		var slots []Slot
		for _, c := range pr.slots {
			slots = append(slots, c.slot(pr.train...))
		}
		wild := r.unlawful("wild", pr.train)
		p, err := Fit(append(slots, wild...), Options{Sizes: pr.train})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range pr.test {
			for _, c := range pr.slots {
				v, text := judge(t, p, c, n)
				count[v]++
				if v == borrowed {
					t.Logf("seed %d, %s, runs at %v: %s: %s", seed, pr.name, pr.train, lawText(p, c.name), text)
				} else if v == wrong {
					t.Errorf("seed %d, %s, runs at %v: %s: %s", seed, pr.name, pr.train, lawText(p, c.name), text)
				} else if v == refused && os.Getenv("COMMQ_REFUSALS") != "" {
					t.Logf("seed %d, %s, runs at %v: %s", seed, pr.name, pr.train, text)
				}
			}
			for _, s := range wild {
				if m, err := p.Map(s.Name, n); err == nil && m.HasSender() {
					invented++
					t.Errorf("seed %d, runs at %v: a law was found for %s: %v", seed, pr.train, s.Name, s.Runs)
				}
			}
		}
	}
	asked := count[right] + count[refused] + count[borrowed] + count[wrong]
	t.Logf("%d programs, %d questions: %d right, %d refused, %d wrong with the warning that the form is borrowed, %d wrong, %d laws for lawless slots", programs, asked,
		count[right], count[refused], count[borrowed], count[wrong], invented)
	if 20*count[refused] > 4*asked || 200*count[borrowed] > asked {
		t.Errorf("more than 20 %% refused, or 0.5 %% wrong with a warning")
	}
}
