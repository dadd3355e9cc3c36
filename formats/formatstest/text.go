package formatstest

import (
	"fmt"
	"strings"

	"github.com/commq/commq/schema"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// words are what is not null of a row, as name=value.
type words []string

func (w *words) say(name string, v, null int64) {
	if v != null {
		*w = append(*w, fmt.Sprint(name, "=", v))
	}
}

// Line is a row as text: its call, and what is not null of its message, collective and request.
func Line(e *schema.Event) string {
	w := words{fmt.Sprintf("%d.%d", e.Rank, e.Seq), strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_")}
	if e.Thread > 0 {
		w.say("thread", int64(e.Thread), int64(null32))
	}
	for _, x := range []struct {
		name string
		v    int32
	}{{"comm", e.Comm}, {"to", e.SendWorld}, {"stag", e.SendTag}, {"from", e.RecvWorld}, {"rtag", e.RecvTag},
		{"root", e.RootWorld}} {
		w.say(x.name, int64(x.v), int64(null32))
	}
	for _, x := range []struct {
		name string
		v    int64
	}{{"sent", e.SendBytes}, {"received", e.RecvBytes}, {"instance", e.Instance}, {"request", e.Request},
		{"done", e.DoneSeq}, {"polls", e.Polls}} {
		w.say(x.name, x.v, null64)
	}
	if e.Label != schema.NullText {
		w = append(w, "label="+e.Label)
	}
	return strings.Join(w, " ")
}

// timedLine is a row as text, with its times, how long the rank computed before it, sides that are to or from
// MPI_PROC_NULL, and the row that made what it uses.
func timedLine(e *schema.Event) string {
	end := "-"
	if e.EndNs != null64 {
		end = fmt.Sprint(e.EndNs)
	}
	w := words{Line(e), fmt.Sprintf("[%d-%s]", e.StartNs, end)}
	w.say("compute", e.ComputeNs, null64)
	if e.ProcNull != 0 {
		w.say("null", int64(e.ProcNull), int64(null32))
	}
	w.say("made", e.InitSeq, null64)
	return strings.Join(w, " ")
}

// Tables are the parts of a run as text, by name: rows, messages, parts, comms, ranks, counts, and what the import
// said.
func Tables(r *Run) map[string]string {
	all := map[string]string{}
	add := func(table, format string, args ...any) { all[table] += fmt.Sprintf(format+"\n", args...) }
	for i := range r.Events {
		add("rows", "%s", timedLine(&r.Events[i]))
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		add("messages", "%d.%d -> %d.%d done %d, comm %d tag %d: %d", m.Src, m.SendSeq, m.Dst, m.RecvPostSeq, m.RecvDoneSeq,
			m.Comm, m.Tag, m.Bytes)
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		add("parts", "%d.%d with %d: %d and %d", p.Rank, p.Seq, p.PeerWorld, p.SendBytes, p.RecvBytes)
	}
	for i := range r.Comms {
		add("comms", "%s", member(&r.Comms[i]))
	}
	for i := range r.RankInfos {
		x := &r.RankInfos[i]
		add("ranks", "%d on %s: %d threads, %d rows, %d polls, %s", x.Rank, r.Origin.Hosts[x.Host], x.Threads, x.Events,
			x.Polls, schema.EndedNames[x.Ended])
	}
	c := &r.Counts
	add("counts", "%d messages of %d bytes, %d wildcards; unmatched: %d sends, %d receives; %d collectives %v; %d polls, "+
		"%d in progress; %s at %d", c.Messages, c.MessageBytes, c.WildcardReceives, c.UnmatchedSends, c.UnmatchedReceives,
		c.Collectives, r.Collectives, c.Polls, c.InProgress, r.Ended, r.EndNs)
	for _, w := range r.Warnings {
		add("said", "%s", w)
	}
	return all
}

// member is a row of the table comms.
func member(c *schema.Comm) string {
	name := "without a name"
	if c.Name != schema.NullText {
		name = fmt.Sprintf("%q", c.Name)
	}
	text := fmt.Sprintf("%d %s, %s: %d.%d is %d", c.Comm, name, schema.CommKindNames[c.Kind], c.Remote, c.CommRank,
		c.WorldRank)
	if c.Parent != null32 {
		text += fmt.Sprintf(", of %d", c.Parent)
	}
	if c.CartDims != schema.NullText {
		text += fmt.Sprintf(", %s wraps %s", c.CartDims, c.CartPeriods)
	}
	return text
}
