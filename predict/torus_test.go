package predict_test

import (
	"strings"
	"testing"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature"
)

// torus4 returns two iterations of a stencil on a torus of 2 x 2 x 2 x 4 or 2 x 2 x 4 x 4 ranks, the first axis
// fastest: each rank sends to both neighbours along each axis and receives from them. site gives the call sites of
// sends and receives of a rank by the number of the direction.
func torus4(ranks int, site func(rank, direction int) (send, receive int)) *signature.Run {
	extents := []int{2, 2, ranks / 16, 4}
	to := func(rank, direction int) int {
		stride := 1
		for _, e := range extents[:direction/2] {
			stride *= e
		}
		e, by := extents[direction/2], 1-2*(direction%2)
		x := rank / stride % e
		return rank + ((x+by+e)%e-x)*stride
	}
	return testruns.Steps(ranks, func(rank int) (all []testruns.Step) {
		for range 2 {
			for d := range 8 {
				send, receive := site(rank, d)
				all = append(all, testruns.Step{Message: message(send, to(rank, d), d, 131072)},
					testruns.Step{Message: message(receive, to(rank, d^1), d, 131072), Receives: true})
			}
		}
		return all
	})
}

// TestTorus finds a torus of four axes in runs on 32 and 64 ranks, in which two axes have two ranks: from calls with a
// line for each direction, and from two calls of all directions, which rank 0 makes at other lines.
func TestTorus(t *testing.T) {
	for name, site := range map[string]func(rank, direction int) (send, receive int){
		"lines": func(_, direction int) (send, receive int) { return direction, 8 + direction },
		"sites": func(rank, _ int) (send, receive int) {
			if rank == 0 {
				return 2, 3
			}
			return 0, 1
		},
	} {
		m := train(t, []int{32, 64}, func(ranks int) *signature.Run { return torus4(ranks, site) })
		const want = "grid 2 x 2 x 2 x 4 on 32, 2 x 2 x 4 x 4 on 64 ranks; of the 5 laws that give these a run on 128 " +
			"would rule out some: 4 x 2 x 4 x 4 or 2 x 4 x 4 x 4"
		if grids := m.Grids(); len(grids) != 1 || grids[0].String() != want {
			t.Errorf("%s: %v, want %s", name, grids, want)
		}
		steps := map[string]int{}
		for _, l := range m.Laws() {
			step, moves := strings.CutPrefix(l.Law, "dst = wrap_")
			if moves && l.Forms == 1 && strings.Contains(l.Law, "^floor((n+3)/4)") {
				steps[step[:len("x(+1)")]]++
			}
		}
		for _, axis := range []string{"x", "y", "z", "u"} {
			for _, by := range []string{"(+1)", "(-1)"} {
				if n := steps[axis+by]; n != 2 {
					t.Errorf("%s: %d communications go %s along %s, want one that sends and one that receives",
						name, n, by, axis)
				}
			}
		}
	}
}
