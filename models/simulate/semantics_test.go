package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// call is a row of a rank; its seq is its index.
type call struct {
	id      schema.CallID
	compute int64
	set     func(*schema.Event)
}

func rowsOf(threads []int32, comms []run.Comm, ranks ...[]call) (*Program, []schema.Event) {
	p := &Program{Threads: threads, Comms: comms}
	var rows []schema.Event
	for rank, calls := range ranks {
		if threads == nil {
			p.Threads = append(p.Threads, 1)
		}
		for seq, c := range calls {
			e := schema.NullEvent
			e.Rank, e.Seq, e.Call, e.Class, e.ComputeNs = int32(rank), int64(seq), int16(c.id),
				int16(schema.Calls[c.id].Class), c.compute
			if c.set != nil {
				c.set(&e)
			}
			rows = append(rows, e)
		}
	}
	return p, rows
}

// ungrouped returns the windows made by the first rows of ranks that lack a group.
func ungrouped(rows []schema.Event) map[run.WindowKey]bool {
	windows, lack := map[int32]run.WindowKey{}, map[run.WindowKey]bool{}
	for _, e := range rows {
		call := schema.CallID(e.Call)
		if call.Is(schema.FactCreatesWindow) && e.Seq == 0 {
			windows[e.Rank] = run.WindowKey{Comm: e.Comm, Instance: e.Instance}
		}
		if call.IsAny(schema.FactExposes|schema.FactAccesses) && e.Label == schema.NullText {
			lack[windows[e.Rank]] = true
		}
	}
	return lack
}

// Functions that set columns of a row.
func to(peer int32, bytes int64) func(*schema.Event) {
	return func(e *schema.Event) { e.Comm, e.SendWorld, e.SendTag, e.SendBytes = 1, peer, 9, bytes }
}

func from(peer int32, bytes int64) func(*schema.Event) {
	return func(e *schema.Event) { e.Comm, e.RecvWorld, e.RecvTag, e.RecvBytes = 1, peer, 9, bytes }
}

func on(comm int32, instance, sent, received int64) func(*schema.Event) {
	return func(e *schema.Event) { e.Comm, e.Instance, e.SendBytes, e.RecvBytes = comm, instance, sent, received }
}

func done(seq int64) func(*schema.Event) { return func(e *schema.Event) { e.DoneSeq = seq } }
func made(seq int64) func(*schema.Event) { return func(e *schema.Event) { e.InitSeq = seq } }
func madeOn(seq int64, comm int32) func(*schema.Event) {
	return func(e *schema.Event) { e.InitSeq, e.Comm = seq, comm }
}
func label(s string) func(*schema.Event) {
	return func(e *schema.Event) { e.Label = s }
}
func lockOf(target int32, label string) func(*schema.Event) {
	return func(e *schema.Event) { e.Comm, e.SendWorld, e.Label = 1, target, label }
}
func parts(r, n int64) func(*schema.Event) {
	return func(e *schema.Event) { e.Request, e.SendCount = r, n }
}
func class(c schema.Class) func(*schema.Event) {
	return func(e *schema.Event) { e.Class = int16(c) }
}
func onThread(n int32) func(*schema.Event) { return func(e *schema.Event) { e.Thread = n } }
func times(start, end int64) func(*schema.Event) {
	return func(e *schema.Event) { e.StartNs, e.EndNs = start, end }
}

func all(sets ...func(*schema.Event)) func(*schema.Event) {
	return func(e *schema.Event) {
		for _, set := range sets {
			set(e)
		}
	}
}

// bytesUnknown makes a row not tell what was received.
func bytesUnknown(e *schema.Event) { e.RecvBytes = schema.NullInt64 }

// plain returns a machine with L = 10 us and 1 ns per byte, a CPU for each rank and a Barrier of 2 P L (Table 3).
func plain(t *testing.T) *models.Machine {
	m, err := models.Named("flat")
	if err != nil {
		t.Fatal(err)
	}
	m.Network.Latency, m.Network.BytesPerSecond, m.Network.BytesPer = 10_000_000, 1_000_000_000, 1
	return m
}

// The time of each kind of call, by arithmetic: a message of 1000 bytes takes 10,000 + 1000 ns, and an operation of two
// ranks without a formula of its own 2 x 2 x 10,000 ns. All programs end in both dialects.
func TestSemantics(t *testing.T) {
	world := []run.Comm{{ID: 1, Members: []int32{0, 1}}}
	inter := []run.Comm{{ID: 1, Members: []int32{0, 1}}, {ID: 3, Members: []int32{0, 1}, Inter: true}}
	end := call{schema.CallFinalize, 0, nil}
	wait := call{schema.CallWait, 0, nil}
	send := call{schema.CallSend, 100, to(1, 1000)}
	recv := []call{{schema.CallRecv, 0, from(0, 1000)}, end}
	onTwoRanks := func(id schema.CallID, set func(*schema.Event)) [][]call {
		return [][]call{{{id, 0, set}, end}, {{id, 5, set}, end}}
	}
	window := call{schema.CallWinCreate, 0, on(1, 0, 0, 0)}
	for _, c := range []struct {
		name      string
		comms     []run.Comm
		threads   []int32
		ranks     [][]call
		finish    []int64 // paper, ns
		fallbacks int64
	}{
		{"persistent", world, nil, [][]call{
			{{schema.CallSendInit, 0, nil}, {schema.CallStart, 100,
				all(class(schema.ClassSend), made(0), done(2), to(1, 1000))}, wait, end},
			{{schema.CallRecvInit, 0, nil}, {schema.CallStartall, 0,
				all(class(schema.ClassRecv), made(0), done(2), from(0, 1000))}, wait, end},
		}, []int64{100, 11_100}, 0},
		{"persistent, synchronous, to a receive at 700 ns", world, nil, [][]call{
			{{schema.CallSsendInit, 0, nil}, {schema.CallStart, 100,
				all(class(schema.ClassSend), made(0), done(2), to(1, 1000))}, wait, end},
			{{schema.CallRecv, 700, from(0, 1000)}, end},
		}, []int64{11_700, 11_700}, 0},
		{"partitioned: sent when the last partition is ready", world, nil, [][]call{
			{{schema.CallPsendInit, 0, nil}, {schema.CallStart, 0,
				all(class(schema.ClassSend), made(0), done(4), to(1, 1000), parts(5, 2))},
				{schema.CallPready, 100, parts(5, 1)}, {schema.CallPready, 300, parts(5, 1)}, wait, end},
			{{schema.CallPrecvInit, 0, nil}, {schema.CallStart, 0,
				all(class(schema.ClassRecv), made(0), done(2), from(0, 1000))}, wait, end},
		}, []int64{400, 11_400}, 0},
		{"sendrecv_replace", world, nil, [][]call{
			{{schema.CallSendrecvReplace, 100, all(to(1, 1000), from(1, 500))}, end},
			{{schema.CallSendrecvReplace, 0, all(to(0, 500), from(0, 1000))}, end},
		}, []int64{10_500, 11_100}, 0},
		{"isendrecv", world, nil, [][]call{
			{{schema.CallIsendrecv, 100, all(to(1, 1000), from(1, 500), done(1))}, wait, end},
			{{schema.CallIsendrecv, 0, all(to(0, 500), from(0, 1000), done(1))}, wait, end},
		}, []int64{10_500, 11_100}, 0},
		{"MPICH 4.0 does not tell what arrived: isendrecv", world, nil, [][]call{
			{{schema.CallIsendrecv, 100, all(to(1, 1000), from(1, 500), bytesUnknown, done(1))}, wait, end},
			{{schema.CallIsendrecv, 0, all(to(0, 500), from(0, 1000), bytesUnknown, done(1))}, wait, end},
		}, []int64{10_500, 11_100}, 0},
		{"probe: the message is there after 11,100 ns", world, nil, [][]call{{send, end},
			{{schema.CallProbe, 0, from(0, 1000)}, {schema.CallRecv, 50, from(0, 1000)}, end}}, []int64{100, 11_150},
			0},
		{"probe after the message has arrived: it takes no time", world, nil, [][]call{{send, end},
			{{schema.CallProbe, 12_000, from(0, 1000)}, {schema.CallRecv, 50, from(0, 1000)}, end}},
			[]int64{100, 12_050}, 0},
		{"successful iprobe", world, nil, [][]call{{send, end},
			{{schema.CallIprobe, 0, from(0, 1000)}, {schema.CallRecv, 50, from(0, 1000)}, end}}, []int64{100, 11_150},
			0},
		{"probe of a synchronous send: its announcement arrives after 10,100 ns", world, nil,
			[][]call{{{schema.CallSsend, 100, to(1, 1000)}, end},
				{{schema.CallProbe, 0, from(0, 1000)}, {schema.CallRecv, 50, from(0, 1000)}, end}},
			[]int64{21_150, 21_150}, 0},
		{"matched probe and receive", world, nil, [][]call{{send, end},
			{{schema.CallMprobe, 0, from(0, 1000)}, {schema.CallMrecv, 50, all(made(0), from(0, 1000))}, end}},
			[]int64{100, 11_150}, 0},
		{"matched probe, nonblocking receive", world, nil, [][]call{{send, end},
			{{schema.CallImprobe, 0, from(0, 1000)}, {schema.CallImrecv, 50, all(made(0), from(0, 1000), done(2))},
				wait, end}}, []int64{100, 11_150}, 0},
		{"a wildcard receive has the source that it matched", world, nil, [][]call{{send, end},
			{{schema.CallRecv, 0, all(from(0, 1000),
				func(e *schema.Event) { e.PostedAny = 3 })}, end}}, []int64{100, 11_100}, 0},
		{"MPI_PROC_NULL and cancelled", world, nil, [][]call{
			{{schema.CallSend, 100, func(e *schema.Event) { e.Comm, e.SendTag, e.SendBytes, e.ProcNull = 1, 9, 1000, 1 }}, end},
			{{schema.CallIrecv, 0, all(from(0, schema.NullInt64), done(2))}, {schema.CallCancel, 0, nil}, wait, end},
		}, []int64{100, 0}, 0},
		{"a collective that returned an error", world, nil, onTwoRanks(schema.CallBarrier,
			all(on(1, 0, 0, 0), func(e *schema.Event) { e.ErrorClass = 2 })), []int64{0, 5}, 0},
		{"tests that completed nothing", world, nil,
			[][]call{{{schema.CallTest, 30, nil}, end}, {{schema.CallTestany, 40, nil}, end}}, []int64{30, 40}, 0},
		{"put and fence", world, nil, [][]call{
			{window, {schema.CallPut, 0, all(made(0), to(1, 1000))},
				{schema.CallWinFence, 0, all(made(0), on(1, schema.NullInt64, 0, 0))}, end},
			{window, {schema.CallWinFence, 0, all(made(0), on(1, schema.NullInt64, 0, 0))}, end},
		}, []int64{91_000, 91_000}, 4},
		{"get, flushed: a latency there and a message back", world, nil, [][]call{
			{window, {schema.CallGet, 0, all(made(0), from(1, 1000))}, {schema.CallWinFlush, 0, made(0)}, end},
			{window, end},
		}, []int64{61_000, 40_000}, 2},
		{"accumulate, unlocked", world, nil, [][]call{
			{window, {schema.CallAccumulate, 0, all(made(0), to(1, 1000))}, {schema.CallWinUnlock, 0, made(0)}, end},
			{window, end},
		}, []int64{51_000, 40_000}, 2},
		// posted at 90,000, so started at 100,000, the 1000 bytes there at 111,000, and the target told 10,000 later
		{"put into a window that is posted late", world, nil, [][]call{
			{window, {schema.CallWinStart, 0, all(made(0), label("1"))}, {schema.CallPut, 0, all(made(0), to(1, 1000))},
				{schema.CallWinComplete, 0, made(0)}, end},
			{window, {schema.CallWinPost, 50_000, all(made(0), label("0"))}, {schema.CallWinWait, 0, made(0)}, end},
		}, []int64{111_000, 121_000}, 2},
		{"groups that are not known", world, nil, [][]call{
			{window, {schema.CallWinStart, 0, made(0)}, {schema.CallPut, 0, all(made(0), to(1, 1000))},
				{schema.CallWinComplete, 0, made(0)}, end},
			{window, {schema.CallWinPost, 50_000, made(0)}, {schema.CallWinWait, 0, made(0)}, end},
		}, []int64{51_000, 90_000}, 2},
		// rank 0's first start lacks its group: without Ungrouped rank 1 would wait for ever
		{"a group that is not known among others", world, nil, [][]call{
			{window, {schema.CallWinStart, 0, madeOn(0, 1)}, {schema.CallWinComplete, 0, madeOn(0, 1)},
				{schema.CallWinStart, 0, all(madeOn(0, 1), label("1"))}, {schema.CallWinComplete, 0, madeOn(0, 1)}, end},
			{window, {schema.CallWinPost, 50_000, all(madeOn(0, 1), label("0"))}, {schema.CallWinWait, 0, madeOn(0, 1)},
				{schema.CallWinPost, 0, all(madeOn(0, 1), label("0"))}, {schema.CallWinWait, 0, madeOn(0, 1)}, end},
		}, []int64{40_000, 90_000}, 2},
		// rank 1 asks 1,000 later for an exclusive lock on rank 0, which rank 0 holds for 30,000
		{"an exclusive lock that is held", world, nil, [][]call{
			{window, {schema.CallWinLock, 0, all(made(0), lockOf(0, schema.LabelExclusive))},
				{schema.CallWinUnlock, 30_000, all(made(0), lockOf(0, schema.NullText))}, end},
			{window, {schema.CallWinLock, 1_000, all(made(0), lockOf(0, schema.LabelShared))},
				{schema.CallWinUnlock, 7_000, all(made(0), lockOf(0, schema.NullText))}, end},
		}, []int64{70_000, 77_000}, 2},
		{"shared locks, and locks on two targets", world, nil, [][]call{
			{window, {schema.CallWinLock, 0, all(made(0), lockOf(0, schema.LabelShared))},
				{schema.CallWinUnlock, 30_000, all(made(0), lockOf(0, schema.NullText))},
				{schema.CallWinLock, 0, all(made(0), lockOf(1, schema.LabelExclusive))},
				{schema.CallWinUnlock, 5_000, all(made(0), lockOf(1, schema.NullText))}, end},
			{window, {schema.CallWinLock, 1_000, all(made(0), lockOf(0, schema.LabelShared))},
				{schema.CallWinUnlock, 34_000, all(made(0), lockOf(0, schema.NullText))}, end},
		}, []int64{75_000, 75_000}, 2},
		{"put with a request", world, nil, [][]call{
			{window, {schema.CallRput, 0, all(made(0), to(1, 1000), done(2))}, wait, end}, {window, end},
		}, []int64{51_000, 40_000}, 2},
		{"nonblocking, hidden by computing", world, nil, [][]call{
			{{schema.CallIbarrier, 0, all(on(1, 0, 0, 0), done(1))}, {schema.CallWait, 50_000, nil}, end},
			{{schema.CallIbarrier, 0, all(on(1, 0, 0, 0), done(1))}, wait, end},
		}, []int64{50_000, 40_000}, 0},
		{"a start of an unknown request", world, nil, onTwoRanks(schema.CallStart, nil), []int64{0, 5}, 0},
		{"persistent barrier", world, nil, [][]call{
			{{schema.CallBarrierInit, 0, on(1, 0, 0, 0)},
				{schema.CallStart, 0, all(class(schema.ClassCollective), made(0), on(1, 1<<32, 0, 0), done(2))}, wait,
				end},
			{{schema.CallBarrierInit, 0, on(1, 0, 0, 0)},
				{schema.CallStart, 7, all(class(schema.ClassCollective), made(0), on(1, 1<<32, 0, 0), done(2))}, wait,
				end},
		}, []int64{40_007, 40_007}, 0},
		{"neighbourhood", world, nil, onTwoRanks(schema.CallNeighborAlltoallv, on(1, 0, 1000, 300)),
			[]int64{11_005, 11_005}, 2},
		{"v-variant: 10,000 + (1000 + 300)/2, twice log2 2", world, nil,
			onTwoRanks(schema.CallAllgatherv, on(1, 0, 1000, 300)), []int64{21_305, 21_305}, 0},
		{"w-variant", world, nil, onTwoRanks(schema.CallAlltoallw, on(1, 0, 1000, 300)), []int64{21_655, 21_655}, 2},
		{"intercommunicator", inter, nil, onTwoRanks(schema.CallBarrier, on(3, 0, 0, 0)), []int64{40_005, 40_005}, 2},
		{"constructor of a communicator", world, nil, onTwoRanks(schema.CallCommSplit, on(1, 0, 0, 0)),
			[]int64{40_005, 40_005}, 2},
		{"spawn", world, nil, onTwoRanks(schema.CallCommSpawn, on(1, 0, 0, 0)), []int64{40_005, 40_005}, 2},
		{"accept", world, nil, onTwoRanks(schema.CallCommAccept, on(1, 0, 0, 0)), []int64{40_005, 40_005}, 2},
		{"I/O takes as long as in the run", world, nil,
			[][]call{{{schema.CallFileWrite, 100, times(1000, 1500)}, end}, {end}},
			[]int64{600, 0}, 0},
		{"so does waiting for I/O", world, nil, [][]call{
			{{schema.CallFileIwrite, 100, all(times(1000, 1010), done(1))},
				{schema.CallWait, 50, times(1060, 3060)}, end},
			{end}}, []int64{2160, 0}, 0},
		{"but not waiting for I/O and a message", world, nil, [][]call{
			{{schema.CallFileIwrite, 100, all(times(1000, 1010), done(2))},
				{schema.CallIsend, 0, all(times(1010, 1010), to(1, 1000), done(2))},
				{schema.CallWaitall, 50, times(1060, 3060)}, end},
			recv}, []int64{160, 11_110}, 0},
		{"two threads of a rank share its CPU", world, []int32{2, 1}, [][]call{
			{{schema.CallSend, 100, to(1, 1000)}, {schema.CallCommSetName, 100, onThread(1)},
				{schema.CallFinalize, 0, nil}}, recv,
		}, []int64{200, 11_100}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, rows := rowsOf(c.threads, c.comms, c.ranks...)
			p.Ungrouped = ungrouped(rows)
			r, err := simulated(plain(t), p, Paper, rows)
			if err != nil {
				t.Fatal(err)
			}
			for rank, want := range c.finish {
				if got := r.Ranks[rank].Finish; got != Picoseconds(want*1000) {
					t.Errorf("rank %d ends after %d ps; want %d ns", rank, got, want)
				}
			}
			if got := r.FallbackCollectives + r.ObjectOperations; 2*got != c.fallbacks {
				t.Errorf("%d operations by a fallback; want those of %d calls", got, c.fallbacks)
			}
			if _, err := simulated(plain(t), p, Dimemas5, rows); err != nil {
				t.Errorf("dimemas5: %v", err)
			}
		})
	}
}

// A CPU ten times as fast computes in a tenth of the time; files take as long as in the run, and are no computing.
func TestFilesOnFasterCPUs(t *testing.T) {
	p, rows := rowsOf(nil, []run.Comm{{ID: 1, Members: []int32{0}}}, []call{
		{schema.CallFileWrite, 100, func(e *schema.Event) { e.StartNs, e.EndNs = 1000, 1500 }},
		{schema.CallFinalize, 200, nil}})
	m := plain(t)
	m.CPURatio = 10
	r, err := simulated(m, p, Paper, rows)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Ranks[0]; got.Finish != 530_000 || got.Compute != 30_000 || got.IO != 500_000 {
		t.Errorf("ends after %d ps, of which %d compute and %d are I/O", got.Finish, got.Compute, got.IO)
	}
}

// Errors name the ranks that cannot go on, their calls, call sites, partners and tags.
func TestErrorsNameCalls(t *testing.T) {
	world := []run.Comm{{ID: 1, Members: []int32{0, 1, 2}}}
	end := call{schema.CallFinalize, 0, nil}
	at := func(site int32) func(*schema.Event) { return func(e *schema.Event) { e.Callsite = site } }
	barrier := call{schema.CallBarrier, 0, all(on(1, 0, 0, 0), at(4))}
	root := func(r int32) func(*schema.Event) { return func(e *schema.Event) { e.RootWorld = r } }
	for _, c := range []struct {
		name  string
		ranks [][]call
		words []string
	}{
		{"a receive", [][]call{{{schema.CallRecv, 0, all(from(2, 8), at(4))}, end}, {end}, {end}},
			[]string{"deadlock: 1 of 3 ranks wait for ever",
				"rank 0, seq 0: MPI_Recv at f.c:4 from rank 2, tag 9, communicator 1"}},
		{"a synchronous send", [][]call{{{schema.CallSsend, 0, all(to(2, 77), at(4))}, end}, {end}, {end}},
			[]string{"rank 0, seq 0: MPI_Ssend at f.c:4 to rank 2, tag 9, 77 bytes, communicator 1, waits for its receive"}},
		{"a wait", [][]call{{{schema.CallIrecv, 0, all(from(2, 8), done(1), at(4))}, {schema.CallWaitall, 0, at(5)},
			end}, {end}, {end}},
			[]string{"rank 0, seq 1: MPI_Waitall at f.c:5 waits for MPI_Irecv at f.c:4 (seq 0) from rank 2"}},
		{"a collective", [][]call{{barrier, end}, {barrier, end}, {end}},
			[]string{"deadlock: 2 of 3 ranks",
				"rank 1, seq 0: MPI_Barrier at f.c:4 on communicator 1 (operation 0): 2 of its 3 ranks have entered it, all but 2"}},
		{"other operations", [][]call{{barrier, end}, {{schema.CallAllreduce, 0, all(on(1, 0, 8, 8), at(6))}, end},
			{barrier, end}},
			[]string{"mismatched collectives: operation 0 on communicator 1: rank 0 calls MPI_Barrier at f.c:4, rank 1 calls MPI_Allreduce at f.c:6"}},
		{"other roots", [][]call{{{schema.CallBcast, 0, all(on(1, 0, 8, 0), root(0))}, end},
			{{schema.CallBcast, 0, all(on(1, 0, 0, 8), root(1))}, end}, {end}},
			[]string{"mismatched collectives", "their roots are ranks 0 and 1"}},
		{"a send that nobody receives", [][]call{{{schema.CallSend, 0, all(to(2, 77), at(4))}, end}, {end}, {end}},
			[]string{"messages without a partner: sends without a receive, 1:",
				"rank 0, seq 0: MPI_Send at f.c:4 to rank 2, tag 9, 77 bytes, communicator 1"}},
		{"a receive that gets nothing", [][]call{{{schema.CallIrecv, 0, all(from(2, 8), at(4))}, end}, {end}, {end}},
			[]string{"receives without a send, 1:",
				"rank 0, seq 0: MPI_Irecv at f.c:4 from rank 2, tag 9, communicator 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, rows := rowsOf(nil, world, c.ranks...)
			p.Callsite = func(id int32) string { return fmt.Sprintf("f.c:%d", id) }
			_, err := simulated(plain(t), p, Paper, rows)
			for _, w := range c.words {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%v\nwithout %q", err, w)
				}
			}
			if _, err := simulated(plain(t), p, Dimemas5, rows); err == nil {
				t.Error("dimemas5 finds nothing")
			}
		})
	}
}

// Only the links of one direction are limited. Three ranks each send 1000 bytes to rank 0, or receive as many from
// it. Through one link the messages go one after the other, 1000 ns each after the latency of 10 us; through
// unlimited links they go at the same time.
func TestLinksLimitedInOneDirection(t *testing.T) {
	comms := []run.Comm{{ID: 1, Members: []int32{0, 1, 2, 3}}}
	end := call{schema.CallFinalize, 0, nil}
	sends, receives := []call{}, []call{}
	for peer := int32(1); peer < 4; peer++ {
		sends = append(sends, call{schema.CallSend, 0, to(peer, 1000)})
		receives = append(receives, call{schema.CallRecv, 0, from(peer, 1000)})
	}
	receiver, sender := []call{{schema.CallRecv, 0, from(0, 1000)}, end}, []call{{schema.CallSend, 0, to(0, 1000)}, end}
	for _, c := range []struct {
		name     string
		in, out  int
		ranks    [][]call
		finishNs int64
	}{
		{"out bounded, one sends", 0, 1, [][]call{append(sends, end), receiver, receiver, receiver}, 13_000},
		{"in bounded, one sends", 1, 0, [][]call{append(sends, end), receiver, receiver, receiver}, 11_000},
		{"in bounded, one receives", 1, 0, [][]call{append(receives, end), sender, sender, sender}, 13_000},
		{"out bounded, one receives", 0, 1, [][]call{append(receives, end), sender, sender, sender}, 11_000},
	} {
		for _, nodes := range []int{4, 1} {
			p, rows := rowsOf(nil, comms, c.ranks...)
			m := plain(t)
			m.Nodes, m.CPUsPerNode = nodes, 4/nodes
			m.Network.InputLinks, m.Network.OutputLinks = c.in, c.out
			m.IntraNode = m.Network
			r, err := simulated(m, p, Paper, rows)
			if err != nil {
				t.Errorf("%s, %d nodes: %v", c.name, nodes, err)
			} else if got := int64(r.Time / 1000); got != c.finishNs {
				t.Errorf("%s, %d nodes: %d ns, want %d", c.name, nodes, got, c.finishNs)
			}
		}
	}
}
