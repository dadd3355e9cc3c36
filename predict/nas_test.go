package predict_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/schema"
)

// In class W, BT has 24 cells along an axis, SP 36 and LU 33, and each needs three cells on a rank. 64 = 8 x 8 ranks
// of BT have 3, 81 = 9 x 9 would have 2; 144 = 12 x 12 of SP have 3, 169 = 13 x 13 would have 2; 64 = 8 x 8 of LU
// have 4, 128 = 16 x 8 would have 2.
func TestMoreRanksThanTheDomainAllows(t *testing.T) {
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
			m := trainOn(t, c.name, c.runs...)
			if why := m.ExceedsDomain(c.allowed); why != "" {
				t.Errorf("refused: %s", why)
			}
			want := fmt.Sprintf("%d ranks are too many for its domain: %d cells along an axis are cut into %d "+
				"parts, so that a rank has 2, while", c.over, c.cells, c.parts)
			_, err := generate.Predict(t.Context(), m, c.over, generate.Options{})
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %q ...", err, want)
			}
		})
	}
}

// For MG on 64 ranks, predicted from 4 to 32, no number that is called exact is wrong, and all intervals hold. Calls
// that only 32 ranks make have other sizes on 64.
func TestExactNumbersAreRight(t *testing.T) {
	m := trainOn(t, "mg.W", 4, 8, 16, 32)
	x := extrapolate(t, m, 64)
	measured := readRun(t, "mg.W", 64)
	if c := report.Cover(m, x, measured); len(c.Wrong) > 0 || c.Exact != c.ExactRight || c.Covered != c.Numbers ||
		c.Exact < 16000 {
		t.Errorf("%+v", c)
	}
	if s := report.Compare(x.Signature, measured); s.EdgePrecision != 1 || s.EdgeRecall != 1 ||
		s.MessageError > 0.0086 ||
		s.ByteError > 0.001 || s.CollectiveError != 0 {
		t.Errorf("%+v", s)
	}
}

// On 4, 8 and 16 ranks the slowest axis of MG's cube is also that of a plane, and on 64 it is not. All that MG does
// along the other axes costs a little more on the plane: together that shows the cube, and with whom ranks
// communicate on 64.
func TestManyCommunicationsShowTheGrid(t *testing.T) {
	m := trainOn(t, "mg.W", 4, 8, 16)
	x, _ := generate.Predict(t.Context(), m, 64, generate.Options{}) // not all is known
	v := report.Judge(m, x, readRun(t, "mg.W", 64))
	if len(v.Places) > 0 || v.Edges.Wrong > 0 || v.Edges.Unknown > 0 || v.Edges.Exact == 0 {
		t.Errorf("edges %+v, wrong %v", v.Edges, v.Places)
	}
	if v.Messages.Unknown > v.Messages.Exact/10 {
		t.Errorf("messages %+v, want at most a tenth of them unknown", v.Messages)
	}
}

// MG on 128 ranks has eight ranks along an axis; 4 to 64 ranks have at most four. The laws conflict about which ranks
// send to the next level there, so there is no answer unless the simplest law is requested. With it, the prediction
// visits the levels in the order of the run, also up from the coarsest, and no number that is called exact is wrong.
func TestTakeSimplestOfConflictingLaws(t *testing.T) {
	m := trainOn(t, "mg.W", 4, 8, 16, 32, 64)
	if _, err := generate.Predict(t.Context(), m, 128, generate.Options{}); err == nil ||
		!strings.Contains(err.Error(), "8 communications are not known there") {
		t.Errorf("%v", err)
	}
	x, err := generate.Predict(t.Context(), m, 128, generate.Options{TakeSimplest: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Unmatched) > 0 || len(x.Conflicts) != 12 || x.ConflictMessages != 640 {
		t.Errorf("unmatched %v, conflicts %v, %d messages", x.Unmatched, x.Conflicts, x.ConflictMessages)
	}
	measured := readRun(t, "mg.W", 128)
	if c := report.Cover(m, x, measured); len(c.Wrong) > 0 || c.Exact != c.ExactRight || c.Exact < 19500 ||
		c.Covered < c.Numbers*99/100 {
		t.Errorf("%+v", c)
	}
	if v := report.Judge(m, x, measured); v.Edges.Exact > 0 || v.Edges.Inside == 0 || v.Messages.Exact > 0 ||
		len(v.Places) > 0 {
		t.Errorf("%+v", v)
	}
	if s := report.Compare(x.Signature, measured); s.EdgePrecision != 1 || s.EdgeRecall != 1 ||
		s.MessageError > 0.005 ||
		s.ByteError > 0.0025 || s.CollectiveError != 0 {
		t.Errorf("%+v", s)
	}
}

// The program divides its ranks with MPI_Dims_create, as evenly as possible; also 35 ranks, which are 7 x 5.
func TestCartesianExtents(t *testing.T) {
	m := trainOn(t, "halo", 4, 6, 9, 12, 16, 20)
	for ranks, want := range map[int32]string{35: "7,5", 36: "6,6", 64: "8,8"} {
		x := extrapolate(t, m, int(ranks))
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
