package rankset

// Groups is a union-find structure over ranks or other numbers: each names one closer to the least of its group.
type Groups map[int32]int32

// Root returns the least number in r's group.
func (c Groups) Root(r int32) int32 {
	next, known := c[r]
	if !known || next == r {
		c[r] = r
		return r
	}
	root := c.Root(next)
	c[r] = root
	return root
}

// Join merges the groups of a and b.
func (c Groups) Join(a, b int32) {
	a, b = c.Root(a), c.Root(b)
	c[max(a, b)] = min(a, b)
}

// NumberedGroups is a union-find structure over numbers from 0 on.
type NumberedGroups []int32

func NewNumberedGroups(n int) NumberedGroups {
	c := make(NumberedGroups, n)
	for i := range c {
		c[i] = int32(i)
	}
	return c
}

// Root returns the least number in i's group.
func (c NumberedGroups) Root(i int32) int32 {
	for c[i] != i {
		c[i] = c[c[i]]
		i = c[i]
	}
	return i
}

// Join merges the groups of a and b.
func (c NumberedGroups) Join(a, b int32) {
	a, b = c.Root(a), c.Root(b)
	c[max(a, b)] = min(a, b)
}
