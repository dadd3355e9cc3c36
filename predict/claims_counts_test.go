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
func scattered(call schema.CallID, n int, up bool) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		share := n / ranks
		if up {
			share = (n + ranks - 1) / ranks
		}
		return testruns.Calls(ranks, nil, func(int) []testruns.Call {
			return []testruns.Call{{Site: 0, Call: call, To: testruns.None, From: testruns.None,
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

// evenBox returns the extents of a box of ranks that is as even as possible, the longest first.
func evenBox(ranks int) (dims [3]int) {
	dims = [3]int{ranks, 1, 1}
	for c := 1; c*c*c <= ranks; c++ {
		if ranks%c != 0 {
			continue
		}
		for b := c; b*b <= ranks/c; b++ {
			if a := ranks / c / b; ranks/c%b == 0 && a-c <= dims[0]-dims[2] {
				dims = [3]int{a, b, c}
			}
		}
	}
	return dims
}

// boxWithLines exchanges with the neighbours in a box and sums up along its shortest axis.
func boxWithLines(ranks int) *signature.Run {
	dims := evenBox(ranks)
	strides := [3]int{dims[1] * dims[2], dims[2], 1}
	comms := make([][]int32, ranks/dims[2])
	for r := range ranks {
		comms[r/dims[2]] = append(comms[r/dims[2]], int32(r))
	}
	return testruns.Calls(ranks, comms, func(rank int) (all []testruns.Call) {
		for a, n := range dims {
			x := rank / strides[a] % n
			if x > 0 {
				all = append(all, send(1+2*a, rank-strides[a], 80))
			}
			if x < n-1 {
				all = append(all, send(2+2*a, rank+strides[a], 80))
			}
		}
		return append(all, testruns.Call{Site: 0, Call: schema.CallAllreduce, To: testruns.None, From: testruns.None,
			Bytes: 8, Root: testruns.None, Comm: 1 + rank/dims[2]})
	})
}

// fromLastColumn broadcasts from the last rank of the first row.
func fromLastColumn(ranks, _ int) []testruns.Call {
	_, columns := nearSquare(ranks)
	return []testruns.Call{{Site: 0, Call: schema.CallBcast, To: testruns.None, From: testruns.None, Bytes: 8,
		Root: columns - 1}}
}

// pairsInTwoReceived does as pairsInTwo, and receives what is sent.
func pairsInTwoReceived(ranks int) *signature.Run {
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		none := testruns.None
		for range 3 {
			all = append(all, testruns.Call{Site: 2, Call: schema.CallAllreduce, To: none, From: none, Bytes: 8, Root: none})
			for i := range 2 {
				all = append(all, testruns.Call{Site: 0, Call: schema.CallBarrier, To: none, From: none, Root: none})
				sends := func(r int) bool { return i == 0 && r%2 == 0 || i == 1 && ranks >= 12 }
				if sends(rank) {
					all = append(all, testruns.Call{Site: 1, Call: schema.CallSend, To: rank ^ 1, From: none, Bytes: 8, Root: none})
				}
				if sends(rank ^ 1) {
					all = append(all, testruns.Call{Site: 3, Call: schema.CallRecv, To: none, From: rank ^ 1, Bytes: 8, Root: none})
				}
			}
		}
		return all
	})
}

// Counts and sizes that few runs leave open are not called exact, nor are their intervals too narrow.
func TestClaimsOfCounts(t *testing.T) {
	judgeClaims(t, []claim{
		{"a share, rounded up, scattered", scattered(schema.CallScatter, 1024, true), []int{4, 8, 16, 32}, []int{24, 48, 64}},
		{"a share, rounded down, scattered", scattered(schema.CallScatter, 1024, false), []int{4, 8, 16, 32}, []int{24, 48, 64}},
		{"shares of a scatter of several counts", scattered(schema.CallScatterv, 1024, false), []int{4, 8, 16, 32},
			[]int{24, 48, 64}},
		{"lines of an axis of two ranks", boxWithLines, []int{8, 12, 16, 24}, []int{36}},
		{"lines of an axis of two ranks, on powers of two", boxWithLines, []int{8, 16, 32}, []int{64}},
		{"a root in the last column", fivePoint(fromLastColumn), []int{8, 12, 16}, []int{20}},
		{"a family whose other side seems to grow", pairsInTwoReceived, []int{6, 8, 12, 16}, []int{20, 24}},
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
