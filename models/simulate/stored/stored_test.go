package stored

import (
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Rank 0 computes 2 ms and sends 4097 bytes to rank 1, which has computed 1 ms before it receives; each in an epoch of
// its own. On the machine flat (1 GB/s, 10 us) the message takes 14.097 us.
func writePair(t *testing.T, store string) string { return writePairTimed(t, store, "cpu") }

// writePairTimed writes the pair with this compute clock; "none" leaves out its compute times.
func writePairTimed(t *testing.T, store, clock string) string {
	t.Helper()
	out, err := writer.Create(store, "pair", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	events, comms, ranks := [2]*schema.Events{{}, {}}, &schema.Comms{}, &schema.RankInfos{}
	for rank := range int32(2) {
		info := schema.NullRankInfo
		info.Rank, info.Threads, info.Events, info.Ended = rank, 1, 2, schema.EndedFinalized
		ranks.Append(&info)
		comm := schema.NullComm
		comm.CommRank, comm.WorldRank = rank, rank
		comms.Append(&comm)
		e := schema.NullEvent
		e.Rank, e.Comm = rank, 0
		if rank == 0 {
			e.Call, e.Class, e.ComputeNs = int16(schema.CallSend), int16(schema.ClassSend), 2_000_000
			e.SendWorld, e.SendPeer, e.SendTag, e.SendBytes = 1, 1, 9, 4097
		} else {
			e.Call, e.Class, e.ComputeNs = int16(schema.CallRecv), int16(schema.ClassRecv), 1_000_000
			e.RecvWorld, e.RecvPeer, e.RecvTag, e.RecvBytes, e.DoneSeq = 0, 0, 9, 4097, 0
		}
		if clock == "none" {
			e.ComputeNs = schema.NullInt64
		}
		events[0].Append(&e)
		end := schema.NullEvent
		end.Rank, end.Seq, end.Epoch, end.Call, end.Class = rank, 1, 1, int16(schema.CallFinalize),
			int16(schema.ClassOther)
		events[1].Append(&end)
	}
	messages, m := &schema.Messages{}, schema.NullMessage
	m.Dst, m.Tag, m.Bytes, m.RecvDoneSeq = 1, 9, 4097, 0
	messages.Append(&m)
	for _, b := range []schema.Batch{events[0], events[1], messages, comms, ranks} {
		if err := out.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Commit(t.Context(), &schema.Manifest{Ranks: 2, TimeOrigin: "untimed", ComputeClock: clock,
		Record: "all", Hash: "none", Ended: "finalized", Epochs: 2}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, "pair")
}

func open(t *testing.T, dir string) *Simulation {
	t.Helper()
	target, err := simulate.ReadTarget(simulate.TargetOptions{Machine: "flat"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), dir, target)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const pairNs = 2_014_097

func TestSimulateAndSave(t *testing.T) {
	store := t.TempDir()
	s := open(t, writePair(t, store))
	read := 0
	s.Progress = func(rows int) { read += rows }
	r, saving, err := s.SimulateAndSave(t.Context(),
		run.Rewrite{Store: store, Name: "pair.flat", Commq: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	defer saving.Close()
	if simulate.Nanoseconds(r.Time) != pairNs || read != 4 {
		t.Errorf("%d ns after %d rows", simulate.Nanoseconds(r.Time), read)
	}
	if _, err := run.Find(store, "pair.flat"); err == nil {
		t.Error("the run is there before Commit")
	}
	if err := saving.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := run.Find(store, "pair.flat")
	if err != nil {
		t.Fatal(err)
	}
	o := found.Manifest.Origin.Simulation
	if found.Manifest.EndNs != pairNs || o.Run != "pair" || o.Machine != "flat" ||
		found.Manifest.Origin.Commq != "1.2.3" {
		t.Errorf("%+v, %+v", found.Manifest, o)
	}
	if ideal, err := s.SimulateIdeal(t.Context()); err != nil || simulate.Nanoseconds(ideal.Time) != 2_000_000 {
		t.Errorf("ideal network: %+v, %v", ideal, err)
	}
}

// Predict simulates at the same time what else is one after the other.
func TestPredictIsItsParts(t *testing.T) {
	s := open(t, filepath.Join("..", "..", "..", "testdata", "runs", "sp.W.4"))
	var read atomic.Int64
	s.Progress = func(rows int) { read.Add(int64(rows)) }
	p, err := s.Predict(t.Context(), Wanted{Ideal: true, Path: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * s.Run.Manifest.Counts.Calls; read.Load() != want {
		t.Errorf("%d rows read; want %d", read.Load(), want)
	}
	machine, err := s.Simulate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ideal, err := s.SimulateIdeal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path, err := s.CriticalPath(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if machine.Time <= ideal.Time || len(path.Parts(critical.Keys, s.Run.Place(t.Context()))) == 0 {
		t.Fatalf("%d on the machine, %d on an ideal network, %d parts of the path", machine.Time, ideal.Time,
			len(path.Parts(critical.Keys, s.Run.Place(t.Context()))))
	}
	if !reflect.DeepEqual(p, &Prediction{machine, ideal, path}) {
		t.Errorf("%+v; want %+v, %+v, %+v", p, machine, ideal, path)
	}
}

// A saved run computes as long as the nodes of the ranks take, also where nodes differ.
func TestSavedComputeTimes(t *testing.T) {
	for name, c := range map[string]struct {
		machine models.Machine
		want    []int64
	}{
		"same": {models.Machine{CPURatio: 2}, []int64{1_000_000, 500_000}},
		"differ": {models.Machine{CPURatio: 2, Uneven: []models.Node{{CPUs: 1, CPURatio: 2}, {CPUs: 1, CPURatio: 4}}},
			[]int64{1_000_000, 250_000}},
	} {
		store := t.TempDir()
		s := open(t, writePair(t, store))
		m := s.Target.Machine
		m.CPURatio, m.Uneven = c.machine.CPURatio, c.machine.Uneven
		if _, err := s.Predict(t.Context(), Wanted{Store: store, Save: name}); err != nil {
			t.Fatal(err)
		}
		r, err := run.Open(t.Context(), filepath.Join(store, name), run.Need{})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]int64, 2)
		if err := r.Events(t.Context(), "rank", "compute_ns")(func(b *schema.Events) error {
			for i, rank := range b.Rank {
				got[rank] += max(0, b.ComputeNs[i])
			}
			return nil
		}); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("nodes %s: %d ns, want %d (%v)", name, got, c.want, err)
		}
	}
}

// Without compute times only the message takes time: 10 us and 4097 ns.
func TestComputingTakesNoTimeWithoutItsTimes(t *testing.T) {
	s := open(t, writePairTimed(t, t.TempDir(), "none"))
	r, err := s.Simulate(t.Context())
	if err != nil || !s.Untimed() || simulate.Nanoseconds(r.Time) != 14_097 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The path goes back from rank 1, which waited for the message from 1 to 2.014097 ms, to rank 0, which computed 2 ms.
func TestCriticalPathOnTheMachine(t *testing.T) {
	p, err := open(t, writePair(t, t.TempDir())).CriticalPath(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p.DurationNs != pairNs || p.LastRank != 1 || p.RankChanges != 1 {
		t.Errorf("%+v", p)
	}
	groups := p.GroupBy([]critical.Key{critical.ByCall}, func(int32) string { return "" })
	if len(groups) != 2 || groups[0].Call != "MPI_Send" || groups[0].Ns[critical.Compute] != 2_000_000 ||
		groups[1].Call != "MPI_Recv" || groups[1].Ns[critical.Transfer] != 14_097 {
		t.Errorf("%+v", groups)
	}
}

// writeRing writes a run of three ranks in a ring, each of which computes for some ms and then sends bytes to the next
// one while it receives from the one before (MPI_Sendrecv).
func writeRing(t *testing.T, store string, ms, bytes [3]int64) string {
	t.Helper()
	out, err := writer.Create(store, "ring", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	events, messages, comms, ranks := &schema.Events{}, &schema.Messages{}, &schema.Comms{}, &schema.RankInfos{}
	for rank := range int32(3) {
		next, before := (rank+1)%3, (rank+2)%3
		info, comm := schema.NullRankInfo, schema.NullComm
		info.Rank, info.Threads, info.Events, info.Ended = rank, 1, 2, schema.EndedFinalized
		ranks.Append(&info)
		comm.CommRank, comm.WorldRank = rank, rank
		comms.Append(&comm)
		e, end, m := schema.NullEvent, schema.NullEvent, schema.NullMessage
		e.Rank, e.Comm, e.Call, e.Class, e.ComputeNs = rank, 0, int16(schema.CallSendrecv),
			int16(schema.ClassSendrecv), ms[rank]*1_000_000
		e.SendWorld, e.SendPeer, e.SendTag, e.SendBytes = next, next, 9, bytes[rank]
		e.RecvWorld, e.RecvPeer, e.RecvTag, e.RecvBytes, e.DoneSeq = before, before, 9, bytes[before], 0
		end.Rank, end.Seq, end.Call, end.Class = rank, 1, int16(schema.CallFinalize), int16(schema.ClassOther)
		events.Append(&e)
		events.Append(&end)
		m.Src, m.Dst, m.Tag, m.Bytes, m.RecvDoneSeq = rank, next, 9, bytes[rank], 0
		messages.Append(&m)
	}
	for _, b := range []schema.Batch{events, messages, comms, ranks} {
		if err := out.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Commit(t.Context(), &schema.Manifest{Ranks: 3, TimeOrigin: "untimed", ComputeClock: "cpu",
		Record: "all", Hash: "none", Ended: "finalized", Epochs: 1}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, "ring")
}

// Rank 2 sends 10 MB to rank 0 after 3 ms, which arrive last; rank 1, to which rank 0 sends 8 bytes, comes after 5 ms.
// An eager send does not wait for rank 1, so that the path leads to rank 2; a rendezvous does. The saved run has the
// same path.
func TestPathWithSendsThatDoNotWait(t *testing.T) {
	for threshold, want := range map[string]int32{"unlimited": 2, "8": 1} {
		store := t.TempDir()
		s := open(t, writeRing(t, store, [3]int64{0, 5, 3}, [3]int64{8, 8, 10_000_000}))
		if err := s.Target.Machine.Set("eager_threshold_bytes", threshold); err != nil {
			t.Fatal(err)
		}
		s.Target.Changes = []string{"eager_threshold_bytes=" + threshold}
		simulated, err := s.CriticalPath(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Predict(t.Context(), Wanted{Store: store, Save: "saved"}); err != nil {
			t.Fatal(err)
		}
		r, err := run.Open(t.Context(), filepath.Join(store, "saved"), critical.Need)
		if err != nil {
			t.Fatal(err)
		}
		saved, err := critical.FromRun(t.Context(), r, critical.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, p := range map[string]*critical.Path{"simulated": simulated, "saved": saved} {
			computes := int32(-1)
			for _, g := range p.GroupBy([]critical.Key{critical.ByRank}, func(int32) string { return "" }) {
				if g.Ns[critical.Compute] > 0 {
					computes = g.Rank
				}
			}
			if computes != want {
				t.Errorf("%s, eager below %s: rank %d computes on the path, want %d", name, threshold, computes, want)
			}
		}
	}
}

// A simulation that ends at the border of an epoch is continued by another process, which gets the same result.
func TestCheckpointsAreContinued(t *testing.T) {
	dir, folder := writePair(t, t.TempDir()), filepath.Join(t.TempDir(), "kept")
	facts := []writer.Fact{{Name: "task", Value: "test"}}
	openFolder := func() *writer.Checkpoint {
		f, err := writer.OpenCheckpoint(folder, 0*time.Second, facts)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := openFolder()
	s := open(t, dir)
	var err error
	if s.Checkpoint, err = NewCheckpoint(failingFolder{f}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Simulate(t.Context()); !errors.Is(err, errKilled) {
		t.Fatalf("%v, want the error of the folder", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = openFolder()
	defer f.Close()
	s = open(t, dir)
	if s.Checkpoint, err = NewCheckpoint(f); err != nil {
		t.Fatal(err)
	}
	if !s.Checkpoint.state.Under || s.Checkpoint.state.Epochs == 0 {
		t.Fatalf("nothing was kept: %+v", s.Checkpoint.state)
	}
	r, err := s.Simulate(t.Context())
	if err != nil || simulate.Nanoseconds(r.Time) != pairNs {
		t.Errorf("%+v, %v", r, err)
	}
	again, err := s.Simulate(t.Context())
	if err != nil || again.Time != r.Time || len(s.Checkpoint.state.Results) != 1 {
		t.Errorf("a part that is over is simulated again: %+v, %v", again, err)
	}
}

var errKilled = errors.New("killed")

// failingFolder saves a state, and then fails.
type failingFolder struct{ *writer.Checkpoint }

func (f failingFolder) Save(write func(io.Writer) error) error {
	return errors.Join(f.Checkpoint.Save(write), errKilled)
}

func TestOpenNamesWhatIsMissing(t *testing.T) {
	store := t.TempDir()
	out, err := writer.Create(store, "few", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	if err := out.Commit(t.Context(), &schema.Manifest{Ranks: 1, TimeOrigin: "untimed", ComputeClock: "none",
		Record: "messages", Hash: "none", Ended: "finalized", Epochs: 1}); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), filepath.Join(store, "few"), &simulate.Target{})
	want := `simulate: run "few" does not have the rows of all calls (record messages); capture it again with --record all`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}
