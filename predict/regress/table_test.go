package regress

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/commq/commq/internal/mutate"
)

// FuzzReadTable: every table is rejected or predicted with finite numbers in order.
func FuzzReadTable(f *testing.F) {
	for _, seed := range []string{"ranks,value\n9,2892\n16,2496\n25,2132\n36,1849\n", "2,0\n4,-1e308\n8,1e308\n",
		"p;t\n1;0\n2;1e-320\n", "4,1\n4,2\n5,3\n", "a,\"b\n",
		"1,0\n2147483647,9007199254740993\n3,1", "2,1\n3,1\n5,1\n7,2\n", "2,1e-300\n4,1e300\n8,5"} {
		f.Add(seed)
	}
	f.Fuzz(fuzzReadTable)
}

func fuzzReadTable(t *testing.T, table string) {
	read, err := ReadTable(strings.NewReader(table), "t.csv", nil)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "fit: t.csv:") {
			t.Errorf("%q: %v has no place", table, err)
		}
		return
	}
	if len(read.Points) > 12 {
		return
	}
	curve, err := Fit(read.Points)
	if err != nil {
		return
	}
	for _, at := range []int64{1, 3, 64, MaxRanks} {
		p := curve.Predict(at)
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) || !(p.Low <= p.Value && p.Value <= p.High) {
			t.Errorf("%q at %d: %v in %v to %v by %s", table, at, p.Value, p.Low, p.High, p.Formula)
		}
		if _, err := json.Marshal(p); err != nil {
			t.Errorf("%q: %v", table, err)
		}
	}
}

// The same with a good table, its numbers and rows changed.
func FuzzReadTableEdited(f *testing.F) {
	f.Add([]byte{0, 9, 1, 8, 1, 0, 4, 7})
	f.Add([]byte{0, 2, 6, 3})
	f.Fuzz(func(t *testing.T, edits []byte) {
		fuzzReadTable(t, mutate.Text("ranks,value\n9,2892\n16,2496.5\n25,2132\n36,1849\n", edits))
	})
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A line without an end is an error before it takes all memory.
func TestTableWithoutEnd(t *testing.T) {
	if _, err := ReadTable(endless{}, "t.csv", nil); err == nil || !strings.Contains(err.Error(), "t.csv: more than 64 MiB") {
		t.Error(err)
	}
}
