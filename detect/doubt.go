package detect

import (
	"slices"

	"github.com/commq/commq/schema"
)

// spot is a place in the program that sends in a communicator: a call site, or a tag where that is not known.
type spot struct {
	comm, site int32
	tagged     bool
}

func (m *message) spot() spot { return spotOf(m.comm, m.tag, m.sendSite) }

func spotOf(comm, tag, site int32) spot {
	if site == schema.NullInt32 {
		return spot{comm, tag, true}
	}
	return spot{comm, site, false}
}

// blank says whether a payload tells nothing of where it comes from: it is empty, or one element of up to 8 bytes again and again.
func (d *detector) blank(m *message) bool {
	return m.bytes == 0 || d.sum.repeated(m.head, m.bytes) == uint64(m.hash)
}

// leastUse is the part of what a spot sends that must be found to be of a collective, for broadcasts of a blank payload at it to be
// some: 1 / leastUse. Fields that begin with zeros look like broadcasts until there is something else in them.
const leastUse = 4

// doubt takes back broadcasts of blank payloads from spots that seldom take part in anything that was found.
func (d *detector) doubt() {
	found := map[spot]int64{}
	for _, i := range d.found {
		for _, m := range i.messages {
			found[d.messages[m].spot()]++
		}
	}
	d.found = slices.DeleteFunc(d.found, func(i *instance) bool {
		if i.op != Bcast || !i.blank {
			return false
		}
		used, of := int64(0), int64(0)
		for _, m := range i.messages {
			s := d.messages[m].spot()
			used, of = used+found[s], of+d.used[s]
		}
		if leastUse*used >= of {
			return false
		}
		for _, m := range i.messages {
			d.messages[m].taken = false
		}
		return true
	})
}
