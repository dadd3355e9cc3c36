package pattern

import "slices"

// Ranks that do the same in all runs that show it, however many ranks there are, may do just that on more ranks, too:
// as ranks 1 and 5, and not those with rank mod 4 = 1, if the runs are on 8 and on 9 ranks.

// addAsSeen adds to the laws of single slots the rival that the same ranks send to the same ones on any number of
// ranks, if the runs agree with it and it does not cost much more than the cheapest law.
func addAsSeen(units []*unit, sizes int) {
	for _, u := range units {
		if len(u.slots) > 1 {
			continue
		}
		f, ok := u.asSeen(sizes)
		if ok && f.Cost <= u.pool[0].Cost+margin {
			f.Cost = max(f.Cost, u.pool[0].Cost) // a law tells more than a list
			u.pool = append(u.pool, f)
		}
	}
}

// asSeen returns the form that lists destinations by rank; false if the runs disagree, of which
// there are sizes.
func (u *unit) asSeen(sizes int) (f Form, ok bool) {
	var table []int32
	if len(u.obs) < 2 || len(u.obs) < sizes-u.obs[0].size {
		return f, false // one run, or one that does not show it on more ranks
	}
	for _, o := range u.obs { // by number of ranks
		dst := o.m.Dst
		for len(dst) > 0 && dst[len(dst)-1] == None {
			dst = dst[:len(dst)-1]
		}
		if table != nil && !slices.Equal(table, dst) {
			return f, false
		}
		table = dst
	}
	f = Form{Grids: []Grid{{Shape: Line, Axes: 1, Order: []int{0}}}, Listed: table,
		Presence: Presence{Kind: FromRanks, N: u.obs[0].m.Ranks}}
	f.Cost = evidence(u.obs[:1])
	return f, true
}

// lists returns the destinations by rank on a number of ranks; nil if some are no ranks there.
func (f Form) lists(ranks int32) []int32 {
	isNoRank := func(d int32) bool { return d < None || d >= ranks }
	if len(f.Listed) > int(ranks) || slices.ContainsFunc(f.Listed, isNoRank) {
		return nil
	}
	return append(slices.Clone(f.Listed), slices.Repeat([]int32{None}, int(ranks)-len(f.Listed))...)
}
