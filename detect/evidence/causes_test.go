package evidence

import (
	"math"
	"testing"

	"github.com/commq/commq/detect/ledger"
)

// broadcasts are so many from rank 0 to four others. asked: each of these asks for it just before.
func broadcasts(times int, asked bool) (*Finding, *Weigher) {
	l, sample := &ledger.Ledger{}, ledger.NewSample(5)
	f := &Finding{Op: ledger.Bcast, Ranks: []int32{0, 1, 2, 3, 4}, CommSize: 5, Whole: true}
	seq := int64(0)
	add := func(m ledger.Message) int32 {
		m.Carrier = ledger.None
		way := sample.WayOf(m.Cell(), ledger.Way{Src: m.Src, Dst: m.Dst})
		way.Count, way.List = way.Count+1, append(way.List, ledger.Operand{Message: m})
		l.Messages = append(l.Messages, m)
		return int32(len(l.Messages) - 1)
	}
	for k := range times {
		i := &ledger.Instance{Op: f.Op, Ranks: f.Ranks, Bytes: 80, Segments: 1}
		for r := int32(1); r < 5; r++ {
			if asked {
				add(ledger.Message{Src: r, Bytes: 4, SendSite: 2, SendSeq: seq, DoneSeq: seq, PostSeq: seq, Hash: 7})
			}
			i.Messages = append(i.Messages, add(ledger.Message{Dst: r, Bytes: 80, SendSite: 1, SendSeq: seq + 1, DoneSeq: seq + 1,
				PostSeq: seq + 1, Hash: int64(100 + k)}))
			seq += 2
		}
		f.Instances = append(f.Instances, i)
	}
	l.Found = f.Instances
	used := map[ledger.Place]int64{ledger.PlaceOf(0, 0, 1): int64(4 * times)}
	return f, NewWeigher(l, sample, used, []*Finding{f})
}

// TestAnswers: what ranks ask for is no broadcast, however often it goes to all.
func TestAnswers(t *testing.T) {
	f, w := broadcasts(7, true)
	if bits, _ := w.Weigh(f); math.Abs(bits-3) > 1e-9 { // 1 of 8: all seven payloads are wanted by all
		t.Errorf("answers: %g bits, want 3", bits)
	}
	f, w = broadcasts(7, false)
	if bits, basis := w.Weigh(f); bits < VerifiedBits || basis != ledger.ByPayload {
		t.Errorf("sent unasked: %g bits by %v, want it verified", bits, basis)
	}
}

// TestCrossed: messages that two ranks send each other at the same time are no requests; an answer follows its request.
func TestCrossed(t *testing.T) {
	way := &ledger.WaySample{}
	for _, seq := range []int64{5, 9} { // rank 1 sends at rows 15 and 19
		way.List = append(way.List, ledger.Operand{Message: ledger.Message{Src: 1, SendSeq: seq + 10, DoneSeq: seq}})
	}
	in := &inbox{ways: []*ledger.WaySample{way}}
	for _, c := range []struct {
		name       string
		sent, done int64 // rows of a message from rank 0 to rank 1
		want       bool
	}{
		{"in one call of each rank", 5, 15, true},
		{"each sends before it receives", 4, 16, true},
		{"asked, then answered", 8, 18, false},
		{"asked after the last answer", 10, 20, false},
	} {
		if got := in.crossed(1, c.sent, c.done); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if (*inbox)(nil).crossed(1, 5, 15) || in.crossed(2, 5, 15) {
		t.Error("crossed by a message of another rank, or by none")
	}
}

// TestIndependent: of an exchange of two ranks both messages have one cause.
func TestIndependent(t *testing.T) {
	message := func(src, dst int32, sent, done int64) ledger.Message {
		return ledger.Message{Src: src, Dst: dst, SendSeq: sent, DoneSeq: done, Carrier: ledger.None}
	}
	for _, c := range []struct {
		name     string
		messages []ledger.Message
		want     float64
	}{
		{"exchange", []ledger.Message{message(0, 1, 5, 6), message(1, 0, 5, 6)}, 0.5},
		{"exchange in one call of each rank", []ledger.Message{message(0, 1, 5, 7), message(1, 0, 7, 5)}, 0.5},
		{"question and answer", []ledger.Message{message(0, 1, 5, 5), message(1, 0, 6, 6)}, 1},
		{"exchange and one more", []ledger.Message{message(0, 1, 5, 6), message(1, 0, 5, 6), message(1, 2, 7, 0), message(2, 0, 1, 7)},
			0.75},
	} {
		i := &ledger.Instance{}
		for k := range c.messages {
			i.Messages = append(i.Messages, int32(k))
		}
		w := &Weigher{messages: c.messages}
		if got := w.independent(&Finding{Instances: []*ledger.Instance{i}}); got != c.want {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}
