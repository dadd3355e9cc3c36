package report

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/plot"
)

// add adds a picture unless there is nothing to see.
func (c *causePart) add(p *picture) {
	if p != nil {
		c.Parts = append(c.Parts, p)
	}
}

// newTimeBars draws the time lost in parts of a run; nil if there is none.
func newTimeBars(all []Slice) *rankBars {
	most, sum := int64(0), int64(0)
	for _, x := range all {
		most, sum = max(most, x.Ns), sum+x.Ns
	}
	if most == 0 {
		return nil
	}
	b := &rankBars{Least: units.Duration(all[0].FromNs), Most: units.Duration(all[len(all)-1].ToNs),
		Top: units.Duration(most), Label: fmt.Sprintf("When it costs time: %s waited by all ranks together, in %d "+
			"parts of the simulated run", units.Duration(sum), len(all))}
	wide := rankBarsWide / float64(len(all))
	for i, x := range all {
		high := rankBarsHigh * float64(x.Ns) / float64(most)
		b.Bars = append(b.Bars, rankBar{X: wide * float64(i), Y: rankBarsHigh - high, Width: wide * 0.96, Height: high,
			Text: fmt.Sprintf("from %s to %s: %s", units.Duration(x.FromNs), units.Duration(x.ToNs),
				units.Duration(x.Ns))})
	}
	return b
}

// messagesOf is the condition that a message is sent, received or completed at one of some call sites.
func messagesOf(callsites []int32) string {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(callsites), " ", ", "), "[]")
	return fmt.Sprintf("send_callsite IN (%[1]s) OR recv_callsite IN (%[1]s)"+
		" OR (dst, recv_done_seq) IN (SELECT (rank, seq) FROM events WHERE callsite IN (%[1]s))"+
		" OR (src, send_seq) IN (SELECT (s.rank, s.seq) FROM events s JOIN events w ON w.rank = s.rank AND w.seq = "+
		"s.done_seq WHERE w.callsite IN (%[1]s))", list)
}

// drawMessages draws the matrix of the messages of a cause; nil if there are none.
func (a *artist) drawMessages(ctx context.Context, db *queries.DB, q *queries.Query, in *Input, c *Cause) (*picture, error) {
	rows, err := db.Ask(ctx, q, map[string]string{"collectives": "none", "where": messagesOf(c.Messages)})
	if err != nil {
		return nil, err
	}
	m, err := plot.NewPanel(int(in.Manifest.Ranks))
	if err != nil {
		return nil, err
	}
	columns, sent, number := rows.Columns(), int64(0), int64(0)
	src, dst, bytes, messages := find(columns, "src"), find(columns, "dst"), find(columns, "bytes"),
		find(columns, "messages")
	for rows.Next() {
		row := rows.Row()
		from, _ := row[src].(int32)
		to, _ := row[dst].(int32)
		size, _ := row[bytes].(int64)
		n, _ := row[messages].(int64)
		if err := m.Add(int64(from), int64(to), size); err != nil {
			return nil, err
		}
		sent, number = sent+size, number+n
	}
	if err := rows.Close(); err != nil || sent == 0 {
		return nil, err
	}
	m.Title, m.Note = "Messages of these calls", fmt.Sprintf("%s, %s", units.Count(number, "message"),
		units.Bytes(sent))
	m.SidePx = cutPx
	m.Down, m.Across, m.Value, m.Unit = "source", "destination", "sent data", "bytes"
	return a.pictureOf(m, fmt.Sprintf("Matrix of the messages of %s: %s from rank to rank, %s", c.Place, m.Note,
		units.Count(int64(in.Manifest.Ranks), "rank"))), nil
}

// cutPx is the width of a picture of a part of the run, in pixels: so small that its letters are as large as those of
// the page.
const cutPx = 500

// mostHeatRows limits the rows of ranks in a heat map.
const mostHeatRows = 256

// drawInTurn draws what ranks compute in turn before a call.
func (a *artist) drawInTurn(c *Cause) *picture {
	block := (len(c.InTurn) + mostHeatRows - 1) / mostHeatRows
	var x, y []float64
	for i := range c.InTurn[0] {
		x = append(x, float64(i+1))
	}
	for rank := 0; rank < len(c.InTurn); rank += block {
		y = append(y, float64(rank))
	}
	h := plot.NewHeatMap(x, y)
	for i := range x {
		for k := range y {
			most := math.NaN()
			for _, ranks := range c.InTurn[k*block : min((k+1)*block, len(c.InTurn))] {
				if v := ranks[i]; !(v <= most) && !math.IsNaN(v) {
					most = v
				}
			}
			h.Set(i, k, most, false)
		}
	}
	h.Title, h.Note, h.HighPx = "Computing before one call", "before "+shortPlace(c.Place), min(cutPx, 60+40*len(y))
	h.WidePx = cutPx + 200
	if block > 1 {
		h.Note += fmt.Sprintf("; a row is of %d ranks, the longest of them", block)
	}
	h.X, h.Y, h.Value = plot.Axis{Name: "part of the run"}, plot.Axis{Name: "rank"}, plot.Axis{Name: "mean " +
		"time", Unit: "ns"}
	return a.pictureOf(h, fmt.Sprintf("Computing of each of %s before %s, in %d parts of the "+
		"run", units.Count(int64(len(c.InTurn)), "rank"), c.Place, len(x)))
}

// shortPlace is a place without its folders.
func shortPlace(place string) string { return place[strings.LastIndexByte(place, '/')+1:] }
