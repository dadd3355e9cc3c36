package combine

import (
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// occurrence is one repetition of the messages of a group.
type occurrence struct {
	messages []*ledger.Operand
	events   [][]ledger.Event // by place in the group, in program order
	after    []int64          // by rank: seq of its last event in the previous occurrence; -1: none
	before   []int64          // by rank: seq of its first event in the next occurrence
}

// cut divides the messages of a group into times occurrences, each with the same number of messages per way, and
// returns the first ones, up to most of them. It returns nil if they overlap in time, or if a rank has none of the
// messages.
func (g *group) cut(times, most int64) []*occurrence {
	n := min(times, most)
	for k, list := range g.lists {
		n = min(n, int64(len(list))/(g.count[k]/times))
	}
	if n == 0 {
		return nil
	}
	out, room := make([]*occurrence, n), g.eventRoom(times)
	for j := range out {
		o := room.occurrence()
		for k, list := range g.lists {
			per := int(g.count[k] / times)
			src, dst := room.ends[k][0], room.ends[k][1]
			for _, m := range list[j*per : (j+1)*per] {
				o.messages = append(o.messages, m)
				o.events[src] = append(o.events[src], ledger.Event{M: m, Send: true})
				o.events[dst] = append(o.events[dst], ledger.Event{M: m, Send: false})
			}
		}
		sortMessages(o.messages)
		for r, events := range o.events {
			sortEvents(events)
			o.after[r], o.before[r] = -1, 1<<62
			if len(events) == 0 {
				return nil
			}
			if j > 0 {
				last := out[j-1].events[r]
				o.after[r] = last[len(last)-1].Seq()
				out[j-1].before[r] = events[0].Seq()
				if o.after[r] >= events[0].Seq() {
					return nil
				}
			}
		}
		out[j] = o
	}
	return out
}

// eventRoom is the size of each occurrence of a group.
type eventRoom struct {
	messages int
	events   []int    // of the ranks before one, by its place in the group; the last is the sum
	ends     [][2]int // of each way: the places of its source and destination
}

// eventRoom returns the size of one of times occurrences of the group.
func (g *group) eventRoom(times int64) *eventRoom {
	room := &eventRoom{events: make([]int, len(g.ranks)+1), ends: make([][2]int, len(g.ways))}
	for k, way := range g.ways {
		src, _ := slices.BinarySearch(g.ranks, way.Src)
		dst, _ := slices.BinarySearch(g.ranks, way.Dst)
		room.ends[k] = [2]int{src, dst}
		per := int(g.count[k] / times)
		room.messages += per
		room.events[src+1] += per
		room.events[dst+1] += per
	}
	for r := range g.ranks {
		room.events[r+1] += room.events[r]
	}
	return room
}

// occurrence returns an empty occurrence in which all messages have room.
func (room *eventRoom) occurrence() *occurrence {
	n := len(room.events) - 1
	seqs, events := make([]int64, 2*n), make([]ledger.Event, room.events[n])
	o := &occurrence{messages: make([]*ledger.Operand, 0, room.messages), events: make([][]ledger.Event, n),
		after: seqs[:n:n], before: seqs[n:]}
	for r := range n {
		o.events[r] = events[room.events[r]:room.events[r]:room.events[r+1]]
	}
	return o
}

// walk visits the sends and receives in an order in which each send precedes its receive. It stops when visit returns
// false, and reports whether it visited all. Meanwhile Place is the place of each message in o.messages.
func (o *occurrence) walk(visit func(rank int, e ledger.Event) bool) bool {
	at := make([]int, len(o.events))
	for i, m := range o.messages {
		m.Sent, m.Index = false, int32(i)
	}
	left := 2 * len(o.messages)
	for moved := true; moved; {
		moved = false
		for r := range at {
			for at[r] < len(o.events[r]) {
				e := o.events[r][at[r]]
				if !e.Send && !e.M.Sent {
					break
				}
				e.M.Sent = true
				at[r]++
				left--
				moved = true
				if !visit(r, e) {
					return false
				}
			}
		}
	}
	return left == 0
}

// reach returns an upper bound for the number of ranks whose data any one rank can have at the end. It needs no rank
// sets, so it cheaply excludes neighbours that exchange only once. backward reverses time.
func (o *occurrence) reach(backward bool) (most int) {
	n := len(o.events)
	heard := make([]int32, n)
	for r := range heard {
		heard[r] = 1
	}
	at := make([]int, n)
	for _, m := range o.messages {
		m.Sent = false
	}
	for moved := true; moved; {
		moved = false
		for r, events := range o.events {
			for ; at[r] < len(events); at[r]++ {
				e := events[at[r]]
				if backward {
					e = events[len(events)-1-at[r]]
				}
				comes := e.Send == backward
				if comes && !e.M.Sent {
					break
				}
				if comes {
					heard[r] = min(heard[r]+e.M.Heard, int32(n))
				} else {
					e.M.Sent, e.M.Heard = true, heard[r]
				}
				moved = true
			}
		}
	}
	return int(slices.Max(heard))
}

// reversed returns the occurrence in reversed time: receivers become senders.
func (o *occurrence) reversed() *occurrence {
	b := &occurrence{after: o.after, before: o.before, messages: make([]*ledger.Operand, len(o.messages))}
	copies := make([]ledger.Operand, len(o.messages))
	for i, m := range o.messages {
		m.Index = int32(i)
		t := &copies[i]
		*t = *m
		t.Src, t.Dst, t.Buffer, t.DstBuffer = m.Dst, m.Src, m.DstBuffer, m.Buffer
		b.messages[i] = t
	}
	for _, events := range o.events {
		list := make([]ledger.Event, 0, len(events))
		for _, e := range slices.Backward(events) {
			list = append(list, ledger.Event{M: b.messages[e.M.Index], Send: !e.Send})
		}
		b.events = append(b.events, list)
	}
	return b
}
