package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Side is one of the two runs of Compare.
type Side struct {
	// Name names the run in Comparison.Difference.
	Name string
	// Comms are the rows of this table, in their order.
	Comms []schema.Comm
	// Events and Messages pass the rows of these tables to add, in batches that add does not keep, each rank's events
	// in the order of seq. They return the error of add.
	Events   func(add func(*schema.Events) error) error
	Messages func(add func(*schema.Messages) error) error
}

// MessageColumns are the columns of messages that Compare and windows need; those of events are in Columns.
var MessageColumns = []string{"src", "dst", "comm", "tag", "bytes", "send_seq", "recv_post_seq"}

// Comparison is the result of Compare.
type Comparison struct {
	// Messages counts the messages of the first run, Pairs the pairs of ranks that exchange some, Bytes their payload.
	Messages int64 `json:"messages"`
	Pairs    int   `json:"pairs"`
	Bytes    int64 `json:"message_bytes"`
	// Collectives counts the calls of collectives of the first run, Comms the communicators of these and of messages.
	Collectives int64 `json:"collective_calls"`
	Comms       int   `json:"communicators"`
	// Difference describes the first difference; "" when there is none.
	Difference string `json:"difference,omitempty"`
}

// Compare checks whether two runs communicate alike. Each pair of ranks must exchange the same messages
// (communicator, tag and bytes) in the same order of sends. Each rank must take part in the same collectives
// (operation, root and bytes) in the same order on each communicator. Two communicators are the same when they have
// the same members in the same order; if several have, they correspond in the order of their first use.
func Compare(a, b *Side) (*Comparison, error) {
	x, err := a.read()
	if err != nil {
		return nil, err
	}
	y, err := b.read()
	if err != nil {
		return nil, err
	}
	c := &Comparison{Pairs: len(x.messages), Comms: len(x.used)}
	for _, list := range x.messages {
		c.Messages += int64(len(list))
		for i := range list {
			c.Bytes += list[i].bytes
		}
	}
	for _, list := range x.collectives {
		c.Collectives += int64(len(list))
	}
	if c.Difference = x.differentMessages(y, a.Name, b.Name); c.Difference == "" {
		c.Difference = x.differentCollectives(y, a.Name, b.Name)
	}
	return c, nil
}

// traffic has the messages and collectives of a run.
type traffic struct {
	side        *Side
	names       map[int32]string // of communicators: a number among those with the same members, and the members
	used        map[int32]bool
	messages    map[[2]int32][]message
	collectives map[place][]collective
	inits       map[rowKey]schema.CallID
}

// message is a message of a pair of ranks.
type message struct {
	comm, tag  int32
	bytes, seq int64
}

// place is a rank on a communicator.
type place struct {
	rank, comm int32
}

// collective is a rank's call of a collective.
type collective struct {
	op         schema.CallID
	root       int32
	send, recv int64
	seq        int64
}

func (s *Side) read() (*traffic, error) {
	t := &traffic{side: s, names: map[int32]string{}, used: map[int32]bool{}, messages: map[[2]int32][]message{},
		collectives: map[place][]collective{}, inits: map[rowKey]schema.CallID{}}
	err := s.Messages(func(m *schema.Messages) error {
		for i := range m.Src {
			k := [2]int32{m.Src[i], m.Dst[i]}
			t.messages[k] = append(t.messages[k], message{m.Comm[i], m.Tag[i], m.Bytes[i], m.SendSeq[i]})
			t.used[m.Comm[i]] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, list := range t.messages {
		slices.SortFunc(list, func(a, b message) int { return cmp.Compare(a.seq, b.seq) })
	}
	var e schema.Event
	err = s.Events(func(b *schema.Events) error {
		for i := range b.Rank {
			if b.Call[i] < 0 || int(b.Call[i]) >= len(schema.Calls) {
				return fmt.Errorf("%s: rank %d, seq %d: no MPI call has the number %d", s.Name, b.Rank[i], b.Seq[i],
					b.Call[i])
			}
			if schema.Class(b.Class[i]) == schema.ClassCollective ||
				schema.CallID(b.Call[i]).Is(schema.FactCollective|schema.FactPersistent) {
				b.Row(i, &e)
				t.addCollective(&e)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.nameComms()
	return t, nil
}

func (t *traffic) addCollective(e *schema.Event) {
	call := schema.CallID(e.Call)
	if call.Is(schema.FactCollective | schema.FactPersistent) {
		t.inits[rowKey{e.Rank, e.Seq}] = call
		return
	}
	if made, ok := t.inits[rowKey{e.Rank, e.InitSeq}]; ok && e.InitSeq != schema.NullInt64 {
		call = made
	}
	k := place{e.Rank, e.Comm}
	t.used[e.Comm] = true
	t.collectives[k] = append(t.collectives[k],
		collective{call.Operation(), e.RootWorld, max(e.SendBytes, 0), max(e.RecvBytes, 0), e.Seq})
}

// nameComms names the communicators in use so that the names do not depend on their numbers.
func (t *traffic) nameComms() {
	members := map[int32]*strings.Builder{}
	var order []int32
	for i := range t.side.Comms {
		c := &t.side.Comms[i]
		if !t.used[c.Comm] {
			continue
		}
		if members[c.Comm] == nil {
			members[c.Comm] = &strings.Builder{}
			order = append(order, c.Comm)
		}
		fmt.Fprintf(members[c.Comm], " %d:%d", c.Remote, c.WorldRank)
	}
	times := map[string]int{}
	for _, id := range order {
		key := members[id].String()
		t.names[id] = fmt.Sprintf("%d%s", times[key], key)
		times[key]++
	}
}

// differentMessages describes the first difference; "" when there is none.
func (t *traffic) differentMessages(o *traffic, mine, other string) string {
	for _, pair := range sortedPairs(t.messages, o.messages) {
		x, y := t.messages[pair], o.messages[pair]
		for i := range max(len(x), len(y)) {
			where := fmt.Sprintf("message %d from rank %d to rank %d", i+1, pair[0], pair[1])
			switch {
			case i >= len(y):
				return fmt.Sprintf("%s: %s is in %s and not in %s, which has %d of this pair", where, x[i].describe(),
					mine, other, len(y))
			case i >= len(x):
				return fmt.Sprintf("%s: %s is in %s and not in %s, which has %d of this pair", where, y[i].describe(),
					other, mine, len(x))
			case x[i].tag != y[i].tag || x[i].bytes != y[i].bytes:
				return fmt.Sprintf("%s: %s in %s, %s in %s", where, x[i].describe(), mine, y[i].describe(), other)
			case t.names[x[i].comm] != o.names[y[i].comm]:
				return fmt.Sprintf("%s: on communicator %d in %s, which is not communicator %d in %s", where,
					x[i].comm, mine, y[i].comm, other)
			}
		}
	}
	return ""
}

func (m *message) describe() string {
	return fmt.Sprintf("%d bytes with tag %d (seq %d)", m.bytes, m.tag, m.seq)
}

func sortedPairs(lists ...map[[2]int32][]message) (all [][2]int32) {
	for _, l := range lists {
		for k := range l {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return slices.Compact(all)
}

// namedPlace is a place by the communicator's name.
type namedPlace struct {
	comm string
	rank int32
}

func (t *traffic) namedPlaces() map[namedPlace]place {
	all := map[namedPlace]place{}
	for k := range t.collectives {
		all[namedPlace{t.names[k.comm], k.rank}] = k
	}
	return all
}

// differentCollectives describes the first difference; "" when there is none.
func (t *traffic) differentCollectives(o *traffic, mine, other string) string {
	a, b := t.namedPlaces(), o.namedPlaces()
	var places []namedPlace
	for p := range a {
		places = append(places, p)
	}
	for p := range b {
		places = append(places, p)
	}
	slices.SortFunc(places,
		func(x, y namedPlace) int { return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.comm, y.comm)) })
	for _, p := range slices.Compact(places) {
		x, y := t.collectives[a[p]], o.collectives[b[p]]
		if _, ok := a[p]; !ok {
			x = nil
		}
		if _, ok := b[p]; !ok {
			y = nil
		}
		for i := range max(len(x), len(y)) {
			where := fmt.Sprintf("collective %d of rank %d on the communicator of ranks%s", i+1, p.rank, p.comm[1:])
			switch {
			case i >= len(y):
				return fmt.Sprintf("%s: %s is in %s and not in %s", where, x[i].describe(), mine, other)
			case i >= len(x):
				return fmt.Sprintf("%s: %s is in %s and not in %s", where, y[i].describe(), other, mine)
			case x[i].op != y[i].op || x[i].root != y[i].root || x[i].send != y[i].send || x[i].recv != y[i].recv:
				return fmt.Sprintf("%s: %s in %s, %s in %s", where, x[i].describe(), mine, y[i].describe(), other)
			}
		}
	}
	return ""
}

func (c *collective) describe() string {
	root := ""
	if c.root != schema.NullInt32 {
		root = fmt.Sprintf(", root %d", c.root)
	}
	return fmt.Sprintf("%s of %d and %d bytes%s (seq %d)", c.op, c.send, c.recv, root, c.seq)
}
