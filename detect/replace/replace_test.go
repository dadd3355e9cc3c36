package replace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// The programs of these tests have a line per rank, with calls separated by blanks: s3 sends to rank 3, r3 receives
// from it, i3 and j3 do so without waiting, w2 waits for the requests of the two i and j calls before it, x3,4 sends
// to 3 and receives from 4, p3 probes for a message from 3, b is a barrier. The number after a colon is the payload,
// whose size is 10 bytes times its number; the default is payload 1. Rows compute 1, 10, 100... ns, one after the
// other.

// parse makes the rows of a program, all of tag 9 on communicator 0; the n-th send to a rank is received by its n-th
// receive from there.
func parse(t *testing.T, lines ...string) (*schema.Events, *schema.Messages) {
	t.Helper()
	type end struct {
		rank int32
		seq  int64
		pay  int64
	}
	type pair struct{ src, dst int32 }
	events, messages := &schema.Events{}, &schema.Messages{}
	sends, posts := map[pair][]end{}, map[pair][]end{}
	var rows []schema.Event
	at := map[place]int{}
	for r, line := range lines {
		var open []int
		instance, compute := int64(0), int64(1)
		for seq, word := range strings.Fields(line) {
			e := schema.NullEvent
			rank, pay, peer, other := int32(r), int64(1), int32(0), int32(0)
			text, number, ok := strings.Cut(word, ":")
			if ok {
				fmt.Sscan(number, &pay)
			}
			fmt.Sscanf(text[1:], "%d,%d", &peer, &other)
			e.Rank, e.Seq, e.Comm, e.ComputeNs = rank, int64(seq), 0, compute
			compute *= 10
			call := map[byte]schema.CallID{'s': schema.CallSend, 'i': schema.CallIsend, 'r': schema.CallRecv,
				'j': schema.CallIrecv, 'x': schema.CallSendrecv,
				'w': schema.CallWaitall, 'p': schema.CallProbe, 'b': schema.CallBarrier}[word[0]]
			e.Call, e.Class = int16(call), int16(schema.Calls[call].Class)
			if strings.ContainsRune("six", rune(word[0])) {
				e.SendPeer, e.SendWorld, e.SendTag, e.SendBytes, e.ProcNull = peer, peer, 9, 10*pay, 0
				sends[pair{rank, peer}] = append(sends[pair{rank, peer}], end{rank, int64(seq), pay})
			}
			from := peer
			if word[0] == 'x' {
				from = other
			}
			if strings.ContainsRune("rjxp", rune(word[0])) {
				e.RecvPeer, e.RecvWorld, e.RecvTag, e.ProcNull, e.PostedAny = from, from, 9, 0, 0
			}
			if strings.ContainsRune("rjx", rune(word[0])) {
				posts[pair{from, rank}] = append(posts[pair{from, rank}], end{rank, int64(seq), pay})
			}
			switch word[0] {
			case 'i', 'j':
				open = append(open, len(rows))
			case 'w':
				for _, k := range open[:peer] {
					rows[k].DoneSeq = int64(seq)
				}
				open = open[peer:]
			case 'b':
				e.Instance, e.SendBytes, e.RecvBytes = instance, 0, 0
				instance++
			}
			at[place{rank, int64(seq)}] = len(rows)
			rows = append(rows, e)
		}
	}
	for src := range int32(len(lines)) {
		byRow := map[int64]schema.Message{}
		for dst := range int32(len(lines)) {
			out, in := sends[pair{src, dst}], posts[pair{src, dst}]
			if len(out) != len(in) {
				t.Fatalf("%d messages from %d to %d, %d receives", len(out), src, dst, len(in))
			}
			for k := range out {
				m := schema.NullMessage
				m.Src, m.Dst, m.Comm, m.Tag, m.Bytes, m.PayloadHash = src, dst, 0, 9, 10*out[k].pay, out[k].pay
				m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq, m.SendDatatype = out[k].seq, in[k].seq, in[k].seq, 5
				e := &rows[at[place{dst, in[k].seq}]]
				e.RecvBytes = m.Bytes
				if e.DoneSeq != schema.NullInt64 {
					m.RecvDoneSeq = e.DoneSeq
				}
				byRow[m.SendSeq] = m
			}
		}
		for seq := range int64(100) {
			if m, ok := byRow[seq]; ok {
				messages.Append(&m)
			}
		}
	}
	for i := range rows {
		events.Append(&rows[i])
	}
	return events, messages
}

// finding names messages by the ranks and rows of their sends: "0.2" is what rank 0 sends with seq 2. Instances are
// separated by bars.
func finding(t *testing.T, messages *schema.Messages, op schema.CallID, root int32, bytes int64, ranks []int32,
	text string) Finding {
	t.Helper()
	f := Finding{Operation: op, ReduceOp: schema.NullEnum, Comm: 0, Ranks: ranks}
	for _, one := range strings.Split(text, "|") {
		in := detect.Instance{Root: root, Bytes: bytes}
		for _, word := range strings.Fields(one) {
			var src int32
			var seq int64
			fmt.Sscanf(word, "%d.%d", &src, &seq)
			for i := range messages.Src {
				if messages.Src[i] == src && messages.SendSeq[i] == seq {
					in.Messages = append(in.Messages,
						detect.Message{Src: src, Dst: messages.Dst[i], SendSeq: seq, PostSeq: messages.RecvPostSeq[i],
							DoneSeq: messages.RecvDoneSeq[i]})
				}
			}
		}
		f.Instances = append(f.Instances, in)
	}
	return f
}

// read reads a program whose ranks are all in communicator 0.
func read(t *testing.T, ranks int, events *schema.Events, messages *schema.Messages, findings []Finding) *Run {
	t.Helper()
	world := run.Comm{}
	for r := range ranks {
		world.Members = append(world.Members, int32(r))
	}
	src := &Source{Threads: make([]int32, ranks), Comms: []run.Comm{world}, TypeBytes: map[int32]int64{5: 2},
		Events:   func(add func(*schema.Events) error) error { return add(events) },
		Messages: func(add func(*schema.Messages) error) error { return add(messages) }}
	run, err := Read(src, findings)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// replacedRows returns the rows of the new run.
func replacedRows(t *testing.T, ranks int, events *schema.Events, messages *schema.Messages,
	findings ...Finding) (out *schema.Events, plan *Plan) {
	t.Helper()
	run := read(t, ranks, events, messages, findings)
	var which []int
	for i := range findings {
		which = append(which, i)
	}
	plan, out = run.Plan(which), &schema.Events{}
	plan.Rewriter().Events(events, out)
	return out, plan
}

// replacedLines describes the new run in words: of each row the call, the peers or root, instance, bytes, burst, and
// which row completes it.
func replacedLines(t *testing.T, ranks int, events *schema.Events, messages *schema.Messages,
	findings ...Finding) (lines []string, plan *Plan) {
	t.Helper()
	out, plan := replacedRows(t, ranks, events, messages, findings...)
	null := func(x int64) string {
		if x == schema.NullInt64 {
			return "-"
		}
		return fmt.Sprint(x)
	}
	lines = make([]string, ranks)
	for i, rank := range out.Rank {
		s := strings.TrimPrefix(schema.CallID(out.Call[i]).String(), "MPI_")
		if out.SendPeer[i] != schema.NullInt32 {
			s += fmt.Sprintf(" to %d", out.SendPeer[i])
		}
		if out.RecvPeer[i] != schema.NullInt32 {
			s += fmt.Sprintf(" from %d", out.RecvPeer[i])
		}
		if out.Instance[i] != schema.NullInt64 {
			s += fmt.Sprintf(" #%d %s/%s", out.Instance[i], null(out.SendBytes[i]), null(out.RecvBytes[i]))
		}
		if out.DoneSeq[i] != schema.NullInt64 {
			s += fmt.Sprintf(" done %d", out.DoneSeq[i])
		}
		if lines[rank] != "" {
			lines[rank] += "; "
		}
		lines[rank] += fmt.Sprintf("%s +%d", s, out.ComputeNs[i])
	}
	return lines, plan
}

// TestPlacesOfCollectives has the cases of docs/method/replace.md.
func TestPlacesOfCollectives(t *testing.T) {
	three, four := []int32{0, 1, 2}, []int32{0, 1, 2, 3}
	for _, c := range []struct {
		name, messages string
		op             schema.CallID
		root           int32
		bytes          int64
		ranks          []int32
		lines, want    []string
		left           int
	}{
		{"linear broadcast between barriers", "0.1 0.2", schema.CallBcast, 0, 10, three,
			[]string{"b s1 s2 b", "b r0 b", "b r0 b"},
			[]string{"Barrier #0 0/0 +1; Bcast #1 10/0 +10; Barrier #2 0/0 +1100",
				"Barrier #0 0/0 +1; Bcast #1 0/10 +10; Barrier #2 0/0 +100",
				"Barrier #0 0/0 +1; Bcast #1 0/10 +10; Barrier #2 0/0 +100"}, 0},
		{"a message between: the root goes on to its last send", "0.0 0.2", schema.CallBcast, 0, 10, three,
			[]string{"s1 s2:7 s2", "r0", "r0:7 r0"},
			[]string{"Send to 2 +11; Bcast #0 10/0 +100", "Bcast #0 0/10 +1", "Recv from 0 +1; Bcast #0 0/10 +10"}, 0},
		{"an answer between", "0.0 0.2", schema.CallBcast, 0, 10, three, []string{"s1 r1:3 s2", "r0 s0:3", "r0"},
			[]string{"Bcast #0 10/0 +1; Recv from 1 +110", "Bcast #0 0/10 +1; Send to 0 +10", "Bcast #0 0/10 +1"}, 0},
		{"what the last rank needs before hangs on what the first one got: it has the data earlier", "0.0 0.1",
			schema.CallBcast, 0, 10, three,
			[]string{"s1 s2", "r0 s2:4", "r1:4 r0"},
			[]string{"Bcast #0 10/0 +11", "Bcast #0 0/10 +1; Send to 2 +10", "Bcast #0 0/10 +1; Recv from 1 +10"}, 0},
		{"a call that waits for others too stays", "0.0 0.1", schema.CallBcast, 0, 10, three,
			[]string{"i1 i2 i1:8 w3", "j0 j0:8 w2", "j0 w1"},
			[]string{"Bcast #0 10/0 +1; Isend to 1 done 2 +110; Waitall +1000",
				"Irecv from 0 done 2 +11; Bcast #0 0/10 +100; Waitall +0", "Bcast #0 0/10 +11"}, 0},
		{"a probe goes with its message", "0.0 0.1", schema.CallBcast, 0, 10, three, []string{"s1 s2", "p0 r0", "r0"},
			[]string{"Bcast #0 10/0 +11", "Bcast #0 0/10 +11", "Bcast #0 0/10 +1"}, 0},
		{"half of a Sendrecv", "0.0 0.1", schema.CallBcast, 0, 10, three, []string{"x1,2:1 s2", "r0", "s0:6 r0"},
			[]string{"Bcast #0 10/0 +1; Sendrecv from 2 +10", "Bcast #0 0/10 +1", "Send to 0 +1; Bcast #0 0/10 +10"},
			0},
		{"gather of blocks of 20 bytes", "1.0 2.0 3.0", schema.CallGather, 0, 20, four,
			[]string{"r1 r2 r3 b", "s0:2 b", "s0:2 b", "s0:2 b"},
			[]string{"Gather #0 20/80 +1; Barrier #1 0/0 +1110", "Gather #0 20/0 +1; Barrier #1 0/0 +10",
				"Gather #0 20/0 +1; Barrier #1 0/0 +10", "Gather #0 20/0 +1; Barrier #1 0/0 +10"}, 0},
		{"gatherv by way of rank 2", "1.0 2.1 3.0", schema.CallGatherv, 0, 0, four,
			[]string{"r1 r2", "s0:2", "r3 s0:9", "s2:4"},
			[]string{"Gatherv #0 0/110 +11", "Gatherv #0 20/0 +1", "Gatherv #0 50/0 +11", "Gatherv #0 40/0 +1"}, 0},
		{"scatter", "0.0 0.1 0.2", schema.CallScatter, 0, 30, four, []string{"s1:3 s2:3 s3:3", "r0", "r0", "r0"},
			[]string{"Scatter #0 120/30 +111", "Scatter #0 0/30 +1", "Scatter #0 0/30 +1", "Scatter #0 0/30 +1"}, 0},
		{"alltoallv", "0.0 0.1 1.0 1.1 2.0 2.1", schema.CallAlltoallv, schema.NullInt32, 0, three,
			[]string{"i1:1 i2:2 j1 j2 w4", "i0:3 i2:4 j0 j2 w4", "i0:5 i1:6 j0 j1 w4"},
			[]string{"Alltoallv #0 30/80 +11111", "Alltoallv #0 70/70 +11111", "Alltoallv #0 110/60 +11111"}, 0},
		{"the other half of a Sendrecv: the collective comes behind it", "0.1 0.2", schema.CallBcast, 0, 10, three,
			[]string{"r1:2 s1 s2 b", "x0,0:2 b", "r0 b"},
			[]string{"Recv from 1 +1; Bcast #0 10/0 +10; Barrier #1 0/0 +1100",
				"Sendrecv to 0 +1; Bcast #0 0/10 +0; Barrier #1 0/0 +10", "Bcast #0 0/10 +1; Barrier #1 0/0 +10"}, 0},
		{"it cannot be put in place: the root waits for what rank 1 sends in the call by which it receives, its last",
			"0.1 0.2", schema.CallBcast, 0, 10, three,
			[]string{"r1:2 s1 s2", "x0,0:2", "r0"},
			[]string{"Recv from 1 +1; Send to 1 +10; Send to 2 +100", "Sendrecv to 0 from 0 +1", "Recv from 0 +1"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, messages := parse(t, c.lines...)
			got, plan := replacedLines(t, len(c.lines), events, messages,
				finding(t, messages, c.op, c.root, c.bytes, c.ranks, c.messages))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("want, got:\n%s", d)
			}
			if len(plan.Left) != c.left {
				t.Errorf("%v are left, want %d", plan.Left, c.left)
			}
		})
	}
}

// TestBlocksOfAllgatherv: four ranks have blocks of 10, 20, 40 and 80 bytes. In recursive doubling they join these to
// blocks of 30 and 120 bytes. In a star rank 1 gets a payload like its own before it sends that.
func TestBlocksOfAllgatherv(t *testing.T) {
	for _, c := range []struct {
		name, messages string
		shares         []int64
		lines, want    []string
	}{
		{"recursive doubling", "0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1", []int64{10, 20, 40, 80},
			[]string{"x1,1:1 x2,2:3", "x0,0:2 x3,3:3", "x3,3:4 x0,0:12", "x2,2:8 x1,1:12"},
			[]string{"Allgatherv #0 10/150 +11", "Allgatherv #0 20/150 +11", "Allgatherv #0 40/150 +11",
				"Allgatherv #0 80/150 +11"}},
		{"equal blocks", "0.0 0.1 1.1 1.2 2.1 2.2", []int64{10, 10, 20},
			[]string{"s1 s2 r1 r2:2", "r0 s0 s2 r2:2", "r0 s0:2 s1:2 r1"},
			[]string{"Allgatherv #0 10/40 +1111", "Allgatherv #0 10/40 +1111", "Allgatherv #0 20/40 +1111"}},
		{"shares not told", "0.0 0.1 1.0 1.1 2.0 2.1", nil,
			[]string{"s1 s2 r1:2 r2:4", "s0:2 s2:2 r0 r2:4", "s0:4 s1:4 r0 r1:2"},
			[]string{"Allgatherv #0 10/70 +1111", "Allgatherv #0 20/70 +1111", "Allgatherv #0 40/70 +1111"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, messages := parse(t, c.lines...)
			f := finding(t, messages, schema.CallAllgatherv, schema.NullInt32, 0, []int32{0, 1, 2, 3}[:len(c.lines)],
				c.messages)
			f.Instances[0].RankBytes = c.shares
			got, _ := replacedLines(t, len(c.lines), events, messages, f)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("want, got:\n%s", d)
			}
		})
	}
}

// TestCountsBetweenNeighbours: the counts of ranks in a row are those of one neighbour, of elements of 2 bytes. Ranks
// exchange data of their own with each neighbour, or pass all the same.
func TestCountsBetweenNeighbours(t *testing.T) {
	for _, c := range []struct {
		op          schema.CallID
		messages    string
		lines, want []string
	}{
		{schema.CallNeighborAlltoall, "0.0 1.0 1.1 2.0", []string{"x1,1:2", "x0,0:2 x2,2:2", "x1,1:2"},
			[]string{"20/20 bytes, counts 10/10", "40/40 bytes, counts 10/10", "20/20 bytes, counts 10/10"}},
		{schema.CallNeighborAllgather, "0.0 1.0 1.1 2.0", []string{"x1,1:2", "x0,0:2 x2,2:2", "x1,1:2"},
			[]string{"20/20 bytes, counts 10/10", "40/40 bytes, counts 10/10", "20/20 bytes, counts 10/10"}},
		{schema.CallNeighborAlltoallv, "0.0 1.0 1.1 2.0", []string{"x1,1:2", "x0,0:2 x2,2:3", "x1,1:4"},
			[]string{"20/20 bytes, counts 10/10", "50/60 bytes, counts 25/30", "40/30 bytes, counts 20/15"}},
	} {
		events, messages := parse(t, c.lines...)
		out, _ := replacedRows(t, len(c.lines), events, messages,
			finding(t, messages, c.op, schema.NullInt32, 0, []int32{0, 1, 2}, c.messages))
		var got []string
		for i := range out.Rank {
			got = append(got, fmt.Sprintf("%d/%d bytes, counts %d/%d", out.SendBytes[i], out.RecvBytes[i], out.SendCount[i],
				out.RecvCount[i]))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%v: want, got:\n%s", c.op, d)
		}
	}
}

// TestHashesOfOperands: a new row has the hash of what its rank contributes if a message has all of that and nothing
// else. All messages have 10 bytes; their hash is 7, or 100 times the rank plus 1, or plus the number of their row.
func TestHashesOfOperands(t *testing.T) {
	const no, byRow, byRank = schema.NullInt64, -1, -2
	for _, c := range []struct {
		name, messages string
		op             schema.CallID
		root           int32
		bytes          int64
		hash           int64
		lines          []string
		want           []int64
	}{
		{"sums up a tree", "1.0 2.1 3.0", schema.CallReduce, 0, 10, byRow,
			[]string{"r1 r2", "s0", "r3 s0", "s2"}, []int64{no, 101, no, 301}},
		{"recursive doubling", "0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1", schema.CallAllreduce, schema.NullInt32, 10, byRow,
			[]string{"x1,1 x2,2", "x0,0 x3,3", "x3,3 x0,0", "x2,2 x1,1"}, []int64{1, 101, 201, 301}},
		{"equal blocks of a scatter", "0.0 0.1 0.2", schema.CallScatter, 0, 10, 7,
			[]string{"s1 s2 s3", "r0", "r0", "r0"}, []int64{no, no, no, no}},
		{"a broadcast", "0.0 0.1", schema.CallBcast, 0, 10, 7, []string{"s1 s2", "r0", "r0"}, []int64{7, no, no}},
		{"a broadcast in equal segments", "0.0 0.1 0.2 0.3", schema.CallBcast, 0, 20, 7,
			[]string{"s1 s1 s2 s2", "r0 r0", "r0 r0"}, []int64{no, no, no}},
		{"blocks that are spread one after the other", "0.0 0.1 1.1 1.2 2.2 2.3", schema.CallAllgather,
			schema.NullInt32, 10, byRank,
			[]string{"s1 s2 r1 r2", "r0 s0 s2 r2", "r0 r1 s0 s1"}, []int64{1, 101, 201}},
	} {
		events, messages := parse(t, c.lines...)
		for i := range messages.Src {
			switch messages.PayloadHash[i] = c.hash; c.hash {
			case byRow:
				messages.PayloadHash[i] = 100*int64(messages.Src[i]) + messages.SendSeq[i] + 1
			case byRank:
				messages.PayloadHash[i] = 100*int64(messages.Src[i]) + 1
			}
		}
		out, _ := replacedRows(t, len(c.lines), events, messages,
			finding(t, messages, c.op, c.root, c.bytes, []int32{0, 1, 2, 3}[:len(c.lines)], c.messages))
		if d := cmp.Diff(c.want, out.PayloadHash); d != "" {
			t.Errorf("%s: want, got:\n%s", c.name, d)
		}
	}
}

// What a broadcast does on other numbers of ranks is known if its messages are those of a known algorithm.
func TestPatternOfMessages(t *testing.T) {
	for _, c := range []struct {
		what, sends, name, problem string
		lines                      []string
	}{
		{"linear", "0.0 0.1 0.2 0.3", "linear", "", []string{"s1 s2 s3 s4", "r0", "r0", "r0", "r0"}},
		{"a tree of its own", "0.0 3.1 1.1 4.1", "",
			"its messages match none of the algorithms that commq knows for MPI_Bcast",
			[]string{"s3", "r3 s4", "r4", "r0 s1", "r1 s2"}},
	} {
		events, messages := parse(t, c.lines...)
		f := finding(t, messages, schema.CallBcast, 0, 10, []int32{0, 1, 2, 3, 4}, c.sends)
		got, err := read(t, len(c.lines), events, messages, []Finding{f}).Pattern(0)
		switch {
		case err != nil && err.Error() != c.problem:
			t.Errorf("%s: %v, want %q", c.what, err, c.problem)
		case err == nil && (c.problem != "" || got.Name != c.name):
			t.Errorf("%s: %s, want %q %s", c.what, got.Name, c.name, c.problem)
		}
	}
}
