package diagnose

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// siteName names call sites by their number.
func siteName(site int32) string { return fmt.Sprint(site) }

// Ranks with an excess between different calls are groups; the same ranks in several places are one, as are ranks that
// do the same work before other lines.
func TestGroupsOfRanks(t *testing.T) {
	const none = -1 // the rank does not reach the line
	for _, c := range []struct {
		name  string
		lines [][]int64 // computing of each rank, by line
		want  string    // the excess of each group, and the line that is named
	}{
		{"two groups", [][]int64{{20, 20, 20, 25}, {3, 3, 0, 0}}, "[map[0:3 1:3] at 1 map[3:5] at 0]"},
		{"a rank at one line, with another at a second", [][]int64{{20, 20, 20, 25}, {20, 20, 24, 24}},
			"[map[2:4 3:4] at 1 map[3:5] at 0]"},
		{"the same ranks at two lines", [][]int64{{20, 25, 20, 25}, {20, 23, 20, 23}}, "[]"},
		{"another order", [][]int64{{5, 0, 5, 0}, {20, 25, 20, 25}}, "[]"},
		{"another order, and more to do", [][]int64{{24, 24, 30, 0}, {0, 0, 0, 24}}, "[]"},
		{"a rank that hardly matters in a group", [][]int64{{60, 20, 20, 20}, {28, 20, 24, 20}, {20, 20, 20, 40}},
			"[map[0:48] at 0 map[3:20] at 2]"},
		{"a small second group", [][]int64{{20, 20, 20, 60}, {21, 20, 20, 20}}, "[]"},
		{"the same work before lines of some ranks", [][]int64{{30, 20, 20, 20}, {25, 25, none, none}, {none, none, 25, 25},
			{20, 20, 20, 25}}, "[map[0:10] at 0 map[3:5] at 3]"},
		{"work of one rank alone", [][]int64{{20, 20, 20, 26}, {90, none, none, none}, {21, 20, 20, 20}, {20, 20, 20, 60}},
			"[map[0:91] at 1 map[3:46] at 3]"},
		{"lines of some ranks and the next one of all", [][]int64{{3, 3, none, none}, {20, 20, 20, 25}}, "[map[0:3 1:3] at 0 map[3:5] at 1]"},
	} {
		var calls []computes
		for site, ns := range c.lines {
			for rank, x := range ns {
				if x != none {
					calls = append(calls, computes{int32(rank), int32(site), x})
				}
			}
		}
		computed := divided(calls, len(c.lines[0]))
		total := computed.total(len(c.lines[0]))
		var got []string
		for _, g := range groupsOfRanks(deductOrder(stretchesOf(computed, siteName, len(total)), total)) {
			first := g.cause(computed, siteName, total).parts[0]
			got = append(got, fmt.Sprint(g.excess, " at ", first.place))
		}
		if text := fmt.Sprint(got); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}

// What the ranks of a group compute too much is taken away where they do, and nowhere else.
func TestWithoutGroup(t *testing.T) {
	var calls []computes
	var want []int64
	for range 3 {
		calls = append(calls, computes{0, 7, 50}, computes{1, 7, 20}, computes{0, 8, 20}, computes{1, 8, 60})
		want = append(want, 20, 20, 20, 60)
	}
	computed := divided(calls, 2)
	g := &group{excess: map[int32]int64{}}
	for _, s := range stretchesOf(computed, siteName, 2) {
		if s.excess[0] > 0 {
			g.add(s)
		}
	}
	b := batch(calls)
	g.cause(computed, siteName, computed.total(2)).change().apply(b)
	if diff := cmp.Diff(want, b.ComputeNs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The sentence about a group names the ranks and the time of its first call only, and what is elsewhere apart.
func TestGroupTitle(t *testing.T) {
	first := &part{place: "w.c:3", call: schema.CallIrecv, excess: map[int32]int64{0: 5e6}, computed: map[int32]int64{0: 10e6}}
	other := &part{place: "v.c:4", call: schema.CallBcast, excess: map[int32]int64{0: 1e6, 2: 2e6, 5: 3e6}}
	for _, c := range []struct {
		parts []*part
		want  string
	}{
		{[]*part{first}, "Rank 0 computes 5 ms longer than the others before MPI_Irecv at w.c:3"},
		{[]*part{first, other}, "Rank 0 computes 5 ms longer than the others before MPI_Irecv at w.c:3, and together with 2 other ranks " +
			"6 ms before other calls"},
		{[]*part{other, first}, "Ranks 0, 2 and 5 compute up to 3 ms longer than the others before MPI_Bcast at v.c:4, and 5 ms before other calls"},
	} {
		x := &cause{rule: Imbalance, group: true, parts: c.parts}
		if got := x.title(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if got := (&cause{group: true, parts: []*part{first, other}}).timesMore(); got != 1 {
		t.Errorf("longer by %v of the others' time, want 1", got)
	}
	if got := (&cause{total: []int64{25, 20, 20, 20}, parts: []*part{first}}).timesMore(); got != 0.25 {
		t.Errorf("in the whole run longer by %v, want 0.25", got)
	}
}

// Most of an imbalance is before a call only if half of it is.
func TestBeforeFirst(t *testing.T) {
	for ns, want := range map[int64]string{50: "most of it before X", 200: "33.3 % of the excess before X"} {
		c := &cause{parts: []*part{{excess: map[int32]int64{1: 100}}, {excess: map[int32]int64{1: ns}}}}
		if got := c.beforeFirst("before X"); got != want {
			t.Errorf("beside %d ns: %s, want %s", ns, got, want)
		}
	}
}
