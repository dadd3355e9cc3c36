package predict_test

import (
	"math/bits"
	"testing"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// fivePoint exchanges with the neighbours on a grid that is as even as possible, without a torus, and then makes more
// calls.
func fivePoint(more func(ranks, rank int) []testruns.Call) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		rows, columns := nearSquare(ranks)
		return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
			row, column := rank/columns, rank%columns
			for i, to := range [][2]int{{row + 1, column}, {row - 1, column}, {row, column + 1}, {row, column - 1}} {
				if to[0] >= 0 && to[0] < rows && to[1] >= 0 && to[1] < columns {
					all = append(all, send(1+i, to[0]*columns+to[1], 100))
				}
			}
			return append(all, more(ranks, rank)...)
		})
	}
}

func send(site, to, bytes int) testruns.Call {
	return testruns.Call{Site: site, Call: schema.CallSend, To: to, From: testruns.None, Bytes: bytes, Root: testruns.None}
}

// barriers has a loop of barriers after an exchange on a grid, or without one.
func barriers(times func(ranks int) int) func(ranks, rank int) []testruns.Call {
	return func(ranks, _ int) (all []testruns.Call) {
		for range times(ranks) {
			all = append(all, testruns.Call{Site: 0, Call: schema.CallBarrier, To: testruns.None, From: testruns.None,
				Root: testruns.None})
		}
		return all
	}
}

// scattered scatters shares of n doubles, rounded up or down.
func scattered(n int, up bool) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		share := n / ranks
		if up {
			share = (n + ranks - 1) / ranks
		}
		return testruns.Calls(ranks, nil, func(int) []testruns.Call {
			return []testruns.Call{{Site: 0, Call: schema.CallScatter, To: testruns.None, From: testruns.None,
				Bytes: 8 * share * ranks, Received: 8 * share, Element: 8, Root: 0}}
		})
	}
}

// transposedParts sends each other rank the part of its rows that is in that one's columns.
func transposedParts(rows, columns int) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
			for d := 1; d < ranks; d++ {
				to, from := (rank+d)%ranks, (rank-d+ranks)%ranks
				all = append(all, testruns.Call{Site: 0, Call: schema.CallSendrecv, To: to, From: from, Element: 8,
					Bytes: 8 * block(rows, ranks, rank) * block(columns, ranks, to), Root: testruns.None,
					Received: 8 * block(rows, ranks, from) * block(columns, ranks, rank)})
			}
			return all
		})
	}
}

// rowsAndVector sends the next rank its rows of an array, then its part of a vector.
func rowsAndVector(ranks int) *signature.Run {
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		if rank+1 < ranks {
			for site, bytes := range []int{80 * block(48, ranks, rank), 8 * block(160, ranks, rank)} {
				s := send(site, rank+1, bytes)
				s.Element = 8
				all = append(all, s)
			}
		}
		return all
	})
}

// toUpperHalf sends from the lower half of the ranks to the upper one.
func toUpperHalf(ranks, rank int) []testruns.Call {
	if half := ranks / 2; rank < half {
		return []testruns.Call{send(0, rank+half, 8)}
	}
	return nil
}

// bothWays exchanges with ranks up to half of all away, on one side and, but half way round, on the other.
func bothWays(ranks, rank int) (all []testruns.Call) {
	for d := 1; d <= ranks/2; d++ {
		all = append(all, send(5, (rank+d)%ranks, 8))
		if 2*d != ranks {
			all = append(all, send(6, (rank-d+ranks)%ranks, 8))
		}
	}
	return all
}

// Counts and sizes that few runs leave open are not called exact, nor are their intervals too narrow.
func TestClaimsOfCounts(t *testing.T) {
	judgeClaims(t, []claim{
		{"a share, rounded up, scattered", scattered(1024, true), []int{4, 8, 16, 32}, []int{24, 48, 64}},
		{"a share, rounded down, scattered", scattered(1024, false), []int{4, 8, 16, 32}, []int{24, 48, 64}},
		{"half of the ranks beside a grid", fivePoint(barriers(func(p int) int { return p / 2 })), []int{4, 6, 8, 12},
			[]int{18, 24}},
		{"a quarter of the ranks beside a grid", fivePoint(barriers(func(p int) int { return p / 4 })), []int{4, 8, 12, 16},
			[]int{30, 36}},
		{"a quarter of the ranks, as a logarithm", fivePoint(barriers(func(p int) int { return p / 4 })), []int{4, 8, 12},
			[]int{16, 30}},
		{"a sixteenth of the ranks, as a logarithm", fivePoint(barriers(func(p int) int { return p / 16 })),
			[]int{16, 32, 48}, []int{64}},
		{"a matrix transposed", transposedParts(256, 144), []int{2, 4, 8, 16}, []int{32}},
		{"a square matrix transposed", transposedParts(256, 256), []int{4, 8, 16, 32}, []int{24}},
		{"a logarithm that is the edge of a grid", fivePoint(barriers(func(p int) int { return bits.Len(uint(p)) - 1 })),
			[]int{4, 9, 16}, []int{25, 36}},
		{"iterations of a solver", fivePoint(barriers(func(p int) int { return map[int]int{4: 9, 8: 10, 16: 11}[p] + p/32*12 })),
			[]int{4, 8, 16}, []int{32}},
		{"rows and a vector", rowsAndVector, []int{4, 8, 16}, []int{32}},
		{"half of an odd number of ranks", fivePoint(toUpperHalf), []int{6, 12, 18, 24}, []int{27}},
		{"up to half of an odd number of ranks", fivePoint(bothWays), []int{4, 6, 8, 12}, []int{15}},
	})
}
