package uniform

import (
	"slices"
	"testing"
)

func testInts[T int16 | int32 | int64](t *testing.T, name string) {
	for n := range 70 {
		v := slices.Repeat([]T{-3}, n)
		if !Ints(v) {
			t.Errorf("%s: %d equal values are not uniform", name, n)
		}
		for i := range n {
			for _, other := range []T{-2, -3 ^ 0x100, 5} {
				v[i] = other
				if Ints(v) && n > 1 {
					t.Errorf("%s: %v is uniform", name, v)
				}
			}
			v[i] = -3
		}
	}
}

func TestInts(t *testing.T) {
	testInts[int16](t, "int16")
	testInts[int32](t, "int32")
	testInts[int64](t, "int64")
}

func TestTexts(t *testing.T) {
	for _, v := range [][]string{nil, {"a"}, {"a", "a", "a"}} {
		if !Texts(v) {
			t.Errorf("%q is not uniform", v)
		}
	}
	if v := []string{"a", "a", "b"}; Texts(v) {
		t.Errorf("%q is uniform", v)
	}
}
