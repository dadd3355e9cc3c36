package pattern

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Partition is the communicators that are created at one place in the program, in runs at several process counts: the
// whole world, rows or columns of a grid, halves of these, subsets.
type Partition struct {
	Name string
	Runs []Sets
}

// Sets are the communicators of one run. No rank is in two of them, and some may be in none.
type Sets struct {
	Ranks int32
	// Sets are the world ranks of each communicator's members, by rank in it. The order of the communicators has no
	// meaning.
	Sets [][]int32
}

// hasPairs reports whether a communicator has several members.
func (s Sets) hasPairs() bool {
	return slices.ContainsFunc(s.Sets, func(set []int32) bool { return len(set) > 1 })
}

// colors returns the index of the set of each rank, or None. It is an error when a rank does not exist or is in two
// sets.
func (s Sets) colors() ([]int32, error) {
	c := slices.Repeat([]int32{None}, int(s.Ranks))
	for i, set := range s.Sets {
		for _, r := range set {
			if r < 0 || r >= s.Ranks {
				return nil, fmt.Errorf("member %[2]d is not one of the %[1]d ranks", s.Ranks, r)
			}
			if c[r] != None {
				return nil, fmt.Errorf("rank %[2]d of %[1]d is in two communicators", s.Ranks, r)
			}
			c[r] = int32(i)
		}
	}
	return c, nil
}

// Together is the rule on one axis for the coordinates of a communicator's members.
type Together int8

// How members of a communicator may differ on an axis of extent g.
const (
	Apart   Together = iota // not at all
	Whole                   // in any way
	Halves                  // within a half, of which the first is the larger one if g is odd: 2x/g
	Halved                  // within a half, of which the first is the smaller one
	Parity                  // all even, or all odd: x mod 2
	BlockOf                 // within blocks of ranks in a row: BlockOf+k for blocks of 2+k
)

// StrideOf is the first of the rules by remainder: StrideOf-k has coordinates with the same remainder by 3+k together,
// as Parity by 2.
const StrideOf Together = -1

// mostInBlock is the largest number of ranks in a row of BlockOf.
const mostInBlock = 4

// group returns a number that is the same for coordinates that are together.
func (t Together) group(x, g int32) int32 {
	switch t {
	case Apart:
		return x
	case Whole:
		return 0
	case Halves:
		return 2 * x / g
	case Halved:
		return min(x, g/2) / max(g/2, 1)
	case Parity:
		return x % 2
	}
	if t <= StrideOf {
		return x % t.stride()
	}
	return x / t.block()
}

// stride returns the number by which remainders are the same.
func (t Together) stride() int32 { return int32(StrideOf-t) + 3 }

// block returns the number of ranks in a row.
func (t Together) block() int32 { return int32(t-BlockOf) + 2 }

// cost returns the description length in bits.
func (t Together) cost() float64 {
	if t == Apart || t == Whole {
		return 0
	}
	return 3
}

// text describes which members of an axis are together; empty for Apart.
func (t Together) text(axis string) string {
	switch t {
	case Apart:
		return ""
	case Whole:
		return axis
	case Halves, Halved:
		return axis + " within a half"
	case Parity:
		return axis + " by an even number"
	}
	if t <= StrideOf {
		return fmt.Sprintf("%s by a multiple of %d", axis, t.stride())
	}
	return fmt.Sprintf("%s within %d in a row", axis, t.block())
}

// PartitionForm is one law of communicators: who is together with whom.
type PartitionForm struct {
	Grids []Grid
	// Together tells for each axis on which coordinates there the members of a communicator are.
	Together []Together
	// Guards are the conditions for being a member, per axis.
	Guards []Guard
	// Descending means that the order of ranks in the communicator is opposite to that in the world.
	Descending bool
	Cost       float64 // in bits
}

// PartitionLaw is the law of a partition: all forms that fit its runs and are about as simple as the first.
type PartitionLaw struct {
	Name  string
	Forms []PartitionForm
	// Why is the reason when there are no forms.
	Why string
	// Alone means that each communicator has one rank in all runs, so that these do not tell who is together.
	Alone bool
	// Overlap means that a rank is in two communicators of a run, or a member is none of its ranks: they are no
	// partition.
	Overlap bool
	// Ordered means that ranks are in the communicators in the order of the world, or with Descending in the opposite
	// one.
	Ordered, Descending bool
	// Training are the process counts of the runs.
	Training []int32
}

// FitPartitions finds the laws of communicators, on grids that are used for other communication if possible, else on
// any. Laws that are not found have no form, but a reason.
func FitPartitions(parts []Partition, used []Grid) (laws []PartitionLaw) {
	for _, part := range parts {
		laws = append(laws, fitPartition(part, used))
	}
	return laws
}

// axisCost is the description length of an axis more, in bits.
const axisCost = 5

// divides reports whether only parts of an axis are together.
func (f *PartitionForm) divides() bool {
	return slices.ContainsFunc(f.Together, func(t Together) bool { return t != Apart && t != Whole })
}

// lead returns by how many bits a rival may cost more than the form. Grids with one axis more are rivals: only runs on
// numbers of ranks that are squares, or a fixed extent, show a plane, if the communicators have all of a line there.
func (f *PartitionForm) lead() float64 {
	isShown := func(g Grid) bool { return g.Shape == Line || g.Shape == Cubic || g.Shape == Columns }
	if len(f.Together) == 1 && (f.Together[0] == Halves || f.Together[0] == Halved) {
		return margin
	}
	if len(f.Guards) == 1 && f.Guards[0].Kind == LowBits { // every second rank may be the first of an axis of two
		return margin + 2*axisCost
	}
	if !f.divides() && slices.ContainsFunc(f.Grids, isShown) {
		return margin
	}
	return margin + axisCost
}

// fitPartition finds the law of communicators; used are the grids that count more than others.
func fitPartition(part Partition, used []Grid) PartitionLaw {
	law := PartitionLaw{Name: part.Name}
	law.Descending, law.Ordered = order(part.Runs)
	sizes := make([]int32, len(part.Runs))
	colors := make([][]int32, len(part.Runs))
	for i, s := range part.Runs {
		c, err := s.colors()
		if err != nil {
			law.Why, law.Overlap = err.Error(), true
			return law
		}
		sizes[i], colors[i] = s.Ranks, c
	}
	law.Training = sizes
	switch {
	case len(slices.Compact(slices.Sorted(slices.Values(sizes)))) < 2:
		law.Why = "seen at one process count only"
		return law
	case !slices.ContainsFunc(part.Runs, Sets.hasPairs):
		law.Why, law.Alone = "each communicator has one rank in all runs, which do not tell who is together in larger ones", true
		return law
	case !law.Ordered:
		law.Why = "the order of the members is neither that of the world nor the reverse"
		return law
	}
	lib := newLibrary(nil, nil)
	var own, all []PartitionForm
	for _, c := range classes(sizes) {
		forms := c.partitions(colors, lib)
		for i := range forms {
			forms[i].Descending = law.Descending
			// Rows of a plane are planes of a box too: fewer axes come first, and rule out more.
			forms[i].Cost += axisCost * float64(len(c.dims[0])-1)
			if len(c.dims[0]) > 2 {
				forms[i].Cost += float64(gridRank(c))
			}
		}
		all = append(all, forms...)
		isUsed := c.isOneOf(used)
		for _, f := range forms {
			if isUsed || len(c.dims[0]) == 1 && !f.divides() {
				own = append(own, f)
			}
		}
	}
	byCost := func(a, b PartitionForm) int { return compare(a.Cost, b.Cost) }
	slices.SortStableFunc(all, byCost)
	slices.SortStableFunc(own, byCost)
	law.Forms = all
	if len(own) > 0 && own[0].Cost <= all[0].Cost { // the program's grids may be for these communicators only
		law.Forms = own
	}
	law.Forms = likely(law.Forms)
	for _, f := range likely(own) { // communicators of an axis along which messages go, however long it is
		if !slices.ContainsFunc(law.Forms, func(o PartitionForm) bool { return reflect.DeepEqual(f, o) }) {
			law.Forms = append(law.Forms, f)
		}
	}
	if len(law.Forms) == 0 {
		law.Why = "no law gives all its members"
	}
	return law
}

// likely returns those of some forms, sorted by cost, that are rivals of the first.
func likely(forms []PartitionForm) []PartitionForm {
	for i, f := range forms {
		if f.Cost > forms[0].Cost+forms[0].lead() {
			return slices.Clip(forms[:i])
		}
	}
	return slices.Clip(forms)
}

// isOneOf reports whether a class has one of some grids.
func (c *class) isOneOf(grids []Grid) bool {
	return slices.ContainsFunc(grids, func(g Grid) bool {
		return slices.ContainsFunc(c.grids, func(o Grid) bool { return sameGrid(o, g) })
	})
}

// order reports whether all sets with several members are ascending, or all descending.
func order(runs []Sets) (descending, ok bool) {
	up, down := true, true
	for _, r := range runs {
		for _, s := range r.Sets {
			up = up && slices.IsSorted(s)
			down = down && slices.IsSortedFunc(s, func(a, b int32) int { return int(b) - int(a) })
		}
	}
	return !up, up || down
}

// partitions returns the forms on a class of grids that give the colors of all runs.
func (c *class) partitions(colors [][]int32, lib *library) []PartitionForm {
	k := len(c.dims[0])
	ps := make([]projection, len(colors))
	for i, color := range colors {
		ps[i] = projection{dims: c.dims[i], used: make([][]bool, k)}
		for a, d := range c.dims[i] {
			ps[i].used[a] = make([]bool, d)
		}
		members, volume := 0, 1
		for r, set := range color {
			if set == None {
				continue
			}
			members++
			for a, x := range coords(c.dims[i], int32(r)) {
				ps[i].used[a][x] = true
			}
		}
		for a := range k {
			n := 0
			for _, u := range ps[i].used[a] {
				if u {
					n++
				}
			}
			volume *= n
		}
		if members != volume {
			return nil
		}
	}
	guards := make([][]Guard, k)
	for a := range k {
		able, _ := ability(ps, a, Rule{From: a, Op: Keep, N: zero, Root: zero})
		if guards[a] = guardsOf(ps, a, zero, able, lib); guards[a] == nil {
			return nil
		}
	}
	var out []PartitionForm
	divisions := c.divisions(fixedBlock(colors))
	if k == 1 {
		divisions = append(divisions, unevenParts(colors)...)
	}
	for _, together := range divisions {
		f := PartitionForm{Grids: c.grids, Together: together, Guards: make([]Guard, k), Cost: 1}
		for a := range k {
			f.Guards[a] = guards[a][0]
			f.Cost += together[a].cost()
		}
		if !f.groups(c, colors) {
			continue
		}
		for a := range k {
			for _, g := range guards[a] {
				o := f
				o.Guards = slices.Clone(f.Guards)
				o.Guards[a] = g
				for _, u := range o.Guards {
					o.Cost += u.cost()
				}
				if !slices.ContainsFunc(out, func(x PartitionForm) bool {
					return slices.Equal(x.Guards, o.Guards) && slices.Equal(x.Together, o.Together)
				}) {
					out = append(out, o)
				}
			}
		}
	}
	return out
}

// fixedBlock returns the division into as many ranks in a row as the largest communicator of the first run has, if a
// run has ranks without one: what looks like halves may then be a part of the ranks whose size does not grow. Else it
// returns Apart.
func fixedBlock(colors [][]int32) Together {
	if !slices.ContainsFunc(colors, func(run []int32) bool { return slices.Contains(run, None) }) {
		return Apart
	}
	_, most := countSets(colors[0])
	if most < 2 || most-2 > math.MaxInt8-int(BlockOf) {
		return Apart
	}
	return BlockOf + Together(most-2)
}

// countSets returns how many communicators a run has, and how many ranks the largest of them.
func countSets(run []int32) (sets, most int) {
	sizes := map[int32]int{}
	for _, set := range run {
		if set != None {
			sizes[set]++
			most = max(most, sizes[set])
		}
	}
	return len(sizes), most
}

// unevenParts returns the divisions of a line into ranks with the same remainder, or so many in a row, if there is a
// run whose number of ranks these do not divide, so that the parts are no lines of a grid. It has more than two whole
// parts: fewer could be there by chance. The largest run has more than twice the ranks of the smallest that shows
// several parts: in less, a share, root or logarithm of the number of ranks can stay the same. Each rank must be in a
// communicator.
func unevenParts(colors [][]int32) (all [][]Together) {
	stride, block := 0, 0 // the most communicators, and the most ranks in one, of any run
	for _, run := range colors {
		if slices.Contains(run, None) {
			return nil
		}
		sets, most := countSets(run)
		stride, block = max(stride, sets), max(block, most)
	}
	isUneven := func(by int) bool {
		smallest, largest, uneven := math.MaxInt, 0, false
		for _, run := range colors {
			if ranks := len(run); ranks > by {
				smallest, largest = min(smallest, ranks), max(largest, ranks)
				uneven = uneven || ranks > 2*by && ranks%by != 0
			}
		}
		return uneven && largest > 2*smallest
	}
	switch {
	case stride == 2 && isUneven(2):
		all = append(all, []Together{Parity})
	case stride > 2 && stride-3 <= math.MaxInt8+int(StrideOf) && isUneven(stride):
		all = append(all, []Together{StrideOf - Together(stride-3)})
	}
	if block >= 2 && block-2 <= math.MaxInt8-int(BlockOf) && isUneven(block) {
		all = append(all, []Together{BlockOf + Together(block-2)})
	}
	return all
}

// divisions returns the ways in which members may differ on the axes: on each in any way or not at all, but for one.
// Ways that look like these in all runs do not count. Of a line only halves and a fixed block do: the rest are whole
// axes of k x P/k grids.
func (c *class) divisions(fixed Together) (all [][]Together) {
	axes := len(c.dims[0])
	longest := make([]int32, axes)
	for _, dims := range c.dims {
		for a, d := range dims {
			longest[a] = max(longest[a], d)
		}
	}
	last := BlockOf + mostInBlock - 2
	if axes == 1 {
		last = Halved
	}
	for mask := range 1 << axes {
		plain := make([]Together, axes)
		for a := range axes {
			if mask>>a&1 == 1 {
				plain[a] = Whole
			}
		}
		all = append(all, plain)
		for a := range axes {
			for t := Halves; plain[a] == Apart && t <= last; t++ {
				if longest[a] > 2 && (t < BlockOf || longest[a] > t.block()) {
					divided := slices.Clone(plain)
					divided[a] = t
					all = append(all, divided)
				}
			}
		}
	}
	if axes == 1 && fixed != Apart && longest[0] > fixed.block() {
		all = append(all, []Together{fixed})
	}
	return all
}

// groups reports whether ranks have the same color exactly when they are together on all axes.
func (f PartitionForm) groups(c *class, colors [][]int32) bool {
	for i, color := range colors {
		of := map[int32]int32{}
		seen := map[int32]bool{}
		for r, set := range color {
			if set == None {
				continue
			}
			key := f.key(c.dims[i], int32(r))
			if first, ok := of[key]; ok && first != set || !ok && seen[set] {
				return false
			}
			of[key], seen[set] = set, true
		}
	}
	return true
}

// key returns a number that is the same for ranks that are together.
func (f PartitionForm) key(dims []int32, rank int32) int32 {
	key, stride := int32(0), int32(1)
	for a, x := range coords(dims, rank) {
		key += f.Together[a].group(x, dims[a]) * stride
		stride *= dims[a]
	}
	return key
}

// sets evaluates the form on a grid.
func (f PartitionForm) sets(ranks int32, dims []int32) Sets {
	out := Sets{Ranks: ranks}
	at := map[int32]int{}
	for r := range ranks {
		in := true
		for a, x := range coords(dims, r) {
			g := f.Guards[a]
			in = in && holds(g.Kind, g.N.Value(dims[a], nil), g.Offset, x, dims[a])
		}
		if !in {
			continue
		}
		key := f.key(dims, r)
		i, ok := at[key]
		if !ok {
			i = len(out.Sets)
			at[key] = i
			out.Sets = append(out.Sets, nil)
		}
		out.Sets[i] = append(out.Sets[i], r)
	}
	if f.Descending {
		for _, s := range out.Sets {
			slices.Reverse(s)
		}
	}
	return out
}

// roundsUnseen reports whether a condition for members is about a part of an axis, as its first half, that has to be
// rounded on a grid with extents dims, and did not have to be in any run.
func (f PartitionForm) roundsUnseen(grid Grid, training, dims []int32) bool {
	for a, g := range f.Guards {
		if g.Kind != All && g.N.roundsUnseen(grid, a, training, dims) {
			return true
		}
	}
	return false
}

// roundsUnseen reports whether the form has a half or another part of an extent, as the distance to a partner or in a
// condition, that has to be rounded on a grid with extents dims, and did not have to be in any run.
func (f *Form) roundsUnseen(grid Grid, training, dims []int32) bool {
	for a, r := range f.Rules {
		if r.Op != Keep && r.N.roundsUnseen(grid, a, training, dims) ||
			r.Guard.Kind != All && r.Guard.N.roundsUnseen(grid, a, training, dims) {
			return true
		}
	}
	return false
}

// roundsUnseen reports whether a number is a part of the extent of an axis that has to be rounded on a grid with extents
// dims, and did not have to be in any run.
func (n Number) roundsUnseen(grid Grid, axis int, training, dims []int32) bool {
	if n.Kind != Divided || n.B != 0 || axis >= len(dims) || n.divides(dims[axis]) {
		return false
	}
	return !slices.ContainsFunc(training, func(p int32) bool {
		had, ok := grid.Dims(p)
		return ok && axis < len(had) && !n.divides(had[axis])
	})
}

// divides reports whether a number that is a part of an extent divides it evenly.
func (n Number) divides(extent int32) bool { return extent&(1<<max(n.C, 0)-1) == 0 }

// Sets returns the communicators at a process count, ordered by their lowest member. The error is a *Refusal when the
// runs do not determine them.
func (l PartitionLaw) Sets(ranks int32) (Sets, error) {
	refuse := func(r Reason, detail string) (Sets, error) {
		return Sets{}, &Refusal{Slot: l.Name, Ranks: ranks, Reason: r, Detail: detail}
	}
	if len(l.Forms) == 0 {
		return refuse(NoLaw, l.Why)
	}
	var answer *Sets
	var texts []string
	for _, f := range l.Forms {
		for _, g := range f.Grids {
			dims, ok := g.Dims(ranks)
			if !ok && answer != nil {
				continue // it runs on so many ranks, and so does not arrange them like this
			}
			if !ok {
				return refuse(Undefined, fmt.Sprintf("all runs were of %s; a run at another process count would show the law there", g.Domain()))
			}
			if f.roundsUnseen(g, l.Training, dims) {
				return refuse(Ambiguous, fmt.Sprintf(
					"all runs divide an axis of %s into equal parts, and do not tell how it is rounded", g))
			}
			s := f.sets(ranks, dims)
			o := f
			o.Grids = []Grid{g}
			if answer == nil {
				answer = &s
				texts = append(texts, o.String())
			} else if !slices.EqualFunc(answer.Sets, s.Sets, slices.Equal) {
				texts = append(texts, o.String())
			}
		}
	}
	if len(texts) > 1 {
		return refuse(Ambiguous, fmt.Sprintf("%d laws that give all runs differ: %s", len(texts),
			strings.Join(texts[:min(len(texts), 4)], "; ")))
	}
	return *answer, nil
}

// String formats the form: "ranks that differ in x on a q x q grid".
func (f PartitionForm) String() string {
	var differ, guards []string
	for a, t := range f.Together {
		name := axisName(a)
		if len(f.Together) == 1 {
			name = "rank"
		}
		if text := t.text(name); text != "" {
			differ = append(differ, text)
		}
		if text := f.Guards[a].text(name); text != "" {
			guards = append(guards, text)
		}
	}
	whole := !slices.ContainsFunc(f.Together, func(t Together) bool { return t != Whole })
	text := "each rank alone"
	switch {
	case whole && len(guards) == 0:
		return "all ranks"
	case whole:
		text = "one of all ranks"
	case len(differ) > 0:
		text = "ranks that differ in " + strings.Join(differ, " and ")
	}
	if len(guards) > 0 {
		text += " with " + strings.Join(guards, ", ")
	}
	return fmt.Sprintf("%s on a %s", text, f.Grids[0])
}
