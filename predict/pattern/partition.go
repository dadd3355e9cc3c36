package pattern

import (
	"fmt"
	"slices"
	"strings"
)

// Partition is the communicators that are created at one place in the program, in runs at several process counts: the
// whole world, rows or columns of a grid, subsets.
type Partition struct {
	Name string `json:"name"`
	Runs []Sets `json:"runs"`
}

// Sets are the communicators of one run. No rank is in two of them, and some may be in none.
type Sets struct {
	Ranks int32 `json:"ranks"`
	// Sets are the world ranks of the members of each communicator, in the order of their ranks there. The order of the
	// sets has no meaning.
	Sets [][]int32 `json:"sets"`
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

// PartitionForm is one law of communicators: the members of each differ only on the free axes.
type PartitionForm struct {
	Grids []Grid `json:"grids"`
	// Free is true for axes on which the members of a communicator differ.
	Free []bool `json:"free"`
	// Guards are the conditions for being a member, per axis.
	Guards []Guard `json:"guards"`
	// Descending means that the order of ranks in the communicator is opposite to that in the world.
	Descending bool    `json:"descending,omitempty"`
	Cost       float64 `json:"cost"`
}

// PartitionLaw is the law of a partition: all forms that fit its runs and are about as simple as the first.
type PartitionLaw struct {
	Name  string          `json:"name"`
	Forms []PartitionForm `json:"forms"`
	// Why is the reason when there are no forms.
	Why string `json:"why,omitempty"`
}

// FitPartitions finds the laws of communicators, on the program's grids if possible, else on others. Laws that are not
// found have no form, but a reason. It is an error when a partition is malformed.
func (p *Program) FitPartitions(parts []Partition) ([]PartitionLaw, error) {
	var out []PartitionLaw
	for _, part := range parts {
		law, err := p.fitPartition(part)
		if err != nil {
			return nil, fmt.Errorf("find the law of communicators %s: %w", part.Name, err)
		}
		out = append(out, law)
	}
	return out, nil
}

func (p *Program) fitPartition(part Partition) (PartitionLaw, error) {
	law := PartitionLaw{Name: part.Name}
	sizes := make([]int32, len(part.Runs))
	colors := make([][]int32, len(part.Runs))
	for i, s := range part.Runs {
		c, err := s.colors()
		if err != nil {
			return law, err
		}
		sizes[i], colors[i] = s.Ranks, c
	}
	descending, ok := order(part.Runs)
	switch {
	case len(slices.Compact(slices.Sorted(slices.Values(sizes)))) < 2:
		law.Why = "seen at one process count only"
		return law, nil
	case !ok:
		law.Why = "the order of the members is neither that of the world nor the reverse"
		return law, nil
	}
	lib := newLibrary(nil, nil)
	var own, all []PartitionForm
	for _, c := range classes(sizes) {
		forms := c.partitions(colors, lib)
		for i := range forms {
			forms[i].Descending = descending
			// Rows of a plane are planes of a box too: fewer axes come first, and rule out more.
			forms[i].Cost += 5 * float64(len(c.dims[0])-1)
			if len(c.dims[0]) > 2 {
				forms[i].Cost += float64(gridRank(c))
			}
		}
		all = append(all, forms...)
		if p.has(c) {
			own = append(own, forms...)
		}
	}
	law.Forms = own
	if len(own) == 0 {
		law.Forms = all
	}
	slices.SortStableFunc(law.Forms, func(a, b PartitionForm) int { return compare(a.Cost, b.Cost) })
	for i, f := range law.Forms {
		if f.Cost > law.Forms[0].Cost+margin {
			law.Forms = law.Forms[:i]
			break
		}
	}
	if len(law.Forms) == 0 {
		law.Why = "no law gives all its members"
	}
	return law, nil
}

// has reports whether the program's laws use a class of grids, or it is the line.
func (p *Program) has(c *class) bool {
	if len(c.dims[0]) == 1 {
		return true
	}
	return slices.ContainsFunc(p.Grids, func(gs []Grid) bool {
		return slices.ContainsFunc(gs, func(g Grid) bool { return slices.ContainsFunc(c.grids, func(o Grid) bool { return sameGrid(o, g) }) })
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
	for mask := range 1 << k {
		f := PartitionForm{Grids: c.grids, Free: make([]bool, k), Guards: make([]Guard, k), Cost: 1}
		for a := range k {
			f.Free[a] = mask>>a&1 == 1
			f.Guards[a] = guards[a][0]
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
					return slices.Equal(x.Guards, o.Guards) &&
						slices.Equal(x.Free, o.Free)
				}) {
					out = append(out, o)
				}
			}
		}
	}
	return out
}

// groups reports whether ranks have the same color exactly when they differ only on free axes.
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

// key returns the first rank of the group of a rank, which has its coordinates on the axes that are not free.
func (f PartitionForm) key(dims []int32, rank int32) int32 {
	key, stride := int32(0), int32(1)
	for a, x := range coords(dims, rank) {
		if !f.Free[a] {
			key += x * stride
		}
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
			if !ok {
				return refuse(Undefined, fmt.Sprintf("all runs were of %s; a run at another process count would show the law there", g.Domain()))
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
	var free, guards []string
	for a := range f.Free {
		name := axisName(a)
		if len(f.Free) == 1 {
			name = "rank"
		}
		if f.Free[a] {
			free = append(free, name)
		}
		if t := f.Guards[a].text(name); t != "" {
			guards = append(guards, t)
		}
	}
	text := "each rank alone"
	switch {
	case len(free) == len(f.Free) && len(guards) == 0:
		return "all ranks"
	case len(free) == len(f.Free):
		text = "one of all ranks"
	case len(free) > 0:
		text = "ranks that differ in " + strings.Join(free, " and ")
	}
	if len(guards) > 0 {
		text += " with " + strings.Join(guards, ", ")
	}
	return fmt.Sprintf("%s on a %s", text, f.Grids[0])
}
