package pattern

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// truth is a communication whose destinations are known at every process count.
type truth struct {
	name, site string
	index      []int32
	dst        func(p, r int32) (int32, bool)
}

func (c truth) slot(ranks ...int32) Slot {
	s := Slot{Name: c.name, Site: c.site, Index: c.index}
	for _, p := range ranks {
		if m := mapping(p, func(r int32) (int32, bool) { return c.dst(p, r) }); m.senders() > 0 {
			s.Runs = append(s.Runs, m)
		}
	}
	return s
}

// verdict grades an answer.
type verdict int

const (
	right verdict = iota
	refused
	borrowed // wrong, with the warning that siblings lent the form
	wrong
)

// judge compares the program's answer for a slot with the truth.
func judge(t *testing.T, p *Program, c truth, ranks int32) (verdict, string) {
	t.Helper()
	want := mapping(ranks, func(r int32) (int32, bool) { return c.dst(ranks, r) })
	m, err := p.Map(c.name, ranks)
	var r *Refusal
	if errors.As(err, &r) {
		return refused, err.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Mapping(); !slices.Equal(got.Dst, want.Dst) {
		v := wrong
		if m.Borrowed {
			v = borrowed
		}
		return v, fmt.Sprintf("%s at %d: %v, want %v", c.name, ranks, got.Dst, want.Dst)
	}
	return right, ""
}

// on turns f into a rule for ranks on a grid with extents dims: f moves the coordinates x in place and reports
// whether the rank sends.
func on(dims func(p int32) []int32, f func(x, g []int32) bool) func(p, r int32) (int32, bool) {
	return func(p, r int32) (int32, bool) {
		g := dims(p)
		x := coords(g, r)
		if !f(x, g) {
			return None, false
		}
		d, s := int32(0), int32(1)
		for a := range g {
			d += x[a] * s
			s *= g[a]
		}
		return d, true
	}
}

func square(p int32) []int32 {
	q := root(p, 2)
	return []int32{q, q}
}

func bits2(p int32) []int32 { return []int32{1 << ((log2(p) + 1) / 2), 1 << (log2(p) / 2)} }

func divisor2(p int32) []int32 {
	a := root(p, 2)
	for p%a != 0 {
		a--
	}
	return []int32{a, p / a}
}

func shiftIn(axis int, by int32, wrap bool) func(x, g []int32) bool {
	return func(x, g []int32) bool {
		x[axis] += by
		if wrap {
			x[axis] = mod(x[axis], g[axis])
		}
		return x[axis] >= 0 && x[axis] < g[axis]
	}
}

func line(p int32) []int32 { return []int32{p} }

// program is a set of slots, the process counts it is fitted to, and the process counts at which its laws must be
// right.
type program struct {
	name        string
	slots       []truth
	train, test []int32
}

func torus(name string, dims func(int32) []int32, wrap bool, train, test []int32, moves ...[2]int32) program {
	p := program{name: name, train: train, test: test}
	for i, m := range moves {
		p.slots = append(p.slots, truth{name: fmt.Sprintf("s%d", i), site: fmt.Sprintf("s%d", i),
			dst: on(dims, func(x, g []int32) bool {
				for a, by := range m {
					if !shiftIn(a, by, wrap)(x, g) {
						return false
					}
				}
				return true
			})})
	}
	return p
}

var nine = [][2]int32{{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {1, -1}, {-1, 1}, {-1, -1}}

func family(name string, n func(p int32) int32, dst func(p, r, i int32) (int32, bool), train, test []int32) program {
	p := program{name: name, train: train, test: test}
	most := int32(0)
	for _, q := range train {
		most = max(most, n(q))
	}
	for i := range most {
		p.slots = append(p.slots, truth{name: fmt.Sprintf("%s%d", name, i), site: name, index: []int32{i},
			dst: func(p, r int32) (int32, bool) {
				if i >= n(p) {
					return None, false
				}
				return dst(p, r, i)
			}})
	}
	return p
}

func join(name string, a, b program) program {
	a.name, a.slots = name, append(a.slots, b.slots...)
	return a
}

func single(name string, train, test []int32, dst func(p, r int32) (int32, bool)) program {
	return program{name: name, train: train, test: test, slots: []truth{{name: name, site: name, dst: dst}}}
}

func programs() []program {
	sq, pow, many := []int32{4, 9, 16, 25, 36}, []int32{4, 8, 16, 32}, []int32{4, 6, 8, 9, 12, 16}
	sqT, powT, manyT := []int32{49, 64, 100, 16384}, []int32{64, 128, 1024}, []int32{20, 24, 30, 36, 64}
	return []program{
		torus("torus on squares", square, true, sq, sqT, [2]int32{1, 0}, [2]int32{-1, 0}, [2]int32{0, 1},
			[2]int32{0, -1}, [2]int32{-1, 1}, [2]int32{1, -1}),
		torus("mesh on squares", square, false, sq, sqT, nine...),
		torus("mesh on dealt bits", bits2, false, pow, powT, nine...),
		torus("nine points", divisor2, false, many, manyT, nine...),
		torus("periodic nine points", divisor2, true, many, manyT, nine...),
		single("ring", []int32{3, 4, 7}, []int32{5, 30, 1000},
			func(p, r int32) (int32, bool) { return (r + 1) % p, true }),
		single("pipeline", []int32{2, 4, 8}, []int32{16, 32}, func(p, r int32) (int32, bool) { return r + 1, r+1 < p }),
		single("gather", []int32{3, 4, 8}, []int32{16, 31}, func(p, r int32) (int32, bool) { return 0, r != 0 }),
		single("mirror", []int32{3, 4, 8}, []int32{16, 31}, func(p, r int32) (int32, bool) { return p - 1 - r, true }),
		single("transpose", []int32{4, 9, 16}, []int32{25, 64},
			on(square, func(x, g []int32) bool { x[0], x[1] = x[1], x[0]; return true })),
		single("transpose off diagonal", []int32{4, 9, 16}, []int32{25, 64}, on(square, func(x, g []int32) bool {
			x[0], x[1] = x[1], x[0]
			return x[0] != x[1]
		})),
		single("bit reversal", pow, powT, func(p, r int32) (int32, bool) { return permuted(Reverse.order(log2(p)), r), true }),
		single("parent", []int32{4, 7, 8, 13}, []int32{16, 50},
			func(p, r int32) (int32, bool) { return r & (r - 1), r > 0 }),
		family("butterfly", log2, func(p, r, i int32) (int32, bool) { return r ^ 1<<i, true }, pow, powT),
		family("butterfly down", log2, func(p, r, i int32) (int32, bool) { return r ^ p>>(i+1), true }, pow, powT),
		family("binomial", log2up, func(p, r, i int32) (int32, bool) {
			return r + 1<<i, r < 1<<i &&
				r+1<<i < p
		}, []int32{4, 6, 8, 11, 16}, []int32{32, 50}),
		family("binomial up", log2up, func(p, r, i int32) (int32, bool) { return r - 1<<i, r%(2<<i) == 1<<i }, []int32{4, 6, 8, 11, 16}, []int32{32, 50}),
		family("dissemination", log2up, func(p, r, i int32) (int32, bool) { return (r + 1<<i) % p, true }, []int32{3, 4, 6, 8, 11}, []int32{32, 50}),
		family("all to all", func(p int32) int32 { return p - 1 }, func(p, r, i int32) (int32, bool) { return (r + i + 1) % p, true }, []int32{3, 4, 6, 8}, []int32{12, 20}),
		family("pairwise", func(p int32) int32 { return p - 1 }, func(p, r, i int32) (int32, bool) { return r ^ (i + 1), true }, []int32{4, 8, 16}, []int32{32}),
		family("scatter", func(p int32) int32 { return p - 1 }, func(p, r, i int32) (int32, bool) { return i + 1, r == 0 }, []int32{3, 4, 6, 8}, []int32{12, 20}),
		family("folded butterfly", log2, func(p, r, i int32) (int32, bool) { return foldXor(1<<i, r, p) }, []int32{3, 4, 6, 7, 8, 11}, []int32{12, 20, 50}),
		join("butterflies in rows and columns", family("rows", func(p int32) int32 { return (log2(p) + 1) / 2 },
			func(p, r, i int32) (int32, bool) { return r ^ 1<<i, true }, pow, powT),
			family("columns", func(p int32) int32 { return log2(p) / 2 },
				func(p, r, i int32) (int32, bool) { return r ^ 1<<(i+(log2(p)+1)/2), true }, pow, powT)),
	}
}

// TestKnownForms fits each form to small process counts and evaluates it at larger ones: every answer must be given,
// and be right.
func TestKnownForms(t *testing.T) {
	for _, pr := range programs() {
		t.Run(pr.name, func(t *testing.T) {
			p := fitted(t, pr)
			for _, u := range p.Unexplained {
				t.Errorf("%s is unexplained: %s", u.Slot, u.Why)
			}
			for _, c := range pr.slots {
				for _, n := range pr.test {
					if v, text := judge(t, p, c, n); v != right {
						t.Errorf("%d %s", v, text)
					}
				}
			}
		})
	}
}

func fitted(t testing.TB, pr program) *Program {
	t.Helper()
	var slots []Slot
	for _, c := range pr.slots {
		slots = append(slots, c.slot(pr.train...))
	}
	p, err := Fit(slots, Options{Sizes: pr.train})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTwinsOfOneIndex has two slots of one site and index that send in opposite directions: they are not a family.
func TestTwinsOfOneIndex(t *testing.T) {
	var slots []Slot
	for i, by := range []int32{1, -1, 1, -1} {
		c := truth{name: fmt.Sprint(i), site: "s", index: []int32{int32(i / 2)},
			dst: func(p, r int32) (int32, bool) { return mod(r+by, p), true }}
		slots = append(slots, c.slot(3, 5, 8))
	}
	p, err := Fit(slots, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int32{4, 2, 4, 2} {
		if m, err := p.Map(fmt.Sprint(i), 9); err != nil {
			t.Error(err)
		} else if d, _ := m.Dst(3); d != want {
			t.Errorf("slot %d: 3 of 9 sends to %d, want %d", i, d, want)
		}
	}
}
