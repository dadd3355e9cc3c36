package calls

import (
	"slices"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// resolver puts the constructors of all ranks together.
type resolver struct {
	comms *timed.Comms
	ranks []*walker
	// arrived counts, by communicator, the members that wait in a constructor on it.
	arrived map[*timed.Comm]int
	dims    map[*timed.Comm][]int64 // of Cartesian communicators
	// bridges are the local communicators that wait in MPI_Intercomm_create, by the world rank of their leader, with
	// that of the other leader.
	bridges map[int32]bridge
	ready   []int32 // ranks that may go on
}

type bridge struct {
	local  *timed.Comm
	remote int32
}

// walker goes through the defining calls of a rank.
type walker struct {
	*Rank
	calls []Args
	at    *timed.Comm // the communicator of the constructor that it waits in, nil: none
	all   []*timed.Comm
}

// Resolve finds out who is in which communicator. calls has, for each rank, those that define something (Defines) in
// their order, with those that use a communicator whose handle no constructor shows. It adds the communicators to
// comms and returns, by rank, what its constructors made: nil if the rank is no member, or if that cannot be told.
func Resolve(comms *timed.Comms, calls [][]Args, world, self int64) [][]*timed.Comm {
	v := &resolver{comms: comms, arrived: map[*timed.Comm]int{}, dims: map[*timed.Comm][]int64{},
		bridges: map[int32]bridge{}}
	for i := range calls {
		v.ranks = append(v.ranks, &walker{Rank: NewRank(int32(i), comms, nil, world, self), calls: calls[i]})
		v.ready = append(v.ready, int32(i))
	}
	for {
		for len(v.ready) > 0 {
			rank := v.ready[0]
			v.ready = v.ready[1:]
			v.walk(v.ranks[rank])
		}
		if !v.giveUp() {
			break
		}
	}
	made := make([][]*timed.Comm, len(calls))
	for i, w := range v.ranks {
		made[i] = w.all
	}
	return made
}

// walk goes on with a rank up to its next constructor.
func (v *resolver) walk(w *walker) {
	for len(w.calls) > 0 {
		a := &w.calls[0]
		switch {
		case a.MakesGroup != NoGroup:
			w.group(a)
		case !a.Call.Is(schema.FactCreatesCommunicator):
			_, _ = w.comm(a.Comm) // a use, which tells the handle; an unknown one is an error when it is read
		default:
			c, err := w.comm(a.Comm)
			if err != nil {
				w.finish(nil) // unknown as its parent is
				continue
			}
			w.at = c
			v.arrived[c]++
			if v.arrived[c] == len(c.Groups[0])+len(c.Groups[1]) {
				v.complete(c)
			}
			return
		}
		w.calls = w.calls[1:]
	}
}

// finish ends the constructor of a rank.
func (w *walker) finish(c *timed.Comm) {
	w.all = append(w.all, c)
	w.bind(w.calls[0].NewComm, c)
	w.calls, w.at = w.calls[1:], nil
}

// complete makes what the members of a communicator made together: nothing that can be told if they are in different
// constructors.
func (v *resolver) complete(c *timed.Comm) {
	first := &v.ranks[c.Groups[0][0]].calls[0]
	differs := func(rank int32) bool { return v.ranks[rank].calls[0].Call != first.Call }
	if slices.ContainsFunc(c.Groups[0], differs) || slices.ContainsFunc(c.Groups[1], differs) {
		v.release(c, nil)
		return
	}
	if first.Call == schema.CallIntercommCreate {
		v.connect(c, first)
		return
	}
	made := v.made(c, first)
	v.release(c, made)
}

// release lets the members of a communicator go on.
func (v *resolver) release(c *timed.Comm, made map[int32]*timed.Comm) {
	v.arrived[c] = 0
	for _, g := range c.Groups {
		for _, rank := range g {
			if w := v.ranks[rank]; w.at == c {
				w.finish(made[rank])
				v.ready = append(v.ready, rank)
			}
		}
	}
}

// giveUp lets all ranks go on that wait for others that never come, without a result; false if none waits.
func (v *resolver) giveUp() bool {
	gone := false
	for rank, w := range v.ranks {
		if w.at == nil {
			continue
		}
		gone = true
		v.arrived[w.at]--
		w.finish(nil)
		v.ready = append(v.ready, int32(rank))
	}
	clear(v.bridges)
	return gone
}
