package replay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/schema"
)

// TestPlayerCompilesWithoutWarnings compiles the player with warnings as errors; Build leaves them warnings.
func TestPlayerCompilesWithoutWarnings(t *testing.T) {
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			testenv.MPI(t, library)
			source := filepath.Join(t.TempDir(), "player.c")
			if err := os.WriteFile(source, append([]byte(definitions()), player...), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("mpicc."+library, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-c", "-o",
				source+".o", source)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", cmd, err, out)
			}
		})
	}
}

// source returns a run with this many ranks on MPI_COMM_WORLD.
func source(ranks int, rows []schema.Event) *Source {
	s := &Source{Datatypes: []schema.Datatype{{ID: 0, Name: "MPI_DOUBLE", Combiner: "named", Bytes: 8,
		ExtentBytes: 8}, {ID: 1, Name: schema.NullText, Combiner: "vector", Bytes: 24, ExtentBytes: 120}}}
	for r := range int32(ranks) {
		c, x := schema.NullComm, schema.RankInfo{Rank: r, Threads: 1, ThreadLevel: schema.NullInt32}
		c.CommRank, c.WorldRank, c.Kind = r, r, int16(schema.CommWorld)
		s.Comms, s.Ranks = append(s.Comms, c), append(s.Ranks, x)
	}
	s.Events = func(add func(*schema.Events) error) error {
		b := &schema.Events{}
		for i := range rows {
			b.Append(&rows[i])
		}
		return add(b)
	}
	s.Messages = func(func(*schema.Messages) error) error { return nil }
	return s
}

func row(rank int32, seq int64, call schema.CallID, set func(*schema.Event)) schema.Event {
	e := schema.NullEvent
	e.Rank, e.Seq, e.Call, e.Class, e.ComputeNs, e.Comm = rank, seq, int16(call), int16(schema.Calls[call].Class),
		1000, 0
	if set != nil {
		set(&e)
	}
	return e
}

// TestNewRefuses checks that the error of a run that cannot be played names the rank, the row and the reason.
func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		rows       []schema.Event
		change     func(*Source)
	}{
		{"threads", "rank 1 has 2 threads that call MPI", nil, func(s *Source) { s.Ranks[1].Threads = 2 }},
		{"lost calls", "rank 2 misses 5 calls that could not be recorded", nil,
			func(s *Source) { s.Ranks[2].Dropped = 5 }},
		{"one-sided", "rank 1, seq 3, MPI_Put: one-sided communication cannot be played; leave it out with --skip rma",
			[]schema.Event{row(1, 3, schema.CallPut, nil)}, nil},
		{"partitions", "rank 0, seq 0, MPI_Psend_init: the number of a partitioned request's partitions is not recorded",
			[]schema.Event{row(0, 0, schema.CallPsendInit, nil)}, nil},
		{"a request that no call made", "rank 0, seq 4, MPI_Wait: no call of the rank made request 9, which it completes",
			[]schema.Event{row(0, 4, schema.CallWait, func(e *schema.Event) { e.Request = 9 })}, nil},
		{"a start of an unknown request", "rank 0, seq 4, MPI_Start: no call of the rank made the request that it starts",
			[]schema.Event{row(0, 4, schema.CallStart, func(e *schema.Event) { e.Request, e.InitSeq = 9, 1 })}, nil},
		{"a message that no probe found", "rank 0, seq 4, MPI_Mrecv: no probe of the rank found the message that it receives",
			[]schema.Event{row(0, 4, schema.CallMrecv, func(e *schema.Event) { e.RecvWorld, e.RecvTag = 1, 9 })}, nil},
		{"an unknown communicator", "rank 0, seq 4, MPI_Barrier: the rank is no member of communicator 7",
			[]schema.Event{row(0, 4, schema.CallBarrier, func(e *schema.Event) { e.Comm = 7 })}, nil},
		{"rows out of order", "rank 0, seq 4, MPI_Barrier: it comes after row 5 of the rank",
			[]schema.Event{row(0, 5, schema.CallBarrier, nil), row(0, 4, schema.CallBarrier, nil)}, nil},
		{"an unknown rank", "rank 3, seq 0, MPI_Barrier: the run has 3 ranks",
			[]schema.Event{row(3, 0, schema.CallBarrier, nil)}, nil},
		{"too many elements", "4294967296 elements are more than a call that has no large counts takes",
			[]schema.Event{row(0, 0, schema.CallSend, func(e *schema.Event) {
				e.SendPeer, e.SendWorld, e.SendTag, e.SendCount, e.SendDatatype = 1, 1, 9, 1<<32, 0
			})}, nil},
		{"missing parts", "the run does not say what goes to whom",
			[]schema.Event{row(0, 0, schema.CallAlltoallv,
				func(e *schema.Event) { e.Instance, e.SendBytes, e.RecvBytes = 0, 24, 24 })}, nil},
	} {
		s := source(3, c.rows)
		if c.change != nil {
			c.change(s)
		}
		if _, err := New(s, &Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v want %s", c.name, err, c.want)
		}
	}
}

// TestOpenReceivesDoNotOverlap posts two receives, completes the first, and posts a third: it may use the memory of the
// first only.
func TestOpenReceivesDoNotOverlap(t *testing.T) {
	irecv := func(seq, request, done int64) schema.Event {
		return row(0, seq, schema.CallIrecv, func(e *schema.Event) {
			e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvCount, e.RecvDatatype, e.Request, e.DoneSeq, e.PostedAny, e.ProcNull = 1, 1, 9, 512, 0, request, done, 3, 0
		})
	}
	wait := func(seq int64) schema.Event { return row(0, seq, schema.CallWait, nil) }
	s, err := New(source(2, []schema.Event{irecv(0, 5, 2), irecv(1, 6, 4), wait(2), irecv(3, 7, 5), wait(4),
		wait(5)}), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	var places []int64
	words := s.ranks[0].words
	for len(words) > 0 {
		n := words[0] >> 32
		if opcode(words[0]&0xffff) == opcodes["Irecv"] {
			if args := words[3 : 3+n]; args[0] != 512 || args[2] != 1 || args[3] != 9 {
				t.Errorf("a wildcard is posted with what it got: %v", args)
			}
			places = append(places, words[3+5])
		}
		words = words[3+n:]
	}
	if len(places) != 3 || places[0] == places[1] || places[1] == places[2] || places[2] != places[0] {
		t.Errorf("places %v", places)
	}
	if got := s.ranks[0].recvArea; got != 2*4096 {
		t.Errorf("the area has %d bytes, want two receives' of 4096", got)
	}
}

// TestPersistentWildcardsReceiveWhatTheyGot starts persistent wildcard receives by MPI_Startall, twice: the first got a
// message of the same source and tag each time, the second of another source, and the third nothing.
func TestPersistentWildcardsReceiveWhatTheyGot(t *testing.T) {
	seq := int64(0)
	var rows []schema.Event
	add := func(call schema.CallID, set func(*schema.Event)) {
		rows = append(rows, row(0, seq, call, set))
		seq++
	}
	for request := range int64(3) {
		add(schema.CallRecvInit, func(e *schema.Event) {
			e.RecvCount, e.RecvDatatype, e.Request, e.PostedAny = 4, 0, request, schema.AnySource|schema.AnyTag
		})
	}
	none := envelope{int64(schema.NullInt32), int64(schema.NullInt32)}
	for _, got := range [][]envelope{{{1, 20}, {1, 21}, none}, {{1, 20}, {2, 21}, none}} {
		done := seq + 3
		for k, from := range got {
			add(schema.CallStartall, func(e *schema.Event) {
				e.RecvPeer, e.RecvTag, e.InitSeq, e.DoneSeq = int32(from.source), int32(from.tag), int64(k), done
				e.Request, e.PostedAny, e.StartNs, e.EndNs = seq, schema.AnySource|schema.AnyTag, 5, 5
				if k > 0 {
					e.ComputeNs = 0
				}
			})
		}
		add(schema.CallTestsome, nil)
	}
	for request := range int64(3) {
		add(schema.CallRequestFree, func(e *schema.Event) { e.Request = request })
	}
	s, err := New(source(3, rows), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for words := s.ranks[0].words; len(words) > 0; words = words[3+words[0]>>32:] {
		args := words[3 : 3+words[0]>>32]
		if name := opNames[words[0]&0xffff-1]; name == "Recv_init" {
			got = append(got, fmt.Sprint(name, args[2:4], " slot ", args[6]))
		} else {
			got = append(got, fmt.Sprint(name, args))
		}
	}
	want := []string{"Recv_init[1 20] slot 0", "Recv_init[1 21] slot 1", "Recv_init[2 21] slot 2", "Recv_init[0 32767] slot 3",
		"Startall[3 0 1 3]", "Testsome[3 0 1 3]", "Startall[3 0 2 3]", "Testsome[3 0 2 3]",
		"Request_free[0]", "Request_free[1]", "Request_free[2]", "Request_free[3]", "Finalize[]"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if note := "Persistent wildcard receives, made again for each further source and tag of their messages: 1"; !slices.Contains(s.Notes, note) {
		t.Errorf("notes %q", s.Notes)
	}
}

// TestPlayedRepetitionsComputeUnevenly makes a window of 4 repetitions of two rows on 2 ranks. The second and the last,
// which took 12 and 48 us, provide the compute times. All four took 120 us, 30 us in the mean, so the times of the
// second are scaled by 30/12, those of the last by 30/48.
func TestPlayedRepetitionsComputeUnevenly(t *testing.T) {
	// by repetition, rank and row
	us := [4][2][2]int64{{{9, 5}, {7, 3}}, {{1, 5}, {4, 2}}, {{8, 9}, {10, 9}}, {{16, 8}, {4, 20}}}
	var rows []schema.Event
	for k := range us {
		for rank := range int32(2) {
			for i, x := range us[k][rank] {
				rows = append(rows, row(rank, int64(2*k+i), schema.CallBarrier, func(e *schema.Event) {
					e.ComputeNs, e.Instance = 1000*x, int64(2*k+i)
				}))
			}
		}
	}
	s, err := New(source(2, rows), &Options{Windows: []Window{{First: []int64{0, 0}, Rows: []int64{2, 2}, Times: 4,
		Nth: 2}}, Repeat: 2})
	if err != nil {
		t.Fatal(err)
	}
	// variants, operations: two barriers and the end, which has no compute time left
	want := [2][]int64{{2, 3, 2500, 12500, 0, 10000, 5000, 0}, {2, 3, 10000, 5000, 0, 2500, 12500, 0}}
	for r := range want {
		w := s.ranks[r].words
		if opcode(w[0]&0xffff) != opcodes["Phase"] {
			t.Fatalf("rank %d begins with operation %d", r, w[0]&0xffff)
		}
		if got := w[3 : 3+w[0]>>32]; !slices.Equal(got, want[r]) {
			t.Errorf("rank %d: got %v want %v", r, got, want[r])
		}
	}
}

// FuzzNew makes schedules of arbitrary rows: whatever they hold, the arguments of all operations stay within the rank's
// areas and lists.
func FuzzNew(f *testing.F) {
	for call := range schema.Calls {
		seed := binary.LittleEndian.AppendUint16(nil, uint16(call))
		seed = append(seed, 0, 1, 9, 8, 0, 1, 0)
		f.Add(append(seed, seed...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var rows []schema.Event
		seqs := [3]int64{}
		for ; len(data) >= 9; data = data[9:] {
			rank := int32(data[2] % 3)
			call := schema.CallID(binary.LittleEndian.Uint16(data) % uint16(len(schema.Calls)))
			e := row(rank, seqs[rank], call, nil)
			seqs[rank]++
			e.SendPeer, e.SendWorld, e.SendTag = int32(data[3]%4), int32(data[3]%4), int32(data[4])
			e.RecvPeer, e.RecvWorld, e.RecvTag = e.SendPeer, e.SendWorld, e.SendTag
			e.SendCount, e.RecvCount = int64(data[5])<<(data[6]%56), int64(data[5])
			e.SendBytes, e.RecvBytes = 8*e.SendCount, 8*e.RecvCount
			e.SendDatatype, e.RecvDatatype = int32(data[6]%3), int32(data[7]%3)
			e.Request, e.DoneSeq, e.InitSeq = int64(data[7]), e.Seq+int64(data[8]%5), int64(data[8]%7)
			e.Instance, e.RootWorld, e.ReduceOp = int64(data[7]%4), int32(data[8]%4), int16(data[7]%20)-1
			rows = append(rows, e)
		}
		src := source(3, rows)
		c := schema.NullComm
		c.Comm, c.WorldRank, c.Parent, c.Kind, c.CartDims = 1, 1, 0, int16(schema.CommCart), "1,0"
		src.Comms = append(src.Comms, c)
		s, err := New(src, &Options{Skip: []string{SkipRMA, SkipIO, SkipSpawn}})
		if err != nil {
			return
		}
		for r := range s.ranks {
			checkWords(t, s, &s.ranks[r])
		}
	})
}

// checkWords checks the arguments of a rank's operations.
func checkWords(t *testing.T, s *Schedule, r *rankSchedule) {
	t.Helper()
	words := r.words
	for len(words) > 0 {
		op, n := opcode(words[0]&0xffff), words[0]>>32
		if op < 1 || int(op) > len(opNames) || n < 0 || int64(len(words)) < 3+n {
			t.Fatalf("operation %d of %d words, %d are left", op, n, len(words))
		}
		args := words[3 : 3+n]
		within := func(i int, end int64) {
			if args[i] < 0 || args[i] >= end {
				t.Fatalf("%s: argument %d is %d of %d", opNames[op-1], i, args[i], end)
			}
		}
		switch opNames[op-1] {
		case "Send", "Ssend", "Recv":
			within(1, int64(len(s.types)))
			within(4, int64(s.comms))
		case "Irecv":
			within(6, r.requests)
			within(5, r.recvArea)
			if span := args[0] * s.types[args[1]].extent; args[5]+span > r.recvArea {
				t.Fatalf("a receive of %d bytes at %d of %d", span, args[5], r.recvArea)
			}
		case "Collective":
			within(2, int64(s.comms))
			within(5, int64(len(s.types)))
			within(7, int64(len(s.types)))
			within(8, int64(len(schema.OpNames)))
		case "Wait", "Waitall", "Testsome":
			for i := range args[0] {
				within(int(i)+1, r.requests)
			}
		}
		words = words[3+n:]
	}
}

// FuzzReadTimes reads the times of a player: errors, or durations that are not negative.
func FuzzReadTimes(f *testing.F) {
	good := []int64{5, 90, 10, 20, 30, 7, 95, 11, 21, 31}
	text := make([]byte, 8*len(good))
	for i, x := range good {
		binary.LittleEndian.PutUint64(text[8*i:], uint64(x))
	}
	f.Add(text)
	f.Add(text[:len(text)-1])
	f.Add(slices.Concat(text[40:], text[:40]))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Schedule{Ranks: 2, phases: 1, repeat: 2}
		times, err := s.ReadTimes(bytes.NewReader(data))
		if err != nil {
			return
		}
		if times.Duration() < 0 {
			t.Errorf("duration %d", times.Duration())
		}
		for _, ns := range times.Repetitions(0) {
			if ns < 0 {
				t.Errorf("a repetition of %v ns", ns)
			}
		}
	})
}

// Times that run backwards are those of no player.
func TestTimesRunForwards(t *testing.T) {
	s := &Schedule{Ranks: 1, phases: 1, repeat: 1}
	for _, words := range [][]int64{{9, 8, 1, 2}, {1, 9, 3, 2}, {math.MinInt64, math.MaxInt64, 1, 2}} {
		var b bytes.Buffer
		if err := binary.Write(&b, binary.LittleEndian, words); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadTimes(&b); err == nil || !strings.Contains(err.Error(), "times of rank 0 run backwards") {
			t.Errorf("%v: %v", words, err)
		}
	}
}
