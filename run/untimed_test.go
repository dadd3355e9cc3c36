package run

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// twoRanks generates an untimed run: in each of 2 epochs rank 0 sends 4097 bytes to rank 1, then both are in a
// barrier. Without receive rank 1 does not receive.
func twoRanks(store string, receive bool) *Untimed {
	comms := []schema.Comm{}
	for rank := range int32(2) {
		row := schema.NullComm
		row.CommRank, row.WorldRank = rank, rank
		comms = append(comms, row)
	}
	epochs := []int32{0, 0} // by rank, the next one
	calls := []int64{0, 0}
	u := &Untimed{Store: store, Name: "two", Epochs: 2, Comms: comms, Calls: []int64{4, 4},
		Manifest: schema.Manifest{Ranks: 2, TimeOrigin: "untimed", ComputeClock: "none", Record: "all", Hash: "none",
			Ended: "finalized"}}
	u.Next = func(rank int32, events *schema.Events, parts *schema.Parts) error {
		row := schema.NullEvent
		row.Rank, row.Epoch, row.Comm, row.Seq = rank, epochs[rank], 0, calls[rank]
		if rank == 0 {
			row.Call, row.Class = int16(schema.CallSend), int16(schema.ClassSend)
			row.SendWorld, row.SendPeer, row.SendTag, row.SendBytes = 1, 1, 9, 4097
		} else if receive {
			row.Call, row.Class = int16(schema.CallRecv), int16(schema.ClassRecv)
			row.RecvWorld, row.RecvPeer, row.RecvTag, row.RecvBytes, row.DoneSeq = 0, 0, 9, 4097, row.Seq
			row.PostedAny = schema.AnySource
		} else {
			row.Call, row.Class = int16(schema.CallFinalize), int16(schema.ClassOther)
		}
		events.Append(&row)
		barrier := schema.NullEvent
		barrier.Rank, barrier.Epoch, barrier.Comm, barrier.Seq = rank, epochs[rank], 0, calls[rank]+1
		barrier.Call, barrier.Class, barrier.Instance = int16(schema.CallBarrier), int16(schema.ClassCollective),
			int64(epochs[rank])
		events.Append(&barrier)
		epochs[rank]++
		calls[rank] += 2
		return nil
	}
	return u
}

func TestWriteUntimedPairsMessagesAndCounts(t *testing.T) {
	store := t.TempDir()
	var progress []int64
	u := twoRanks(store, true)
	u.Progress = func(done, total int64) { progress = append(progress, done, total) }
	m, err := WriteUntimed(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	want := schema.Counts{Calls: 8, Messages: 2, MessageBytes: 2 * 4097, Collectives: 2, WildcardReceives: 2}
	if m.Counts != want || m.Collectives["MPI_Barrier"] != 2 || m.Epochs != 2 {
		t.Errorf("%+v, want %+v; %v, %d epochs", m.Counts, want, m.Collectives, m.Epochs)
	}
	if !slices.Equal(progress, []int64{4, 8, 8, 8}) {
		t.Errorf("progress %v", progress)
	}
	r, err := Open(t.Context(), filepath.Join(store, "two"), Need{AllCalls: true})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := Rows[schema.Message](t.Context(), r, &schema.MessagesTable)
	if err != nil || len(messages) != 2 || messages[1].SendSeq != 2 || messages[1].RecvDoneSeq != 2 {
		t.Errorf("%+v, %v", messages, err)
	}
	if !slices.Equal(r.Ranks.Rows, []int64{4, 4}) {
		t.Errorf("rows of ranks: %v", r.Ranks.Rows)
	}
}

func TestWriteUntimedRejectsMessagesWithoutPartner(t *testing.T) {
	store := t.TempDir()
	_, err := WriteUntimed(t.Context(), twoRanks(store, false))
	if err == nil || err.Error() != `write run "two": 2 sends and 0 receives have no partner` {
		t.Errorf("%v", err)
	}
	broken := errors.New("broken")
	u := twoRanks(store, true)
	u.Next = func(int32, *schema.Events, *schema.Parts) error { return broken }
	if _, err := WriteUntimed(t.Context(), u); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err := Find(store, "two"); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("a run that failed is there: %v", err)
	}
}

func TestRetimerGivesRowsAndMessagesNewTimes(t *testing.T) {
	store := t.TempDir()
	if _, err := WriteUntimed(t.Context(), twoRanks(store, true)); err != nil {
		t.Fatal(err)
	}
	source, err := Open(t.Context(), filepath.Join(store, "two"), Need{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewRetimer(source, Rewrite{Store: store, Name: "timed", TimeOrigin: "simulated"}, "", KeptTimes{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for rank := range int32(2) {
		for seq := range int64(4) {
			w.Put(rank, seq, 100*seq+int64(rank), 100*seq+50+int64(rank))
		}
	}
	if err := w.Write(t.Context(), func(_ int32, ns int64) int64 { return 2 * ns }); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context(), w.Manifest()); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), filepath.Join(store, "timed"), Need{Times: true})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := Rows[schema.Message](t.Context(), r, &schema.MessagesTable)
	if err != nil {
		t.Fatal(err)
	}
	m := &messages[1] // rank 0, seq 2 to rank 1, seq 2
	if m.SendStartNs != 200 || m.SendEndNs != 250 || m.RecvPostNs != 201 || m.RecvEndNs != 251 {
		t.Errorf("%+v", m)
	}
	if r.Manifest.EndNs != 351 || r.Manifest.TimeOrigin != "simulated" {
		t.Errorf("%s run that ends at %d ns", r.Manifest.TimeOrigin, r.Manifest.EndNs)
	}
}
