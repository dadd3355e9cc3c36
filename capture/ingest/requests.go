package ingest

import "math/bits"

// pending is a request that has not ended yet.
type pending struct {
	serial uint32 // 0: the entry is free
	epoch  int32  // of the row that posted it
	row    int32  // index of that row in the rank's rows of its epoch
	recv   int32  // index in the rank's receives of its epoch; -1: none
	send   int32  // index in the rank's sends of its epoch; -1: none
	view   int32  // the communicator in which its source is a rank
	made   uint32 // serial of the call that made it, when it is persistent
	keep   bool   // with filters: its row is kept
	// cancelled: MPI_Cancel was called on it. A receive that is then freed tells no status; see freeRequest.
	cancelled bool
}

// requestTable holds the pending requests by serial: open addressing with linear probing. Serials count up: they are
// spread, as otherwise 10^5 pending requests are one chain, which remove walks to its end.
type requestTable struct {
	slots []pending
	used  int
	shift int // 32 less the bits of an index into slots
}

const minRequests = 64

// home is the slot of a serial if no other one is there: Fibonacci hashing, which lays serials that follow each other
// evenly apart.
func (t *requestTable) home(serial uint32) uint32 {
	return serial * 2654435769 >> t.shift
}

func (t *requestTable) put(p pending) {
	if 2*(t.used+1) > len(t.slots) {
		t.grow()
	}
	mask := uint32(len(t.slots) - 1)
	i := t.home(p.serial)
	for t.slots[i].serial != 0 && t.slots[i].serial != p.serial {
		i = (i + 1) & mask
	}
	if t.slots[i].serial == 0 {
		t.used++
	}
	t.slots[i] = p
}

// get returns the request with that serial, or nil; valid until the next put or remove.
func (t *requestTable) get(serial uint32) *pending {
	if len(t.slots) == 0 || serial == 0 {
		return nil
	}
	mask := uint32(len(t.slots) - 1)
	for i := t.home(serial); t.slots[i].serial != 0; i = (i + 1) & mask {
		if t.slots[i].serial == serial {
			return &t.slots[i]
		}
	}
	return nil
}

// remove forgets a request, if it is there, and moves later ones of its chain up.
func (t *requestTable) remove(serial uint32) {
	if t.get(serial) == nil {
		return
	}
	mask := uint32(len(t.slots) - 1)
	i := t.home(serial)
	for t.slots[i].serial != serial {
		i = (i + 1) & mask
	}
	t.used--
	for j := (i + 1) & mask; t.slots[j].serial != 0; j = (j + 1) & mask {
		if home := t.home(t.slots[j].serial); (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = pending{}
}

func (t *requestTable) grow() {
	old := t.slots
	t.slots, t.used = make([]pending, max(minRequests, 2*len(old))), 0
	t.shift = 33 - bits.Len(uint(len(t.slots)))
	for i := range old {
		if old[i].serial != 0 {
			t.put(old[i])
		}
	}
}
