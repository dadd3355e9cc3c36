// Package perfetto writes a run as a trace that Perfetto and Chrome show: JSON in the Trace Event Format. A rank is a
// process, a call a slice on its thread, a request an asynchronous slice from the call that made it to the one that
// completed it, and a message a slice inside the call that completed its receive, from when both sides were there,
// with a flow from its send.
package perfetto

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

const null64 = schema.NullInt64

// event is an entry of traceEvents. Times are in us.
type event struct {
	Name  string         `json:"name,omitempty"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	Pid   int32          `json:"pid"`
	Tid   int32          `json:"tid"`
	Time  json.Number    `json:"ts,omitempty"`
	Dur   json.Number    `json:"dur,omitempty"`
	ID    string         `json:"id,omitempty"`
	ID2   *localID       `json:"id2,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// localID is an id within a process, so that its slices are shown there.
type localID struct {
	Local string `json:"local"`
}

// us converts ns to us.
func us(ns int64) json.Number { return json.Number(fmt.Sprintf("%d.%03d", ns/1000, ns%1000)) }

// Export writes the run in folder dir to w. Calls that never returned have no slice, and a note says so. A run without
// times is an error.
func Export(ctx context.Context, dir string, w io.Writer) (notes []string, err error) {
	m, err := run.ReadManifest(ctx, dir, run.Need{})
	if err != nil {
		return nil, err
	}
	if n := m.Counts.InProgress; n > 0 {
		notes = append(notes, fmt.Sprintf("left out: calls that never returned, %d; the run's warnings name them (commq "+
			"runs show)", n))
	}
	if m.TimeOrigin == "untimed" {
		return nil, fmt.Errorf("the run is untimed; give it the times of a machine with commq simulate --name NAME")
	}
	x := &exporter{w: bufio.NewWriterSize(w, 1<<20), open: make([]map[int64][]event, m.Ranks)}
	fmt.Fprintf(x.w, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")
	for rank := range m.Ranks {
		x.put(&event{Phase: "M", Name: "process_name", Pid: rank,
			Args: map[string]any{"name": fmt.Sprintf("rank %d", rank)}})
		x.put(&event{Phase: "M", Name: "process_sort_index", Pid: rank, Args: map[string]any{"sort_index": rank}})
	}
	from := writer.Opened{Dir: dir, Digest: m.Digest}
	for _, step := range []func(context.Context, writer.Opened) error{x.findThreads, x.rows, x.flows} {
		if err := step(ctx, from); err != nil {
			return nil, err
		}
	}
	x.w.WriteString("\n]}\n")
	return notes, x.w.Flush() // returns the first error of all writes
}

type exporter struct {
	w *bufio.Writer
	// open has, for each rank, the ends of requests by the row that completes them.
	open  []map[int64][]event
	many  []bool // ranks with several threads
	flow  int64
	comma bool
}

func (x *exporter) put(e *event) {
	if x.comma {
		x.w.WriteByte(',')
	}
	x.comma = true
	x.w.WriteByte('\n')
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // an event always marshals
	}
	x.w.Write(b)
}

func (x *exporter) rows(ctx context.Context, from writer.Opened) error {
	return from.ReadTable(ctx, &schema.EventsTable, 1<<14, func(b schema.Batch) error {
		e := b.(*schema.Events)
		for i := range e.Len() {
			if e.StartNs[i] != null64 && e.EndNs[i] != null64 {
				x.row(e, i)
			}
		}
		return nil
	})
}

// row writes the slice of a call and those of the requests that it creates and completes.
func (x *exporter) row(e *schema.Events, i int) {
	rank, seq := e.Rank[i], e.Seq[i]
	name := schema.CallID(e.Call[i]).String()
	args := map[string]any{"seq": seq}
	for key, value := range map[string]int64{"send_bytes": e.SendBytes[i], "recv_bytes": e.RecvBytes[i],
		"send_world": wide(e.SendWorld[i]), "recv_world": wide(e.RecvWorld[i]),
		"comm": wide(e.Comm[i]), "send_tag": wide(e.SendTag[i]), "recv_tag": wide(e.RecvTag[i]),
		"compute_ns": e.ComputeNs[i]} {
		if value != null64 {
			args[key] = value
		}
	}
	x.put(&event{Phase: "X", Name: name, Cat: schema.Class(e.Class[i]).String(), Pid: rank, Tid: e.Thread[i],
		Time: us(e.StartNs[i]), Dur: us(e.EndNs[i] - e.StartNs[i]), Args: args})
	for _, end := range x.open[rank][seq] {
		end.Time = us(e.EndNs[i])
		x.put(&end)
	}
	delete(x.open[rank], seq)
	if done := e.DoneSeq[i]; done != null64 && e.Request[i] != null64 {
		begin := event{Phase: "b", Name: name, Cat: "request", Pid: rank, Tid: e.Thread[i], Time: us(e.StartNs[i]),
			ID2: &localID{strconv.FormatInt(seq, 10)}, Args: args}
		x.put(&begin)
		begin.Phase, begin.Args = "e", nil
		if x.open[rank] == nil {
			x.open[rank] = map[int64][]event{}
		}
		x.open[rank][done] = append(x.open[rank][done], begin)
	}
}

func wide(v int32) int64 {
	if v == schema.NullInt32 {
		return null64
	}
	return int64(v)
}

// findThreads finds the ranks with several threads.
func (x *exporter) findThreads(ctx context.Context, from writer.Opened) error {
	x.many = make([]bool, len(x.open))
	return from.ReadTable(ctx, &schema.RanksTable, 1<<12, func(b schema.Batch) error {
		t := b.(*schema.RankInfos)
		for i, rank := range t.Rank {
			x.many[rank] = t.Threads[i] > 1
		}
		return nil
	})
}

// flows writes a slice for each message, and an arrow from the call that sent it. Perfetto reverses an arrow whose
// second slice begins before its first, as with a call that waits for a late sender; so the slice begins no earlier
// than the send. Messages do not record threads: those to a rank with several threads get no slice, and their arrows
// go to the call of thread 0.
func (x *exporter) flows(ctx context.Context, from writer.Opened) error {
	return from.ReadTable(ctx, &schema.MessagesTable, 1<<14, func(b schema.Batch) error {
		m := b.(*schema.Messages)
		for i := range m.Len() {
			if m.SendStartNs[i] == null64 || m.RecvStartNs[i] == null64 || m.RecvEndNs[i] == null64 ||
				m.SendEndNs[i] == null64 {
				continue
			}
			x.flow++
			id := fmt.Sprint(x.flow)
			args := map[string]any{"bytes": m.Bytes[i], "tag": m.Tag[i], "source": m.Src[i]}
			at := max(m.RecvStartNs[i], m.RecvEndNs[i]-1) // inside the call
			if dst := m.Dst[i]; !x.many[dst] {
				at = min(max(m.RecvStartNs[i], m.SendStartNs[i]), m.RecvEndNs[i])
				x.put(&event{Phase: "X", Name: "message", Cat: "message", Pid: dst, Time: us(at),
					Dur: us(m.RecvEndNs[i] - at), Args: args})
			}
			x.put(&event{Phase: "s", Name: "message", Cat: "message", Pid: m.Src[i], Time: us(m.SendStartNs[i]),
				ID: id, Args: args})
			x.put(&event{Phase: "f", Bind: "e", Name: "message", Cat: "message", Pid: m.Dst[i], Time: us(at), ID: id})
		}
		return nil
	})
}
