package simrank

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/commq/commq/capture/spool"
)

// slots are so many slots, a CALL and a COLL in turn.
func slots(n int) []byte {
	b := make([]byte, n*spool.SlotBytes)
	for i := range n {
		kind := spool.KindCall
		if i%2 == 1 {
			kind = spool.KindColl
		}
		b[i*spool.SlotBytes] = byte(i + 1)
		b[i*spool.SlotBytes+int(kindOffset)] = byte(kind)
	}
	return b
}

// head is a header that says that two calls are dropped.
func head() []byte {
	b := bytes.Repeat([]byte{0xee}, spool.HeaderBytes)
	binary.LittleEndian.PutUint64(b[droppedOffset:], 2)
	return b
}

// limitFiles bounds the size of files, as a full disk does, until the function it returns is called.
func limitFiles(t *testing.T, size uint64) (restore func()) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Fatal(err)
		}
	}
}

// There is room for the header and 25 1/2 slots. The file ends behind the last whole call, which is two slots long,
// and the header says how many are missing.
func TestFullDisk(t *testing.T) {
	sent := input{Event: Event{Kind: Sent, Rank: 0, Peer: 1, TimePs: 5}}
	const at = spool.HeaderBytes
	for name, c := range map[string]struct {
		more []input
		size int
		lost uint64 // and the 2 of the header
	}{
		"no more":               {nil, 24, 8},                                          // 20 calls - 12
		"the same again":        {[]input{records(0, 0, at, slots(40))}, 24, 8},        // not counted twice
		"more":                  {[]input{records(0, 0, at+40*64, slots(10))}, 24, 13}, // and 5
		"more, and the header":  {[]input{records(0, 0, at+40*64, slots(10)), records(0, 0, 0, head())}, 24, 13},
		"the header, and more":  {[]input{records(0, 0, 0, head()), records(0, 0, at+40*64, slots(10))}, 24, 13},
		"a call that has ended": {[]input{records(0, 0, at+22*64, slots(1))}, 24, 8},
	} {
		restore := limitFiles(t, at+25*64+32)
		all := append([]input{hello(0, 2), records(0, 0, 0, head()), records(0, 0, at, slots(40))}, c.more...)
		r := runOn(t, machine(t, tenMicros), encode(append(all, sent, input{Event: Event{Kind: Sync, Rank: 0}},
			left(0))...))
		restore()
		if r.err != nil || strings.Count(r.log, "\n") != 1 ||
			!strings.Contains(r.log, "file too large: recording stops there and the program goes on") ||
			len(r.answers) != 2 {
			t.Errorf("%s: %v, %d answers\n%s", name, r.err, len(r.answers), r.log)
		}
		want := append(head(), slots(c.size)...)
		binary.LittleEndian.PutUint64(want[droppedOffset:], 2+c.lost)
		if len(c.more) == 1 && c.more[0].N == at+22*64 {
			copy(want[at+22*64:], slots(1))
		}
		got, err := os.ReadFile(filepath.Join(r.spool, "0000000000000abc.0.0.cqs"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %d bytes, want %d; %d dropped, want %d", name, err, len(got), len(want),
				binary.LittleEndian.Uint64(got[droppedOffset:]), 2+c.lost)
		}
	}
}

// A file that cannot even have its header is not left behind.
func TestNoRoomForTheHeader(t *testing.T) {
	restore := limitFiles(t, 100)
	r := runOn(t, machine(t, tenMicros), encode(hello(0, 2), records(0, 0, 0, head()), records(0, 0, 4096, slots(3)),
		left(0)))
	restore()
	if files, err := os.ReadDir(r.spool); err != nil || r.err != nil || len(files) != 1 ||
		filepath.Ext(files[0].Name()) != ".json" {
		t.Errorf("%v, %v, %v", files, err, r.err)
	}
}

// More files than may be open at a time.
func TestManyFiles(t *testing.T) {
	const ranks = 9
	var out bytes.Buffer
	a := newAnswers(&out)
	d := newDisk(t.TempDir(), a, &out)
	d.job, d.most = testJob, 3
	for round := range 5 {
		for rank := range int32(ranks) {
			d.queue <- chunk{kind: Records, rank: rank, offset: int64(round) * 8,
				data: fmt.Appendf(nil, "%d of %2d|", round, rank)}
		}
	}
	d.close()
	if err := a.close(); err != nil || out.Len() != 0 || len(d.open) != 0 {
		t.Errorf("%v, %d open: %s", err, len(d.open), out.String())
	}
	for rank := range ranks {
		got, err := os.ReadFile(filepath.Join(d.dir, fmt.Sprintf("%016x.%d.0.cqs", testJob, rank)))
		want := ""
		for round := range 5 {
			want += fmt.Sprintf("%d of %2d|", round, rank)
		}
		if string(got) != want {
			t.Errorf("rank %d: %q, want %q: %v", rank, got, want, err)
		}
	}
}

// A folder in the way, and a file of the same name.
func TestFilesThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "0000000000000abc.0.0.cqs")
	if err := os.WriteFile(name, []byte("another job's"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	in := encode(hello(0, 1), records(0, 0, 0, head()), records(0, 0, 4096, slots(2)), left(0))
	err := Run(t.Context(), bytes.NewReader(in), &out, Options{Machine: machine(t, tenMicros), Spool: dir, Log: &log})
	if got, _ := os.ReadFile(name); err != nil || string(got) != "another job's" ||
		!strings.Contains(log.String(), "file exists: recording stops there") {
		t.Errorf("%v, %q\n%s", err, got, log.String())
	}
	if err := Run(t.Context(), bytes.NewReader(in), &out,
		Options{Machine: machine(t, tenMicros), Spool: name, Log: &log}); err == nil ||
		!strings.Contains(err.Error(), "make the spool: ") {
		t.Error(err)
	}
}
