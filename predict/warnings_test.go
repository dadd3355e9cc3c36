package predict

import (
	"slices"
	"strings"
	"testing"
)

// TestWarnings: three runs of a ring, asked at eight times the largest: they are few and far, each is said once and names a run that can be made.
func TestWarnings(t *testing.T) {
	m := trained(t, []int{4, 8, 16}, func(ranks int) *Run { return ring(ranks, "cpu") })
	x, err := m.Extrapolate(t.Context(), 128, nil)
	if err != nil {
		t.Fatal(err)
	}
	warnings := m.WarningsAt(128, x)
	names := map[string]int{}
	for _, w := range warnings {
		names[w.Name]++
		if w.Run != 0 && (w.Run == 128 || w.Run&(w.Run-1) != 0 || slices.Contains(m.Training, w.Run)) {
			t.Errorf("%s: a run on %d ranks is proposed", w.Name, w.Run)
		}
	}
	for _, name := range []string{FewRuns, FarAway} {
		if names[name] != 1 {
			t.Errorf("%s is said %d times: %+v", name, names[name], warnings)
		}
	}
	if names[NotExplained]+names[Undecided]+names[NewPaths]+names[LayoutSwitch] > 0 {
		t.Errorf("warnings without a cause: %+v", warnings)
	}
	for _, s := range Suggest(warnings) {
		if s.Ranks < 2 || len(s.Reasons) == 0 {
			t.Errorf("%+v", s)
		}
	}
	if s := m.Slots(x); len(s) != 2 || s[0].Calls != 128 || s[0].Bytes != 128*4097 || s[0].BytesLow != s[0].Bytes || !strings.Contains(s[0].Equation, "K hops from P = 16") {
		t.Errorf("%+v", s)
	}
	if c := m.Coverage(x, signed(t, ring(128, "cpu"))); c.Numbers != 256 || c.Covered != 256 || c.ExactRight != 256 {
		t.Errorf("%+v", c)
	}
}

// TestNewPaths: a call that the largest run alone has is told.
func TestNewPaths(t *testing.T) {
	m := trained(t, []int{4, 8, 16, 32}, func(ranks int) *Run {
		return sendsTo(ranks, 2, func(r, i int) (int, int) {
			if i == 1 && ranks < 32 {
				return -1, 0
			}
			return (r + 1) % ranks, 4097
		})
	})
	if !slices.ContainsFunc(m.WarningsAt(64, nil), func(w Warning) bool { return w.Name == NewPaths && strings.HasPrefix(w.Text, "1 call paths") }) {
		t.Errorf("%+v", m.WarningsAt(64, nil))
	}
}
