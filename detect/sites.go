package detect

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// EventColumns are the columns of events that Detect reads; the others may be null.
var EventColumns = []string{"rank", "seq", "call", "callsite", "done_seq", "init_seq"}

// siteKind is which of a finding's lists a call site belongs to.
type siteKind uint8

const (
	sendSite siteKind = iota
	recvSite
	doneSite
)

// wanted is a row of events that a finding has a part of.
type wanted struct {
	seq     int64
	finding int32
	kind    siteKind
}

func compareWanted(a, b wanted) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.finding, b.finding), cmp.Compare(a.kind, b.kind))
}

// locator finds the call sites that messages do not name: where receives were posted, what completed sends, and where persistent
// requests were made.
type locator struct {
	findings []Finding
	rows     map[int32][]wanted           // by rank, sorted: those that are still to come
	done     map[int32]map[int64][]wanted // by rank and seq: completions of what was posted
	made     map[int32][]wanted           // by rank: calls that make persistent requests
}

// locate adds to the findings the call sites that only rows of events tell, and says which calls stand at the sites.
func (d *detector) locate() error {
	if d.run.Events == nil || len(d.result.Findings) == 0 {
		return nil
	}
	l := &locator{findings: d.result.Findings, rows: map[int32][]wanted{}, done: map[int32]map[int64][]wanted{}, made: map[int32][]wanted{}}
	for k := range l.findings {
		for _, i := range l.findings[k].instances {
			for _, m := range i.messages {
				l.want(&d.messages[m], int32(k))
			}
		}
		l.findings[k].instances = nil
	}
	l.sort(l.rows)
	calls := map[int32][]schema.CallID{}
	err := d.run.Events(func(b *schema.Events) error {
		for i, site := range b.Callsite {
			if call := schema.CallID(b.Call[i]); !slices.Contains(calls[site], call) {
				calls[site] = append(calls[site], call)
			}
			l.row(b, i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(l.made) > 0 {
		l.rows = l.made
		l.sort(l.rows)
		err = d.run.Events(func(b *schema.Events) error {
			for i := range b.Callsite {
				l.meet(b.Rank[i], b.Seq[i], func(w wanted) { l.add(w, b.Callsite[i]) })
			}
			return nil
		})
	}
	d.result.Calls = map[int32][]schema.CallID{}
	for k := range l.findings {
		f := &l.findings[k]
		for _, list := range []*[]int32{&f.SendSites, &f.RecvSites, &f.DoneSites} {
			*list = sites(*list)
			for _, site := range *list {
				slices.Sort(calls[site])
				d.result.Calls[site] = calls[site]
			}
		}
	}
	return err
}

// want asks for the rows of a message of a finding.
func (l *locator) want(m *message, finding int32) {
	l.rows[m.src] = append(l.rows[m.src], wanted{m.sendSeq, finding, sendSite})
	if m.postSeq != m.doneSeq {
		l.rows[m.dst] = append(l.rows[m.dst], wanted{m.postSeq, finding, recvSite})
	}
}

func (l *locator) sort(rows map[int32][]wanted) {
	for rank, list := range rows {
		slices.SortFunc(list, compareWanted)
		rows[rank] = slices.Compact(list)
	}
}

// meet visits what is wanted of a row, and forgets it.
func (l *locator) meet(rank int32, seq int64, visit func(wanted)) {
	list := l.rows[rank]
	for len(list) > 0 && list[0].seq <= seq {
		if list[0].seq == seq {
			visit(list[0])
		}
		list = list[1:]
		l.rows[rank] = list
	}
}

// row looks at a row of events.
func (l *locator) row(b *schema.Events, i int) {
	rank, seq := b.Rank[i], b.Seq[i]
	if of := l.done[rank]; len(of) > 0 {
		for _, w := range of[seq] {
			l.add(w, b.Callsite[i])
		}
		delete(of, seq)
	}
	l.meet(rank, seq, func(w wanted) {
		l.add(w, b.Callsite[i])
		if done := b.DoneSeq[i]; done > seq && w.kind == sendSite {
			w := wanted{done, w.finding, doneSite}
			if l.done[rank] == nil {
				l.done[rank] = map[int64][]wanted{}
			}
			if !slices.Contains(l.done[rank][done], w) {
				l.done[rank][done] = append(l.done[rank][done], w)
			}
		}
		if made := b.InitSeq[i]; made != schema.NullInt64 {
			l.made[rank] = append(l.made[rank], wanted{made, w.finding, w.kind})
		}
	})
}

// add adds a call site to a finding.
func (l *locator) add(w wanted, site int32) {
	f := &l.findings[w.finding]
	list := [...]*[]int32{&f.SendSites, &f.RecvSites, &f.DoneSites}[w.kind]
	if !slices.Contains(*list, site) {
		*list = append(*list, site)
	}
}
