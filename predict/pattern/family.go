package pattern

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// unit is a family of slots, or a single slot: it gets one law.
type unit struct {
	name, site string
	slots      []*Slot
	obs        []observation
	vary       []int    // components of the index that differ between its slots
	seen       string   // key of the observations
	bounded    []bool   // per class of grids: whether it determines where the index ends
	forms      [][]Form // per class of grids: what fits
	pool       []Form   // what is left of forms
	further    bool     // pool is of a further grid than the first
	borrowed   bool     // a sign or shape in pool was taken from siblings
}

// families joins the slots of one site that differ in their indices. A slot that differs between two runs of one size
// has no law.
func families(slots []Slot, sizes []int32) (units []*unit, unexplained []Unexplained) {
	bySite := map[string]*unit{}
	for i := range slots {
		s := &slots[i]
		if size, ok := s.contradiction(); ok {
			unexplained = append(unexplained, Unexplained{s.Name,
				fmt.Sprintf("two runs of %d ranks differ: the process count does not determine whom a rank sends to",
					size)})
			continue
		}
		if s.Index == nil {
			units = append(units, &unit{name: s.Name, site: s.Site, slots: []*Slot{s}})
			continue
		}
		// Several slots may have the same site and index: they belong to different families.
		n := 0
		key := func() string { return fmt.Sprintf("%s/%d/%d", s.Site, len(s.Index), n) }
		for bySite[key()] != nil && bySite[key()].has(s.Index) {
			n++
		}
		if u := bySite[key()]; u != nil {
			u.slots = append(u.slots, s)
			continue
		}
		u := &unit{name: s.Site, site: s.Site, slots: []*Slot{s}}
		bySite[key()] = u
		units = append(units, u)
	}
	for _, u := range units {
		u.observe(sizes)
	}
	return units, unexplained
}

// has reports whether a slot of the unit has this index.
func (u *unit) has(index []int32) bool {
	return slices.ContainsFunc(u.slots, func(s *Slot) bool { return slices.Equal(s.Index, index) })
}

// observe collects the observations of the slots.
func (u *unit) observe(sizes []int32) {
	for _, s := range u.slots {
		for i, p := range sizes {
			if m, ok := s.run(p); ok {
				u.obs = append(u.obs, observation{size: i, index: s.Index, m: m})
			}
		}
	}
	if len(u.slots) == 1 {
		u.name = u.slots[0].Name
		return
	}
	for c := range u.slots[0].Index {
		if slices.ContainsFunc(u.slots, func(s *Slot) bool { return s.Index[c] != u.slots[0].Index[c] }) {
			u.vary = append(u.vary, c)
		}
	}
}

// key identifies the observations of a unit: many sites of a program do the same.
func (u *unit) key() string {
	key := binary.AppendUvarint(nil, uint64(len(u.slots)))
	key = binary.AppendUvarint(key, uint64(len(u.vary)))
	for _, c := range u.vary {
		key = binary.AppendUvarint(key, uint64(c))
	}
	for _, o := range u.obs {
		key = binary.AppendUvarint(key, uint64(o.size))
		for _, list := range [][]int32{o.index, o.m.Dst} {
			key = binary.AppendUvarint(key, uint64(len(list)))
			for _, x := range list {
				key = binary.AppendVarint(key, int64(x))
			}
		}
	}
	return string(key)
}
