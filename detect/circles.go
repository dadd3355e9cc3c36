package detect

// circles are ranks, or other things with numbers, by what they are connected with: each names one on the way to the least of its circle.
type circles map[int32]int32

// of is the least of the circle that r is in.
func (c circles) of(r int32) int32 {
	next, known := c[r]
	if !known || next == r {
		c[r] = r
		return r
	}
	root := c.of(next)
	c[r] = root
	return root
}

// join makes one circle of those of a and b.
func (c circles) join(a, b int32) {
	a, b = c.of(a), c.of(b)
	c[max(a, b)] = min(a, b)
}
