package model

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
)

// addFamilies sets the families of a site and returns their slots: who makes the call, and with which peers. A family
// of callers is only needed if some rank sends to MPI_PROC_NULL and not all make the call; otherwise the callers are
// the senders.
func addFamilies(x *Site, training []int32) (all []pattern.Slot) {
	everyone, hasNull := len(x.Calls.Components) == 0, false
	for _, s := range x.Calls.Slots {
		for _, run := range s.Runs {
			for _, c := range run {
				everyone = everyone && c != nil
				if c != nil {
					hasNull = hasNull || x.Sends && !c.Send.HasPeer() || x.Receives && !c.Recv.HasPeer()
				}
			}
		}
	}
	add := func(kind string, destination func(rank int32, c *signature.Call) int32) string {
		name := fmt.Sprintf("%d %s", x.Event.ID, kind)
		family := familySlots(name, x.Calls.Slots, training, kind == "to", destination)
		if len(family) == 0 {
			return ""
		}
		all = append(all, family...)
		return name
	}
	if x.Sends {
		x.To = add("to", func(rank int32, c *signature.Call) int32 { return c.Send.PeerOf(rank) })
	}
	if x.Receives {
		x.From = add("from", func(rank int32, c *signature.Call) int32 { return c.Recv.PeerOf(rank) })
	}
	x.AllCall = everyone && hasNull && !x.StartsBoth
	if (!everyone || x.StartsBoth) && (hasNull || !x.Sends && !x.Receives) {
		x.In = add("in", func(rank int32, _ *signature.Call) int32 { return rank })
	}
	return all
}

// familySlots makes the tables of destinations of a site's slots, with the largest number of bytes sent if withBytes is
// set.
func familySlots(family string, all []*slots.Slot, training []int32, withBytes bool,
	destination func(rank int32, c *signature.Call) int32) (made []pattern.Slot) {
	for _, s := range all {
		p := pattern.Slot{Name: SlotName(family, s.Index()), Site: family, Index: s.Index()}
		for i, calls := range s.Runs {
			largest, found := signature.Null, false
			t := pattern.Mapping{Ranks: training[i], Dst: make([]int32, len(calls))}
			for r, c := range calls {
				t.Dst[r] = pattern.None
				if c != nil {
					t.Dst[r] = destination(int32(r), c)
					found = found || t.Dst[r] != pattern.None
					if len(c.Send) > 0 && withBytes {
						largest = max(largest, c.Send[signature.SideBytes])
					}
				}
			}
			if found {
				p.Runs = append(p.Runs, t)
				if largest != signature.Null {
					p.Bytes = append(p.Bytes, int64(largest))
				}
			}
		}
		if len(p.Runs) > 0 {
			made = append(made, p)
		}
	}
	return made
}

// sides has the names of the slots that send a set of messages, and of those that receive it.
type sides [2][]string

// pairPartners sets the partners of each slot: those that may be the other side of its messages, because they have the
// same messages, by ranks and tags, in all runs.
func pairPartners(sites []*Site, all []pattern.Slot) {
	named := map[string]*pattern.Slot{}
	for i := range all {
		named[all[i].Name] = &all[i]
	}
	places := map[string]string{}     // loops and places in them, by name of the slot
	byMessages := map[string]*sides{} // by key of the messages
	for _, x := range sites {
		for _, s := range x.Calls.Slots {
			for i, family := range []string{x.To, x.From} {
				if family == "" {
					continue
				}
				key := messagesKey(s, i == 1)
				if byMessages[key] == nil {
					byMessages[key] = &sides{}
				}
				name := SlotName(family, s.Index())
				places[name] = loopPlaces(s)
				byMessages[key][i] = append(byMessages[key][i], name)
			}
		}
	}
	for _, both := range byMessages {
		for i, names := range both {
			if len(both[1-i]) == 0 {
				continue
			}
			for _, name := range names {
				if s := named[name]; s != nil {
					s.Partners = nearestFirst(name, both[1-i], places)
					if i == 1 {
						s.Bytes = bytesOfSender(name, both[0], places, named)
					}
				}
			}
		}
	}
}

// mostOrdered is the largest number of partners that are put in order: each slot then has a list of its own.
const mostOrdered = 256

// nearestFirst returns the slots of the other side of a slot's messages, those at the same place in the same loops
// first: in another loop the same messages may be a coincidence of few ranks.
func nearestFirst(name string, others []string, places map[string]string) []string {
	isNear := func(other string) bool { return places[other] == places[name] }
	if len(others) < 2 || len(others) > mostOrdered || isNear(others[0]) || !slices.ContainsFunc(others, isNear) {
		return others
	}
	var near, far []string
	for _, other := range others {
		if isNear(other) {
			near = append(near, other)
		} else {
			far = append(far, other)
		}
	}
	return append(near, far...)
}

// bytesOfSender returns the bytes of the matching sender at the same place as a receiver, because a receive may be
// posted for more bytes than arrive. It returns nil if there is none.
func bytesOfSender(receiver string, senders []string, places map[string]string,
	named map[string]*pattern.Slot) []int64 {
	k := slices.IndexFunc(senders, func(sender string) bool { return places[sender] == places[receiver] })
	if k < 0 || named[senders[k]] == nil {
		return nil
	}
	return named[senders[k]].Bytes
}

// messagesKey returns a string that is equal for slots with the same messages, on either side of them.
func messagesKey(s *slots.Slot, receives bool) string {
	var messages [][4]int32 // run, source, destination, tag
	for run, calls := range s.Runs {
		for r, c := range calls {
			if c == nil {
				continue
			}
			side := c.Send
			if receives {
				side = c.Recv
			}
			if !side.HasPeer() {
				continue
			}
			from, to := int32(r), side.PeerOf(int32(r))
			if receives {
				from, to = to, from
			}
			messages = append(messages, [4]int32{int32(run), from, to, side[signature.SideTag].Int32()})
		}
	}
	slices.SortFunc(messages, func(a, b [4]int32) int { return slices.Compare(a[:], b[:]) })
	var key []byte
	for _, x := range messages {
		for _, number := range x {
			key = binary.AppendVarint(key, int64(number))
		}
	}
	return string(key)
}

// loopPlaces returns a string that is equal for slots at the same place in the same loops.
func loopPlaces(s *slots.Slot) string {
	var b strings.Builder
	for i, c := range s.Site.Components {
		fmt.Fprint(&b, c.Loop.ID, c.Within, s.Place[i], " ")
	}
	return b.String()
}
