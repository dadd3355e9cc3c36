package mutate

import (
	"fmt"
	"testing"
)

func TestJSON(t *testing.T) {
	const text = `{"a":[1,2],"b":"x"}`
	for _, test := range []struct {
		edits []byte
		want  string
	}{
		{nil, `{"a":[1,2],"b":"x"}` + "\n"},
		{[]byte{0, 2, 0, 9}, `{"a":[2147483647,2],"b":"x"}` + "\n"},
		{[]byte{0, 3, 1, 0}, `{"a":[1],"b":"x"}` + "\n"},
		{[]byte{0, 1, 2, 0}, `{"a":[],"b":"x"}` + "\n"},
		{[]byte{0, 4, 3, 2}, `{"a":[1,2],"b":[1,2]}` + "\n"},
		{[]byte{0, 4, 7, 3}, `{"a":[1,2],"b":"xxx"}` + "\n"},
		{[]byte{0, 1, 6, 1, 0, 4, 4, 0}, `{"a":[1,2,null],"b":"x"}` + "\n"},
	} {
		if got := JSON(text, test.edits); got != test.want {
			t.Errorf("%v: %q, want %q", test.edits, got, test.want)
		}
	}
}

func TestText(t *testing.T) {
	const text = "a: 1\nb: 2\n"
	for _, test := range []struct {
		edits []byte
		want  string
	}{
		{[]byte{0, 2, 1, 11}, "a: 4294967295\nb: 2\n"},
		{[]byte{0, 0, 0, 0}, "b: 2\n"},
		{[]byte{0, 0, 4, 1}, "b: 2\na: 1\n"},
		{[]byte{0, 3, 1, 0}, "a: 1\na: 2\n"},
	} {
		if got := Text(text, test.edits); got != test.want {
			t.Errorf("%v: %q, want %q", test.edits, got, test.want)
		}
	}
}

func TestGrowthIsBounded(t *testing.T) {
	for what := range 256 {
		var edits []byte
		for i := range mostEdits {
			edits = append(edits, 0, byte(i), byte(what), 255)
		}
		if n := len(Text("a: 1\nb: 2\n", edits)); n > 256*mostBytes {
			t.Errorf("what %d: a text of %d bytes", what, n)
		}
		if n := len(JSON(`{"a":[1,2],"b":"x"}`, edits)); n > 256*mostBytes {
			t.Errorf("what %d: a document of %d bytes", what, n)
		}
	}
}

func TestValue(t *testing.T) {
	type inner struct{ n int32 }
	type state struct {
		a    int
		list []inner
		next *inner
		left []int `snapshot:"-"`
	}
	fresh := func() *state {
		return &state{a: 5, list: []inner{{1}, {2}, {3}}, next: &inner{9}, left: []int{7}}
	}
	for _, test := range []struct { // the places: a, list, its three numbers, next, its number
		edits []byte
		want  string
	}{
		{nil, "5 [{1} {2} {3}] 9 [7]"},
		{[]byte{0, 0, 2, 13}, "9223372036854775807 [{1} {2} {3}] 9 [7]"},
		{[]byte{0, 0, 1, 3}, "6 [{1} {2} {3}] 9 [7]"},
		{[]byte{0, 2, 0, 1}, "5 [{2} {2} {3}] 9 [7]"},
		{[]byte{0, 1, 1, 0}, "5 [] 9 [7]"},
		{[]byte{0, 1, 2, 2}, "5 [{1} {2}] 9 [7]"},
		{[]byte{0, 1, 6, 1}, "5 [{1} {3}] 9 [7]"},
		{[]byte{0, 1, 7, 2}, "5 [{1} {2} {3} {3}] 9 [7]"},
		{[]byte{0, 5, 1, 0}, "5 [{1} {2} {3}] nil [7]"},
	} {
		s := fresh()
		Value(s, test.edits)
		next := "nil"
		if s.next != nil {
			next = fmt.Sprint(s.next.n)
		}
		if got := fmt.Sprint(s.a, s.list, " ", next, " ", s.left); got != test.want {
			t.Errorf("%v: %q, want %q", test.edits, got, test.want)
		}
	}
}
