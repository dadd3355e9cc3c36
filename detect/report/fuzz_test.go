package report

import (
	"encoding/json"
	"testing"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/replace"
	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// star is a run of 3 ranks in which rank 0 sends 40 bytes to rank 1, then to rank 2, twice.
func star() *replace.Source {
	events, messages := &schema.Events{}, &schema.Messages{}
	add := func(rank int32, seq int64, call schema.CallID, set func(*schema.Event)) {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Class, e.Comm, e.ProcNull = rank, seq, int16(call), int16(schema.Calls[call].Class), 0, 0
		set(&e)
		events.Append(&e)
	}
	for turn := range int64(2) {
		for to := int32(1); to < 3; to++ {
			seq := 2*turn + int64(to) - 1
			add(0, seq, schema.CallSend, func(e *schema.Event) {
				e.SendPeer, e.SendWorld, e.SendTag, e.SendBytes, e.SendDatatype = to, to, 9, 40, 0
			})
			add(to, turn, schema.CallRecv, func(e *schema.Event) {
				e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvBytes, e.RecvDatatype, e.PostedAny = 0, 0, 9, 40, 0, 0
			})
			m := schema.NullMessage
			m.Src, m.Dst, m.Comm, m.Tag, m.Bytes, m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = 0, to, 0, 9, 40, seq, turn, turn
			messages.Append(&m)
		}
	}
	return &replace.Source{Threads: []int32{1, 1, 1}, Comms: []run.Comm{{Members: []int32{0, 1, 2}}},
		TypeBytes: map[int32]int64{0: 1},
		Events:    func(add func(*schema.Events) error) error { return add(events) },
		Messages:  func(add func(*schema.Messages) error) error { return add(messages) }}
}

// FuzzFindings edits the file of findings that commq replace takes: it is refused, or the rows of each rank count from 0
// in the run that it makes.
func FuzzFindings(f *testing.F) {
	p := &Report{Run: "r", Findings: []Finding{{Finding: 1, Operation: "MPI_Bcast"}}}
	group := Group{Communicator: new(int32), Ranks: []int32{0, 1, 2}, Instances: 2}
	for turn := range int64(2) {
		in := detect.Instance{Root: 0, Bytes: 40}
		for to := int32(1); to < 3; to++ {
			in.Messages = append(in.Messages, detect.Message{Src: 0, Dst: to, SendSeq: 2*turn + int64(to) - 1, PostSeq: turn,
				DoneSeq: turn})
		}
		group.List = append(group.List, newInstance(&in))
	}
	p.Findings[0].Groups = []Group{group}
	good, err := json.Marshal(p)
	if err != nil {
		f.Fatal(err)
	}
	if replaced(f, string(good)) != 2 {
		f.Fatal("the findings are not replaced")
	}
	f.Add([]byte{})
	f.Add([]byte{0, 9, 1, 8, 1, 0, 4, 7})
	f.Add([]byte{0, 60, 0, 5, 0, 70, 4, 9})
	f.Fuzz(func(t *testing.T, edits []byte) { replaced(t, mutate.JSON(string(good), edits)) })
}

// replaced puts the findings of a file into star, and returns how many were.
func replaced(t testing.TB, text string) int {
	t.Helper()
	p := &Report{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return 0
	}
	findings, err := p.Replaceable()
	if err != nil {
		return 0
	}
	source := star()
	which, err := p.Indices(nil)
	if err != nil {
		return 0
	}
	r, err := replace.Read(source, findings)
	if err != nil {
		return 0
	}
	plan, out, messages := r.Plan(which), &schema.Events{}, &schema.Messages{}
	w := plan.Rewriter()
	if err := source.Events(func(b *schema.Events) error { w.Events(b, out); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := source.Messages(func(b *schema.Messages) error { plan.Messages(b, messages); return nil }); err != nil {
		t.Fatal(err)
	}
	w.Parts()
	rows := [3]int64{}
	for i, rank := range out.Rank {
		if out.Seq[i] != rows[rank] {
			t.Errorf("row %d of rank %d has seq %d", rows[rank], rank, out.Seq[i])
		}
		rows[rank]++
	}
	for rank, n := range rows {
		if want := plan.Rows(int32(rank)); n != want {
			t.Errorf("rank %d has %d rows; the plan says %d", rank, n, want)
		}
	}
	return plan.Total()
}
