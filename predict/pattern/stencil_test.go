package pattern

import (
	"fmt"
	"testing"
)

// neighbours are the slots of a stencil along all axes of a torus, in which some ranks take part.
func neighbours(dims func(p int32) []int32, oneSite bool, takesPart func(rank int32) bool) (all []truth,
	partners map[string]string) {
	return bothSides(2*len(dims(64)), oneSite, func(i int, sign int32) func(p, r int32) (int32, bool) {
		move := on(dims, shiftIn(i/2, sign*int32(1-2*(i%2)), true))
		return func(p, r int32) (int32, bool) {
			if !takesPart(r) {
				return None, false
			}
			return move(p, r)
		}
	})
}

// bothSides are the sends and the receives of n messages of each rank, from one call site each or from a line for each
// message, and the other side of each. move gives the partners by the number of the message: with sign 1 those to send
// to, with -1 those to receive from.
func bothSides(n int, oneSite bool, move func(i int, sign int32) func(p, r int32) (int32, bool)) (all []truth,
	partners map[string]string) {
	partners = map[string]string{}
	for s, side := range []string{"to", "from"} {
		for i := range n {
			name := fmt.Sprintf("%d %s", i, side)
			c := truth{name: name, site: name, dst: move(i, int32(1-2*s))}
			if oneSite {
				c.site, c.index = side, []int32{int32(i)}
			}
			all = append(all, c)
			partners[name] = fmt.Sprintf("%d %s", i, []string{"from", "to"}[s])
		}
	}
	return all, partners
}

// fitWithPartners fits slots of which the other sides and the sizes are known.
func fitWithPartners(t *testing.T, all []truth, partners map[string]string, bytes func(name string) int64,
	ranks ...int32) *Program {
	t.Helper()
	var slots []Slot
	for _, c := range all {
		s := c.slot(ranks...)
		if partners[c.name] != "" {
			s.Partners = []string{partners[c.name]}
		}
		for range s.Runs {
			s.Bytes = append(s.Bytes, bytes(c.name))
		}
		slots = append(slots, s)
	}
	p, err := Fit(slots, Options{Sizes: ranks})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func dealt(order ...int) func(p int32) []int32 {
	g := Grid{Shape: Deal, Axes: len(order), Order: order}
	return func(p int32) []int32 {
		dims, _ := g.Dims(p)
		return dims
	}
}

// TestStencils fits a stencil on a torus of four axes, two of which have two ranks in both runs: from one call site,
// from a line for each direction, and from one call site at which rank 0 takes no part, as it makes its calls at
// another. The two longer axes are those of a grid of three axes, too.
func TestStencils(t *testing.T) {
	equal := func(string) int64 { return 4097 }
	dims := dealt(2, 3, 1, 0) // 2 x 2 x 2 x 4 and 2 x 2 x 4 x 4
	for _, x := range []struct {
		oneSite bool
		from    int32 // the first rank that takes part
	}{{true, 0}, {false, 0}, {true, 1}} {
		all, partners := neighbours(dims, x.oneSite, func(rank int32) bool { return rank >= x.from })
		if x.from > 0 {
			partners = nil // some of the messages are at another call site at the other side
		}
		p := fitWithPartners(t, all, partners, equal, 32, 64)
		if len(p.Grids) != 1 || p.Grids[0][0].Axes != 4 || len(p.Grids[0]) < 2 || len(p.Twins) > 0 {
			t.Errorf("%v: grids %v, twins %v, want one of four axes with several laws", x, p.Grids, p.Twins)
		}
		for _, l := range p.Laws {
			if len(l.Forms) != 1 || len(l.Forms[0].Rules) != 4 {
				t.Errorf("%v: %s has the laws %v, want one on four axes", x, l.Name, l.Forms)
			}
		}
		for _, c := range all {
			if v, text := judge(t, p, c, 256); v != right { // 4 x 4 x 4 x 4 by all laws
				t.Errorf("%v: %s", x, text)
			}
			want := right
			if c.name < "4" { // 128 ranks are 4 x 2 x 4 x 4 or 2 x 4 x 4 x 4
				want = refused
			}
			if v, text := judge(t, p, c, 128); v != want {
				t.Errorf("%v: verdict %d on %s, want %d: %s", x, v, c.name, want, text)
			}
		}
	}
}

// TestNoStencil fits exchanges of a header and data, or of two equal arrays, with both neighbours in groups of four
// ranks, and with the next and the last group; groups are of ranks that follow each other, or far apart. On 8 and 16
// ranks that is a torus of three axes but for the sizes, or in everything: nothing wrong may be said. Of groups far
// apart it is not without the warning that directions are borrowed.
func TestNoStencil(t *testing.T) {
	for name, bytes := range map[string]func(string) int64{
		"a header and data": func(name string) int64 { return 9 + 4088*int64(name[0]%2) },
		"two arrays":        func(string) int64 { return 4097 },
	} {
		for inside, worst := range []verdict{refused, borrowed} {
			t.Run(fmt.Sprint(name, inside), func(t *testing.T) { noStencil(t, inside, bytes, worst) })
		}
	}
}

// noStencil does so with groups along the first or the second axis of a grid.
func noStencil(t *testing.T, inside int, bytes func(string) int64, worst verdict) {
	t.Helper()
	move := func(i int, sign int32) func(x, g []int32) bool {
		return func(x, g []int32) bool {
			if i < 4 {
				x[inside] ^= 1 << (i / 2)
				return true
			}
			return shiftIn(1-inside, sign*int32(9-2*i), true)(x, g)
		}
	}
	for _, oneSite := range []bool{true, false} {
		all, partners := bothSides(6, oneSite, func(i int, sign int32) func(p, r int32) (int32, bool) {
			return on(func(p int32) []int32 {
				dims := []int32{p / 4, p / 4}
				dims[inside] = 4
				return dims
			}, move(i, sign))
		})
		p := fitWithPartners(t, all, partners, bytes, 8, 16)
		for _, c := range all {
			for _, ranks := range []int32{32, 64} {
				if v, text := judge(t, p, c, ranks); v > worst {
					t.Error(text)
				}
			}
		}
	}
}
