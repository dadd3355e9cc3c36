package detect

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/detect/scan"
	"github.com/commq/commq/detect/spread"
)

// passes processes messages in batches that fit in memory. From each pass it keeps only what was found.
type passes struct {
	plan    *scan.Plan
	next    int            // next part of the plan
	divided map[int64]bool // ordinals of messages that are divided into pieces
	// ordinals of messages that were taken whole before others were divided
	taken map[int64]bool

	messages []ledger.Message // kept messages, in any order
	keys     []ledger.RowKey
	found    []*ledger.Instance
	wholes   map[int64]int32 // by ordinal: index of a message that is kept because of one of its pieces
}

func newPasses(p *scan.Plan) *passes {
	return &passes{plan: p, divided: map[int64]bool{}, taken: map[int64]bool{}, wholes: map[int64]int32{}}
}

// inPasses finds operations that spread payloads, in as many passes as needed.
func (d *detector) inPasses() error {
	p, rules := d.passes, d.rules()
	for p.next < len(p.plan.Todo) {
		t := &p.plan.Todo[p.next]
		p.next++
		if int64(len(p.messages)) > d.mostReplayed() { // the findings must be kept too
			d.leaveOut(t.Size)
			d.result.Replayed -= t.Size
			continue
		}
		if err := d.pass(rules, t); err != nil {
			return err
		}
		if err := d.border(); err != nil {
			return err
		}
	}
	d.ledger = ledger.Ledger{Messages: p.messages, Keys: p.keys, Found: p.found}
	p.messages, p.keys, p.found, p.wholes, p.divided, p.taken = nil, nil, nil, nil, nil, nil
	slices.SortStableFunc(d.ledger.Found, func(a, b *ledger.Instance) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), a.FirstKey.Compare(b.FirstKey))
	})
	d.ledger.InOrder(d.ledger.Found)
	return nil
}

// pass processes the messages of one part.
func (d *detector) pass(rules *ledger.Rules, t *scan.Part) error {
	p, room := d.passes, max(0, min(t.Size, d.result.Messages, d.partRoom())) // the size may be from a damaged state
	l := &ledger.Ledger{Messages: make([]ledger.Message, 0, room), Keys: make([]ledger.RowKey, 0, room), Pieces: map[int32][]ledger.Piece{}}
	want := func(c *scan.Candidate) bool {
		switch {
		case t.Carriers:
			return p.plan.Cut[c.Payload] && t.Has(c.Payload.Hash, c.Payload.Bytes)
		case p.taken[c.Ordinal]:
			return false
		case len(c.Pieces) > 0:
			return p.divided[c.Ordinal] && slices.ContainsFunc(c.Pieces,
				func(x ledger.Piece) bool { return t.Has(x.Hash, x.Bytes) })
		}
		return c.Frequent && t.Has(c.Payload.Hash, c.Payload.Bytes)
	}
	var divided []scan.Candidate
	err := d.census.Candidates(d.reader, false, p.plan.LastOrdinal, want, func(c *scan.Candidate, m ledger.Message) {
		if len(c.Pieces) > 0 {
			if l.Pieces[int32(len(l.Messages))] = c.Pieces; !t.Carriers {
				m.Taken = true
				divided = append(divided, scan.Candidate{Row: len(l.Messages), Ordinal: c.Ordinal, Pieces: c.Pieces})
			}
		}
		l.Messages, l.Keys = append(l.Messages, m), append(l.Keys, ledger.RowKey{Ordinal: c.Ordinal, Piece: 0})
	})
	if err != nil {
		return err
	}
	if t.Carriers {
		spread.SpreadWholes(rules, l)
		for m := range l.Pieces {
			if !l.Messages[m].Taken {
				p.divided[l.Keys[m].Ordinal] = true
			}
		}
		for m := range l.Messages {
			if l.Messages[m].Taken {
				p.taken[l.Keys[m].Ordinal] = true
			}
		}
	} else {
		for k := range divided {
			c := &divided[k]
			for n, x := range c.Pieces {
				if t.Has(x.Hash, x.Bytes) {
					l.Messages = append(l.Messages, l.PieceOf(int32(c.Row), x))
					l.Keys = append(l.Keys, ledger.RowKey{Ordinal: c.Ordinal, Piece: int32(n) + 1})
				}
			}
		}
		spread.SpreadAll(rules, l)
	}
	if err := d.stopped(); err != nil {
		return err
	}
	d.leaveOut(l.CountOversized())
	p.retain(t, l)
	return nil
}

// retain keeps the findings of a pass, with their messages.
func (p *passes) retain(t *scan.Part, l *ledger.Ledger) {
	at := map[int32]int32{}
	keep := func(m int32) int32 {
		k, known := at[m]
		if !known {
			k = int32(len(p.messages))
			at[m] = k
			p.messages, p.keys = append(p.messages, l.Messages[m]), append(p.keys, l.Keys[m])
		}
		return k
	}
	for _, i := range l.Found {
		i.FirstKey, i.Stage = l.Keys[i.FirstListed], 0
		if !t.Carriers {
			i.Stage = 1
		}
		for k, m := range i.Messages {
			i.Messages[k] = keep(m)
			if w := l.Messages[m].Carrier; w != ledger.None {
				ordinal := l.Keys[w].Ordinal
				whole, known := p.wholes[ordinal]
				if !known {
					whole = keep(w)
					p.wholes[ordinal] = whole
				}
				p.messages[i.Messages[k]].Carrier = whole
			}
		}
	}
	p.found = append(p.found, l.Found...)
}

// classWay is the number of a class of messages, and a source and destination.
type classWay struct {
	class int32
	ledger.Way
}

func (k classWay) compare(o classWay) int {
	return cmp.Or(cmp.Compare(k.class, o.class), ledger.CompareWays(k.Way, o.Way))
}

// openWays counts the messages that belong to no operation yet, by class, source and destination. ok is false if
// there are too many combinations.
func (d *detector) openWays(kind int) (count map[classWay]int64, classes map[ledger.Class]int32, ok bool, err error) {
	l := &d.ledger
	count, classes = map[classWay]int64{}, map[ledger.Class]int32{}
	most, open := max(d.mostReplayed(), ledger.MaxSampled), int64(0)
	err = d.census.Candidates(d.reader, true, d.passes.plan.LastOrdinal, func(c *scan.Candidate) bool {
		if m := ledger.Present(l.Keys, c.Ordinal); m != ledger.None && l.Messages[m].Taken {
			return false
		}
		open++
		if k := classWayOf(c, kind, classes); count[k] > 0 || int64(len(count)) <= most {
			count[k]++
		}
		return false
	}, nil)
	if int64(len(count)) > most {
		d.leaveOut(open)
		return nil, nil, false, err
	}
	return count, classes, true, err
}

// classWayOf returns class and way of a candidate, numbering new classes.
func classWayOf(c *scan.Candidate, kind int, classes map[ledger.Class]int32) classWay {
	m := ledger.Message{Comm: c.Batch.Comm[c.Row], Tag: c.Batch.Tag[c.Row], Datatype: c.Batch.SendDatatype[c.Row],
		SendSite: c.Batch.SendCallsite[c.Row], Bytes: c.Payload.Bytes}
	k := ledger.Classes(&m)[kind]
	n, known := classes[k]
	if !known {
		n = int32(len(classes))
		classes[k] = n
	}
	return classWay{n, ledger.Way{Src: c.Batch.Src[c.Row], Dst: c.Batch.Dst[c.Row]}}
}

// circle is a set of ranks, each of which sends to each other equally often by messages of one class.
type circle struct {
	least classWay
	ways  []classWay
	count int64
}

// circlesOf finds the circles among the ways of free messages: only these can be alltoalls.
func circlesOf(count map[classWay]int64, minRanks int) (out []*circle) {
	byClass := map[int32][]classWay{}
	for k := range count {
		byClass[k.class] = append(byClass[k.class], k)
	}
	for _, ways := range byClass {
		connected := rankset.Groups{}
		for _, k := range ways {
			connected.Join(k.Src, k.Dst)
		}
		byCircle, ranks := map[int32]*circle{}, map[int32]int{}
		for rank := range connected {
			ranks[connected.Root(rank)]++
		}
		for _, k := range ways {
			root := connected.Root(k.Src)
			c := byCircle[root]
			if c == nil {
				c = &circle{least: k}
				byCircle[root] = c
			}
			if k.compare(c.least) < 0 {
				c.least = k
			}
			c.ways, c.count = append(c.ways, k), c.count+count[k]
		}
		for root, c := range byCircle {
			n := ranks[root]
			if n >= minRanks && len(c.ways) == n*(n-1) &&
				!slices.ContainsFunc(c.ways, func(k classWay) bool { return count[k] != count[c.ways[0]] }) {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b *circle) int { return cmp.Or(cmp.Compare(a.count, b.count), a.least.compare(b.least)) })
	return out
}

// exchangesInPasses finds direct exchanges of every rank with every other without keeping all candidate messages: it
// counts them, and reads again only those whose counts fit.
func (d *detector) exchangesInPasses(rules *ledger.Rules, kind int, aside []*ledger.Instance) error {
	count, classes, ok, err := d.openWays(kind)
	if err != nil || !ok {
		return err
	}
	for list := circlesOf(count, d.options.MinRanks); len(list) > 0; {
		room, n := max(d.partRoom(), d.mostReplayed()-int64(len(d.ledger.Messages))), int64(0)
		if list[0].count > room && d.options.part == 0 {
			for _, c := range list { // sorted: the others are no smaller
				d.leaveOut(c.count)
			}
			return nil
		}
		wanted := map[classWay]int{}
		k := 0
		for ; k < len(list) && (k == 0 || n+list[k].count <= room); k++ {
			n += list[k].count
			for _, w := range list[k].ways {
				wanted[w] = k
			}
		}
		list = list[k:]
		if err := d.exchangesOf(rules, kind, classes, wanted, k, aside); err != nil {
			return err
		}
		d.ledger.InOrder(d.ledger.Found, aside)
	}
	return nil
}

// exchangesOf reads the messages of some circles, known by their ways, and finds the exchanges among them.
func (d *detector) exchangesOf(rules *ledger.Rules, kind int, classes map[ledger.Class]int32, wanted map[classWay]int, circles int,
	aside []*ledger.Instance) error {
	l := &d.ledger
	there := l.Keys
	err := d.census.Candidates(d.reader, true, d.passes.plan.LastOrdinal, func(c *scan.Candidate) bool {
		_, want := wanted[classWayOf(c, kind, classes)]
		return want && ledger.Present(there, c.Ordinal) == ledger.None
	}, func(c *scan.Candidate, m ledger.Message) {
		l.Messages, l.Keys = append(l.Messages, m), append(l.Keys, ledger.RowKey{Ordinal: c.Ordinal, Piece: 0})
	})
	if err != nil {
		return err
	}
	all := rankset.NewBits(len(l.Messages))
	for m := range l.Messages {
		all.Add(m)
	}
	l.Reorder(all, l.Found, aside)
	lists := make([][]int32, circles)
	for i := range l.Messages {
		m := &l.Messages[i]
		class, known := classes[ledger.Classes(m)[kind]]
		if k, want := wanted[classWay{class, ledger.Way{Src: m.Src, Dst: m.Dst}}]; known && want && !m.Taken {
			lists[k] = append(lists[k], int32(i))
		}
	}
	for _, list := range lists {
		spread.Exchange(rules, l, list)
	}
	return d.stopped()
}
