package predict_test

import (
	"slices"
	"testing"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/model/join"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
)

// HPCCG sends to a list of neighbours, which ends of its chain of ranks have fewer of, and receives from any source in
// a loop before: all of 32 ranks is known from 2 to 16.
func TestListsOfNeighbours(t *testing.T) {
	m := trainOn(t, "hpccg", 2, 4, 8, 16)
	x, measured := extrapolate(t, m, 32), readRun(t, "hpccg", 32)
	if c := report.Cover(m, x, measured); len(c.Wrong) > 0 || c.Exact != c.Numbers || c.Exact < 400 {
		t.Errorf("%+v", c)
	}
	if s := report.Compare(x.Signature, measured); !isPerfect(s) {
		t.Errorf("%+v", s)
	}
}

// Lists have directions if they are those of neighbours on a grid, and not if something speaks against that.
func TestListsWithDirections(t *testing.T) {
	line := func(rank, ranks int) []int { return []int{rank - 1, rank + 1} }
	rows := func(rank, ranks int) []int { // of a plane of two columns
		return []int{rank - 2, rank - 1 + 2*(1-rank%2), rank + 2}
	}
	for _, c := range []struct {
		name  string
		sizes []int
		list  func(rank, ranks int) []int
		want  int32
	}{
		{"line", []int{2, 4, 8, 16}, line, 2},
		{"line, more runs than bits", upTo(70), line, 2},
		{"two columns", []int{6, 8, 10, 12}, rows, 4},
		{"all lists are the beginning of one", []int{4, 6, 8, 12}, func(rank, _ int) []int { return []int{rank + 1} }, 0},
		{"one-sided", []int{6, 8, 10, 12}, func(rank, ranks int) []int { return rows(rank, ranks)[rank/2%2:] }, 0},
		{"groups in which all talk to all", []int{6, 10, 14, 18}, func(rank, _ int) (all []int) {
			for to := rank / 4 * 4; to < rank/4*4+4; to++ {
				all = append(all, to)
			}
			return all
		}, 0},
		{"odd ranks in reverse", []int{4, 6, 8, 12}, func(rank, ranks int) []int {
			list := line(rank, ranks)
			if rank%2 == 1 {
				slices.Reverse(list)
			}
			return list
		}, 0},
		{"one distance in two directions", []int{6, 8, 10, 12}, func(rank, _ int) []int {
			return []int{rank - 2, rank - 1, rank + 1, rank + 2}
		}, 0},
		{"a direction of the largest run only", []int{3, 5, 7, 9}, func(rank, ranks int) []int {
			if ranks == 9 && rank%3 == 0 {
				return []int{rank - 3, rank + 1, rank + 3}
			} else if ranks == 9 && rank%3 == 2 {
				return []int{rank - 3, rank - 1, rank + 3}
			} else if ranks == 9 {
				return []int{rank - 3, rank - 1, rank + 1, rank + 3}
			}
			return line(rank, ranks)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := directionsOf(t, c.sizes, c.list); got != c.want {
				t.Errorf("%d directions, want %d", got, c.want)
			}
		})
	}
}

func upTo(most int) (sizes []int) {
	for p := 3; p <= most; p++ {
		sizes = append(sizes, p)
	}
	return sizes
}

// directionsOf returns in how many directions a program sends whose ranks go through a list of others.
func directionsOf(t *testing.T, sizes []int, list func(rank, ranks int) []int) int32 {
	t.Helper()
	var runs []*signature.Signature
	for _, ranks := range sizes {
		runs = append(runs, sign(t, testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
			for range 3 {
				for _, to := range list(rank, ranks) {
					if to >= 0 && to < ranks && to != rank {
						all = append(all, message(0, to, 7, 64))
					}
				}
			}
			return all
		})))
	}
	joined, err := join.Runs(runs)
	if err != nil {
		t.Fatal(err)
	}
	found, err := slots.Find(joined.Sig, joined.SlotRuns())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Max(found.Directions)
}
