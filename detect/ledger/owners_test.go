package ledger

import "testing"

// When pieces of one message are in several instances, the last instance owns it.
func TestLastInstanceOwnsMessage(t *testing.T) {
	messages := []Message{{Src: 3, SendSeq: 9}, {Src: 5, SendSeq: 9}, {Src: 3, SendSeq: 4}, {Src: 3, SendSeq: 9},
		{Src: 3, SendSeq: 7}}
	first, second := &Instance{Messages: []int32{3, 2}}, &Instance{Messages: []int32{0, 1}}
	k := NewOwners(messages, []*Instance{first, second})
	for _, test := range []struct {
		src  int32
		seq  int64
		want *Instance
	}{{3, 9, second}, {5, 9, second}, {3, 4, first}, {3, 7, nil}, {3, 3, nil}, {3, 10, nil}, {4, 9, nil}} {
		if got := k.Owner(test.src, test.seq); got != test.want {
			t.Errorf("rank %d, row %d: %p, want %p", test.src, test.seq, got, test.want)
		}
	}
}
