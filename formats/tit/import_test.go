package tit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// memory is a file in memory.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// inMemory opens texts as the files 0.txt, 1.txt, ...
func inMemory(texts ...string) opener {
	return func(path string) (file, int64, error) {
		var i int
		if _, err := fmt.Sscanf(path, "%d.txt", &i); err != nil {
			return nil, 0, errors.New("no such file")
		}
		return memory{bytes.NewReader([]byte(texts[i]))}, int64(len(texts[i])), nil
	}
}

// imported imports the trace in texts, a file each, and returns its rows.
func imported(t testing.TB, o Options, texts ...string) (*formatstest.Run, error) {
	t.Helper()
	var names []string
	for i := range texts {
		names = append(names, fmt.Sprintf("%d.txt", i))
	}
	store := t.TempDir()
	if _, err := importFiles(context.Background(), "test.txt", names, inMemory(texts...), store, "run", o); err != nil {
		return nil, err
	}
	return formatstest.Stored(t, filepath.Join(store, "run")), nil
}

// counted is a file that counts down when it is closed.
type counted struct {
	file
	open *int
}

func (c counted) Close() error {
	*c.open--
	return c.file.Close()
}

// No import leaves a file open, whatever it ends with.
func TestFilesAreClosed(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  string // of the error
	}{
		{[]string{"0 init\n0 send 1 9 8\n", "1 init\n1 recv 0 9 8\n"}, ""},
		{[]string{"0 init\n", "2 init\n"}, "rank 1 has no actions"},
		{[]string{"0 init\n", "one\n"}, "want a line such as"},
		{[]string{"0 init\n", "1 jump\n"}, "jump"},
	} {
		open := 0
		inMemory := inMemory(c.texts...)
		_, err := importFiles(t.Context(), "test.txt", []string{"0.txt", "1.txt"}, func(path string) (file, int64, error) {
			open++
			f, size, err := inMemory(path)
			return counted{f, &open}, size, err
		}, t.TempDir(), "run", Options{})
		if open != 0 || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %d files are open, %v", c.texts, open, err)
		}
	}
}

// computed returns the compute time of a run in ns.
func computed(t testing.TB, dir string) (ns int64) {
	t.Helper()
	if err := writer.ReadTable(context.Background(), dir, &schema.EventsTable, 1<<12, func(b schema.Batch) error {
		for _, c := range b.(*schema.Events).ComputeNs {
			ns += max(c, 0)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ns
}

// rows returns the rows of a run as text: rank, call and the columns that say something.
func rows(r *formatstest.Run) string {
	var b strings.Builder
	for i := range r.Events {
		e := &r.Events[i]
		fmt.Fprintf(&b, "%d.%d %s", e.Rank, e.Seq, strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_"))
		say := func(name string, x int64, null bool) {
			if !null {
				fmt.Fprintf(&b, " %s=%d", name, x)
			}
		}
		if e.ComputeNs != 0 {
			say("compute", e.ComputeNs, false)
		}
		say("instance", e.Instance, e.Instance == null64)
		say("to", int64(e.SendWorld), e.SendWorld == null32)
		say("stag", int64(e.SendTag), e.SendTag == null32)
		say("sent", e.SendBytes, e.SendBytes == null64)
		say("from", int64(e.RecvWorld), e.RecvWorld == null32)
		say("rtag", int64(e.RecvTag), e.RecvTag == null32)
		say("received", e.RecvBytes, e.RecvBytes == null64)
		say("root", int64(e.RootWorld), e.RootWorld == null32)
		say("done", e.DoneSeq, e.DoneSeq == null64)
		if e.Callsite != null32 {
			fmt.Fprintf(&b, " at=%s:%d", r.Callsites[e.Callsite].File, r.Callsites[e.Callsite].Line)
		}
		b.WriteString("\n")
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		fmt.Fprintf(&b, "%d.%d -> %d.%d.%d: %d\n", m.Src, m.SendSeq, m.Dst, m.RecvPostSeq, m.RecvDoneSeq, m.Bytes)
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		fmt.Fprintf(&b, "part %d.%d %d: %d %d\n", p.Rank, p.Seq, p.PeerWorld, p.SendBytes, p.RecvBytes)
	}
	return b.String()
}

// Messages and waits: the receive of rank 1 says 4097 bytes, its message has 17 ints; 1500 operations of a machine of
// 3 Gflop/s take 500 ns; the isend of rank 2 is completed by what smpirun does at the end.
func TestMessages(t *testing.T) {
	texts := []string{`# of rank 0
0 init
0 compute 1500
0 send 1 9 17 1
0 sendRecv 3 2 5 2 1 2
0 finalize
`, `1 init 1
1 irecv 0 9 4097 2
1 irecv 2 3 1e1
1 test 0 1 9
1 location ring.c 17
1 wait 2 1 3
1 compute 3000
1 wait 0 1 9
1 wait 0 1 9
1 location unknown -1
1 compute 30
1 finalize`, `2 init
2 isend 1 3 80
2 comm_dup
2 sendRecv 5 0 3 0 2 1
2 sleep 1e-6
2 finalize
`}
	want := `0.0 Send compute=500 to=1 stag=9 sent=68
0.1 Sendrecv to=2 stag=0 sent=12 from=2 rtag=0 received=5
0.2 Finalize
1.0 Irecv from=0 rtag=9 received=68 done=3
1.1 Irecv from=2 rtag=3 received=80 done=2
1.2 Wait at=ring.c:17
1.3 Wait compute=1000 at=ring.c:17
1.4 Finalize compute=10
2.0 Isend to=1 stag=3 sent=80 done=2
2.1 Sendrecv to=0 stag=0 sent=5 from=0 rtag=0 received=12
2.2 Waitall compute=1000
2.3 Finalize
0.0 -> 1.0.3: 68
0.1 -> 2.1.1: 12
2.0 -> 1.1.2: 80
2.1 -> 0.1.1: 5
`
	for _, epoch := range []int64{0, 3, 9} { // the last two: one and three rows of a rank
		r, err := imported(t, Options{FlopsPerSecond: 3e9, epochRows: epoch}, texts...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, rows(r)); diff != "" {
			t.Errorf("epochs of %d: %s", epoch, diff)
		}
	}
	one := strings.Join(texts, "\n") // the same in one file
	if r, err := imported(t, Options{FlopsPerSecond: 3e9}, one); err != nil || rows(r) != want {
		t.Errorf("one file: %v", err)
	}
}

// Collectives of three ranks, with the sizes of the columns send_bytes and recv_bytes written by hand.
func TestCollectives(t *testing.T) {
	text := ""
	for rank, lines := range []string{
		`init
		bcast 5 1 1
		gather 2 2 2 0 1
		gatherv 1 0 0 0 2 1 1
		scatterv 0 0 0 7 1 6 6
		allgatherv 3 3 4 5 1 1
		alltoallv 9 1 2 3 9 1 4 7
		reduce 3 600 0 0
		reducescatter 1 2 3 0 1
		barrier`,
		`init
		bcast 5 1 1
		gather 2 2 2 0 1
		gatherv 2 0 0 0 2 1 1
		scatterv 7 8 9 8 1 6 6
		allgatherv 4 3 4 5 1 1
		alltoallv 9 4 5 6 9 2 5 8
		reduce 3 600 0 0
		reducescatter 1 2 3 0 1
		barrier`,
		`init
		bcast 5 1 1
		gather 2 4 2 0 1
		gatherv 3 1 2 3 2 1 1
		scatterv 0 0 0 9 1 6 6
		allgatherv 5 3 4 5 1 1
		alltoallv 9 7 8 9 9 3 6 9
		reduce 3 600 0 0
		reducescatter 1 2 3 0 1
		barrier`} {
		for line := range strings.Lines(lines) {
			text += fmt.Sprintln(rank, strings.TrimSpace(line))
		}
	}
	r, err := imported(t, Options{}, text)
	if err != nil {
		t.Fatal(err)
	}
	want := `0.0 Bcast instance=0 sent=0 received=20 root=1
0.1 Gather instance=1 sent=16 received=0 root=2
0.2 Gatherv instance=2 sent=4 received=0 root=2
0.3 Scatterv instance=3 sent=0 received=7 root=1
0.4 Allgatherv instance=4 sent=12 received=48
0.5 Alltoallv instance=5 sent=6 received=12
0.6 Reduce instance=6 sent=24 received=24 root=0
0.7 Reduce_scatter compute=600 instance=7 sent=24 received=4
0.8 Barrier instance=8 sent=0 received=0
0.9 Finalize
1.0 Bcast instance=0 sent=20 received=0 root=1
1.1 Gather instance=1 sent=16 received=0 root=2
1.2 Gatherv instance=2 sent=8 received=0 root=2
1.3 Scatterv instance=3 sent=24 received=8 root=1
1.4 Allgatherv instance=4 sent=16 received=48
1.5 Alltoallv instance=5 sent=15 received=15
1.6 Reduce instance=6 sent=24 received=0 root=0
1.7 Reduce_scatter compute=600 instance=7 sent=24 received=8
1.8 Barrier instance=8 sent=0 received=0
1.9 Finalize
2.0 Bcast instance=0 sent=0 received=20 root=1
2.1 Gather instance=1 sent=16 received=48 root=2
2.2 Gatherv instance=2 sent=12 received=24 root=2
2.3 Scatterv instance=3 sent=0 received=9 root=1
2.4 Allgatherv instance=4 sent=20 received=48
2.5 Alltoallv instance=5 sent=24 received=18
2.6 Reduce instance=6 sent=24 received=0 root=0
2.7 Reduce_scatter compute=600 instance=7 sent=24 received=12
2.8 Barrier instance=8 sent=0 received=0
2.9 Finalize
`
	got, parts, _ := strings.Cut(rows(r), "part ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(parts, "part 1.5 2: 6 8\n") || !strings.Contains(parts, "part 2.2 1: 0 8\n") {
		t.Errorf("parts:\n%s", parts)
	}
}

// What is wrong with a trace is said with the line.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "0.txt: the trace has no actions",
		"hello world":                     `0.txt:1: found "hello world"; want a line such as 0 send 1 0 4096`,
		"0 init\n2 init":                  "rank 1 has no actions, and 2 ranks have",
		"0 init\n0 jump 3":                `0.txt:2: there is no action "jump"`,
		"0 init\n0 send 1 0 4":            `0.txt:2: send of rank 0: the other rank is "1"; want a number from 0 to 0`,
		"0 init\n0 send 0 0":              "0.txt:2: send of rank 0: field 3 is missing",
		"0 init\n0 irecv -333 0 4":        "MPI_ANY_SOURCE",
		"0 send 0 1 4":                    "1 sends have no receive and 0 receives no send",
		"0 bcast 4 0 99":                  "the datatype",
		"0 compute x":                     "the number of operations",
		"0 barrier\n1 barrier\n1 barrier": "0.txt:3: MPI_Barrier of rank 1 is collective operation 1, and only 1 of 2 ranks",
		"0 bcast 4\n1 bcast 4 1":          "0.txt:2: bcast of rank 1: it is collective operation 0 of the rank",
		"0 alltoallv 4 1 2\n1 barrier":    "want 2 numbers, one for each rank",
	} {
		if _, err := imported(t, Options{}, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
	if _, err := imported(t, Options{}, "0 init\n", "1 init\n0 finalize\n"); err == nil ||
		!strings.Contains(err.Error(), "1.txt:2: an action of rank 0, which has others in 0.txt") {
		t.Errorf("a rank in two files: %v", err)
	}
}

// A trace that smpirun -trace-ti of SimGrid 3.32 wrote of testdata/smpi.c: three ranks, whose arithmetic is in its
// comments.
func TestTraceOfSimGrid(t *testing.T) {
	m, err := ImportFile(context.Background(), "testdata/smpi.trace", t.TempDir(), "run", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := m.Counts; m.Ranks != 3 || c.Messages != 6 || c.MessageBytes != 3*(17*8+4) || c.Collectives != 15 {
		t.Errorf("%d ranks, %+v", m.Ranks, c)
	}
	for _, call := range []string{"MPI_Allreduce", "MPI_Alltoallv", "MPI_Reduce_scatter", "MPI_Exscan"} {
		if m.Collectives[call] != 1 {
			t.Errorf("%d %s; want 1", m.Collectives[call], call)
		}
	}
}

// A list may be a stranger's: it names files beside it, or below the working folder, and no others.
func TestListsNameNoOtherFiles(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret, beside := write("secret", "0 init\nhunter2\n"), write("in/0.txt", "0 init\n")
	below := write("in/sub/1.txt", "1 init\n")
	for name, want := range map[string]string{
		"0.txt": beside, beside: beside, "sub/1.txt": below, below: below, "gone/sub/0.txt": beside, "/gone/0.txt": beside,
		"../in/0.txt": beside, secret: "", "../secret": "", "sub/../../secret": "", "/etc/hostname": "",
	} {
		list := write("in/list", name+"\n")
		for _, folder := range []bool{false, true} {
			files, err := listed(list, folder)
			switch {
			case want == "" && (err == nil || !strings.Contains(err.Error(), "is outside the folder of the list")):
				t.Errorf("%s: %q, %v", name, files, err)
			case want != "" && folder && filepath.Base(name) != name: // the last name comes first
			case want != "" && (err != nil || len(files) != 1 || files[0] != want):
				t.Errorf("%s: %q, %v; want %s", name, files, err, want)
			}
		}
		if want == "" && (IsList(list) || IsFolder(in)) {
			t.Errorf("%s is a trace", name)
		}
	}
	link, other := filepath.Join(dir, "link"), write("0.txt", "0 init\n")
	if err := os.Symlink("in", link); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(link, "sub/1.txt") // the list is not named by the link
	if files, err := listed(write("in/list", linked+"\n"), false); err != nil || files[0] != linked {
		t.Errorf("below the folder of the list, through a link: %q, %v", files, err)
	}
	t.Chdir(dir)
	for name, want := range map[string]string{"secret": "secret", "../secret": secret, "0.txt": "0.txt",
		"../0.txt": other, "../../secret": ""} {
		files, err := listed(write("in/list", name+"\n"), false)
		if want == "" && err == nil || want != "" && (err != nil || files[0] != want) {
			t.Errorf("%s below the working folder: %q, %v; want %q", name, files, err, want)
		}
	}
}

// FuzzList reads lists: each file that one names is below its folder or the working folder.
func FuzzList(f *testing.F) {
	f.Add("0.txt\n# x\n\n sub/1.txt \n", true)
	f.Add("../list\n/etc/hostname", false)
	f.Add("0 init\n", false)
	f.Add("./sub/../0.txt\nsub//1.txt\n0.txt/\n..", true)
	f.Fuzz(func(t *testing.T, text string, beside bool) {
		dir := t.TempDir()
		list := filepath.Join(dir, ListName)
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o777), os.WriteFile(list, []byte(text), 0o666),
			os.WriteFile(filepath.Join(dir, "0.txt"), []byte("0 init\n"), 0o666),
			os.WriteFile(filepath.Join(dir, "sub/1.txt"), []byte("1 init\n"), 0o666)); err != nil {
			t.Fatal(err)
		}
		_, _ = IsList(list), IsFolder(dir)
		files, err := filesOf(list, beside)
		if err != nil {
			return
		}
		for _, file := range files {
			if !bounded.IsBelow(dir, file) && !bounded.IsBelow(".", file) {
				t.Errorf("%q", file)
			}
		}
		if trace, err := openTrace(files, openFile); err == nil {
			_ = trace.close()
		}
	})
}

func FuzzImport(f *testing.F) {
	f.Add("0 init\n1 init\n0 isend 1 9 17\n1 irecv 0 9 20\n0 waitall\n1 wait 0 1 9\n0 scan 5e4 5e8\n1 scan 5e4 5e8\n")
	f.Add("0 init 1\n0 gatherv 1 1 0 0 0\n0 location a.c 3\n0 sendRecv 1 0 1 0\n0 test 0 0 0\n0 sleep 1\n0 compute 1e9")
	f.Add("# x\n\n0 alltoallv 4 4 4 4 6 6\n0 scatterv 3 3 0\n0 allgatherv 1 1 0 0 0\n0 reducescatter 3 0 1")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := openTrace([]string{"0.txt"}, inMemory(text))
		if err != nil {
			return
		}
		u, err := read(context.Background(), "test.txt", trace, Options{epochRows: 4})
		if err != nil {
			return
		}
		var events schema.Events
		var parts schema.Parts
		want, got := int64(0), 0
		for epoch := range u.Epochs {
			for rank, calls := range u.Calls {
				if epoch == 0 {
					want += calls
				}
				if err := u.Next(int32(rank), &events, &parts); err != nil {
					t.Fatalf("the second pass: %v", err)
				}
			}
			got += events.Len()
			events.Resize(0)
			parts.Resize(0)
		}
		if int64(got) != want || got == 0 {
			t.Errorf("%d rows in the second pass, %d in the first", got, want)
		}
	})
}

// Bytes of all ranks together that do not fit are an error, and not a negative number.
func TestSumTooLarge(t *testing.T) {
	var f fields
	if got := f.sum([]int64{1 << 52, 3, 0}); got != 1<<52+3 || f.err != nil {
		t.Error(got, f.err)
	}
	all := make([]int64, 1<<11) // the most elements of the largest datatype, at 2048 ranks
	for i := range all {
		all[i] = mostElements * 16
	}
	if got := f.sum(all); got != 0 || f.err == nil || !strings.Contains(f.err.Error(), "more than 4611686018427387904 bytes") {
		t.Error(got, f.err)
	}
}
