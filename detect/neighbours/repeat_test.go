package neighbours

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// loop is a program whose ranks do the same exchanges again and again.
type loop struct {
	*rand.Rand
	ranks, times int32
	phases       []phase
	slips        bool // in one repetition something is different
	gaps         bool // ranks make random numbers of other calls
	rows         schema.Messages
	seq          []int64
}

// phase is an exchange of each rank with its neighbours.
type phase struct {
	site, tag, inner int32
	ways             []ledger.Way
	waits            bool // all receives are completed by one call
}

func newLoop(seed uint64) *loop {
	g := rand.New(rand.NewPCG(seed, 4))
	p := &loop{Rand: g, ranks: 3 + g.Int32N(5), times: 80 + g.Int32N(40), slips: g.IntN(4) == 0,
		gaps: g.IntN(2) == 0}
	p.seq = make([]int64, p.ranks)
	for range 1 + g.IntN(3) {
		f := phase{site: g.Int32N(4), tag: g.Int32N(2), inner: 1, waits: g.IntN(2) == 0}
		if g.IntN(4) == 0 {
			f.inner = 2
		}
		shift := g.IntN(3)
		for a := range p.ranks {
			for b := range a {
				if shift == 0 && (a-b == 1 || a-b == p.ranks-1) || shift == 1 && g.IntN(2) == 0 {
					f.ways = append(f.ways, ledger.Way{Src: a, Dst: b}, ledger.Way{Src: b, Dst: a})
				}
			}
			if shift == 2 { // and back, by another call
				f.ways = append(f.ways, ledger.Way{Src: a, Dst: (a + 1) % p.ranks})
			}
		}
		p.phases = append(p.phases, f)
		if shift == 2 {
			back := f
			back.site, back.ways = 4+f.site, nil
			for _, w := range f.ways {
				back.ways = append(back.ways, ledger.Way{Src: w.Dst, Dst: w.Src})
			}
			p.phases = append(p.phases, back)
		}
	}
	return p
}

// run makes the messages.
func (p *loop) run() {
	slip := int32(-1)
	if p.slips {
		slip = p.Int32N(p.times)
	}
	for step := range p.times {
		for k, f := range p.phases {
			for range f.inner {
				p.exchange(&f)
			}
			if step == slip && k == 0 {
				switch p.IntN(3) {
				case 0:
					p.exchange(&f)
				case 1:
					p.seq[p.IntN(int(p.ranks))] += 7
				case 2:
					p.exchange(&phase{site: f.site, tag: f.tag, ways: f.ways[:len(f.ways)/2]})
				}
			}
		}
	}
}

// exchange lets all ranks send, then receive.
func (p *loop) exchange(f *phase) {
	first := len(p.rows.Src)
	for _, w := range f.ways {
		m := schema.NullMessage
		m.Src, m.Dst, m.Comm, m.Tag, m.SendCallsite, m.RecvCallsite = w.Src, w.Dst, 0, f.tag, f.site, 10+f.site
		m.Bytes, m.SendDatatype, m.SendSeq = 8*int64(1+f.site), 0, p.seq[w.Src]
		m.PayloadHash = p.Int64()
		p.seq[w.Src]++
		p.rows.Append(&m)
	}
	for k := first; k < len(p.rows.Src); k++ {
		p.rows.RecvPostSeq[k], p.rows.RecvDoneSeq[k] = p.seq[p.rows.Dst[k]], p.seq[p.rows.Dst[k]]
		if !f.waits {
			p.seq[p.rows.Dst[k]]++
		}
	}
	for r := range p.seq {
		p.seq[r]++
		if p.gaps {
			p.seq[r] += p.Int64N(4)
		}
	}
}

// input returns what Find reads, and the first messages.
func (p *loop) input() (*Input, *ledger.Sample) {
	read := func(s *ledger.Sample) *ledger.Sample {
		for i := range p.rows.Src {
			if w := s.WayOf(ledger.CellOf(&p.rows, i), ledger.Way{Src: p.rows.Src[i], Dst: p.rows.Dst[i]}); w != nil {
				s.Add(w, &p.rows, i)
			}
		}
		s.Closed = true
		return s
	}
	return &Input{MinRanks: 3, Room: 1 << 30, Whole: func(want map[ledger.Cell]bool) (*ledger.Sample, error) {
		all := ledger.NewSample(p.ranks)
		all.Only = want
		return read(all), nil
	}}, read(ledger.NewSample(p.ranks))
}

// outline is Input.Outline.
func (p *loop) outline(want map[ledger.Stream]*ledger.Outline, _ int64) (bool, error) {
	for i := range p.rows.Src {
		s := ledger.Stream{Cell: ledger.CellOf(&p.rows, i), Way: ledger.Way{Src: p.rows.Src[i], Dst: p.rows.Dst[i]}}
		if o := want[s]; o != nil {
			if _, ok := o.Add(p.rows.SendSeq[i], p.rows.RecvPostSeq[i], p.rows.RecvDoneSeq[i], p.rows.RecvCallsite[i]); !ok {
				return false, nil
			}
		}
	}
	return true, nil
}

// describe lists the exchanges of a ledger with their operation, ranks, number of times, and all rows.
func describe(l *ledger.Ledger) string {
	type key struct {
		*ledger.Proof
		op    ledger.Operation
		bytes int64
	}
	times, rows, order := map[key]int64{}, map[key]map[string]bool{}, []key(nil)
	for _, i := range l.Found {
		k := key{i.Proof, i.Op, i.Bytes}
		if times[k] == 0 {
			order, rows[k] = append(order, k), map[string]bool{}
		}
		times[k] += i.Times()
		for n, at := range i.Messages {
			m := &l.Messages[at]
			rows[k][fmt.Sprint(m.Src, m.Dst, m.SendSeq, m.DoneSeq)] = true
			if i.More > 0 {
				for send, done := i.Rows[n].Send.Cursor(), i.Rows[n].Done.Cursor(); ; send.Pass() {
					s, ok := send.Next()
					if !ok {
						break
					}
					d, _ := done.Next()
					done.Pass()
					rows[k][fmt.Sprint(m.Src, m.Dst, s, d)] = true
				}
			}
		}
	}
	var out strings.Builder
	slices.SortStableFunc(order, func(a, b key) int { return cmp.Compare(a.op, b.op) })
	for _, k := range order {
		list := make([]string, 0, len(rows[k]))
		for r := range rows[k] {
			list = append(list, r)
		}
		slices.Sort(list)
		fmt.Fprintln(&out, k.op, k.bytes, times[k], list)
	}
	return out.String()
}

// TestRepeatedExchangesAreTheSame compares the exchanges found among the first repetitions of random loops, with the
// others counted, with those found among all messages.
func TestRepeatedExchangesAreTheSame(t *testing.T) {
	found, counted, slipped := 0, 0, 0
	for seed := range uint64(300) {
		p := newLoop(seed)
		p.run()
		if len(p.rows.Src) == 0 {
			continue
		}
		in, first := p.input()
		whole, short := &ledger.Ledger{}, &ledger.Ledger{}
		if _, err := Find(in, whole, first); err != nil {
			t.Fatal(err)
		}
		in.Outline = p.outline
		if _, err := Find(in, short, first); err != nil {
			t.Fatal(err)
		}
		if a, b := describe(whole), describe(short); a != b {
			t.Fatalf("loop %d of %d repetitions %+v:\n%s\ncounted:\n%s", seed, p.times, p.phases, a, b)
		}
		if len(whole.Found) > 0 {
			found++
		}
		if slices.ContainsFunc(short.Found, func(i *ledger.Instance) bool { return i.More > 0 }) {
			counted++
			if p.slips {
				slipped++
			}
		}
	}
	if found < 150 || counted < found/2 || slipped == 0 {
		t.Errorf("exchanges in %d loops, counted in %d, of which %d with a difference", found, counted, slipped)
	}
	t.Logf("exchanges in %d loops, counted in %d, of which %d with a difference", found, counted, slipped)
}

// BenchmarkFind measures the search among 100,000 messages of a loop: all of them, and its first repetitions.
func BenchmarkFind(b *testing.B) {
	p := &loop{Rand: rand.New(rand.NewPCG(1, 1)), ranks: 20, times: 2500, seq: make([]int64, 20)}
	f := phase{inner: 1}
	for a := range p.ranks {
		f.ways = append(f.ways, ledger.Way{Src: a, Dst: (a + 1) % p.ranks}, ledger.Way{Src: (a + 1) % p.ranks, Dst: a})
	}
	p.phases = []phase{f}
	p.run()
	in, first := p.input()
	for _, c := range []struct {
		name    string
		outline func(map[ledger.Stream]*ledger.Outline, int64) (bool, error)
	}{{"all", nil}, {"first", p.outline}} {
		b.Run(c.name, func(b *testing.B) {
			in.Outline = c.outline
			for b.Loop() {
				l := &ledger.Ledger{}
				if _, err := Find(in, l, first); err != nil || len(l.Found) == 0 {
					b.Fatal(err, len(l.Found))
				}
			}
		})
	}
}
