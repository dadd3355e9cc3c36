package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/internal/snapshot"
)

// state has a field of every kind that a snapshot can hold.
type state struct {
	count  int64
	small  [3]int16
	flag   bool
	ratio  float64
	name   string
	list   []pair
	empty  []int32
	none   []int32
	texts  []string
	byName map[string]*node
	byPair map[pair][]int32
	sets   [2]map[int32]bool
	nodes  []*node
	first  *node
	back   *state
	*inner
	left func() `snapshot:"-"`
}

type pair struct {
	a int32
	b int64
}

type node struct {
	next  *node
	value int64
	of    *state
}

type inner struct{ deep []*node }

func filled() *state {
	s := &state{count: -5, small: [3]int16{3, 5, 9}, flag: true, ratio: 0.25, name: "4097 bytes",
		list: []pair{{3, 5}, {9, -1}}, empty: []int32{}, texts: []string{"", "x"},
		byPair: map[pair][]int32{{3, 5}: {9}, {5, 3}: nil}, sets: [2]map[int32]bool{{3: true, 5: false}, nil}}
	s.back = s
	last := &node{value: 9, of: s}
	s.first = &node{value: 3, next: &node{value: 5, next: last}}
	last.next = s.first // round
	s.nodes = []*node{last, nil, s.first, {value: 7}}
	s.byName = map[string]*node{"last": last, "own": {value: 11}, "other": {value: 13}, "none": nil}
	s.inner = &inner{deep: []*node{last}}
	return s
}

func TestReadRestoresWhatWasWritten(t *testing.T) {
	want := filled()
	var b bytes.Buffer
	if err := snapshot.Write(&b, want); err != nil {
		t.Fatal(err)
	}
	called := false
	got := &state{left: func() { called = true }, none: []int32{3}}
	if err := snapshot.Read(&b, got); err != nil {
		t.Fatal(err)
	}
	got.left()
	if !called {
		t.Error("what is left out does not stay")
	}
	got.left = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if got.back != got || got.nodes[0] != got.byName["last"] || got.nodes[0] != got.deep[0] ||
		got.first.next.next.next != got.first || got.nodes[0].of != got {
		t.Error("pointers that led to one thing lead to several")
	}
	if got.none != nil || got.empty == nil {
		t.Errorf("nil and empty: %v and %v", got.none, got.empty)
	}
}

func TestLongListNeedsNoDeepStack(t *testing.T) {
	s := &state{}
	for k := range int64(1 << 18) {
		s.first = &node{next: s.first, value: k}
	}
	var b bytes.Buffer
	if err := snapshot.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	got := &state{}
	if err := snapshot.Read(&b, got); err != nil {
		t.Fatal(err)
	}
	n := int64(1 << 18)
	for x := got.first; x != nil; x = x.next {
		if n--; x.value != n {
			t.Fatalf("%d, want %d", x.value, n)
		}
	}
	if n != 0 {
		t.Errorf("%d are missing", n)
	}
}

func TestLargeSlices(t *testing.T) {
	s := &state{list: make([]pair, 300_001), texts: make([]string, 70_001)}
	for i := range s.list {
		s.list[i].b = int64(i) * 3
	}
	for i := range s.texts {
		s.texts[i] = strings.Repeat("ab", i%5)
	}
	var b bytes.Buffer
	if err := snapshot.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	got := &state{}
	if err := snapshot.Read(&b, got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, s) {
		t.Error("what is read differs")
	}
}

func TestOtherTypesAreRefused(t *testing.T) {
	type one struct{ A, B int32 }
	type other struct{ A, C int32 }
	var b bytes.Buffer
	if err := snapshot.Write(&b, &one{3, 5}); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Read(bytes.NewReader(b.Bytes()), &other{}); err == nil ||
		!strings.Contains(err.Error(), "another version of the program") {
		t.Errorf("another field: %v", err)
	}
	if err := snapshot.Read(bytes.NewReader(b.Bytes()[:b.Len()-1]), &one{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %v", err)
	}
}

func TestWriteErrorsAreReturned(t *testing.T) {
	if err := snapshot.Write(full{}, filled()); !errors.Is(err, errFull) {
		t.Errorf("%v, want %v", err, errFull)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestFunctionFieldPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("nothing was said")
		}
	}()
	_ = snapshot.Write(io.Discard, &struct{ f func() }{})
}

// FuzzRead reads arbitrary bytes: the result is an error or a state, and memory is bounded by the number of bytes.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := snapshot.Write(&b, filled()); err != nil {
		f.Fatal(err)
	}
	whole := b.Bytes()
	f.Add([]byte{}, 32)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f}, 40)
	f.Add(whole[32:], 32)
	f.Fuzz(func(t *testing.T, put []byte, at int) {
		at = min(max(at, 32), len(whole))
		in := append(bytes.Clone(whole[:at]), put...)
		in = append(in, whole[min(len(whole), at+len(put)):]...)
		got := &state{}
		if err := snapshot.Read(bytes.NewReader(in), got); err != nil {
			return
		}
		var again bytes.Buffer
		if err := snapshot.Write(&again, got); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzReadEdited reads states whose values are changed, and whose lengths and numbers of objects are: an error, or a
// state that is the same as what was written.
func FuzzReadEdited(f *testing.F) {
	f.Add([]byte{0, 9, 1, 8, 1, 0, 4, 7}, 0, uint8(0), uint64(0))
	f.Add([]byte{}, 40, uint8(1), uint64(1<<40))
	f.Fuzz(func(t *testing.T, edits []byte, at int, leaveOut uint8, length uint64) {
		s := filled()
		mutate.Value(s, edits)
		if s.ratio != s.ratio {
			s.ratio = 0 // NaN differs from itself
		}
		var b bytes.Buffer
		if err := snapshot.Write(&b, s); err != nil {
			t.Fatal(err)
		}
		in, changed := b.Bytes(), leaveOut > 0
		if changed {
			at = 32 + int(uint(at)%uint(len(in)-32))
			end := min(at+int(leaveOut)-1, len(in))
			in = slices.Concat(in[:at], binary.AppendUvarint(nil, length), in[end:])
		}
		got := &state{}
		if err := snapshot.Read(bytes.NewReader(in), got); err != nil {
			if !changed {
				t.Fatal(err)
			}
			return
		}
		var again bytes.Buffer
		if err := snapshot.Write(&again, got); err != nil {
			t.Fatal(err)
		}
		if !changed && !reflect.DeepEqual(got, s) {
			t.Errorf("%+v was written, %+v was read", s, got)
		}
	})
}
