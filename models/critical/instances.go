package critical

import (
	"cmp"
	"slices"
)

// Instance is one call that other ranks waited for because of a delay.
type Instance struct {
	// Place is the call in which a rank waited longest.
	Place
	// Rank is that rank. It waited from AtNs (since the start of the run) on, for WaitNs.
	Rank         int32
	AtNs, WaitNs int64
	// Peer is the rank that it waited for. It may differ from the rank of the delay, if it waited itself.
	Peer int32
	// Ns is the time that all ranks waited for the call because of the delay, and OwnNs that of Rank.
	Ns, OwnNs int64
}

func (x Instance) compare(y Instance) int {
	return cmp.Or(cmp.Compare(y.Ns, x.Ns), cmp.Compare(x.AtNs, y.AtNs), cmp.Compare(x.Rank, y.Rank))
}

// MostInstances limits the instances of a delay that are kept, the longest.
const MostInstances = 5

// AddInstances adds instances to the kept ones, the longest first. Parts of a wait for the same call are joined.
func AddInstances(kept []Instance, more ...Instance) []Instance {
	for _, x := range more {
		if i := slices.IndexFunc(kept,
			func(y Instance) bool { return x.Rank == y.Rank && x.AtNs == y.AtNs && x.Peer == y.Peer }); i >= 0 {
			x.Ns, x.OwnNs = x.Ns+kept[i].Ns, x.OwnNs+kept[i].OwnNs
			kept = slices.Delete(kept, i, i+1)
		}
		if len(kept) == MostInstances && x.compare(kept[len(kept)-1]) >= 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(kept, x, Instance.compare)
		kept = slices.Insert(kept[:min(len(kept), MostInstances-1)], min(i, MostInstances-1), x)
	}
	return kept
}

// Course is the time lost over the run: slice i, from FromNs + i*WidthNs (since the start of the run), has Ns[i],
// summed over ranks. Ns[0] includes what was lost before. Slices at the end may be missing.
type Course struct {
	FromNs  int64
	WidthNs int64
	Ns      []int64
}

// mostSlices limits the slices of a course.
const mostSlices = 64

// widen doubles the width of the slices.
func (c *Course) widen() {
	for i := range c.Ns {
		if i%2 == 0 {
			c.Ns[i/2] = c.Ns[i]
		} else {
			c.Ns[i/2] += c.Ns[i]
		}
	}
	c.Ns, c.WidthNs = c.Ns[:(len(c.Ns)+1)/2], 2*c.WidthNs
}

// add adds time to a slice.
func (c *Course) add(slice int32, ns int64) {
	for len(c.Ns) <= int(slice) {
		c.Ns = append(c.Ns, 0)
	}
	c.Ns[slice] += ns
}

// AddTime adds the time from one to another.
func (c *Course) AddTime(from, to int64) {
	from, to = from-c.FromNs, to-c.FromNs
	if from < 0 {
		c.add(0, min(0, to)-from)
		from = 0
	}
	for c.WidthNs = max(1, c.WidthNs); to >= mostSlices*c.WidthNs; {
		c.widen()
	}
	for from < to {
		slice := from / c.WidthNs
		end := min(to, (slice+1)*c.WidthNs)
		c.add(int32(slice), end-from)
		from = end
	}
}

// Slices divides the time from one to another into equal parts, and returns what was lost in each. What was lost before
// or after counts in the first and the last one.
func (c *Course) Slices(fromNs, toNs int64, n int) []int64 {
	parts := make([]float64, n)
	width := float64(max(1, toNs-fromNs)) / float64(n)
	at := func(ns float64) float64 { return min(max((ns-float64(fromNs))/width, 0), float64(n)) }
	for i, ns := range c.Ns {
		if ns == 0 {
			continue
		}
		from, to := at(float64(c.FromNs+int64(i)*c.WidthNs)), at(float64(c.FromNs+int64(i+1)*c.WidthNs))
		if from == to {
			parts[min(int(from), n-1)] += float64(ns)
			continue
		}
		for k := int(from); k < n && float64(k) < to; k++ {
			parts[k] += float64(ns) * (min(to, float64(k+1)) - max(from, float64(k))) / (to - from)
		}
	}
	all := make([]int64, n)
	for i, ns := range parts {
		all[i] = int64(ns + 0.5)
	}
	return all
}

// Add adds the times of another course that begins at the same time.
func (c *Course) Add(other Course) {
	if c.WidthNs == 0 {
		c.FromNs, c.WidthNs = other.FromNs, other.WidthNs
	}
	other.Ns = slices.Clone(other.Ns)
	for ; other.WidthNs < c.WidthNs; other.widen() {
	}
	for ; c.WidthNs < other.WidthNs; c.widen() {
	}
	for i, ns := range other.Ns {
		c.add(int32(i), ns)
	}
}

// timeSlice is a part of the waits for one row.
type timeSlice struct {
	slice int32
	ns    int64
}

// spread divides waits for one row among slices of the run's time, which get wider until the waits fit.
func (d *delays) spread(waits []wait) {
	d.slices = d.slices[:0]
	for _, w := range waits {
		from := max(0, d.g.ranks.row(w.waiter).start-d.courseFrom())
		to := from + w.ns
		for to >= mostSlices*d.widthNs {
			d.widthNs *= 2
			for i := range d.slices {
				d.slices[i].slice /= 2
			}
		}
		for from < to {
			slice := from / d.widthNs
			end := min(to, (slice+1)*d.widthNs)
			d.addSlice(int32(slice), end-from)
			from = end
		}
	}
}

// courseFrom is when courses begin: where the first rank ended MPI_Init, if the options say so.
func (d *delays) courseFrom() int64 {
	if d.widthNs == 0 {
		d.fromNs, d.widthNs = d.g.ranks[0].beginOr(d.g.firstNs), 1
		for k := range d.g.ranks {
			d.fromNs = min(d.fromNs, d.g.ranks[k].beginOr(d.g.firstNs))
		}
	}
	return d.fromNs
}

func (d *delays) addSlice(slice int32, ns int64) {
	for i := len(d.slices) - 1; i >= 0; i-- {
		if d.slices[i].slice == slice {
			d.slices[i].ns += ns
			return
		}
	}
	d.slices = append(d.slices, timeSlice{slice, ns})
}

// note adds the fraction of the waits for a row that a delay explains to its course and its instances.
func (d *delays) note(delay *Delay, fraction float64, longest wait, ns int64) {
	c := &delay.Course
	if c.WidthNs == 0 {
		c.FromNs, c.WidthNs = d.fromNs, d.widthNs
	}
	for c.WidthNs < d.widthNs {
		c.widen()
	}
	for _, s := range d.slices {
		c.add(s.slice, part(fraction, s.ns))
	}
	x := Instance{Rank: longest.waiter.rank, WaitNs: longest.ns, Peer: longest.cause.rank, Ns: part(fraction, ns),
		OwnNs: part(fraction, longest.ns)}
	if n := len(delay.Longest); n == MostInstances && x.Ns < delay.Longest[n-1].Ns {
		return
	}
	r := d.g.ranks.row(longest.waiter)
	at := d.g.places.all[r.place]
	x.Place, x.AtNs = Place{at.site, at.call, r.awaits}, r.start
	delay.Longest = AddInstances(delay.Longest, x)
}
