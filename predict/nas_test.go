package predict

import (
	"compress/gzip"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// ofFile is the signature of a NAS benchmark's run in testdata.
func ofFile(t *testing.T, name string, ranks int) *Signature {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("../testdata/signatures/%s.%d.json.gz", name, ranks))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read(z)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ofFiles(t *testing.T, name string, ranks ...int) *Model {
	t.Helper()
	var runs []*Signature
	for _, p := range ranks {
		runs = append(runs, ofFile(t, name, p))
	}
	m, err := NewModel(runs)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTheDomainEnds: BT has 24 cells along an axis, SP 36 and LU 33 in class W, and each needs three on a rank: 64 = 8 x 8 ranks of BT have 3, 81 = 9 x 9
// would have 2; 144 = 12 x 12 of SP have 3, 169 = 13 x 13 would have 2; 64 = 8 x 8 of LU have 4, 128 = 16 x 8 would have 2.
func TestTheDomainEnds(t *testing.T) {
	for _, c := range []struct {
		name          string
		runs          []int
		allowed, over int32
		cells, parts  int
	}{
		{"bt.W", []int{4, 9, 16, 25}, 64, 81, 24, 9},
		{"sp.W", []int{9, 16, 25}, 144, 169, 36, 13},
		{"lu.W", []int{4, 8, 16, 32}, 64, 128, 33, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := ofFiles(t, c.name, c.runs...)
			if why := m.thin(c.allowed); why != "" {
				t.Errorf("refused: %s", why)
			}
			want := fmt.Sprintf("%d ranks are too many for its domain: %d cells along an axis are cut into %d parts, so that a rank has 2, while", c.over, c.cells, c.parts)
			_, err := m.Extrapolate(t.Context(), c.over, nil)
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %q ...", err, want)
			}
		})
	}
}

// TestNothingExactIsWrong: of what is said to be exact of MG on 64 ranks, learnt from 4 to 32, nothing is wrong, and all intervals hold. Calls that 32 ranks
// alone make have other sizes on 64.
func TestNothingExactIsWrong(t *testing.T) {
	m := ofFiles(t, "mg.W", 4, 8, 16, 32)
	x, err := m.Extrapolate(t.Context(), 64, nil)
	if err != nil {
		t.Fatal(err)
	}
	measured := ofFile(t, "mg.W", 64)
	if c := m.Coverage(x, measured); len(c.Wrong) > 0 || c.Exact != c.ExactRight || c.Covered != c.Numbers || c.Exact < 16000 {
		t.Errorf("%+v", c)
	}
	if s := x.Signature.Score(measured); s.EdgePrecision != 1 || s.EdgeRecall != 1 || s.MessageError > 0.0086 || s.ByteError > 0.001 || s.CollectiveError != 0 {
		t.Errorf("%+v", s)
	}
}

// TestTheSimplestOfLawsThatDisagree: MG on 128 ranks has eight along an axis, where 4 to 64 have four at most. Which ranks give to the next level there the laws do
// not agree on, and there is no answer but when it is asked for; that goes through the levels as the run does, from the coarsest up too, and nothing
// that is said to be exact is wrong.
func TestTheSimplestOfLawsThatDisagree(t *testing.T) {
	m := ofFiles(t, "mg.W", 4, 8, 16, 32, 64)
	if _, err := m.Extrapolate(t.Context(), 128, nil); err == nil || !strings.Contains(err.Error(), "12 communications are not known there") {
		t.Errorf("%v", err)
	}
	x, err := m.ExtrapolateUndecided(t.Context(), 128, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Unmatched) > 0 || len(x.Settled) != 12 || x.SettledMessages != 640 {
		t.Errorf("unmatched %v, settled %v, %d messages", x.Unmatched, x.Settled, x.SettledMessages)
	}
	measured := ofFile(t, "mg.W", 128)
	if c := m.Coverage(x, measured); len(c.Wrong) > 0 || c.Exact != c.ExactRight || c.Exact < 20000 || c.Covered < c.Numbers*99/100 {
		t.Errorf("%+v", c)
	}
	if s := x.Signature.Score(measured); s.EdgePrecision != 1 || s.EdgeRecall != 1 || s.MessageError > 0.005 || s.ByteError > 0.0025 || s.CollectiveError != 0 {
		t.Errorf("%+v", s)
	}
}

// TestCartesianExtents: the program deals its ranks by MPI_Dims_create, as equally as can be; at 35 ranks too, which are 7 x 5.
func TestCartesianExtents(t *testing.T) {
	m := ofFiles(t, "halo", 4, 6, 9, 12, 16, 20)
	for ranks, want := range map[int32]string{35: "7,5", 36: "6,6", 64: "8,8"} {
		x, err := m.Extrapolate(t.Context(), ranks, nil)
		if err != nil {
			t.Fatal(err)
		}
		carts := 0
		for _, c := range x.Run.Comms {
			if c.CartDims != schema.NullText {
				if carts++; c.CartDims != want || c.CartPeriods != "1,1" {
					t.Fatalf("at %d ranks: %s, periods %s; want %s", ranks, c.CartDims, c.CartPeriods, want)
				}
			}
		}
		if carts != int(ranks) {
			t.Errorf("at %d ranks: %d members of a grid", ranks, carts)
		}
	}
}
