package calls

import (
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// moment is a point in a rank's sequence: the number of constructors so far, and of loose communicators picked since
// the last one.
type moment struct{ constructors, picks int }

// picked is a loose communicator that was taken for a handle: it was made by the nth constructor. several means that
// others, with different members, fit too.
type picked struct {
	moment
	nth     int
	several bool
}

// Agree looks for handles that fit several communicators of different members. If all ranks with a single fit take what
// their n-th constructor made at this moment, it notes n in the handle (Nth). calls are those that Resolve took, made
// what it returned. The result is whether it noted any, so that Resolve must be called again, with new Comms.
func Agree(comms *timed.Comms, calls [][]Args, made [][]*timed.Comm) bool {
	sure := map[moment]int{} // the constructor; -1: ranks differ
	open := map[*Handle]moment{}
	for i := range calls {
		r := NewRank(int32(i), comms, made[i], Unshown, Unshown)
		for k := range calls[i] {
			a, before := &calls[i][k], len(r.picks)
			r.Shows(a.Comm)
			if a.Call.Is(schema.FactCreatesCommunicator) {
				r.makes(a.NewComm)
			}
			for _, p := range r.picks[before:] {
				n, seen := sure[p.moment]
				switch {
				case p.several:
					open[&a.Comm] = p.moment
				case seen && n != p.nth:
					sure[p.moment] = -1
				default:
					sure[p.moment] = p.nth
				}
			}
		}
	}
	noted := false
	for h, at := range open {
		if n := sure[at]; n > 0 {
			h.Nth, noted = n, true
		}
	}
	return noted
}
