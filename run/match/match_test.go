package match

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNthSendMatchesNthReceive(t *testing.T) {
	var m Matcher
	c, other := Channel{Comm: 2, Src: 3, Dst: 5, Tag: 9}, Channel{Comm: 2, Src: 3, Dst: 5, Tag: 8}
	for _, seq := range []int64{10, 11, 12} {
		if r := m.Send(&Send{Channel: c, Seq: seq}); r != nil {
			t.Fatalf("send %d met receive %d, there was none", seq, r.PostSeq)
		}
	}
	if s := m.Recv(&Recv{Channel: other, PostSeq: 20}); s != nil {
		t.Fatalf("a receive of tag 8 met send %d of tag 9", s.Seq)
	}
	for i, seq := range []int64{10, 11, 12} {
		if s := m.Recv(&Recv{Channel: c, PostSeq: 21 + int64(i)}); s == nil || s.Seq != seq {
			t.Fatalf("receive %d met %+v, want send %d", 21+i, s, seq)
		}
	}
	m.Recv(&Recv{Channel: c, PostSeq: 24})
	m.Recv(&Recv{Channel: c, PostSeq: 25})
	for i, post := range []int64{24, 25} {
		if r := m.Send(&Send{Channel: c, Seq: 13 + int64(i)}); r == nil || r.PostSeq != post {
			t.Fatalf("send %d met %+v, want receive %d", 13+i, r, post)
		}
	}
	if sends, recvs := m.Waiting(); sends != 0 || recvs != 1 {
		t.Errorf("%d sends and %d receives wait, want 0 and 1", sends, recvs)
	}
}

// slow is the rule in its simplest form: a list of waiting sends and receives, searched from the front.
type slow struct {
	sends []Send
	recvs []Recv
}

func (s *slow) send(x Send) (post int64) {
	for i, r := range s.recvs {
		if r.Channel == x.Channel {
			s.recvs = append(s.recvs[:i:i], s.recvs[i+1:]...)
			return r.PostSeq
		}
	}
	s.sends = append(s.sends, x)
	return -1
}

func (s *slow) recv(x Recv) (seq int64) {
	for i, y := range s.sends {
		if y.Channel == x.Channel {
			s.sends = append(s.sends[:i:i], s.sends[i+1:]...)
			return y.Seq
		}
	}
	s.recvs = append(s.recvs, x)
	return -1
}

// Channels come and go, so that the table grows, is swept and grows again.
func TestMatcherAgainstDirectImplementation(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var m Matcher
		var want slow
		for i := range int64(6000) {
			c := Channel{Comm: rng.Int32N(2), Src: rng.Int32N(3), Dst: rng.Int32N(3), Tag: int32(i)/40 + rng.Int32N(3)}
			if rng.IntN(2) == 0 {
				post := int64(-1)
				if r := m.Send(&Send{Channel: c, Seq: i}); r != nil {
					post = r.PostSeq
				}
				if w := want.send(Send{Channel: c, Seq: i}); post != w {
					t.Fatalf("seed %d: send %d met %d, want %d", seed, i, post, w)
				}
			} else {
				seq := int64(-1)
				if s := m.Recv(&Recv{Channel: c, PostSeq: i}); s != nil {
					seq = s.Seq
				}
				if w := want.recv(Recv{Channel: c, PostSeq: i}); seq != w {
					t.Fatalf("seed %d: receive %d met %d, want %d", seed, i, seq, w)
				}
			}
			if i%500 == 0 {
				m.Sweep()
			}
		}
		sends, recvs := m.Waiting()
		if sends != int64(len(want.sends)) || recvs != int64(len(want.recvs)) {
			t.Errorf("seed %d: %d and %d wait, want %d and %d", seed, sends, recvs, len(want.sends), len(want.recvs))
		}
	}
}

// A program that never uses a tag twice must not fill the memory.
func TestSweepForgetsEmptyChannels(t *testing.T) {
	var m Matcher
	waiting := Channel{Tag: -1}
	m.Recv(&Recv{Channel: waiting, PostSeq: 7})
	for i := range int32(200_000) {
		c := Channel{Tag: i}
		m.Send(&Send{Channel: c})
		m.Recv(&Recv{Channel: c})
		if i%5000 == 0 {
			m.Sweep()
		}
	}
	if len(m.table) > 1<<15 {
		t.Errorf("the table has %d entries for 1 channel", len(m.table))
	}
	if r := m.Send(&Send{Channel: waiting}); r == nil || r.PostSeq != 7 {
		t.Errorf("the waiting receive was lost: %+v", r)
	}
}

// What is queued after Sweep lies together, in the order in which it came, though nodes were freed in another one.
func TestSweepOrdersFreeNodes(t *testing.T) {
	var m Matcher
	const n = 8
	recv := func(tag int32) { m.Recv(&Recv{Channel: Channel{Tag: tag}, PostSeq: int64(tag)}) }
	for tag := range int32(n) {
		recv(tag)
	}
	for _, tag := range []int32{5, 1, 6, 2, 0} {
		if r := m.Send(&Send{Channel: Channel{Tag: tag}}); r == nil || r.PostSeq != int64(tag) {
			t.Fatalf("the send of tag %d met %+v", tag, r)
		}
	}
	m.Sweep()
	for tag := range int32(6) {
		recv(n + tag)
	}
	var got []int64
	for _, r := range m.recvs.values {
		got = append(got, r.PostSeq)
	}
	if want := []int64{8, 9, 10, 3, 4, 11, 12, 7, 13}; !slices.Equal(got, want) {
		t.Errorf("the queue has the receives %d, want %d", got, want)
	}
	m.Sweep()
	if sends, recvs := m.Waiting(); sends != 0 || recvs != 9 {
		t.Errorf("%d sends and %d receives wait, want 0 and 9", sends, recvs)
	}
}
