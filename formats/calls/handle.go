package calls

import (
	"fmt"
	"slices"

	"github.com/commq/commq/formats/timed"
)

// hidden has the communicators whose handle the trace does not show when they are made.
type hidden struct {
	// loose are the communicators without a handle so far, in the order in which they were made.
	loose []*timed.Comm
	// in are communicators by the variable that has their handle; nil: one of several.
	in map[uint64]*timed.Comm
	// unknown is the number of constructors whose communicator has unknown members.
	unknown int
	// doubtful are handles that may have been freed.
	doubtful map[int64]bool
	unsure   int64

	nth          map[*timed.Comm]int // constructor that made it, counted from 1
	constructors int                 // so far
	picks        []picked            // of loose communicators
	picksSince   int                 // the last constructor
}

// Unsure returns how many handles may stand for one of several communicators of different members, and were taken as
// the one that was made first.
func (r *Rank) Unsure() int64 { return r.unsure }

// Shows takes a handle from a call that has no row.
func (r *Rank) Shows(h Handle) { _, _ = r.comm(h) } // a call with a row tells what is wrong with it

// comm returns the communicator that a handle stands for.
func (r *Rank) comm(h Handle) (*timed.Comm, error) {
	c, ok := r.known[h.Number]
	if ok && c != nil && h.fits(c, r.me) && !r.doubtful[h.Number] {
		return c, nil
	}
	switch {
	case h.Number == Unshown:
		return r.free(h.Variable)
	case h.Number == r.self:
		r.known[h.Number] = r.comms.Self(r.me)
		return r.known[h.Number], nil
	case h.Size >= 0:
		return r.guess(h)
	case ok:
		return nil, fmt.Errorf("the trace does not tell who is in communicator %d: a constructor that not all of its "+
			"ranks called, or one that joins programs", h.Number)
	}
	return nil, fmt.Errorf("communicator %d was not made", h.Number)
}

// guess finds the communicator of a handle by the rank and size that it shows.
func (r *Rank) guess(h Handle) (*timed.Comm, error) {
	c, ok := r.known[h.Number]
	if ok && c == nil && !r.doubtful[h.Number] {
		return nil, unknownMembers(h)
	}
	if ok && c != nil && h.fits(c, r.me) { // doubtful: it may have been freed, and stand for a new one
		delete(r.doubtful, h.Number)
		if slices.ContainsFunc(r.loose, func(o *timed.Comm) bool { return h.fits(o, r.me) && !sameRanks(o, c) }) {
			r.unsure++
		}
		return c, nil
	}
	delete(r.doubtful, h.Number)
	c = r.pick(h)
	r.known[h.Number] = c
	if c == nil {
		return nil, unknownMembers(h)
	}
	return c, nil
}

func unknownMembers(h Handle) error {
	return fmt.Errorf("communicator %d, of %d ranks, was not made by a call whose members the trace tells: trace a run "+
		"that makes it by MPI_Comm_dup, MPI_Comm_split or MPI_Cart_create", h.Number, h.Size)
}

// pick returns the communicator that a handle seen for the first time stands for: the first one made that fits; nil if
// there is none.
func (r *Rank) pick(h Handle) *timed.Comm {
	at := slices.IndexFunc(r.loose, func(c *timed.Comm) bool { return h.fits(c, r.me) && h.Nth == r.nth[c] })
	agreed := at >= 0
	if !agreed {
		at = slices.IndexFunc(r.loose, func(c *timed.Comm) bool { return h.fits(c, r.me) })
	}
	if at >= 0 {
		c := r.loose[at]
		r.loose = slices.Delete(r.loose, at, at+1)
		several := r.unknown > 0 || slices.ContainsFunc(r.loose, func(o *timed.Comm) bool {
			return h.fits(o, r.me) && !sameRanks(o, c)
		})
		if several && !agreed {
			r.unsure++
		}
		r.picks = append(r.picks, picked{moment{r.constructors, r.picksSince}, r.nth[c], several})
		r.picksSince++
		return c
	}
	if world := r.comms.World(); r.unknown == 0 && h.fits(world, r.me) {
		return world
	}
	if h.Size == 1 {
		return r.comms.Self(r.me)
	}
	return nil
}

// sameRanks reports whether two communicators have the same ranks in the same order.
func sameRanks(a, b *timed.Comm) bool {
	return slices.Equal(a.Groups[0], b.Groups[0]) && slices.Equal(a.Groups[1], b.Groups[1])
}

// fits reports whether a communicator has the rank and size that a handle shows.
func (h Handle) fits(c *timed.Comm, me int32) bool {
	if h.Size < 0 {
		return true
	}
	own := c.Own(me)
	return h.Size == int64(len(own)) && h.Rank >= 0 && h.Rank < h.Size && own[h.Rank] == me
}

// makes notes what a constructor made.
func (r *Rank) makes(h Handle) {
	var c *timed.Comm
	if len(r.made) > 0 {
		c, r.made = r.made[0], r.made[1:]
	}
	r.bind(h, c)
}

// bind notes the communicator that a constructor made, nil if it is not known.
func (r *Rank) bind(h Handle, c *timed.Comm) {
	if h.Number != Unshown {
		r.known[h.Number] = c
		return
	}
	r.constructors++
	r.picksSince = 0
	if c != nil {
		r.loose = append(r.loose, c)
		r.nth[c] = r.constructors
	} else if h != NoComm {
		r.unknown++
	}
	if h.Variable == 0 {
		return
	}
	if _, used := r.in[h.Variable]; used {
		c = nil // the handle of the other was copied before
	}
	r.in[h.Variable] = c
}

// free forgets the handles of the communicator in a variable and returns it. All handles are doubtful if it is not
// known.
func (r *Rank) free(variable uint64) (*timed.Comm, error) {
	if variable == 0 {
		return nil, fmt.Errorf("the trace does not tell the communicator")
	}
	c := r.in[variable]
	delete(r.in, variable)
	if c == nil {
		for number, is := range r.known {
			r.doubtful[number] = is != r.comms.World()
		}
		return nil, fmt.Errorf("the trace does not tell which communicator the variable at %d has", variable)
	}
	r.loose = slices.DeleteFunc(r.loose, func(o *timed.Comm) bool { return o == c })
	for number, is := range r.known {
		if is == c {
			delete(r.known, number)
		}
	}
	return c, nil
}
