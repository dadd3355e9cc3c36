package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Side is one of two runs that are compared.
type Side struct {
	// Name is what the answer calls it.
	Name string
	// Comms are the rows of this table, in their order.
	Comms []schema.Comm
	// Events and Messages give the rows of these tables to add, in batches that add does not keep, each rank's events in the order of seq. They
	// return what add returns.
	Events   func(add func(*schema.Events) error) error
	Messages func(add func(*schema.Messages) error) error
}

// MessageColumns are the columns of messages that Compare and windows need; those of events are in Columns.
var MessageColumns = []string{"src", "dst", "comm", "tag", "bytes", "send_seq", "recv_post_seq"}

// Comparison is what two runs have in common, until they differ.
type Comparison struct {
	// Messages, Pairs and Bytes are the messages of the first run, the pairs of ranks with some, and their payload.
	Messages int64 `json:"messages"`
	Pairs    int   `json:"pairs"`
	Bytes    int64 `json:"bytes"`
	// Collectives are the calls of collectives of the first run, Comms the communicators that they, or messages, are on.
	Collectives int64 `json:"collective_calls"`
	Comms       int   `json:"communicators"`
	// Difference is the first thing in which the runs differ; "" when they are equal.
	Difference string `json:"difference,omitempty"`
}

// Compare says whether two runs communicate alike: for each pair of ranks the same messages in the order in which they were sent, by communicator,
// tag and bytes, and on each communicator at each rank the same collectives in the same order, by operation, root and bytes. Communicators are the
// same when they have the same members in the same order, the first used of several with the first used.
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

// traffic is what a run communicates.
type traffic struct {
	side        *Side
	names       map[int32]string // of communicators: the members, and which of those that have the same
	used        map[int32]bool
	messages    map[[2]int32][]sent
	collectives map[taken][]collective
	inits       map[rowKey]schema.CallID
}

// sent is a message of a pair of ranks.
type sent struct {
	comm, tag  int32
	bytes, seq int64
}

// taken is a rank on a communicator, by name once all are read.
type taken struct {
	rank, comm int32
}

// collective is a rank's call of one.
type collective struct {
	op         schema.CallID
	root       int32
	send, recv int64
	seq        int64
}

func (s *Side) read() (*traffic, error) {
	t := &traffic{side: s, names: map[int32]string{}, used: map[int32]bool{}, messages: map[[2]int32][]sent{}, collectives: map[taken][]collective{}, inits: map[rowKey]schema.CallID{}}
	err := s.Messages(func(m *schema.Messages) error {
		for i := range m.Src {
			k := [2]int32{m.Src[i], m.Dst[i]}
			t.messages[k] = append(t.messages[k], sent{m.Comm[i], m.Tag[i], m.Bytes[i], m.SendSeq[i]})
			t.used[m.Comm[i]] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, list := range t.messages {
		slices.SortFunc(list, func(a, b sent) int { return cmp.Compare(a.seq, b.seq) })
	}
	var e schema.Event
	err = s.Events(func(b *schema.Events) error {
		for i := range b.Rank {
			if b.Call[i] < 0 || int(b.Call[i]) >= len(schema.Calls) {
				return fmt.Errorf("%s: rank %d, seq %d: no MPI call has the number %d", s.Name, b.Rank[i], b.Seq[i], b.Call[i])
			}
			if schema.Class(b.Class[i]) == schema.ClassCollective || schema.Calls[b.Call[i]].Recorder == "collective_init" {
				b.Row(i, &e)
				t.take(&e)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.name()
	return t, nil
}

func (t *traffic) take(e *schema.Event) {
	call := schema.CallID(e.Call)
	if schema.Calls[call].Recorder == "collective_init" {
		t.inits[rowKey{e.Rank, e.Seq}] = call
		return
	}
	if made, ok := t.inits[rowKey{e.Rank, e.InitSeq}]; ok && e.InitSeq != schema.NullInt64 {
		call = made
	}
	k := taken{e.Rank, e.Comm}
	t.used[e.Comm] = true
	t.collectives[k] = append(t.collectives[k], collective{call.Operation(), e.RootWorld, max(e.SendBytes, 0), max(e.RecvBytes, 0), e.Seq})
}

// name gives the communicators that are used names that do not depend on their numbers.
func (t *traffic) name() {
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

func (t *traffic) differentMessages(o *traffic, mine, other string) string {
	for _, pair := range sortedPairs(t.messages, o.messages) {
		x, y := t.messages[pair], o.messages[pair]
		for i := range max(len(x), len(y)) {
			where := fmt.Sprintf("message %d from rank %d to rank %d", i+1, pair[0], pair[1])
			switch {
			case i >= len(y):
				return fmt.Sprintf("%s: %s is in %s and not in %s, which has %d of this pair", where, x[i].words(), mine, other, len(y))
			case i >= len(x):
				return fmt.Sprintf("%s: %s is in %s and not in %s, which has %d of this pair", where, y[i].words(), other, mine, len(x))
			case x[i].tag != y[i].tag || x[i].bytes != y[i].bytes:
				return fmt.Sprintf("%s: %s in %s, %s in %s", where, x[i].words(), mine, y[i].words(), other)
			case t.names[x[i].comm] != o.names[y[i].comm]:
				return fmt.Sprintf("%s: on communicator %d in %s, which is not communicator %d in %s", where, x[i].comm, mine, y[i].comm, other)
			}
		}
	}
	return ""
}

func (m *sent) words() string {
	return fmt.Sprintf("%d bytes with tag %d (seq %d)", m.bytes, m.tag, m.seq)
}

func sortedPairs(lists ...map[[2]int32][]sent) (all [][2]int32) {
	for _, l := range lists {
		for k := range l {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return slices.Compact(all)
}

func (t *traffic) differentCollectives(o *traffic, mine, other string) string {
	type place struct {
		comm string
		rank int32
	}
	of := func(t *traffic) map[place]taken {
		all := map[place]taken{}
		for k := range t.collectives {
			all[place{t.names[k.comm], k.rank}] = k
		}
		return all
	}
	a, b := of(t), of(o)
	var places []place
	for p := range a {
		places = append(places, p)
	}
	for p := range b {
		places = append(places, p)
	}
	slices.SortFunc(places, func(x, y place) int { return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.comm, y.comm)) })
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
				return fmt.Sprintf("%s: %s is in %s and not in %s", where, x[i].words(), mine, other)
			case i >= len(x):
				return fmt.Sprintf("%s: %s is in %s and not in %s", where, y[i].words(), other, mine)
			case x[i].op != y[i].op || x[i].root != y[i].root || x[i].send != y[i].send || x[i].recv != y[i].recv:
				return fmt.Sprintf("%s: %s in %s, %s in %s", where, x[i].words(), mine, y[i].words(), other)
			}
		}
	}
	return ""
}

func (c *collective) words() string {
	root := ""
	if c.root != schema.NullInt32 {
		root = fmt.Sprintf(", root %d", c.root)
	}
	return fmt.Sprintf("%s of %d and %d bytes%s (seq %d)", c.op, c.send, c.recv, root, c.seq)
}
