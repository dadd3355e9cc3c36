package slots_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/slots"
)

// Three ranks on a line send, in a loop over directions, to their left neighbour with tag 10 and to their right one
// with tag 11, and then to themselves. The ends of the line skip a direction; still left is place 0 and right is
// place 1. The outer loop, whose iterations are equal, has no places.
func TestFindAlignsSkippedIterations(t *testing.T) {
	const ranks = 3
	run := testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		for range 4 {
			for direction, to := range []int{rank - 1, rank + 1} {
				if to >= 0 && to < ranks {
					all = append(all, testruns.Message{Site: 0, To: to, Tag: 10 + direction, Bytes: 4097})
				}
			}
			all = append(all, testruns.Message{Site: 1, To: rank, Tag: 9, Bytes: 8})
		}
		return all
	})
	s, err := sign.FromRows(run)
	if err != nil {
		t.Fatal(err)
	}
	found, err := slots.Find(s, []slots.Run{{First: 0, Ranks: ranks}})
	if err != nil {
		t.Fatal(err)
	}
	type slot struct {
		Index []int32
		Peers [ranks]int32 // -1: the rank does not make the call
	}
	var got [][]slot
	for _, site := range found.Sites {
		var list []slot
		for _, x := range site.Slots {
			peers := [ranks]int32{}
			for r, c := range x.Runs[0] {
				if peers[r] = -1; c != nil {
					peers[r] = c.Send.PeerOf(int32(r))
				}
			}
			list = append(list, slot{x.Index(), peers})
		}
		got = append(got, list)
	}
	want := [][]slot{
		{{[]int32{0}, [ranks]int32{-1, 0, 1}}, {[]int32{1}, [ranks]int32{1, 2, -1}}},
		{{nil, [ranks]int32{0, 1, 2}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("slots by site (-want +got):\n%s", d)
	}
}
