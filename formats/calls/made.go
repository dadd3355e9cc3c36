package calls

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// made returns, by world rank, what the members of a communicator make by a constructor, once all of them have called
// it.
func (v *resolver) made(c *timed.Comm, first *Args) map[int32]*timed.Comm {
	if c.Inter() {
		switch first.Call {
		case schema.CallCommDup:
			return v.share(c, schema.CommInter, c.Groups[0], c.Groups[1])
		case schema.CallIntercommMerge:
			return v.merge(c)
		}
		return nil
	}
	switch first.Call {
	case schema.CallCommDup:
		return v.share(c, schema.CommDup, c.Groups[0])
	case schema.CallCommSplit:
		return v.split(c, schema.CommSplit, func(a *Args, _ int) (string, int64) {
			if a.Color < 0 {
				return "", 0
			}
			return strconv.FormatInt(a.Color, 10), a.Key
		})
	case schema.CallCommCreate:
		return v.create(c)
	case schema.CallCartCreate:
		return v.cart(c, first)
	case schema.CallCartSub:
		return v.cartSub(c)
	case schema.CallGraphCreate:
		return v.share(c, schema.CommGraph, head(c.Groups[0], first.Dims))
	}
	return nil // MPI_Comm_spawn and others that join programs
}

// head returns the ranks that fit a topology of that shape.
func head(ranks []int32, dims []int64) []int32 {
	if dims == nil {
		return ranks
	}
	n := int64(1)
	for _, d := range dims {
		if d < 0 || n > int64(len(ranks)) {
			return ranks
		}
		n *= d
	}
	return ranks[:min(n, int64(len(ranks)))]
}

// share makes one communicator for all in groups.
func (v *resolver) share(parent *timed.Comm, kind schema.CommKind, groups ...[]int32) map[int32]*timed.Comm {
	made := map[int32]*timed.Comm{}
	if len(groups[0]) == 0 {
		return made
	}
	n := timed.NewComm(kind, groups...)
	n.Parent = parent
	v.comms.Add(n)
	for _, g := range groups {
		for _, rank := range g {
			made[rank] = n
		}
	}
	return made
}

// split makes a communicator for all ranks of the same color ("" has none), in the order of keys.
func (v *resolver) split(c *timed.Comm, kind schema.CommKind,
	of func(a *Args, rank int) (color string, key int64)) map[int32]*timed.Comm {
	type member struct {
		world int32
		key   int64
	}
	var colors []string
	by := map[string][]member{}
	for i, world := range c.Groups[0] {
		color, key := of(&v.ranks[world].calls[0], i)
		if color == "" {
			continue
		}
		if by[color] == nil {
			colors = append(colors, color)
		}
		by[color] = append(by[color], member{world, key})
	}
	made := map[int32]*timed.Comm{}
	for _, color := range colors {
		slices.SortStableFunc(by[color], func(a, b member) int { return cmp.Compare(a.key, b.key) })
		var group []int32
		for _, m := range by[color] {
			group = append(group, m.world)
		}
		for rank, n := range v.share(c, kind, group) {
			made[rank] = n
		}
	}
	return made
}

// create makes the communicators of MPI_Comm_create: one for each group that a member of it gave.
func (v *resolver) create(c *timed.Comm) map[int32]*timed.Comm {
	made := map[int32]*timed.Comm{}
	for _, world := range c.Groups[0] {
		w := v.ranks[world]
		group := w.groups[w.calls[0].Group]
		if made[world] != nil || !slices.Contains(group, world) || !distinct(c, group) {
			continue
		}
		for rank, n := range v.share(c, schema.CommCreate, group) {
			made[rank] = n
		}
	}
	return made
}

// distinct reports whether a group has each of its ranks once, and only members of the communicator.
func distinct(c *timed.Comm, group []int32) bool {
	seen := map[int32]bool{}
	for _, rank := range group {
		if seen[rank] || !c.Has(rank) {
			return false
		}
		seen[rank] = true
	}
	return true
}

// cart makes a Cartesian communicator. Its ranks are taken to be in the order of the parent's: traces do not tell
// whether the library reordered them.
func (v *resolver) cart(c *timed.Comm, first *Args) map[int32]*timed.Comm {
	made := v.share(c, schema.CommCart, head(c.Groups[0], first.Dims))
	if n := made[c.Groups[0][0]]; n != nil && first.Dims != nil && len(first.Periods) == len(first.Dims) {
		v.setDims(n, first.Dims, first.Periods)
	}
	return made
}

// setDims gives a communicator its topology, if the dimensions hold its ranks.
func (v *resolver) setDims(n *timed.Comm, dims, periods []int64) {
	size := int64(1)
	for _, d := range dims {
		if d < 1 || size > int64(len(n.Groups[0])) {
			return
		}
		size *= d
	}
	if size != int64(len(n.Groups[0])) {
		return
	}
	v.dims[n] = dims
	var d, p []string
	for i := range dims {
		d = append(d, fmt.Sprint(dims[i]))
		p = append(p, fmt.Sprint(min(1, max(0, periods[i]))))
	}
	n.Dims, n.Periods = strings.Join(d, ","), strings.Join(p, ",")
}

// cartSub makes the communicators of the lower dimensions that stay.
func (v *resolver) cartSub(c *timed.Comm) map[int32]*timed.Comm {
	dims := v.dims[c]
	if dims == nil {
		return nil
	}
	return v.split(c, schema.CommCart, func(a *Args, rank int) (string, int64) {
		color, key, rest := "of", int64(0), int64(rank)
		coords := make([]int64, len(dims))
		for i := len(dims) - 1; i >= 0; i-- {
			coords[i], rest = rest%dims[i], rest/dims[i]
		}
		for i, x := range coords {
			if i < len(a.Dims) && a.Dims[i] != 0 {
				key = key*dims[i] + x
			} else {
				color += fmt.Sprint(" ", x)
			}
		}
		return color, key
	})
}

// merge makes one group of two: that without high first.
func (v *resolver) merge(c *timed.Comm) map[int32]*timed.Comm {
	a, b := c.Groups[0], c.Groups[1]
	if v.ranks[a[0]].calls[0].High && !v.ranks[b[0]].calls[0].High {
		a, b = b, a
	}
	return v.share(c, schema.CommMerge, append(slices.Clone(a), b...))
}

// connect makes an intercommunicator once both of its groups are in MPI_Intercomm_create.
func (v *resolver) connect(local *timed.Comm, first *Args) {
	g := local.Groups[0]
	if local.Inter() || first.Leader < 0 || first.Leader >= int64(len(g)) {
		v.release(local, nil)
		return
	}
	leader := g[first.Leader]
	w := v.ranks[leader]
	peer, err := w.comm(w.calls[0].PeerComm)
	if err != nil {
		v.release(local, nil)
		return
	}
	remote, ok := peer.Peer(leader, w.calls[0].RemoteLeader)
	other, in := v.bridges[remote]
	switch {
	case !ok:
		v.release(local, nil)
	case !in || other.remote != leader:
		v.bridges[leader] = bridge{local, remote}
	default:
		delete(v.bridges, remote)
		a, b := other.local.Groups[0], g
		if slices.ContainsFunc(a, local.Has) { // groups of an intercommunicator have no common rank
			v.release(local, nil)
			v.release(other.local, nil)
			return
		}
		if slices.Min(b) < slices.Min(a) {
			a, b = b, a
		}
		made := v.share(nil, schema.CommInter, a, b)
		v.release(local, made)
		v.release(other.local, made)
	}
}
