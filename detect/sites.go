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
	ranks    map[int32]*rankRows
	last     *rankRows // of the rank looked up last
	lastRank int32
	calls    map[siteCall]bool     // at all sites
	recent   [recentSites]siteCall // some of calls, by site
}

// siteCall is a call at a site.
type siteCall struct {
	site int32
	call schema.CallID
	used bool
}

const recentSites = 1 << 8

// rankRows is the rows of a rank that belong to findings.
type rankRows struct {
	rows   []wanted           // sorted: those still to come
	series rowSeries          // the same of operations done more often than listed
	done   map[int64][]wanted // by seq: completions of posted calls
	made   []wanted           // calls that make persistent requests
}

// rowsOf returns the rows of a rank.
func (l *locator) rowsOf(rank int32) *rankRows {
	if l.last != nil && l.lastRank == rank {
		return l.last
	}
	r := l.ranks[rank]
	if r == nil {
		r = &rankRows{done: map[int64][]wanted{}}
		l.ranks[rank] = r
	}
	l.last, l.lastRank = r, rank
	return r
}

// note remembers a call at a site.
func (l *locator) note(site int32, call schema.CallID) {
	c := siteCall{site, call, true}
	if at := &l.recent[uint32(site)%recentSites]; *at != c {
		*at = c
		l.calls[c] = true
	}
}

// locate adds to the findings the call sites that only events have, and returns the calls at all sites.
func locate(findings []Finding, messages []ledger.Message, read func(add func(*schema.Events) error) error) (map[int32][]schema.CallID,
	error) {
	if read == nil || len(findings) == 0 {
		return nil, nil
	}
	l := &locator{findings: findings, ranks: map[int32]*rankRows{}, calls: map[siteCall]bool{}}
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
	for _, r := range l.ranks {
		r.rows = inOrder(r.rows)
	}
	err := read(func(b *schema.Events) error {
		for i, site := range b.Callsite {
			l.note(site, schema.CallID(b.Call[i]))
			l.row(b, i)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	some := false
	for _, r := range l.ranks {
		some = some || len(r.made) > 0
		r.rows, r.series = inOrder(r.made), rowSeries{}
	}
	if some {
		err = read(func(b *schema.Events) error {
			for i := range b.Callsite {
				l.rowsOf(b.Rank[i]).meet(b.Seq[i], func(w wanted) { l.add(w, b.Callsite[i]) })
			}
			return nil
		})
	}
	return l.callsAt(), err
}

// callsAt sorts the sites of the findings, and returns their calls.
func (l *locator) callsAt() map[int32][]schema.CallID {
	calls, out := map[int32][]schema.CallID{}, map[int32][]schema.CallID{}
	for c := range l.calls {
		calls[c.site] = append(calls[c.site], c.call)
	}
	for k := range l.findings {
		f := &l.findings[k]
		for _, list := range []*[]int32{&f.SendSites, &f.RecvSites, &f.DoneSites} {
			*list = known(*list)
			for _, site := range *list {
				slices.Sort(calls[site])
				out[site] = calls[site]
			}
		}
	}
	return out
}

// want requests the rows of a message of a finding.
func (l *locator) want(m *ledger.Message, finding int32) {
	src := l.rowsOf(m.Src)
	src.rows = append(src.rows, wanted{m.SendSeq, finding, sendSite})
	if m.PostSeq != m.DoneSeq {
		dst := l.rowsOf(m.Dst)
		dst.rows = append(dst.rows, wanted{m.PostSeq, finding, recvSite})
	}
}

// wantAll requests the rows of all messages in the place of one.
func (l *locator) wantAll(m *ledger.Message, rows *ledger.Rows, finding int32) {
	l.rowsOf(m.Src).series.add(&rows.Send, wanted{finding: finding, kind: sendSite})
	if !rows.PostIsDone {
		l.rowsOf(m.Dst).series.add(&rows.Post, wanted{finding: finding, kind: recvSite})
	}
}

// rowSeries is series of rows that belong to findings.
type rowSeries struct {
	list []rowCursor
	rows []int64 // of each series the next row or one before it, close together as each row of a rank may ask for them
	next int64   // the least of rows
}

// rowCursor is the next row of a series.
type rowCursor struct {
	ledger.Cursor
	wanted
}

func (s *rowSeries) add(of *ledger.Series, w wanted) {
	s.list, s.rows, s.next = append(s.list, rowCursor{of.Cursor(), w}), append(s.rows, 0), 0
}

// meet visits and passes the series that have a row, which is no less than in earlier calls.
func (s *rowSeries) meet(seq int64, visit func(wanted)) {
	if seq < s.next {
		return
	}
	s.next = math.MaxInt64
	for k, at := range s.rows {
		if at <= seq {
			at = s.list[k].meet(seq, visit)
			s.rows[k] = at
		}
		s.next = min(s.next, at)
	}
}

// meet visits the series if it has a row, and returns the next row after it: MaxInt64 if none is left.
func (c *rowCursor) meet(seq int64, visit func(wanted)) int64 {
	at, ok := c.Next()
	for ; ok && at <= seq; at, ok = c.Next() {
		if at == seq {
			visit(wanted{at, c.finding, c.kind})
		}
		c.Pass()
	}
	if !ok {
		return math.MaxInt64
	}
	return at
}

// inOrder sorts rows, each once.
func inOrder(list []wanted) []wanted {
	slices.SortFunc(list, compareWanted)
	return slices.Compact(list)
}

// meet visits and removes the requests for a row.
func (r *rankRows) meet(seq int64, visit func(wanted)) {
	if len(r.series.list) > 0 {
		r.series.meet(seq, visit)
	}
	for len(r.rows) > 0 && r.rows[0].seq <= seq {
		if r.rows[0].seq == seq {
			visit(r.rows[0])
		}
		r.rows = r.rows[1:]
	}
}

// row looks at a row of events.
func (l *locator) row(b *schema.Events, i int) {
	r, seq := l.rowsOf(b.Rank[i]), b.Seq[i]
	if len(r.done) > 0 {
		if list, some := r.done[seq]; some {
			for _, w := range list {
				l.add(w, b.Callsite[i])
			}
			delete(r.done, seq)
		}
	}
	r.meet(seq, func(w wanted) {
		l.add(w, b.Callsite[i])
		if done := b.DoneSeq[i]; done > seq && w.kind == sendSite {
			if w := (wanted{done, w.finding, doneSite}); !slices.Contains(r.done[done], w) {
				r.done[done] = append(r.done[done], w)
			}
		}
		if made := b.InitSeq[i]; made != schema.NullInt64 {
			r.made = append(r.made, wanted{made, w.finding, w.kind})
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
