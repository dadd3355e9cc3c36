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

// doubt takes back broadcasts of blank payloads from spots that seldom take part in anything that was found, and those over a part of a
// communicator among messages of one kind that seldom do: what is exchanged goes a few ranks far at times.
func (d *detector) doubt() {
	found, ofCell := map[spot]int64{}, map[cell]int64{}
	for _, i := range d.found {
		for _, m := range i.messages {
			found[d.messages[m].spot()]++
			ofCell[d.messages[m].cell()]++
		}
	}
	whole, sent := d.wholeSets(), map[cell]int64{}
	d.found = slices.DeleteFunc(d.found, func(i *instance) bool {
		if i.op != Bcast || !i.blank && slices.ContainsFunc(whole[setKeyOf(i.ranks)], func(members []int32) bool { return slices.Equal(members, i.ranks) }) {
			return false
		}
		used, of := int64(0), int64(0)
		for _, m := range i.messages {
			m := &d.messages[m]
			if i.blank {
				used, of = used+found[m.spot()], of+d.used[m.spot()]
			} else if m.whole == none {
				c := m.cell()
				n, known := sent[c]
				if !known {
					n = d.sample.sent(c)
					sent[c] = n
				}
				used, of = used+ofCell[c], of+n
			}
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

// setKey is what equal sets of ranks have in common, and most others have not.
type setKey struct {
	size        int
	least, most int32
}

func setKeyOf(ranks []int32) setKey { return setKey{len(ranks), ranks[0], ranks[len(ranks)-1]} }

// wholeSets are the members of communicators, sorted.
func (d *detector) wholeSets() map[setKey][][]int32 {
	sets := map[setKey][][]int32{}
	for _, c := range d.run.Comms {
		if len(c.Members) == 0 {
			continue
		}
		members := slices.Clone(c.Members)
		slices.Sort(members)
		k := setKeyOf(members)
		sets[k] = append(sets[k], members)
	}
	return sets
}

// cell is what a message has in common with others of its kind.
func (m *message) cell() cell { return cell{m.comm, m.datatype, m.tag, m.sendSite, m.bytes} }

// sent is how many messages of a cell go from a rank to another; 0 where they were not counted.
func (s *sample) sent(c cell) (n int64) {
	of := s.cells[c]
	if of == nil {
		return 0
	}
	for w, list := range of.ways {
		if w.src != w.dst {
			n += list.count
		}
	}
	return n
}
