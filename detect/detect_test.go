package detect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/combine"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// sent is a message of a test program.
type sent struct {
	src, dst        int32
	payload, head   int64
	bytes           int64
	comm, tag, site int32
	buffer, to      int64 // addresses
}

// step is one action of a rank: send message m, or wait until it has been received.
type step struct {
	m    int
	send bool
}

// program holds the steps of every rank and the messages.
type program struct {
	ranks    int
	messages []sent
	scripts  [][]step
	comms    []run.Comm
}

func newProgram(ranks int) *program {
	p := &program{ranks: ranks, scripts: make([][]step, ranks)}
	world := run.Comm{}
	for r := range ranks {
		world.Members = append(world.Members, int32(r))
	}
	p.comms = []run.Comm{world}
	return p
}

// message adds a message; send and recv append its two ends to their ranks.
func (p *program) message(m sent) int {
	p.messages = append(p.messages, m)
	return len(p.messages) - 1
}

func (p *program) send(m int) {
	r := p.messages[m].src
	p.scripts[r] = append(p.scripts[r], step{m, true})
}

func (p *program) recv(m int) {
	r := p.messages[m].dst
	p.scripts[r] = append(p.scripts[r], step{m, false})
}

// both sends a message that is received at once.
func (p *program) both(m sent) {
	k := p.message(m)
	p.send(k)
	p.recv(k)
}

// run interleaves the ranks' steps in a random order and returns the run, with noise messages inserted anywhere.
func (p *program) run(t testing.TB, rnd *rand.Rand, noise []sent) *Run {
	at := make([]int, p.ranks)
	onWay := map[int]bool{}
	var order []step
	for {
		var ready []int
		left := 0
		for r := range at {
			left += len(p.scripts[r]) - at[r]
			if at[r] < len(p.scripts[r]) {
				if s := p.scripts[r][at[r]]; s.send || onWay[s.m] {
					ready = append(ready, r)
				}
			}
		}
		if len(ready) == 0 {
			if left > 0 {
				t.Fatalf("the program of the test cannot go on: %d steps left", left)
			}
			break
		}
		r := ready[rnd.IntN(len(ready))]
		s := p.scripts[r][at[r]]
		at[r]++
		onWay[s.m] = true
		order = append(order, s)
	}
	all := slices.Clone(p.messages)
	for _, n := range noise {
		m := len(all)
		all = append(all, n)
		a, b := rnd.IntN(len(order)+1), rnd.IntN(len(order)+1)
		order = slices.Insert(order, max(a, b), step{m, false})
		order = slices.Insert(order, min(a, b), step{m, true})
	}
	return &Run{Ranks: int32(p.ranks), HashBits: 64, Comms: p.comms,
		Datatypes: []combine.Datatype{{ID: 7, Named: true, Name: "MPI_DOUBLE", Bytes: 8}},
		Messages:  allColumns(rows(all, order, p.ranks))}
}

// allColumns adapts a reader of messages that always fills all columns.
func allColumns(read func(add func(*schema.Messages) error) error) func([]string, func(*schema.Messages, schema.Rest) error) error {
	return func(_ []string, add func(*schema.Messages, schema.Rest) error) error {
		return read(func(b *schema.Messages) error { return add(b, func(int, int, ...string) error { return nil }) })
	}
}

// rows returns the rows of messages in the order of their sends.
func rows(all []sent, order []step, ranks int) func(func(*schema.Messages) error) error {
	seq := make([]int64, ranks)
	sendSeq, doneSeq := make([]int64, len(all)), make([]int64, len(all))
	var list []int
	for _, s := range order {
		m := all[s.m]
		if s.send {
			sendSeq[s.m] = seq[m.src]
			seq[m.src]++
			list = append(list, s.m)
		} else {
			doneSeq[s.m] = seq[m.dst]
			seq[m.dst]++
		}
	}
	return func(add func(*schema.Messages) error) error {
		b := schema.NewBatch(&schema.MessagesTable).(*schema.Messages)
		b.Resize(len(list))
		for i, k := range list {
			m := all[k]
			b.Src[i], b.Dst[i], b.Comm[i], b.Tag[i], b.Bytes[i], b.PayloadHash[i], b.PayloadHead[i] = m.src, m.dst,
				m.comm, m.tag, m.bytes, m.payload, m.head
			b.SendSeq[i], b.RecvPostSeq[i], b.RecvDoneSeq[i] = sendSeq[k], doneSeq[k], doneSeq[k]
			b.SendCallsite[i], b.RecvCallsite[i], b.SendDatatype[i], b.SrcBuffer[i], b.DstBuffer[i] = m.site,
				m.site+1, 7, m.buffer, m.to
			b.PayloadSum[i], b.DstBuffer[i] = schema.NullInt64, schema.NullInt64
		}
		return add(b)
	}
}

// text describes a finding in one line.
func (f *Finding) text() string {
	s := fmt.Sprintf("%v ranks %v", f.Operation, f.Ranks)
	if f.Operation.Rooted() {
		s += fmt.Sprintf(" roots %v possible %v", f.Roots, f.PossibleRoots)
	}
	s += fmt.Sprintf(" bytes %d x %d messages %d", f.BytesMax, f.Instances, f.Messages)
	if f.Segments != 1 {
		s += fmt.Sprintf(" segments %d", f.Segments)
	}
	if f.Repeats > 0 {
		s += fmt.Sprintf(" repeats %d", f.Repeats)
	}
	if len(f.Missing) > 0 {
		s += fmt.Sprintf(" missing %v", f.Missing)
	}
	return s
}

func found(t testing.TB, run *Run, o Options) []string {
	t.Helper()
	r, err := Detect(run, o)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range r.Findings {
		out = append(out, r.Findings[i].text())
	}
	slices.Sort(out)
	return out
}

// script makes a program from lines "SRC>DST PAYLOAD": each message is sent and received before the ranks that it
// names do anything else. A line "SRC>DST PAYLOAD late" is received at the end.
func script(ranks int, lines string) *program {
	p := newProgram(ranks)
	var late []int
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		for _, word := range strings.Split(line, ";") {
			f := strings.Fields(word)
			var m sent
			fmt.Sscanf(f[0], "%d>%d", &m.src, &m.dst)
			m.bytes, m.site, m.tag, m.buffer = 4097, 11, 9, schema.NullInt64
			m.payload, _ = strconv.ParseInt(f[1], 36, 64)
			if f[1] == "empty" {
				m.bytes = 0
			}
			k := p.message(m)
			p.send(k)
			if len(f) > 2 {
				late = append(late, k)
			} else {
				p.recv(k)
			}
		}
	}
	for _, k := range late {
		p.recv(k)
	}
	return p
}

// TestPaper covers the scenarios of figures 1, 4 and 6 of the paper, and similar ones.
func TestPaper(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks int
		lines string
		want  []string
	}{
		{"linear with noise (6a)", 5, "0>1 A\n2>4 N\n1>2 A\n3>0 M\n2>3 A\n4>1 K\n3>4 A",
			[]string{"MPI_Bcast ranks [0 1 2 3 4] roots [0] possible [0] bytes 4097 x 1 messages 4"}},
		{"redundant message (6b)", 4, "0>1 A\n1>2 A\n2>3 A\n3>0 A",
			[]string{"MPI_Bcast ranks [0 1 2 3] roots [0] possible [0 1] bytes 4097 x 1 messages 4"}},
		{"repeated (6c)", 4, "0>1 A\n1>2 A\n2>3 A\n0>1 A\n1>2 A\n2>3 A",
			[]string{"MPI_Bcast ranks [0 1 2 3] roots [0] possible [0] bytes 4097 x 2 messages 6 repeats 1"}},
		{"nested by token (6d)", 4, "0>1 A;0>2 A;0>3 A\n0>1 T\n1>0 B;1>2 B;1>3 B\n0>2 T\n2>0 C;2>1 C;2>3 C\n0>3 T\n3>0 D;3>1 D;3>2 D",
			[]string{"MPI_Bcast ranks [0 1 2 3] roots [0 1 2 3] possible [0 1 2 3] bytes 4097 x 5 messages 15"}},
		{"ring token, two laps", 4, "0>1 A\n1>2 A\n2>3 A\n3>0 A\n0>1 A\n1>2 A\n2>3 A\n3>0 A",
			[]string{"MPI_Bcast ranks [0 1 2 3] roots [0] possible [0 1 2 3] bytes 4097 x 2 messages 8 repeats 1"}},
		{"hierarchical (4)", 5, "3>4 A\n4>1 A\n4>2 A\n3>0 A",
			[]string{"MPI_Bcast ranks [0 1 2 3 4] roots [3] possible [3] bytes 4097 x 1 messages 4"}},
		{"passed on too early", 5, "0>1 A late\n1>2 A late\n2>3 A late\n3>4 A late", nil},
		{"two halves", 4, "0>1 A\n2>3 A", nil},
		{"one rank missing", 5, "0>1 A\n1>2 A\n2>4 A",
			[]string{"MPI_Bcast ranks [0 1 2 4] roots [0] possible [0] bytes 4097 x 1 messages 3 missing [3]"}},
		{"central barrier", 4, "1>0 empty\n2>0 empty\n3>0 empty\n0>1 empty\n0>2 empty\n0>3 empty",
			[]string{"MPI_Barrier ranks [0 1 2 3] bytes 0 x 1 messages 6"}},
		{"signal, then barrier", 3, "0>1 empty\n0>2 empty\n1>0 empty\n2>0 empty\n0>1 empty\n0>2 empty",
			[]string{"MPI_Barrier ranks [0 1 2] bytes 0 x 1 messages 4",
				"MPI_Bcast ranks [0 1 2] roots [0] possible [0] bytes 0 x 1 messages 2"}},
		{"ring barrier of two laps", 3, "0>1 empty\n1>2 empty\n2>0 empty\n0>1 empty\n1>2 empty",
			[]string{"MPI_Barrier ranks [0 1 2] bytes 0 x 1 messages 5"}},
		{"constant halo", 5, "0>1 A late;1>2 A late;2>3 A late;3>4 A late;4>0 A late;1>0 A late;2>1 A late;3>2 A late;4>3 A late;0>4 A late", nil},
		{"alltoall", 3, "0>1 A late;0>2 B late;1>0 C late;1>2 D late;2>0 E late;2>1 F late",
			[]string{"MPI_Alltoall ranks [0 1 2] bytes 8194 x 1 messages 6"}},
		{"scatters in turn are no alltoall", 3, "0>1 A;0>2 B\n1>0 C;1>2 D\n2>0 E;2>1 F",
			[]string{"MPI_Scatter ranks [0 1 2] roots [0 1 2] possible [0 1 2] bytes 12291 x 3 messages 6"}},
		{"gathers in turn are no alltoall", 3, "1>0 A;2>0 B\n0>1 C;2>1 D\n0>2 E;1>2 F",
			[]string{"MPI_Gather ranks [0 1 2] roots [0 1 2] possible [0 1 2] bytes 12291 x 3 messages 6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				p := script(c.ranks, c.lines)
				got := found(t, p.run(t, rand.New(rand.NewPCG(seed, 1)), nil), Options{})
				if d := cmp.Diff(c.want, got); d != "" {
					t.Fatalf("seed %d: want, got:\n%s", seed, d)
				}
			}
		})
	}
}
