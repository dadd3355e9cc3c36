package price

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPricesAreReadable: less than a ten-thousandth of the run is not reported as a saving.
func TestPricesAreReadable(t *testing.T) {
	of := &Pricing{Machine: "m", PredictedNs: 12_345_678_901}
	for _, c := range []struct {
		saved int64
		want  string
	}{
		{0, "saves and costs nothing measurable of 12.3 s on m"},
		{1_234_567, "saves and costs nothing measurable of 12.3 s on m"},
		{-1_234_568, "costs 1.23 ms of 12.3 s on m (0.010 %)"},
		{999_960_000, "saves 1.00 s of 12.3 s on m (8.10 %)"},
		{2_000_000_017, "saves 2.00 s of 12.3 s on m (16.2 %)"},
	} {
		if got := (&Price{SavedNs: &c.saved}).Text(of); got != c.want {
			t.Errorf("%d ns: %q, want %q", c.saved, got, c.want)
		}
	}
}

// TestPaysFrom: the smallest number of ranks from which on the collective is always faster.
func TestPaysFrom(t *testing.T) {
	at := func(ranks int, byHand, called int64) AtRanks {
		return AtRanks{Ranks: ranks, ByHandNs: &byHand, CalledNs: &called}
	}
	failed := AtRanks{Ranks: 7, Problem: "no power of two"}
	for _, c := range []struct {
		list []AtRanks
		want int
	}{
		{nil, 0},
		{[]AtRanks{at(3, 97, 9), at(5, 97, 97)}, 0},
		{[]AtRanks{at(3, 97, 9), at(5, 9, 97), failed, at(9, 97, 96), failed}, 9},
		{[]AtRanks{at(3, 97, 9), failed, at(9, 97, 96)}, 3},
	} {
		got := 0
		if ranks := paysFrom(c.list); ranks != nil {
			got = *ranks
		}
		if got != c.want {
			t.Errorf("%+v: from %d, want %d", c.list, got, c.want)
		}
	}
}

// TestPaysInWords: nothing is said beyond the largest number of ranks with both times.
func TestPaysInWords(t *testing.T) {
	at := func(ranks int, byHand, called int64) AtRanks {
		return AtRanks{Ranks: ranks, ByHandNs: &byHand, CalledNs: &called}
	}
	failed := func(ranks int) AtRanks { return AtRanks{Ranks: ranks, Problem: "for powers of two"} }
	for _, c := range []struct {
		list []AtRanks
		want string
	}{
		{[]AtRanks{failed(6), failed(12)}, "ring; 6 ranks: for powers of two; 12 ranks: for powers of two"},
		{[]AtRanks{at(4, 97, 98), failed(6)},
			"ring; 4 ranks: 97 ns by hand, 98 ns called; 6 ranks: for powers of two; does not pay at 4 ranks"},
		{[]AtRanks{at(4, 97, 9), failed(6)},
			"ring; 4 ranks: 97 ns by hand, 9 ns called; 6 ranks: for powers of two; pays at 4 ranks"},
		{[]AtRanks{at(4, 97, 9), at(8, 97, 9), failed(9)},
			"ring; 4 ranks: 97 ns by hand, 9 ns called; 8 ranks: 97 ns by hand, 9 ns called; 9 ranks: for powers of two; " +
				"pays from 4 to 8 ranks"},
		{[]AtRanks{failed(3), at(4, 97, 9)},
			"ring; 3 ranks: for powers of two; 4 ranks: 97 ns by hand, 9 ns called; pays from 4 ranks"},
	} {
		p := &Price{Pattern: "ring", AtRanks: c.list, PaysFrom: paysFrom(c.list)}
		if got := p.ranksText(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestMeasureAlternates: the first turn plays the original first, the next the replaced run; savings are computed per
// turn, not from medians.
func TestMeasureAlternates(t *testing.T) {
	order := ""
	play := func(name string, times ...int64) Play {
		return func(context.Context) (int64, error) {
			order += name
			ns := times[0]
			times = times[1:]
			return ns, nil
		}
	}
	got, err := Measure(context.Background(), 3, play("o", 1000, 900, 1700), play("r", 980, 910, 1100))
	want := &Measured{Repeat: 3, OriginalNs: 1000, ReplacedNs: 980, SavedNs: 20, SavedNsMin: -10, SavedNsMax: 600,
		Saved: 0.02}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || order != "orroor" {
		t.Errorf("%v, order %s (-want +got):\n%s", err, order, diff)
	}
	const text = "played here, 3 times each by turns: 1 us as it is, 980 ns with 7 collectives; that saves 20 ns (2 %; a turn " +
		"-10 ns to 600 ns); 1 instance cannot be replaced"
	got.Collectives, got.Left = 7, 1
	if got.Text() != text {
		t.Errorf("%s\nwant\n%s", got.Text(), text)
	}
	broken := errors.New("mpirun")
	if _, err := Measure(context.Background(), 3, play("o", 1),
		func(context.Context) (int64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("a play that fails: %v", err)
	}
}

// TestContradictionsAreSaid: a predicted saving outside of all turns is said, with the likely reason.
func TestContradictionsAreSaid(t *testing.T) {
	predicted := func(ns int64, saved float64) *Pricing {
		return &Pricing{Machine: "m", PredictedNs: ns, All: Price{Saved: &saved}}
	}
	m := &Measured{OriginalNs: 1000, SavedNs: -200, SavedNsMin: -300, SavedNsMax: 50, Saved: -0.2}
	for _, c := range []struct {
		of   *Pricing
		want string
	}{
		{nil, ""},
		{&Pricing{}, ""},
		{predicted(1000, 0.05), ""},
		{predicted(1000, -0.3), ""},
		{predicted(1000, 0.06), "The two contradict each other: simulated, all findings together save 6 % of the time; " +
			"played, -20 %. Trust the played figure here: the library's own algorithm and its time for each message are " +
			"not those of the machine's description."},
		{predicted(500, 0.06), "The two contradict each other: simulated, all findings together save 6 % of the time; " +
			"played, -20 %. Trust the played figure here: the run itself takes 500 ns simulated and 1 us played, so m does " +
			"not describe this machine (commq calibrate does)."},
	} {
		if got := m.Contradicts(c.of); got != c.want {
			t.Errorf("%+v: %q, want %q", c.of, got, c.want)
		}
	}
}
