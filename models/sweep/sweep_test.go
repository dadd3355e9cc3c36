package sweep

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/models"
)

func TestParseAxis(t *testing.T) {
	m, err := models.Named("flat")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"latency_ns=1e3..1e5:log:5", []string{"1000", "3160", "10000", "31600", "100000"}}, // 3162.3, 31622.8
		{"latency_ns=0.5..2:lin:4", []string{"0.5", "1", "1.5", "2"}},
		// 1.41, 2, 2.83, 4, 5.66, 8, 11.3: whole, and 1 once
		{"intra_node.buses=1..16:log:9", []string{"1", "2", "3", "4", "6", "8", "11", "16"}},
		{"buses=3,unlimited,3,5", []string{"3", "unlimited", "5"}},
		{"cpu_ratio=1..4:log:3", []string{"1", "2", "4"}},
		{"bandwidth_bytes_per_s=1000000..1000002:lin:3", []string{"1000000", "1000001", "1000002"}},
	} {
		a, err := ParseAxis(m, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		} else if diff := cmp.Diff(c.want, a.Values); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
	for text, want := range map[string]string{
		"buses":                   "it has no values",
		"buses=":                  "it has no values",
		"buses=1..3":              "its values are neither a range nor a list",
		"buses=1..3:exp:3":        `"exp" is neither log nor lin`,
		"buses=1..3:lin:1":        `"1" is not a number of values from 2`,
		"buses=1..x:lin:3":        "its range is not from a number to a greater one",
		"buses=0..3:lin:4":        `buses is "0"`,
		"latency_ns=1..NaN:lin:3": "its range is not from a number to a greater one",
	} {
		if _, err := ParseAxis(m, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

// A time that is exactly the fraction above or below the reference is within it; one that is 1 ns further is not.
func TestWithinTheFraction(t *testing.T) {
	times := &Times{ReferenceNs: 1_000_000_000, PredictedNs: make([]int64, 1)}
	for _, percent := range []int64{1, 2, 5, 7, 10, 15, 20, 30} {
		for _, sign := range []int64{-1, 1} {
			for past, want := range []bool{true, false} {
				times.PredictedNs[0] = times.ReferenceNs + sign*(percent*times.ReferenceNs/100+int64(past))
				if got := times.IsWithin(0, float64(percent)/100); got != want {
					t.Errorf("%d %% and %d ns: %t", sign*percent, past, got)
				}
			}
		}
	}
}

// Two axes of 2 and 3 values: the last one changes fastest. Times of 90, 100, 115, 130, -, 100 ns are within 10 % of
// the reference of 100 ns at combinations 0 (1, 10), 1 (1, 20) and 5 (2, 30).
func TestGridAndSpans(t *testing.T) {
	m, err := models.Named("flat")
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGrid(m, []string{"latency_ns=1,2", "buses=10,20,30"})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Machines) != 6 || g.Describe(4) != "latency_ns=2 buses=20" || g.Machines[4].Network.Buses != 20 {
		t.Errorf("%d machines, combination 4 is %s", len(g.Machines), g.Describe(4))
	}
	times := &Times{Run: "r", ReferenceNs: 100, PredictedNs: []int64{90, 100, 115, 130, -1, 100},
		Errs: []error{nil, nil, nil, nil, errors.New("deadlock"), nil}}
	for axis, want := range []Span{{1, 2, 3}, {10, 30, 3}} {
		if got := g.FindSpan(times, axis, 0.1); got != want {
			t.Errorf("%s: %+v, want %+v", g.Axes[axis].Key, got, want)
		}
	}
	if _, ok := times.Ratio(4); ok {
		t.Error("a combination without a time has a ratio")
	}
	want := "1 of 6 simulations have no time; the first: r, latency_ns=2 buses=20: deadlock"
	if err := CheckAll(g, []*Times{times}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for text, axes := range map[string][]string{
		"buses is swept already": {"buses=1,2", "buses=3"},
		"more than 1000000":      {"buses=1..1001:lin:1001", "latency_ns=1..1001:lin:1001"},
	} {
		if _, err := NewGrid(m, axes); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}
