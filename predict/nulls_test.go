package predict_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// openPlane returns a halo exchange on a grid of two axes that are not periodic. At its borders ranks send to and
// receive from MPI_PROC_NULL, by MPI_Sendrecv or by separate calls. The domain has 5040 rows and so many columns of
// cells.
func openPlane(ranks, cells int, together bool) *signature.Run {
	rows, columns := squarish(ranks)
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		row, column := rank/columns, rank%columns
		neighbour := func(down, right int) int {
			if row+down < 0 || row+down >= rows || column+right < 0 || column+right >= columns {
				return testruns.None
			}
			return rank + down*columns + right
		}
		bytes := []int{8 * block(5040, rows, row), 8 * block(cells, columns, column)}
		for range 7 {
			for d, by := range [][2]int{{0, 1}, {0, -1}, {1, 0}, {-1, 0}} {
				c := testruns.Call{Site: d, To: neighbour(by[0], by[1]), From: neighbour(-by[0], -by[1]), Tag: d,
					Bytes: bytes[d/2], Root: testruns.None}
				if c.Call = schema.CallSendrecv; together {
					all = append(all, c)
					continue
				}
				send, receive := c, c
				send.Call, send.From = schema.CallSend, testruns.None
				receive.Call, receive.To, receive.Site = schema.CallRecv, testruns.None, 4+d
				all = append(all, send, receive)
			}
		}
		return all
	})
}

// rowOf is what a row says about messages.
type rowOf struct {
	rank, call                           int
	null, to, from, sendTag, recvTag     int32
	sendCount, sendBytes, count, recvLen int64
}

// rowsOf returns the rows of a signature.
func rowsOf(t *testing.T, s *signature.Signature) (rows []rowOf) {
	t.Helper()
	err := s.Rows(func(e *schema.Events) error {
		for i := range e.Rank {
			rows = append(rows, rowOf{int(e.Rank[i]), int(e.Call[i]), e.ProcNull[i], e.SendWorld[i], e.RecvWorld[i],
				e.SendTag[i], e.RecvTag[i], e.SendCount[i], e.SendBytes[i], e.RecvCount[i], e.RecvBytes[i]})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// An open halo is predicted call by call, with MPI_PROC_NULL where the grid ends.
func TestOpenHalo(t *testing.T) {
	for _, together := range []bool{true, false} {
		run := func(ranks int) *signature.Run { return openPlane(ranks, 5040, together) }
		m := train(t, []int{4, 6, 9, 12, 16, 20}, run)
		for _, ranks := range []int{30, 36} {
			x, err := generate.Predict(t.Context(), m, int32(ranks), generate.Options{})
			if err != nil {
				t.Fatalf("together %v, at %d ranks: %v", together, ranks, err)
			}
			measured := sign(t, run(ranks))
			if s := report.Compare(x.Signature, measured); !isPerfect(s) {
				t.Errorf("together %v, at %d ranks: %+v", together, ranks, s)
			}
			if v := report.Cover(m, x, measured); len(v.Wrong) > 0 || v.Covered != v.Numbers {
				t.Errorf("together %v, at %d ranks: %+v", together, ranks, v)
			}
			if !slices.Equal(rowsOf(t, x.Signature), rowsOf(t, measured)) {
				t.Errorf("together %v, at %d ranks: rows differ", together, ranks)
			}
		}
	}
}

// Where half as many columns as rows are cut for the least surface, a grid of 36 ranks is another one than an even one,
// which the runs do not tell apart: nothing that is said is wrong, and at 30 ranks all is known.
func TestOpenHaloOfAnUnevenDomain(t *testing.T) {
	for _, together := range []bool{true, false} {
		run := func(ranks int) *signature.Run { return openPlane(ranks, 2520, together) }
		m := train(t, []int{4, 6, 9, 12, 16, 20}, run)
		if s := report.Compare(extrapolate(t, m, 30).Signature, sign(t, run(30))); !isPerfect(s) {
			t.Errorf("together %v, at 30 ranks: %+v", together, s)
		}
		x, err := generate.Predict(t.Context(), m, 36, generate.Options{})
		if x == nil || err == nil || !strings.Contains(err.Error(), "2-D grid of least surface for a box") {
			t.Fatalf("together %v, at 36 ranks: %v, want that a grid of least surface is possible", together, err)
		}
		if v := report.Judge(m, x, sign(t, run(36))); len(v.Places) > 0 || v.Edges.Wrong > 0 {
			t.Errorf("together %v, at 36 ranks: edges %+v, %+v", together, v.Edges, v.Places)
		}
	}
}
