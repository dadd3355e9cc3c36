package dimemas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

func want(t *testing.T, got []string, rows string) {
	t.Helper()
	var wanted []string
	for _, l := range strings.Split(strings.TrimSpace(rows), "\n") {
		wanted = append(wanted, strings.TrimSpace(l))
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
}

// Each kind of record is imported as expected.
func TestImport(t *testing.T) {
	r := mustImport(t, file(
		`d:1:7:3:0:1:2 d:1:9:2:2:0
		1:0.001 2:1:-1:4097:9:7:0 1:0.000000002 2:1:-1:5:9:7:1 2:1:-1:6:9:7:2 2:1:-1:7:9:7:3 10:1:7:1:0:11:0:1 10:10:9:2:0:8:0:3 10:10:9:2:0:8:0:1 1:0.25`,
		`1:0 3:0:-1:4097:9:7:0 3:0:-1:5:9:7:1 3:0:5:9:7:2 3:0:6:9:7:0 3:0:-2:7:9:7:1 1:0.5 3:0:-1:7:9:7:2 10:1:7:0:0:0:11`,
		`1:0 10:1:7:0:0:0:11:1 10:10:9:2:0:8:8:3 10:10:9:2:0:8:8:1 10:11:9:0:0:3:3:0 10:11:9:0:0:3:3:2`,
		`1:1.5`), Options{})
	// Task 0 has not made the Allreduce of communicator 9 that task 2 began: see below.
	if r.Ended != "killed" || len(r.Warnings) != 1 ||
		!strings.Contains(r.Warnings[0], "communicator 2 make different numbers of collective operations: 1 of them wait for others at the end, MPI_Iallreduce the first") {
		t.Errorf("%s, %q", r.Ended, r.Warnings)
	}
	// Communicator 7 has three of four tasks, so it is no world: it is 1, and 9 is 2, where task 2 has rank 0.
	want(t, r.lines(), `
		0.0 Send compute=1000000 comm=1 to=1 toworld=1 stag=9 sent=4097
		0.1 Ssend compute=2 comm=1 to=1 toworld=1 stag=9 sent=5
		0.2 Isend comm=1 to=1 toworld=1 stag=9 sent=6 request=1
		0.3 Issend comm=1 to=1 toworld=1 stag=9 sent=7 request=2
		0.4 Bcast comm=1 instance=0 sent=11 received=0 root=0
		0.5 Reduce comm=2 instance=0 sent=8 received=0 root=2
		0.6 Reduce comm=2 instance=1 sent=8 received=0 root=2 label=dimemas sync 1
		0.7 Finalize compute=250000000
		1.0 Recv comm=1 from=0 fromworld=0 rtag=9 received=4097
		1.1 Irecv comm=1 from=0 fromworld=0 rtag=9 received=5 request=1 done=2
		1.2 Wait request=1
		1.3 Recv comm=1 from=0 fromworld=0 rtag=9 received=6
		1.4 Irecv comm=1 from=0 fromworld=0 rtag=9 received=7 request=2 done=5
		1.5 Wait compute=500000000 request=2
		1.6 Bcast comm=1 instance=0 sent=0 received=11 root=0
		1.7 Finalize
		2.0 Bcast comm=1 instance=0 sent=0 received=11 root=0
		2.1 Reduce comm=2 instance=0 sent=8 received=8 root=2
		2.2 Reduce comm=2 instance=1 sent=8 received=8 root=2 label=dimemas sync 1
		2.3 Iallreduce comm=2 instance=2 sent=3 received=3 request=1 done=4
		2.4 Wait request=1
		2.5 Finalize
		3.0 Finalize compute=1500000000`)
	var messages []string
	for _, m := range r.Messages {
		messages = append(messages, fmt.Sprint(m.Src, m.Dst, m.Comm, m.Tag, m.Bytes, m.SendSeq, m.RecvPostSeq,
			m.RecvDoneSeq))
	}
	want(t, messages, "0 1 1 9 4097 0 0 0\n0 1 1 9 5 1 1 2\n0 1 1 9 6 2 3 3\n0 1 1 9 7 3 4 5")
	if r.Counts.Messages != 4 || r.Counts.MessageBytes != 4115 || r.Counts.Calls != 23 || r.TimeOrigin != "untimed" ||
		r.ComputeClock != "cpu" || r.Ranks != 4 {
		t.Errorf("%+v", r.Manifest)
	}
	if diff := cmp.Diff(map[string]int64{"MPI_Bcast": 1, "MPI_Reduce": 2, "MPI_Iallreduce": 1},
		r.Collectives); diff != "" {
		t.Error(diff)
	}
	if r.Origin.Trace == nil || *r.Origin.Trace != (schema.Trace{Format: "dim", File: "test.dim", Program: "test"}) {
		t.Errorf("%+v", r.Origin.Trace)
	}
}

// A communicator without tasks is none of the run's: messages may name it, collectives may not.
func TestEmptyCommunicator(t *testing.T) {
	r := mustImport(t, file("d:1:1:2:0:1 d:1:2:0 d:1:3:2:1:0 1:0 10:11:3:0:0:8:8:1 2:1:-1:5:9:2:2",
		"1:0 10:11:3:0:0:8:8:1"), Options{})
	want(t, r.lines(), `
		0.0 Allreduce comm=1 instance=0 sent=8 received=8
		0.1 Isend comm=2 to=1 toworld=1 stag=9 sent=5 request=1
		0.2 Finalize
		1.0 Allreduce comm=1 instance=0 sent=8 received=8
		1.1 Finalize`)
	_, err := imported(t, file("d:1:1:1:0 d:1:2:0 1:0 10:0:2:0:0:0:0:1"), Options{})
	if err == nil || !strings.HasSuffix(err.Error(), "task 0 is no member of communicator 2") {
		t.Error(err)
	}
}

// Between two bursts Dimemas may give the CPU to another rank: the run keeps this place. No compute time counts
// twice.
func TestBursts(t *testing.T) {
	text := file(`d:1:3:1:0 1:0.1 1:0.2 20:5:6 1:0.3 0 1:0.4 10:0:0:0:0:0:0 1:0.5 10:0:3:0:0:0:0 20:5:0 1:0.6 20:5:7`)
	want(t, mustImport(t, text, Options{}).lines(), `
		0.0 commq_mark compute=100000000
		0.1 commq_mark compute=200000000
		0.2 Barrier compute=1200000000 comm=0 instance=0 sent=0 received=0
		0.3 Finalize compute=600000000`)
	want(t, mustImport(t, text, Options{Events: true}).lines(), `
		0.0 commq_mark compute=100000000
		0.1 commq_mark compute=200000000 label=5:6
		0.2 Barrier compute=1200000000 comm=0 instance=0 sent=0 received=0
		0.3 commq_mark label=5:0
		0.4 commq_mark compute=600000000 label=5:7
		0.5 Finalize`)
	w := mustImport(t, text, Options{}).Warnings
	if len(w) != 2 || !strings.Contains(w[0], "Events of the trace that have no row: 3 (") ||
		!strings.Contains(w[1], "not greater than 0, which Dimemas skips, and so does this run: 1.") {
		t.Errorf("%q", w)
	}
}

// Parts of a ns are carried along the rank: 0.4 + 0.4 + 0.4 ns are 0, 1 and 0, and three times 1.5 ns are 5.
func TestRounding(t *testing.T) {
	want(t, mustImport(t, file(`1:0.0000000004 2:0:-1:1:2:3:2 1:4e-10 2:0:-1:1:2:3:2 1:.0000000004 2:0:-1:1:2:3:2 3:0:-1:1:2:3:0 1:0.0000000015 3:0:-1:1:2:3:0 1:0.0000000015 3:0:-1:1:2:3:0 1:0.0000000015`), Options{}).lines(), `
		0.0 Isend comm=1 to=0 toworld=0 stag=2 sent=1 request=1
		0.1 Isend compute=1 comm=1 to=0 toworld=0 stag=2 sent=1 request=2
		0.2 Isend comm=1 to=0 toworld=0 stag=2 sent=1 request=3
		0.3 Recv comm=1 from=0 fromworld=0 rtag=2 received=1
		0.4 Recv compute=2 comm=1 from=0 fromworld=0 rtag=2 received=1
		0.5 Recv compute=1 comm=1 from=0 fromworld=0 rtag=2 received=1
		0.6 Finalize compute=2`)
}

func TestSeconds(t *testing.T) {
	for text, ps := range map[string]int64{
		"0": 0, "0.000000001": 1000, "1e-05": 10_000_000, "1.5E3": 1500e12, " +2.": 2e12, "0.0000000000005": 1,
		"0.00000000000049":    0,
		"999999.999999999999": 999999999999999999, "4611686": 4611686e12, "00000000001.5": 15e11, "1e-999": 0,
	} {
		if got, err := parseSeconds([]byte(text)); err != nil || got != ps {
			t.Errorf("%q: %d, %v; want %d", text, got, err, ps)
		}
	}
	for _, text := range []string{"", ".", "-1", "inf", "nan", "0x1p3", "1.5s", "1,5", "4611687", "1e999", "1e",
		strings.Repeat("1", 90)} {
		if got, err := parseSeconds([]byte(text)); err == nil || !strings.Contains(err.Error(), "want seconds") {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

// The run's rows do not depend on where epochs and files end, but for the epochs.
func TestEpochs(t *testing.T) {
	text := file(
		`d:1:1:3:0:1:2 1:1 3:1:-1:8:4:1:1 10:1:1:1:0:3:0:1 3:2:-1:8:4:1:1 10:1:1:0:0:0:3:0 3:1:-1:99:4:1:2 3:2:-1:8:4:1:2 10:0:1:0:0:0:0:1 10:1:1:0:0:0:3:2 2:1:-1:8:5:1:0`,
		`1:1 10:1:1:0:0:0:3:1 2:0:-1:8:4:1:0 10:1:1:1:0:3:0:0 10:0:1:0:0:0:0:1 10:1:1:1:0:3:0:2 3:0:-1:8:5:1:0`,
		`1:1 10:1:1:0:0:0:3:1 10:1:1:0:0:0:3:0 10:0:1:0:0:0:0:1 10:1:1:0:0:0:3:2 2:0:-1:8:4:1:1`)
	whole := mustImport(t, text, Options{})
	want(t, whole.lines()[:7], `
		0.0 Irecv compute=1000000000 comm=0 from=1 fromworld=1 rtag=4 received=8 request=1 done=4
		0.1 Bcast comm=0 instance=0 sent=3 received=0 root=0
		0.2 Irecv comm=0 from=2 fromworld=2 rtag=4 received=8 request=2 done=5
		0.3 Ibcast comm=0 instance=1 sent=0 received=3 root=1 request=3 done=7
		0.4 Wait request=1
		0.5 Wait request=2
		0.6 Barrier comm=0 instance=2 sent=0 received=0`)
	for rows := int64(1); rows < 30; rows++ {
		cut := mustImport(t, text, Options{epochRows: rows, shardRows: 1 + rows%5})
		if diff := cmp.Diff(whole.lines(), cut.lines()); diff != "" {
			t.Fatalf("epochs of %d rows: %s", rows, diff)
		}
		if rows == 1 && cut.Epochs != 10 {
			t.Errorf("%d epochs", cut.Epochs)
		}
		byKey := func(a, b schema.Message) int {
			return int(a.Src-b.Src)<<16 + int(a.SendSeq-b.SendSeq)
		}
		a, b := slices.SortedFunc(slices.Values(whole.Messages), byKey),
			slices.SortedFunc(slices.Values(cut.Messages), byKey)
		for i := range b {
			b[i].Epoch = 0
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("epochs of %d rows: %s", rows, diff)
		}
	}
}

// Dimemas compares neither sizes nor the members of communicators. Such a trace is imported with what was sent, and
// the run breaks no rule.
func TestLeniency(t *testing.T) {
	text := file(
		`d:1:5:1:1 d:1:6:2:0:1 d:2:0:0 1:1 2:1:-1:1048576:4:5:2 2:1:-1:7:4:77:2 20:1:1`,
		`10:0:6:0:0:0:0 3:0:-1:1:4:5:2 3:0:-1:7:4:77:2 3:1:-1:7:9:77:1`, ``)
	r := mustImport(t, text, Options{})
	want(t, r.lines(), `
		0.0 Isend compute=1000000000 comm=3 to=1 toworld=1 stag=4 sent=1048576 request=1
		0.1 Isend comm=4 to=1 toworld=1 stag=4 sent=7 request=2
		0.2 Finalize
		1.0 Barrier comm=2 instance=0 sent=0 received=0
		1.1 Recv comm=3 from=0 fromworld=0 rtag=4 received=1048576
		1.2 Recv comm=4 from=0 fromworld=0 rtag=4 received=7
		1.3 Irecv comm=4 from=1 fromworld=1 rtag=9 received=7 request=1
		1.4 Finalize
		2.0 Finalize`)
	if len(r.Comms) != 3+1+2+3+3 || r.Counts.UnmatchedReceives != 1 || r.Counts.Messages != 2 {
		t.Errorf("%+v\n%+v", r.Comms, r.Counts)
	}
	want(t, r.Warnings, `
		The ranks of communicator 2 make different numbers of collective operations: 1 of them wait for others at the end, MPI_Barrier the first; the run counts as killed.
		Events of the trace that have no row: 1 (commq import dim --events keeps them).
		Definitions of files and windows that were left out: 1.
		Tasks whose first record is no CPU burst: 1, task 1 the first; Dimemas itself leaves them out.
		Receives that say another size than the message that they get has: 1; the run has the message's.
		Waits without a receive before them, which are blocking receives here as in Dimemas: 2.
		Tasks without records: 1.`)
}

// What a header may leave out or add.
func TestHeaders(t *testing.T) {
	for _, head := range []string{
		`#DIMEMAS:"a b":0:2(1,1),1`, `#DIMEMAS:"a b":0:2(1,1),1,0`, `#DIMEMAS:"a b":0:2(1,1),1,0,0`,
		"#DIMEMAS:\"a b\":0:2(1,1),0,0,0        \r",
	} {
		r := mustImport(t, head+"\n\n1:1:0:0.5\n\n   \n1:0:0:2\r\n\n", Options{})
		want(t, r.lines(), "0.0 Finalize compute=2000000000\n1.0 Finalize compute=500000000")
		if r.Origin.Trace.Program != "a b" || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "no offsets") {
			t.Errorf("%q: %+v, %q", head, r.Origin.Trace, r.Warnings)
		}
	}
	good := file("1:1", "1:2")
	if w := mustImport(t, good, Options{}).Warnings; len(w) != 0 {
		t.Error(w)
	}
	for wrong, want := range map[string]string{
		strings.Replace(good, "s:1:", "s:1:9", 1): "The offset lines of 1 tasks are not where their records begin",
		strings.Replace(good, ":1,0", ":1,9",
			1): "The header says that the offset lines of 2 tasks begin at byte 9000",
	} {
		if w := mustImport(t, wrong, Options{}).Warnings; len(w) != 1 || !strings.HasPrefix(w[0], want) {
			t.Errorf("%q", w)
		}
	}
}

func TestErrors(t *testing.T) {
	head := func(lines ...string) string {
		return "#DIMEMAS:\"x\":0:2(1,1),1\n" + strings.Join(lines, "\n") + "\n"
	}
	one := func(record string) string { return head("d:1:1:2:0:1", "1:0:0:1", record) }
	for _, c := range []struct{ text, want string }{
		{"", "test.dim:1: the file is empty; want the header #DIMEMAS:"},
		{"#DIMEMAS", `test.dim:1: found "#DIMEMAS"; want the header of a trace of Dimemas`},
		{"#Paraver (27/10/2025 at 11:11):1", `test.dim:1: found "#Paraver (`},
		{`#DIMEMAS:"":0:1(1),1`, "test.dim:1: header: the name is empty or not closed"},
		{`#DIMEMAS:"x:0:1(1),1`, "test.dim:1: header: the name is empty or not closed"},
		{`#DIMEMAS:"x":0`, "test.dim:1: header: after the name want"},
		{`#DIMEMAS:"x":1:1(1),1`, `test.dim:1: header: the offsets are "1"; want 1,POSITION`},
		{`#DIMEMAS:"x":1,0:1(1),1`, `test.dim:1: header: the offsets are "1,0"; want 1,POSITION`},
		{`#DIMEMAS:"x":0:1`, `test.dim:1: header: the number of tasks is "1"; want tasks(`},
		{`#DIMEMAS:"x":0:0(),1`, `test.dim:1: header: the number of tasks is "0"`},
		{`#DIMEMAS:"x":0:9999999999(1),1`, `test.dim:1: header: the number of tasks is "9999999999"`},
		{`#DIMEMAS:"x":0:2(1,1,1),1`, `test.dim:1: header: 2 tasks and 3 numbers of threads`},
		{`#DIMEMAS:"x":0:2(1,4),1`, `test.dim:1: header: task 1 has 4 threads; commq reads tasks of one thread`},
		{`#DIMEMAS:"x":0:2(1,1`, `test.dim:1: header: the list of threads is not closed`},
		{`#DIMEMAS:"x":0:2(1,-)`, `test.dim:1: header: the threads of task 1 are "-"`},
		{`#DIMEMAS:"x":0:2(1,1)`, `test.dim:1: header: the number of communicators is ""`},
		{`#DIMEMAS:"x":0:2(1,1),1,1(0),0`, `test.dim:1: header: "1(0)" tasks with accelerators`},
		{`#DIMEMAS:"x":0:2(1,1),1,0,2(0,1)`, `test.dim:1: header: "2(0" tasks with OpenMP`},
		{head("d:1:1:3:0:1"), `test.dim:2: communicator 1: "3" tasks are said and 2 are listed`},
		{head("d:1:1:2:0:2"), `test.dim:2: communicator 1: the task "2"; want one of the 2 tasks, from 0`},
		{head("d:1:1:2:1:1"), `test.dim:2: communicator 1 has task 1 twice`},
		{head("d:1:1:1:1", "d:1:1:1:0"), `test.dim:3: communicator 1 is defined in line 2 already`},
		{head("d:9:1"), `test.dim:2: definition "d:9:1"; want d:1:communicator`},
		{head("d:1:x:1:0"), `test.dim:2: definition: the communicator is "x"`},
		{head("1:0:0:1", "d:1:1:1:0"), `test.dim:3: a definition after the first record`},
		{head("1:0:0:1", "1:1:0:1", "1:0:0:1"),
			`test.dim:4: a record of task 0, whose records began at line 2 and ended before others came`},
		{head("1:2:0:1"), `test.dim:2: a record of task 2; the header says that there are 2 tasks, from 0`},
		{head("1:0:0:1", "s:1:29"), `test.dim:3: found "s:1:29"; want s:0:position`},
		{head("1:0:0:1", "s:0:x"), `test.dim:3: the position is "x"`},
		{head("1:0:0:1", "s:0:3", "s:1:3", "1:0:0:1"), `test.dim:5: found "1:0:0:1" after the offset lines`},
		{head("hello"), `test.dim:2: found "hello"; want a record TYPE:TASK:THREAD:FIELDS, a definition d: or an offset line s:`},
		{one("x:0:0:1"), `test.dim:4: found "x:0:0:1"; want a record`},
		{one("1:0:1:0.5"), `test.dim:4: record of thread 1 of task 0; commq reads tasks of one thread`},
		{one("1:0:0"), `test.dim:4: record 1 of task 0 has no fields after the thread`},
		{one("1:0:0:1:2"), `test.dim:4: CPU burst of task 0: the duration is "1:2"; want seconds`},
		{one("1:0:0:9999999"), `test.dim:4: CPU burst of task 0: the duration is "9999999"`},
		{one("5:0:0:1"), `test.dim:4: record 5 of task 0: there is no such type; there are 0 (no-op), 1 (CPU burst)`},
		{one("11:0:0:1"), `test.dim:4: GPU burst of task 0: what accelerators compute has no place in a run`},
		{one("20:0:0:1"), `test.dim:4: event of task 0: its fields are no event; want type:value`},
		{one("20:0:0:1:99999999999999999999"), `test.dim:4: event of task 0: its fields are no event`},
		{one("2:0:0:1:-1:9:9:1"), `test.dim:4: send of task 0: bytes is "-1"; want a whole number from 0`},
		{one("2:0:0:1:9:9:1"), `test.dim:4: send of task 0: 4 fields after the thread; want task:thread:bytes:tag:communicator:synchronism`},
		{one("2:0:0:1:-1:9:9:1:4"), `test.dim:4: send of task 0: synchronism is "4"; want a whole number from 0 to 3`},
		{one("2:0:0:1:-1:-9:9:1:0"), `test.dim:4: send of task 0: bytes is "-9"; want a whole number from 0 to 9223372036854775807`},
		{one("2:0:0:1:-1:9223372036854775808:9:1:0"),
			`test.dim:4: send of task 0: bytes is "9223372036854775808"; want`},
		{one("2:0:0:1:0:9:9:1:0"), `test.dim:4: send of task 0: the partner is thread 0: a dependency between threads`},
		{one("2:0:0:2:-1:9:9:1:0"), `test.dim:4: the partner is task 2; there are 2 tasks, from 0`},
		{one("3:0:0:-1:-1:9:9:1:0"), `test.dim:4: receive of task 0: the partner is task -1; MPI_ANY_SOURCE cannot be replayed: write the task`},
		{one("3:0:0:1:-1:9:9:1:3"), `test.dim:4: receive of task 0: kind is "3"; want a whole number from 0 to 2`},
		{one("3:0:0:1:-1:9:-2147483648:1:0"),
			`test.dim:4: receive of task 0: tag is "-2147483648"; want a whole number from -2147483647 to`},
		{one("10:0:0:0:1:0:0:0"), `test.dim:4: collective of task 0: 5 fields after the thread; want operation:communicator`},
		{one("10:0:0:32:1:0:0:0:0"), `test.dim:4: collective of task 0: operation is "32"; want a whole number from 0 to 31`},
		{one("10:0:0:0:3:0:0:0:0"), `test.dim:4: communicator 3 is not defined; want a line d:1:3:n:task:...`},
		{head("d:1:4:1:1", "1:0:0:1", "10:0:0:0:4:0:0:0:0"), `test.dim:4: task 0 is no member of communicator 4`},
		{one("10:0:0:1:1:2:0:0:0"), `test.dim:4: collective of task 0: is_root is 2; want 1 on the root and 0 elsewhere`},
		{one("10:0:0:10:1:2:0:0:0:3"), `test.dim:4: the root of MPI_Reduce is task 2, no member of communicator 1`},
		{one("10:0:0:11:1:0:0:0:0:3"), `test.dim:4: collective of task 0: synchronism 3 of operation 11; only MPI_Reduce`},
		{one("10:0:0:27:1:0:0:0:0:1"), `test.dim:4: collective of task 0: operation 27 is nonblocking, and the synchronism is 1`},
		{one("10:0:0:11:1:0:0:0:0:2"), `test.dim:4: wait for a nonblocking collective, and none is open`},
		{head("d:1:1:2:0:1", "1:0:0:1", "10:0:0:0:1:0:0:0:0", "1:1:0:1", "10:1:0:8:1:0:0:0:0"),
			`test.dim:6: operation 0 of the communicator is MPI_Alltoall here, and MPI_Barrier of task 0 in line 4; all ranks make the same`},
		{head("d:1:1:2:0:1", "1:0:0:1", "10:0:0:1:1:1:0:0:0", "1:1:0:1", "10:1:0:1:1:1:0:0:0"),
			`test.dim:6: operation 0 of the communicator has the root 1 here, and 0 by line 4`},
		{head("1:0:0:4611686", "0:0:0", "1:0:0:4611686"),
			`test.dim:4: task 0 computes more than 53 days without communication`},
		{head("1:0:0:4611686", "1:0:0:1", strings.Repeat("1", maxLine+9)),
			`test.dim: line 4 has more than 67108864 bytes`},
	} {
		r, err := imported(t, c.text, Options{})
		if r != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.80q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	if _, err := importTo(context.Background(), failing{}, 100, &formatstest.Memory{}, Options{Name: "x"}); !errors.Is(err,
		io.ErrClosedPipe) {
		t.Error(err)
	}
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

// The import also works on disk, and a failed one leaves no files.
func TestImportOnDisk(t *testing.T) {
	store := t.TempDir()
	text := file("d:1:1:2:0:1 1:0.5 10:0:1:0:0:0:0 1:0", "1:0.25 10:0:1:0:0:0:0 1:0")
	out, err := writer.Create(store, "good", writer.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Import(context.Background(), strings.NewReader(text), int64(len(text)), out, Options{Name: "dir/t.dim"})
	if err != nil || m.Counts.Collectives != 1 || m.Origin.Trace.File != "t.dim" {
		t.Fatal(m, err)
	}
	if out, err = writer.Create(store, "bad", writer.Options{}); err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "10:0:0:0:1", "10:0:0:0:2", 1)
	if _, err := Import(context.Background(), strings.NewReader(text), int64(len(text)), out,
		Options{Name: "t.dim"}); err == nil {
		t.Fatal("no error")
	}
	if left, _ := os.ReadDir(store); len(left) != 1 {
		t.Errorf("%v", left)
	}
}

// Any file gives either an error that names a line, or a run that breaks no rule.
func FuzzImport(f *testing.F) {
	f.Add([]byte(file("d:1:1:2:0:1 1:0.5 3:1:-1:8:9:1:1 2:1:-1:8:9:1:3 3:1:-1:8:9:1:2 10:0:1:0:0:0:0 1:1e-3",
		"1:0.25 2:0:-1:8:9:1:0 3:0:8:9:1:0 10:0:1:0:0:0:0:1 20:3:4")))
	f.Add([]byte(file("d:1:1:2:0:1 d:2:9 d:1:2:1:1 1:0 10:10:1:1:0:8:0:3 10:11:1:0:0:8:8:0 10:10:1:0:0:8:8:1 10:27:1:0:0:8:8:2", "1:0 10:10:1:1:0:8:8:3 10:27:1:0:0:8:8:0 0 10:10:1:0:0:3:4:1 1:1 1:2")))
	f.Add([]byte("#DIMEMAS:\"x\":0:3(1,1,1),1\n\n1:2:0:1\n2:2:0:0:-2:1:2:0:1\n1:0:0:1\n3:0:0:2:-1:1:2:0:1\n3:0:0:2:-1:5:2:0:2\n"))
	f.Fuzz(fuzzImport)
}

func fuzzImport(t *testing.T, data []byte) {
	if bytes.IndexByte(data, '\n') > 1000 {
		return // so many tasks
	}
	var fails []error
	for _, o := range []Options{{}, {Events: true, epochRows: 3, shardRows: 2}} {
		_, err := imported(t, string(data), o)
		if err != nil && !strings.HasPrefix(err.Error(), "test.dim:") {
			t.Fatal(err)
		}
		fails = append(fails, err)
	}
	if (fails[0] == nil) != (fails[1] == nil) {
		t.Fatal(fails)
	}
}

// The same with files whose records are changed as a whole.
func FuzzImportEdited(f *testing.F) {
	seeds := []string{
		file("d:1:1:2:0:1 1:0.5 3:1:-1:8:9:1:1 2:1:-1:8:9:1:3 3:1:-1:8:9:1:2 10:0:1:0:0:0:0 1:1e-3",
			"1:0.25 2:0:-1:8:9:1:0 3:0:8:9:1:0 10:0:1:0:0:0:0:1 20:3:4"),
		file("d:1:1:2:0:1 d:2:9 d:1:2:1:1 1:0 10:10:1:1:0:8:0:3 10:11:1:0:0:8:8:0 10:10:1:0:0:8:8:1 10:27:1:0:0:8:8:2",
			"1:0 10:10:1:1:0:8:8:3 10:27:1:0:0:8:8:0 0 10:10:1:0:0:3:4:1 1:1 1:2"),
	}
	f.Add(uint8(0), []byte{0, 9, 1, 8, 1, 0, 4, 7})
	f.Add(uint8(1), []byte{0, 2, 6, 3})
	f.Fuzz(func(t *testing.T, seed uint8, edits []byte) {
		fuzzImport(t, []byte(mutate.Text(seeds[int(seed)%len(seeds)], edits)))
	})
}
