package nsys

import (
	"math"
	"slices"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// Handles of communicators that MPICH and libraries derived from it have in all processes, from their mpi.h.
const mpichWorld, mpichSelf = 0x44000000, 0x44000001

// mpiComms identifies communicators by their handles. Exports do not have their members; only communicators of all
// ranks are known.
type mpiComms struct {
	comms *timed.Comms
	// whole are the communicators that all ranks used, by the identifier that exports call globally unique: they have
	// all ranks.
	whole map[int64]*timed.Comm
	// made are those of whole that are not MPI_COMM_WORLD.
	made  []*timed.Comm
	mpich bool
	// alone means that each rank used a single, unidentified handle; it is taken as MPI_COMM_WORLD.
	alone bool
}

// isMPICH reports whether a handle is one of a communicator in MPICH: 32 bits, the first two with the way it is stored,
// and the next four with the kind of object.
func isMPICH(handle int64) bool {
	if handle < math.MinInt32 || handle > math.MaxUint32 {
		return false // an address
	}
	kind := uint32(handle) >> 24
	return kind == 0x44 || kind == 0x84 || kind == 0xc4
}

// newComms finds the communicators of all ranks.
func (j *mpiJob) newComms() *mpiComms {
	s := &mpiComms{comms: timed.NewComms(len(j.ranks)), whole: map[int64]*timed.Comm{}, alone: true}
	users, uids := map[int64]int{}, []int64(nil)
	for _, r := range j.ranks {
		s.mpich = s.mpich || r.handles[mpichWorld]
		s.alone = s.alone && len(r.handles) == 1 && len(r.uids) == 0
		for handle := range r.handles {
			s.alone = s.alone && !isMPICH(handle)
		}
		for uid := range r.uids {
			users[uid]++
		}
	}
	for uid, n := range users {
		if n == len(j.ranks) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	for i, uid := range uids {
		if i == 0 && !s.mpich {
			s.whole[uid] = s.comms.World()
			continue
		}
		c := timed.NewComm(schema.CommOther, s.comms.World().Groups[0])
		s.comms.Add(c)
		s.made = append(s.made, c)
		s.whole[uid] = c
	}
	return s
}

// commOf returns the communicator of a call; nil if its members are not known.
func (s *mpiComms) commOf(c *mpiCall, rank int32) *timed.Comm {
	handle, uid := c[mpiHandle], c[mpiUID]
	switch {
	case handle == null64:
		return nil
	case s.mpich && handle == mpichWorld:
		return s.comms.World()
	case s.mpich && handle == mpichSelf:
		return s.comms.Self(rank)
	case uid != null64 && s.whole[uid] != nil:
		return s.whole[uid]
	case s.alone:
		return s.comms.World()
	}
	return nil
}
