package evidence

import (
	"math"
	"testing"
)

// choices are pairs of a value that was chosen and one that was not.
type choices [][2]int64

// TestChoices: the chance that a random order of the values is one of all choices, worked out by hand.
func TestChoices(t *testing.T) {
	star := choices{}
	for other := range int64(7) {
		star = append(star, [2]int64{99, other})
	}
	for _, c := range []struct {
		name string
		list choices
		want float64
	}{
		{"none", nil, 0},
		{"one", choices{{5, 3}}, 1},
		{"the same again", choices{{5, 3}, {5, 3}, {5, 3}}, 1},
		{"the greatest of eight: 1/8", star, 3},
		{"a chain of four: 1/4!", choices{{2, 1}, {3, 2}, {4, 3}}, math.Log2(24)},
		// subtrees of 8, 4, 2 and 2 values; the others are leaves
		{"a tournament of eight", choices{{2, 1}, {4, 3}, {6, 5}, {8, 7}, {4, 2}, {8, 6}, {8, 4}}, 7},
		{"what follows from others", choices{{2, 1}, {3, 2}, {3, 1}}, math.Log2(6)},
		{"equal in turns", choices{{1, 2}, {2, 1}}, 0},
	} {
		var told Comparisons
		for _, pair := range c.list {
			told.AddChoice(pair[0], pair[1])
		}
		if got := told.Bits(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g bits, want %g", c.name, got, c.want)
		}
	}
}

// TestResults: a value counts once, whoever has it; zero tells nothing.
func TestResults(t *testing.T) {
	var told, other Comparisons
	told.AddResult(300, ValueBits(9))
	told.AddResult(300, ValueBits(9))
	other.AddResult(300, ValueBits(9))
	other.AddResult(1<<40, ValueBits(41)) // 32 at most
	other.AddResult(-1, ValueBits(0))
	told.Add(&other)
	if got := told.Bits(); got != 41 {
		t.Errorf("%g bits, want 41", got)
	}
}

// TestEqual: of payloads of two values equal ones tell half as many bits as of many.
func TestEqual(t *testing.T) {
	for _, c := range []struct {
		first   []int64
		changed int64
		want    float64
	}{
		{[]int64{1, 2, 3, 4, 5}, 1, math.Log2(12)}, // 10 pairs, none equal
		{[]int64{1, 1, 1, 1, 1}, 9, 9 * math.Log2(12.0/11)},
		{[]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 9, 16}, // no more
	} {
		if got := EqualBits(c.first, c.changed); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v changed %d times: %g bits, want %g", c.first, c.changed, got, c.want)
		}
	}
}
