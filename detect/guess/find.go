package guess

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/run"
)

// Message is a message between two ranks.
type Message struct {
	Src, Dst, Comm, Tag int32
	// SendSeq, PostSeq and DoneSeq are the rows that sent it, posted its receive and completed that.
	Bytes, SendSeq, PostSeq, DoneSeq int64
	// Datatype is that of the sender, SendSite and RecvSite are where it was sent and received; ids in the tables.
	Datatype, SendSite, RecvSite int32
}

// Shape is an operation that messages look like.
type Shape struct {
	Operation ledger.Operation
	// Others are other operations that look the same.
	Others []ledger.Operation
	Comm   int32
	// Ranks are the world ranks that take part, ascending.
	Ranks []int32
	// Bytes is the payload: the total contribution of a rank.
	Bytes int64
	// Messages are indexes into the messages.
	Messages []int32
}

// Find returns what the messages look like, over at least minRanks ranks. Each message is part of at most one shape.
func Find(messages []Message, comms []run.Comm, minRanks int) []Shape {
	f := &finder{messages: messages, used: make([]bool, len(messages)), minRanks: minRanks, place: map[int32]map[int32]int{}}
	for i := range comms {
		place := map[int32]int{}
		for k, world := range comms[i].Members {
			place[world] = k
		}
		f.place[comms[i].ID] = place
	}
	// A program may use a tag, a size or a line for one operation; or the same for all.
	for _, key := range []func(m *Message) [2]int64{
		func(m *Message) [2]int64 { return [2]int64{1, int64(m.Tag)} },
		func(m *Message) [2]int64 { return [2]int64{} },
		func(m *Message) [2]int64 { return [2]int64{1, m.Bytes} },
		func(m *Message) [2]int64 { return [2]int64{1, int64(m.SendSite)} },
	} {
		f.search(key)
	}
	slices.SortStableFunc(f.shapes, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Comm, b.Comm), slices.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Operation, b.Operation))
	})
	return f.shapes
}

// finder is the state of a search.
type finder struct {
	messages []Message
	used     []bool
	minRanks int
	place    map[int32]map[int32]int // by communicator and world rank
	shapes   []Shape
}

// search looks at the messages of each communicator and key together, and there at ranks that are connected by them.
func (f *finder) search(key func(m *Message) [2]int64) {
	type part struct {
		comm int32
		key  [2]int64
	}
	parts := map[part][]int32{}
	var order []part
	for i := range f.messages {
		if m := &f.messages[i]; !f.used[i] && m.Src != m.Dst {
			p := part{m.Comm, key(m)}
			if parts[p] == nil {
				order = append(order, p)
			}
			parts[p] = append(parts[p], int32(i))
		}
	}
	for _, p := range order {
		for _, list := range f.connected(parts[p]) {
			f.look(p.comm, list)
		}
	}
}

// connected divides messages by ranks that are connected by them.
func (f *finder) connected(list []int32) [][]int32 {
	root := map[int32]int32{}
	find := func(r int32) int32 {
		p, ok := root[r]
		if !ok {
			root[r] = r
			return r
		}
		for p != root[p] {
			root[p] = root[root[p]]
			p = root[p]
		}
		root[r] = p
		return p
	}
	for _, i := range list {
		a, b := find(f.messages[i].Src), find(f.messages[i].Dst)
		root[a] = b
	}
	var out [][]int32
	at := map[int32]int{}
	for _, i := range list {
		r := find(f.messages[i].Src)
		k, ok := at[r]
		if !ok {
			k = len(out)
			at[r] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return out
}

// look looks at the messages of connected ranks.
func (f *finder) look(comm int32, list []int32) {
	t := f.together(comm, list)
	if t == nil {
		return
	}
	for at := 0; at < len(t.steps); {
		n := 0
		for _, p := range patterns {
			if t.same && n == 0 {
				n = p(t, at)
			}
		}
		if n == 0 {
			n = each(t, at)
		}
		at += max(n, 1)
	}
	for _, s := range t.found {
		for _, i := range s.Messages {
			f.used[i] = true
		}
	}
	f.shapes = append(f.shapes, t.found...)
}
