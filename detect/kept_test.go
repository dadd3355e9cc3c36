package detect

import "testing"

// Two payloads of one class, half a class of each: neither is full before there are mostOfPayload of it.
func TestKeptPayloadsTellPayloadsOfAClassApart(t *testing.T) {
	k := newKeptPayloads()
	a, b := payload{hash: 77, bytes: 4097}, payload{hash: 78, bytes: 4097}
	for k.class(a) != k.class(b) {
		b.hash++
	}
	messages := make([]message, 0, mostOfPayload)
	add := func(of payload, n int) {
		for range n {
			if k.full(of, messages) {
				t.Fatalf("full with %d messages in all", len(messages))
			}
			k.add(of)
			messages = append(messages, message{hash: of.hash, bytes: of.bytes})
		}
	}
	add(a, mostOfPayload/2)
	add(b, mostOfPayload/2)
	add(a, mostOfPayload/2)
	if !k.full(a, messages) || !k.full(a, messages) || k.full(b, messages) {
		t.Errorf("with mostOfPayload of a and half as many of b: a full %v, b full %v", k.full(a, messages), k.full(b, messages))
	}
}

// Of pieces of one message in different instances the last instance has it.
func TestTakers(t *testing.T) {
	messages := []message{{src: 3, sendSeq: 9}, {src: 5, sendSeq: 9}, {src: 3, sendSeq: 4}, {src: 3, sendSeq: 9}, {src: 3, sendSeq: 7}}
	first, second := &instance{messages: []int32{3, 2}}, &instance{messages: []int32{0, 1}}
	k := newTakers(messages, []*instance{first, second})
	for _, test := range []struct {
		src  int32
		seq  int64
		want *instance
	}{{3, 9, second}, {5, 9, second}, {3, 4, first}, {3, 7, nil}, {3, 3, nil}, {3, 10, nil}, {4, 9, nil}} {
		if got := k.of(test.src, test.seq); got != test.want {
			t.Errorf("rank %d, row %d: %p, want %p", test.src, test.seq, got, test.want)
		}
	}
}
