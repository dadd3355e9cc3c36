package derive

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// activityAt is a cell of the table activity.
type activityAt struct {
	rankPower, stepPower int32
	start                int64
	rank                 int32
	class                int16
}

// activityCall has what activity reads of a call.
func activityCall(rank int32, class schema.Class, start, end int64) schema.Event {
	e := schema.NullEvent
	e.Rank, e.Class, e.StartNs, e.EndNs = rank, int16(class), start, end
	return e
}

// groupMembers is the number of ranks of communicator 7, from rank 0 on.
const groupMembers = 4

// randomActivity returns calls and messages on so many ranks, one in a thousand of which lasts long; the last call of
// rank 3 never returned. The members of communicator 7 enter operations at any time, some at once; one member is never
// in the last one.
func randomActivity(ranks int32, calls int, seed uint64) (*schema.Events, *schema.Messages) {
	r := rand.New(rand.NewPCG(seed, 7))
	events, messages, last := &schema.Events{}, &schema.Messages{}, make([]int64, ranks)
	for range calls {
		rank := r.Int32N(ranks)
		start := last[rank] + r.Int64N(4000)
		end := start + r.Int64N(1500)
		if r.IntN(1000) == 0 {
			end = start + r.Int64N(3_000_000)
		}
		last[rank] = end
		e := activityCall(rank, schema.Class(r.IntN(5)), start, end)
		events.Append(&e)
		if e.Class == int16(schema.ClassSend) {
			m := schema.NullMessage
			m.Src, m.SendStartNs, m.Bytes = rank, start, r.Int64N(5000)
			messages.Append(&m)
		}
	}
	for instance := range int64(calls / 100) {
		at := r.Int64N(last[0])
		for rank := range int32(groupMembers) {
			if rank == 2 && instance == int64(calls/100)-1 {
				continue
			}
			start := at + r.Int64N(3)*r.Int64N(90_000) // one in three at once
			e := activityCall(rank, schema.ClassCollective, start, start+r.Int64N(9000))
			e.Comm, e.Instance = 7, instance
			if r.IntN(3) > 0 {
				e.SendBytes = r.Int64N(5000)
			}
			if r.IntN(50) == 0 {
				e.ErrorClass, e.Instance = 3, schema.NullInt64
			}
			events.Append(&e)
		}
	}
	e := activityCall(3, schema.ClassRecv, last[3]+5, schema.NullInt64)
	events.Append(&e)
	return events, messages
}

// slowActivity adds up the calls and messages in each cell of a resolution.
func slowActivity(e *schema.Events, m *schema.Messages, rankPower, stepPower int32, want map[activityAt]schema.ActivityCell) {
	last := int64(0)
	for i := range e.StartNs {
		last = max(last, e.StartNs[i], e.EndNs[i])
	}
	step := int64(1) << stepPower
	add := func(rank int32, class int16, at, calls, ns, bytes int64) {
		k := activityAt{rankPower, stepPower, at / step * step, rank >> rankPower << rankPower, class}
		c := want[k]
		c.RankPower, c.StepPower, c.StartNs, c.Rank, c.Class = k.rankPower, k.stepPower, k.start, k.rank, k.class
		c.Calls, c.TimeNs, c.Bytes = c.Calls+calls, c.TimeNs+ns, c.Bytes+bytes
		want[k] = c
	}
	for i, start := range e.StartNs {
		end := e.EndNs[i]
		if end == schema.NullInt64 {
			end = last
		}
		add(e.Rank[i], e.Class[i], start, 1, 0, 0)
		for at := start; at < end; {
			next := min(end, (at/step+1)*step)
			add(e.Rank[i], e.Class[i], at, 0, next-at, 0)
			at = next
		}
	}
	for i, start := range m.SendStartNs {
		add(m.Src[i], schema.ActivitySent, start, 1, 0, m.Bytes[i])
	}
	bytes, first := map[int64]int64{}, map[int64]int{} // by instance; rows of an instance are in the order of ranks
	for i, instance := range e.Instance {
		if instance == schema.NullInt64 {
			continue
		}
		bytes[instance] += max(e.SendBytes[i], 0)
		if at, ok := first[instance]; !ok || e.StartNs[i] < e.StartNs[at] {
			first[instance] = i
		}
	}
	for instance, i := range first {
		add(e.Rank[i], schema.ActivityOperations, e.StartNs[i], 1, 0, bytes[instance])
	}
}

// Operations that a member never enters stay open. Too many of them are given up, and nothing else is.
func TestOperationsOfALostRank(t *testing.T) {
	for mostOpen, want := range map[int]map[int16]int64{
		8: {int16(schema.ClassCollective): 36, schema.ActivitySent: 1, schema.ActivityOperations: 12},
		7: {int16(schema.ClassCollective): 36, schema.ActivitySent: 1},
	} {
		s := NewActivitySums(groupMembers)
		s.least, s.cellCalls, s.mostOpen = 1, 1, mostOpen
		comms, e, m := &schema.Comms{}, &schema.Events{}, &schema.Messages{}
		for rank := range int32(groupMembers) {
			comms.Append(&schema.Comm{Comm: 7, WorldRank: rank, CommRank: rank})
		}
		for instance := range int64(12) {
			for rank := range int32(groupMembers) {
				if rank == 2 && instance >= 4 || rank == 3 && instance >= 8 {
					continue
				}
				call := activityCall(rank, schema.ClassCollective, instance*1000, instance*1000+10)
				call.Comm, call.Instance = 7, instance
				e.Append(&call)
			}
		}
		sent := schema.NullMessage
		sent.Src, sent.SendStartNs, sent.Bytes = 1, 500, 9
		m.Append(&sent)
		s.AddComms(comms)
		s.AddEvents(e)
		s.AddMessages(m)
		got := map[int16]int64{}
		if err := s.Rows(func(b *schema.ActivityCells) error {
			for i := range b.Len() {
				if b.RankPower[i] == 0 && b.StepPower[i] == b.StepPower[0] {
					got[b.Class[i]] += b.Calls[i]
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("at most %d open (-want +got):\n%s", mostOpen, d)
		}
	}
}

// TestActivityAgainstTheSlowWay compares each resolution with sums over calls, whatever order and batches they come in.
func TestActivityAgainstTheSlowWay(t *testing.T) {
	for _, c := range []struct {
		ranks            int32
		calls, cellCalls int
		resolutions      []string // rank_power and step_power
	}{
		// 40,001 calls are 312 cells, 62 for each of 5 ranks: of 34 ms they are 33 steps of 2^20 ns.
		{5, 40000, 128, []string{"0 20"}},
		// 3750 cells, 937 for each of 4 ranks: of 30 ms they are 916 steps of 2^15 ns, and these are more than 256.
		{4, 30000, 8, []string{"0 15", "0 17"}},
		// 312 cells are less than a step of 700 ranks and 3 of 88 blocks, which is too few; of 11 blocks they are 28,
		// of up to 3.6 ms.
		{700, 40000, 128, []string{"6 17"}},
		// 10,000 cells are 142 steps of 70 ranks: half of them are for ranks, 71 steps, and half for blocks, 555,
		// of 9.4 to 18 ms.
		{70, 80000, 8, []string{"0 18", "3 15", "3 17"}},
	} {
		e, m := randomActivity(c.ranks, c.calls, uint64(c.ranks))
		s := NewActivitySums(int(c.ranks))
		s.least, s.cellCalls = 1, int64(c.cellCalls)
		s.mostOpen = c.calls / 500 // a fifth of the operations; calls with an error leave a twelfth open
		comms := &schema.Comms{}
		for rank := range int32(groupMembers) {
			comms.Append(&schema.Comm{Comm: 7, WorldRank: rank, CommRank: rank})
		}
		s.AddComms(comms)
		for at := e.Len(); at > 0; at -= min(at, 7001) { // backwards, in batches
			s.AddEvents(e.Slice(max(0, at-7001), at))
		}
		s.AddMessages(m)
		got, order, resolutions := map[activityAt]schema.ActivityCell{}, "", []string(nil)
		err := s.Rows(func(b *schema.ActivityCells) error {
			for i := range b.Len() {
				var row schema.ActivityCell
				b.Row(i, &row)
				key := fmt.Sprintf("%3d %3d %20d %9d %3d", row.RankPower, row.StepPower, row.StartNs, row.Rank, row.Nth)
				if key <= order {
					t.Fatalf("%d ranks: row %q follows %q", c.ranks, key, order)
				}
				order = key
				if r := fmt.Sprint(row.RankPower, row.StepPower); len(resolutions) == 0 || resolutions[len(resolutions)-1] != r {
					resolutions = append(resolutions, r)
				}
				row.Nth = 0 // has been looked at
				got[activityAt{row.RankPower, row.StepPower, row.StartNs, row.Rank, row.Class}] = row
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.resolutions, resolutions); d != "" {
			t.Errorf("%d ranks: resolutions (-want +got):\n%s", c.ranks, d)
		}
		want := map[activityAt]schema.ActivityCell{}
		for _, r := range resolutions {
			var rankPower, stepPower int32
			fmt.Sscan(r, &rankPower, &stepPower)
			slowActivity(e, m, rankPower, stepPower, want)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d ranks, %d calls (-want +got):\n%.2000s", c.ranks, c.calls, d)
		}
	}
}

// TestActivityOfFewCalls has no rows, as rows of events are then read in no time; nor has a run with very many calls
// that never returned.
func TestActivityOfFewCalls(t *testing.T) {
	for _, c := range []struct {
		calls int
		end   int64
		want  bool
	}{{ActivityCalls - 1, 4, false}, {ActivityCalls, 4, true}, {ActivityCalls, schema.NullInt64, false}} {
		s, e := NewActivitySums(3), &schema.Events{}
		for i := range c.calls {
			row := activityCall(2, schema.ClassSend, int64(i)*3, c.end)
			e.Append(&row)
		}
		s.AddEvents(e)
		some := false
		err := s.Rows(func(*schema.ActivityCells) error { some = true; return nil })
		if err != nil || some != c.want {
			t.Errorf("%d calls that end at %d: %t, %v; want %t", c.calls, c.end, some, err, c.want)
		}
	}
}

// TestActivityOfManyRanks has no memory for each rank where there are too many for sums of each.
func TestActivityOfManyRanks(t *testing.T) {
	for ranks, want := range map[int][]int{64: {64}, 65: {65, 9}, 4096: {4096, 512, 64}, 8192: {1024, 128, 16}, 1 << 20: {2048, 256, 32}} {
		var blocks []int
		for _, g := range NewActivitySums(ranks).grids {
			blocks = append(blocks, g.n)
		}
		if d := cmp.Diff(want, blocks); d != "" {
			t.Errorf("%d ranks (-want +got):\n%s", ranks, d)
		}
	}
}
