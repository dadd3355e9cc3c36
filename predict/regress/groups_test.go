package regress

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// grid returns the extents of the grid on which p ranks are laid out.
type grid func(p int32) []int32

func square(p int32) []int32 {
	q, _ := root(int64(p), 2)
	return []int32{int32(q), int32(q)}
}

func dims2(p int32) []int32 { // as MPI_Dims_create: as square as can be, the larger first
	b, _ := root(int64(p), 2)
	for b*b > int64(p) || int64(p)%b != 0 {
		b--
	}
	return []int32{p / int32(b), int32(b)}
}

func cube(p int32) []int32 { // powers of two, dealt round
	d := []int32{1, 1, 1}
	for a := 2; p > 1; p /= 2 {
		d[a] *= 2
		a = (a + 2) % 3
	}
	return d
}

func coordsOf(rank int32, dims []int32) (x []int32) {
	for _, g := range dims {
		x = append(x, rank%g)
		rank /= g
	}
	return x
}

// truth is a law known to the test; sends reports which ranks have the communication.
type truth struct {
	name   string
	family string
	index  []int32
	value  func(g, x []int64, index []int32) int64
	sends  func(g, x []int64) bool
}

func all(g, x []int64) bool { return true }

// samplesOf evaluates a truth at several process counts.
func samplesOf(t truth, lay grid, ps ...int32) (all []Sample) {
	for _, p := range ps {
		d := lay(p)
		for r := range p {
			x := coordsOf(r, d)
			if t.sends(wide(d), wide(x)) {
				all = append(all, Sample{Ranks: p, Rank: r, Dims: d, Coords: x, Index: t.index,
					Value: t.value(wide(d), wide(x), t.index)})
			}
		}
	}
	return all
}

// holdsAt compares laws with their truths at process counts that were not fitted: exactly, or by the interval if
// exact is false.
func holdsAt(t *testing.T, laws []*Law, truths []truth, lay grid, exact bool, ps ...int32) {
	t.Helper()
	for i, tr := range truths {
		bad := 0
		for _, s := range samplesOf(tr, lay, ps...) {
			e, err := laws[i].Predict(s.Ranks, s.Rank, s.Dims, s.Coords, s.Index)
			if err != nil {
				t.Fatal(err)
			}
			v := float64(s.Value)
			if (e.Value != v && exact || e.Low > v || e.High < v) && bad < 3 {
				bad++
				t.Errorf("%s: rank %d of %d at %v of %v: %v in %v to %v, truth %v, by %s", tr.name, s.Rank, s.Ranks,
					s.Coords, s.Dims, e.Value, e.Low, e.High, v, e.Form)
			}
		}
	}
}

func fitTruths(t *testing.T, truths []truth, lay grid, ps ...int32) ([]*Law, []int64) {
	t.Helper()
	var groups []Group
	for _, tr := range truths {
		groups = append(groups, Group{Name: tr.name, Family: tr.family, Samples: samplesOf(tr, lay, ps...)})
	}
	laws, extents, err := FitGroups(groups, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range laws {
		t.Logf("%s: %s", l.Name, l)
	}
	return laws, extents
}

// A formula of the rank count stands for a law only if all ranks of a run have its value, and it is that of the rank
// count.
func TestTextOfCurves(t *testing.T) {
	triangle := func(g, x []int64, _ []int32) int64 { return g[0]*x[0] + g[0]*(g[0]-1)/2 }
	truths := []truth{{name: "differ", sends: all, value: triangle},
		{name: "same", sends: all, value: func(g, x []int64, _ []int32) int64 { return g[0]*g[0]*g[0] + g[0]%4 }}}
	line := func(p int32) []int32 { return []int32{p} }
	laws, _ := fitTruths(t, truths, line, 4, 6, 8)
	if text := laws[0].TextAt(10); text != "no exact law, and calls of one run differ" {
		t.Error(text)
	}
	p := laws[1].roles[""].curve().Predict(64)
	if text := laws[1].TextAt(64); len(laws[1].Laws) > 0 || text != "about "+p.Formula {
		t.Errorf("%s, %+v", text, p)
	}
}

// TestStencilOfTwoExtents: a nine-point stencil on 100 x 84 cells, two ghost cells on each side of what its corners
// need.
func TestStencilOfTwoExtents(t *testing.T) {
	b := RestFirst
	notLast := func(a int) func(g, x []int64) bool { return func(g, x []int64) bool { return x[a] < g[a]-1 } }
	truths := []truth{
		{name: "east", sends: notLast(0), value: func(g, x []int64, _ []int32) int64 { return 8 * b.block(84, g[1], x[1]) }},
		{name: "north", sends: notLast(1), value: func(g, x []int64, _ []int32) int64 { return 8 * (b.block(100, g[0], x[0]) + 2) }},
		{name: "corner", sends: func(g, x []int64) bool {
			return notLast(0)(g, x) &&
				notLast(1)(g, x)
		}, value: func(g, x []int64, _ []int32) int64 { return 8 }},
		{name: "block", sends: all, value: func(g, x []int64, _ []int32) int64 { return 16 * b.block(100, g[0], x[0]) * b.block(84, g[1], x[1]) }},
	}
	laws, extents := fitTruths(t, truths, dims2, 4, 6, 8, 9, 12, 16)
	holdsAt(t, laws, truths, dims2, true, 20, 24, 36)
	holdsAt(t, laws, truths, dims2, false, 30) // 84 was divided by 2, 3 and 4 without remainder; 5 leaves one
	if e, _ := laws[3].Predict(30, 0, []int32{6, 5}, []int32{0, 0}, nil); e.Exact {
		t.Errorf("30 ranks: %+v is no matter of course", e)
	}
	if !slices.Contains(extents, 84) || !slices.Contains(extents, 100) {
		t.Errorf("extents %v; want 100 and 84 among them", extents)
	}
}

// TestDivisionConventionsAreFound: the rule that distributes the remainder of a division over blocks is found if there
// is a remainder.
func TestDivisionConventionsAreFound(t *testing.T) {
	for _, r := range roundings {
		truths := []truth{
			{name: string(r), sends: all, value: func(g, x []int64, _ []int32) int64 { return 24 * (r.block(97, g[0], x[0]) + 1) }},
			{name: string(r) + " face", sends: all, value: func(g, x []int64, _ []int32) int64 {
				return 40 * r.block(97, g[0], x[0]) * (r.block(61, g[1], x[1]) + 2)
			}},
		}
		laws, _ := fitTruths(t, truths, dims2, 4, 6, 9, 12, 15)
		holdsAt(t, laws, truths, dims2, false, 20, 30) // axis 1 was only divided by 2 and 3
		laws, _ = fitTruths(t, truths, dims2, 4, 6, 9, 12, 15, 20, 25, 35, 49)
		holdsAt(t, laws, truths, dims2, true, 30, 42, 64)
	}
}

// TestBoundaryTrimmed: blocks at the boundary of the domain have one cell less there.
func TestBoundaryTrimmed(t *testing.T) {
	truths := []truth{
		{name: "rows", sends: all, value: func(g, x []int64, _ []int32) int64 {
			return 40 * (RestFirst.block(33, g[0], x[0]) - TrimBoth.cells(g[0], x[0]))
		}},
		{name: "columns", sends: all, value: func(g, x []int64, _ []int32) int64 { return 40 * 33 * 2 * RestFirst.block(33, g[1], x[1]) }},
	}
	laws, _ := fitTruths(t, truths, dims2, 4, 8, 16, 32)
	holdsAt(t, laws, truths, dims2, true, 64, 36)
}

// TestMultipartition: sums over the q cells of a rank, of the faces of all cells but the last, as on 3 x 3, ... ranks
// of a cube of 38; also trimmed at the boundary.
func TestMultipartition(t *testing.T) {
	sum := func(n int64, normal int, h0, h1 int64, trim Trim) func(g, x []int64, _ []int32) int64 {
		return func(g, x []int64, _ []int32) (v int64) {
			q := g[0]
			for c := range q {
				cell := [3]int64{(x[0] + c) % q, (x[1] - c + q) % q, c}
				if cell[normal] == q-1 {
					continue
				}
				f := int64(1)
				for k, h := range map[int]int64{(normal + 1) % 3: h0, (normal + 2) % 3: h1} {
					f *= RestFirst.block(n, q, cell[k]) + h - trim.cells(q, cell[k])
				}
				v += 80 * f
			}
			return v
		}
	}
	truths := []truth{
		{name: "east", sends: all, value: sum(38, 0, 0, 0, NoTrim)},
		{name: "north", sends: all, value: sum(38, 1, 0, 0, NoTrim)},
		{name: "up, trimmed", sends: all, value: sum(38, 2, 0, 0, TrimBoth)},
		{name: "solver", sends: all, value: func(g, x []int64, _ []int32) int64 { return 240 * (38/g[0] + 1) * (38/g[0] + 1) }},
	}
	laws, _ := fitTruths(t, truths, square, 9, 16, 25)
	holdsAt(t, laws, truths, square, true, 36, 49, 64)
}

// TestLevels: faces of a multigrid of 64 cells, halved from level to level, with ghosts; and a size that doubles with
// each step of a tree.
func TestLevels(t *testing.T) {
	var truths []truth
	for i := range int32(3) {
		truths = append(truths, truth{name: fmt.Sprintf("level %d", i), family: "levels", index: []int32{i},
			sends: all, value: func(g, x []int64, index []int32) int64 {
				n := int64(64) >> index[0]
				return 8 * (n/g[0] + 2) * (n / g[1])
			}})
	}
	laws, _ := fitTruths(t, truths, cube, 2, 4, 8, 16)
	holdsAt(t, laws, truths, cube, true, 32, 64)
	var tree []truth
	for i := range int32(4) {
		tree = append(tree, truth{name: fmt.Sprintf("step %d", i), family: "tree", index: []int32{i}, sends: all,
			value: func(_, _ []int64, index []int32) int64 { return 4 << index[0] }})
	}
	laws, _ = fitTruths(t, tree, cube, 8, 16)
	tree = append(tree, truth{name: "step 5", index: []int32{5}, sends: all, value: tree[0].value})
	holdsAt(t, append(laws, laws[0]), tree, cube, true, 64)
}

// TestLawsWithoutAGrid: C/P^2, counts that are lines in q, log2 P, blocks of ranks on a line.
func TestLawsWithoutAGrid(t *testing.T) {
	line := func(p int32) []int32 { return []int32{p} }
	truths := []truth{
		{name: "alltoall", sends: all, value: func(g, _ []int64, _ []int32) int64 { return 1 << 27 / (g[0] * g[0]) }},
		{name: "rows", sends: all, value: func(g, x []int64, _ []int32) int64 { return 8 * RestFirst.block(7000, g[0], x[0]) }},
		{name: "steps", sends: all, value: func(g, _ []int64, _ []int32) int64 {
			l, _ := variables(0, 0)[1].value(&row{ranks: g[0]})
			return 11 * int64(l)
		}},
		{name: "same", sends: all, value: func(_, _ []int64, _ []int32) int64 { return 4097 }},
	}
	laws, _ := fitTruths(t, truths, line, 2, 4, 8, 16)
	holdsAt(t, laws, truths, line, true, 32, 64, 128)
	counts := []truth{{name: "messages", sends: all,
		value: func(g, _ []int64, _ []int32) int64 { return 6*201*g[0] + 6 }},
		{name: "solver messages", sends: all, value: func(g, x []int64, _ []int32) int64 { return 201 * (g[0] - 1) }},
		{name: "wavefront", sends: all, value: func(g, x []int64, _ []int32) int64 { return 3*x[0] + 5*(g[1]-1-x[1]) + 2 }}}
	laws, _ = fitTruths(t, counts, square, 4, 9, 16, 25)
	holdsAt(t, laws, counts, square, true, 36, 64)
}

// TestAmbiguousLaws: BT class W's solver face from 4, 9 and 16 ranks, whose edges all divide 24. Both 240
// (floor(24/q)+1)^2 and 240 (ceil(24/q)+1)^2 fit, and predict 6000 and 8640 on 25 ranks. A run on 25 ranks decides
// between them, and then 49 is known.
func TestAmbiguousLaws(t *testing.T) {
	truths := []truth{{name: "solver", sends: all,
		value: func(g, _ []int64, _ []int32) int64 { return 240 * (24/g[0] + 1) * (24/g[0] + 1) }}}
	laws, _ := fitTruths(t, truths, square, 4, 9, 16)
	e, err := laws[0].Predict(25, 7, []int32{5, 5}, []int32{2, 1}, nil)
	if err != nil || e.Exact || e.Low > 6000 || e.High < 8640 {
		t.Errorf("25 ranks: %+v, %v; want 6000 and 8640 in the interval", e, err)
	}
	at, low, high, ok := laws[0].Resolve([]int32{25, 36}, func(p int32) ([]int32, func(int32) []int32, bool) {
		d := square(p)
		return d, func(r int32) []int32 { return coordsOf(r, d) }, true
	}, nil)
	if !ok || at != 25 || low > 6000 || high < 8640 {
		t.Errorf("resolved by %d (%v to %v), want 25", at, low, high)
	}
	laws, _ = fitTruths(t, truths, square, 4, 9, 16, 25)
	holdsAt(t, laws, truths, square, true, 36, 49, 64)
}

// TestNoLaw: values that differ from rank to rank without a rule get an interval per role, and a single process count
// predicts no others.
func TestNoLaw(t *testing.T) {
	noisy := func(c int64) func(g, x []int64, _ []int32) int64 {
		return func(g, x []int64, _ []int32) int64 {
			return c/(g[0]*g[1]) + (x[0]*7919+x[1]*104729+g[0]*31)%(c/400/(g[0]*g[1]))
		}
	}
	truths := []truth{{name: "noisy", sends: all, value: noisy(10000000)}}
	laws, _ := fitTruths(t, truths, dims2, 4, 8, 16, 32)
	if laws[0].Exact() {
		t.Errorf("an exact law: %s", laws[0])
	}
	holdsAt(t, laws, truths, dims2, false, 64)
	e, _ := laws[0].Predict(64, 0, []int32{8, 8}, []int32{0, 0}, nil)
	if e.High > 2*e.Low {
		t.Errorf("%+v is too wide", e)
	}
	laws, _ = fitTruths(t, truths, dims2, 16)
	if e, _ := laws[0].Predict(64, 0, []int32{8, 8}, []int32{0, 0}, nil); e.Exact || e.Low > 0 || e.High < 1e300 {
		t.Errorf("%+v from one number of ranks", e)
	}
}

// TestLawsSurviveJSON writes laws as JSON and reads them back unchanged.
func TestLawsSurviveJSON(t *testing.T) {
	truths := []truth{
		{name: "face", sends: all, value: func(g, x []int64, _ []int32) int64 {
			return 8 * (RestFirst.block(97, g[0], x[0]) + 1) * RestFirst.block(61, g[1], x[1])
		}},
		{name: "count", sends: all, value: func(g, _ []int64, _ []int32) int64 { return 3*g[0] + 4 }},
		{name: "noise", sends: all, value: func(g, x []int64, _ []int32) int64 { return 1000*g[0] + (x[0]*7919+x[1]*17+g[0]*31)%97 }},
	}
	laws, _ := fitTruths(t, truths, dims2, 4, 6, 9, 12)
	again, _ := fitTruths(t, truths, dims2, 4, 6, 9, 12)
	for i, l := range laws {
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if other, _ := json.Marshal(again[i]); string(other) != string(text) {
			t.Errorf("%s: not the same twice:\n%s\n%s", l.Name, text, other)
		}
		var back Law
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		for _, s := range samplesOf(truths[i], dims2, 20, 30) {
			a, _ := l.Predict(s.Ranks, s.Rank, s.Dims, s.Coords, s.Index)
			b, _ := back.Predict(s.Ranks, s.Rank, s.Dims, s.Coords, s.Index)
			if a != b {
				t.Errorf("%s: %+v came back as %+v", l.Name, a, b)
			}
		}
	}
	for _, bad := range []string{`{}`, `{"roles":{"":{"points":[]}}}`,
		`{"roles":{"":{"points":[{"ranks":2,"value":1}]}},"laws":[{"axes":[0]}]}`} {
		if err := json.Unmarshal([]byte(bad), new(Law)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// BenchmarkFitGroups fits 300 groups of 32 to 128 samples each on a grid of three axes, at 7 process counts.
func BenchmarkFitGroups(b *testing.B) {
	var groups []Group
	for i := range 300 {
		a, c := i%3, (i+1)%3
		h, k := int64(i%2*2), int64(8*(1+i%5))
		t := truth{sends: func(_, x []int64) bool {
			return i%4 == 0 ||
				x[a] > 0
		}, value: func(g, x []int64, _ []int32) int64 {
			return k * (RestFirst.block(66, g[a], x[a]) + h) * RestFirst.block(50, g[c], x[c])
		}}
		groups = append(groups, Group{Name: fmt.Sprint(i), Samples: samplesOf(t, cube, 2, 4, 8, 16, 32, 64, 128)})
	}
	for b.Loop() {
		laws, _, err := FitGroups(groups, Options{})
		if err != nil || !laws[0].Exact() {
			b.Fatal(err, laws[0])
		}
	}
}

// TestSweepsOfAMultipartition: each step of a sweep along an axis sends the face of one cell, trimmed at the boundary.
func TestSweepsOfAMultipartition(t *testing.T) {
	face := func(normal int, forward bool) func(g, x []int64, index []int32) int64 {
		return func(g, x []int64, index []int32) int64 {
			q, at := g[0], int64(index[0])
			if !forward {
				at = q - 1 - at
			}
			for c := range q {
				cell := [3]int64{(x[0] + c) % q, (x[1] - c + q) % q, c}
				if cell[normal] != at {
					continue
				}
				v := int64(176)
				for _, k := range []int{(normal + 1) % 3, (normal + 2) % 3} {
					v *= RestFirst.block(38, q, cell[k]) - TrimBoth.cells(q, cell[k])
				}
				return v
			}
			return 0
		}
	}
	var groups []Group
	var truths []truth
	for _, forward := range []bool{true, false} {
		for normal := range 3 {
			for i := range int32(6) {
				family := fmt.Sprint(normal, forward)
				tr := truth{name: fmt.Sprint(family, " step ", i), family: family, index: []int32{i},
					value: face(normal, forward), sends: func(g, _ []int64) bool { return int64(i) < g[0]-1 }}
				truths = append(truths, tr)
				if i < 4 {
					groups = append(groups, Group{Name: tr.name, Family: family,
						Samples: samplesOf(tr, square, 9, 16, 25)})
				}
			}
		}
	}
	laws, _, err := FitGroups(groups, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(laws[0], laws[23])
	for k, tr := range truths {
		holdsAt(t, laws[k/6*4+min(k%6, 3):], []truth{tr}, square, false, 36, 49)
	}
	if !laws[0].Exact() {
		t.Error("no law")
	}
}
