package mutate

import "testing"

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
