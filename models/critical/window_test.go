package critical

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/commq/commq/schema"
)

// program has the rows and messages of a run, in the order of time.
type program struct {
	ranks    int
	options  Options
	events   []schema.Event
	messages []sent
}

// sent is a message; its rows are known when the one at seq send of src and the one at seq post of dst are.
type sent struct {
	src, dst         int32
	send, post, done int64
}

// randomProgram simulates a program of random computing, messages and collectives, blocking or not, and of accesses to
// a window, in turn by groups or by locks. All ranks do its
// steps in the same order, so that it ends.
func randomProgram(seed uint64) *program {
	r := rand.New(rand.NewPCG(seed, 31))
	p := &program{ranks: 2 + r.IntN(5), options: Options{Last: r.IntN(2) == 0, Eager: r.IntN(3) == 0,
		LeaveOutStartup: r.IntN(2) == 0}}
	at, seq := make([]int64, p.ranks), make([]int64, p.ranks)
	call := func(rank int, id schema.CallID, from, to int64) *schema.Event {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Class = int32(rank), seq[rank], int16(id), int16(schema.Calls[id].Class)
		e.StartNs, e.EndNs, e.Callsite = from, to, int32(r.IntN(3))
		seq[rank]++
		at[rank] = to
		p.events = append(p.events, e)
		return &p.events[len(p.events)-1]
	}
	window := func(e *schema.Event, label string) { e.InitSeq, e.Label = 1, label }
	for rank := range p.ranks {
		call(rank, schema.CallInit, at[rank], at[rank]+r.Int64N(50))
		e := call(rank, schema.CallWinCreate, at[rank], at[rank]+50)
		e.Comm, e.Instance = 1, 1000
	}
	slow := r.IntN(p.ranks) // seldom waits, so that its explanations go far back
	for instance := range int64(40 + r.IntN(100)) {
		for rank := range p.ranks {
			at[rank] += 1 + r.Int64N(30)
		}
		at[slow] += 20 + r.Int64N(20)
		a := r.IntN(p.ranks)
		b := (a + 1 + r.IntN(p.ranks-1)) % p.ranks
		switch r.IntN(7) {
		case 0: // a barrier
			last := slices.Max(at)
			for rank := range p.ranks {
				e := call(rank, schema.CallBarrier, at[rank], last+1+r.Int64N(5))
				e.Comm, e.Instance = 1, instance
			}
		case 1: // a broadcast
			from := at[a]
			for rank := range p.ranks {
				e := call(rank, schema.CallBcast, at[rank], max(at[rank], from)+1+r.Int64N(5))
				e.Comm, e.Instance, e.RootWorld = 1, instance, int32(a)
			}
		case 2: // a message, that is waited for later
			m := sent{src: int32(a), dst: int32(b), send: seq[a], post: seq[b]}
			from := at[a]
			s := call(a, schema.CallIsend, at[a], at[a]+1)
			s.Request, s.DoneSeq = 1, seq[a]
			post := at[b]
			v := call(b, schema.CallIrecv, at[b], at[b]+1)
			v.Request, v.DoneSeq = 1, seq[b]
			m.done = seq[b]
			call(a, schema.CallWait, at[a]+r.Int64N(9), max(at[a]+9, post)+r.Int64N(9))
			call(b, schema.CallWait, at[b]+r.Int64N(9), max(at[b]+9, from)+r.Int64N(9))
			p.messages = append(p.messages, m)
		case 3: // an access to the window of a rank, which waits for it
			post := at[b]
			window(call(b, schema.CallWinPost, post, post+1), fmt.Sprint(a))
			window(call(a, schema.CallWinStart, at[a], max(at[a], post)+1+r.Int64N(5)), fmt.Sprint(b))
			done := at[a] + r.Int64N(40)
			window(call(a, schema.CallWinComplete, done, done+1), schema.NullText)
			window(call(b, schema.CallWinWait, at[b]+r.Int64N(40), max(at[b]+40, done)+1+r.Int64N(5)), schema.NullText)
		case 4: // all ranks want a lock
			order := make([]int, p.ranks)
			for rank := range order {
				order[rank] = rank
			}
			slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(at[a], at[b]), cmp.Compare(a, b)) })
			free := int64(0)
			for _, rank := range order {
				e := call(rank, schema.CallWinLock, at[rank], max(at[rank], free)+1)
				window(e, schema.LabelExclusive)
				e.SendWorld = int32(b)
				free = at[rank] + r.Int64N(30)
				e = call(rank, schema.CallWinUnlock, free, free+1)
				window(e, schema.NullText)
				e.SendWorld = int32(b)
			}
		default: // a message
			from, post := at[a], at[b]
			p.messages = append(p.messages, sent{int32(a), int32(b), seq[a], seq[b], seq[b]})
			call(a, schema.CallSsend, from, max(from, post)+r.Int64N(9))
			call(b, schema.CallRecv, post, max(from, post)+1+r.Int64N(9))
		}
	}
	for rank := range p.ranks {
		call(rank, schema.CallFinalize, at[rank], at[rank]+r.Int64N(50))
	}
	slices.SortStableFunc(p.events, func(a, b schema.Event) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq)) })
	return p
}

// end is when the last call begins.
func (p *program) end() (at int64) {
	for i := range p.events {
		at = max(at, p.events[i].StartNs)
	}
	return at + 1
}

// graph returns an empty graph of the program.
func (p *program) graph() *Graph {
	g := New(p.ranks, p.options)
	for rank := range p.ranks {
		g.AddMember(1, int32(rank))
	}
	return g
}

// add adds the rows that begin in an epoch, and the messages of which one does and the other in none later.
func (p *program) add(t *testing.T, g *Graph, from, to int64) {
	t.Helper()
	b, start := &schema.Events{}, map[[2]int64]int64{}
	for i := range p.events {
		e := &p.events[i]
		start[[2]int64{int64(e.Rank), e.Seq}] = e.StartNs
	}
	events := p.events
	for i := range events {
		if e := &events[i]; e.StartNs >= from && e.StartNs < to {
			b.Append(e)
		}
	}
	if err := g.AddEvents(b); err != nil {
		t.Fatal(err)
	}
	for _, m := range p.messages {
		if at := max(start[[2]int64{int64(m.src), m.send}], start[[2]int64{int64(m.dst), m.post}]); at >= from &&
			at < to {
			g.message(m.src, m.send, m.dst, m.post, m.done)
		}
	}
}

// text is an explanation as text.
func (x *Explained) text() (lines []string) {
	for k, part := range x.Path.parts {
		lines = append(lines, fmt.Sprint("path: ", k, part.Ns))
	}
	for _, d := range x.Delays {
		lines = append(lines, fmt.Sprint(d.Activity, d.Ns, d.ExcessNs))
		for place, w := range d.Places {
			lines = append(lines, fmt.Sprintf("%v %v %v %d %.6f %d %d %d", d.Activity, place, d.Ns, w.Ns, w.Calls,
				w.LongestNs,
				w.LongestAtNs, w.LongestRank))
		}
	}
	slices.Sort(lines)
	return append(lines, fmt.Sprint(x.Path.DurationNs, x.Path.StartupNs, x.Path.LastRank))
}

// Explained epoch by epoch, with a tree that is compacted each time, a run has the same explanation as at once.
func TestWindows(t *testing.T) {
	dropped, joined := 0, 0
	for seed := range uint64(100) {
		p := randomProgram(seed)
		whole := p.graph()
		p.add(t, whole, 0, math.MaxInt64)
		want := whole.Explain(nil).text()

		g, r := p.graph(), rand.New(rand.NewPCG(seed, 32))
		g.windowed = true
		for _, e := range p.events {
			g.ranks[e.Rank].expected++
		}
		d := g.explaining()
		for from := int64(0); from < p.end(); {
			to := from + 1 + r.Int64N(1000)
			p.add(t, g, from, to)
			d.advance(g.addWaits())
			before := len(g.tree.nodes)
			g.compact()
			joined += before - len(g.tree.nodes)
			from = to
		}
		for k := range g.ranks {
			dropped += int(g.ranks[k].dropped)
		}
		if got := g.Explain(nil).text(); !slices.Equal(got, want) {
			t.Fatalf("seed %d: by epochs\n%v\nat once\n%v", seed, got, want)
		}
	}
	if dropped < 5_000 || joined < 5_000 {
		t.Errorf("%d rows were dropped before the end, %d nodes joined", dropped, joined)
	}
}

// The path that is explained is the one that Walk follows.
func TestExplainedPathIsWalked(t *testing.T) {
	for seed := range uint64(100) {
		p := randomProgram(seed)
		g := p.graph()
		p.add(t, g, 0, math.MaxInt64)
		want := g.Path(nil)
		got := g.Explain(nil).Path
		if got.DurationNs != want.DurationNs || got.LastRank != want.LastRank || got.StartupNs != want.StartupNs {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
		}
		for k, part := range want.parts {
			if have := got.parts[k]; have == nil || have.Ns != part.Ns {
				t.Fatalf("seed %d: %v has %v, want %v; of %v", seed, k, have, part,
					slices.Collect(maps.Keys(want.parts)))
			}
		}
	}
}
