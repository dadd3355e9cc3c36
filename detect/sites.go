package detect

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// EventColumns are the columns of events that Detect reads; the others may be null.
var EventColumns = []string{"rank", "seq", "call", "callsite", "done_seq", "init_seq"}

// siteKind selects a list of call sites in a finding.
type siteKind uint8

const (
	sendSite siteKind = iota
	recvSite
	doneSite
)

// wanted is a row of events that belongs to a finding.
type wanted struct {
	seq     int64
	finding int32
	kind    siteKind
}

func compareWanted(a, b wanted) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.finding, b.finding), cmp.Compare(a.kind, b.kind))
}

// locator finds the call sites that messages do not name: where receives were posted, sends completed, and persistent
// requests made.
type locator struct {
	findings []Finding
	rows     map[int32][]wanted           // by rank, sorted: rows still to come
	series   map[int32]*rowSeries         // by rank: rows still to come of operations done more often than listed
	done     map[int32]map[int64][]wanted // by rank and seq: completions of posted calls
	made     map[int32][]wanted           // by rank: calls that make persistent requests
}

// locate adds to the findings the call sites that only events have, and returns the calls at all sites.
func locate(findings []Finding, messages []ledger.Message, read func(add func(*schema.Events) error) error) (map[int32][]schema.CallID,
	error) {
	if read == nil || len(findings) == 0 {
		return nil, nil
	}
	l := &locator{findings: findings, rows: map[int32][]wanted{}, series: map[int32]*rowSeries{}, done: map[int32]map[int64][]wanted{},
		made: map[int32][]wanted{}}
	for k := range l.findings {
		for _, i := range l.findings[k].instances {
			for n, m := range i.Messages {
				if i.More > 0 {
					l.wantAll(&messages[m], i.Rows[n], int32(k))
				}
				l.want(&messages[m], int32(k))
			}
		}
		l.findings[k].instances = nil
	}
	l.sort(l.rows)
	calls := map[int32][]schema.CallID{}
	err := read(func(b *schema.Events) error {
		for i, site := range b.Callsite {
			if call := schema.CallID(b.Call[i]); !slices.Contains(calls[site], call) {
				calls[site] = append(calls[site], call)
			}
			l.row(b, i)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(l.made) > 0 {
		l.rows, l.series = l.made, nil
		l.sort(l.rows)
		err = read(func(b *schema.Events) error {
			for i := range b.Callsite {
				l.meet(b.Rank[i], b.Seq[i], func(w wanted) { l.add(w, b.Callsite[i]) })
			}
			return nil
		})
	}
	callsAt := map[int32][]schema.CallID{}
	for k := range l.findings {
		f := &l.findings[k]
		for _, list := range []*[]int32{&f.SendSites, &f.RecvSites, &f.DoneSites} {
			*list = known(*list)
			for _, site := range *list {
				slices.Sort(calls[site])
				callsAt[site] = calls[site]
			}
		}
	}
	return callsAt, err
}

// want requests the rows of a message of a finding.
func (l *locator) want(m *ledger.Message, finding int32) {
	l.rows[m.Src] = append(l.rows[m.Src], wanted{m.SendSeq, finding, sendSite})
	if m.PostSeq != m.DoneSeq {
		l.rows[m.Dst] = append(l.rows[m.Dst], wanted{m.PostSeq, finding, recvSite})
	}
}

// wantAll requests the rows of all messages in the place of one.
func (l *locator) wantAll(m *ledger.Message, rows *ledger.Rows, finding int32) {
	add := func(rank int32, of *ledger.Series, kind siteKind) {
		if l.series[rank] == nil {
			l.series[rank] = &rowSeries{}
		}
		l.series[rank].add(of, wanted{finding: finding, kind: kind})
	}
	add(m.Src, &rows.Send, sendSite)
	if !rows.PostIsDone {
		add(m.Dst, &rows.Post, recvSite)
	}
}

// rowSeries is series of rows that belong to findings.
type rowSeries struct {
	list []rowCursor
	next int64 // the least row still to come
}

// rowCursor is the next row of a series.
type rowCursor struct {
	ledger.Cursor
	wanted
}

func (s *rowSeries) add(of *ledger.Series, w wanted) {
	s.list, s.next = append(s.list, rowCursor{ledger.Cursor{Of: of}, w}), 0
}

// meet visits and passes the series that have a row, which is no less than in earlier calls.
func (s *rowSeries) meet(seq int64, visit func(wanted)) {
	if seq < s.next {
		return
	}
	s.next = math.MaxInt64
	for k := range s.list {
		c := &s.list[k]
		at, ok := c.Next()
		for ; ok && at <= seq; at, ok = c.Next() {
			if at == seq {
				visit(wanted{at, c.finding, c.kind})
			}
			c.Pass()
		}
		if ok {
			s.next = min(s.next, at)
		}
	}
}

func (l *locator) sort(rows map[int32][]wanted) {
	for rank, list := range rows {
		slices.SortFunc(list, compareWanted)
		rows[rank] = slices.Compact(list)
	}
}

// meet visits and removes the requests for a row.
func (l *locator) meet(rank int32, seq int64, visit func(wanted)) {
	if s := l.series[rank]; s != nil {
		s.meet(seq, visit)
	}
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
