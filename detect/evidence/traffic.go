package evidence

import (
	"fmt"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// Weigher weighs the findings of a run. It knows all of them, and the other messages of their places.
type Weigher struct {
	messages []ledger.Message
	owners   *ledger.Owners
	used     map[ledger.Place]int64                // messages sent
	samples  map[ledger.Place][]*ledger.CellSample // the first messages
	findings map[ledger.Place][]*Finding
	cached   map[string]traffic // by places: their messages outside instances
	sample   *ledger.Sample
	received map[int32]*inbox // nil before inboxes is called
}

// NewWeigher returns a Weigher for all findings of a ledger. Their instances must have whole messages, not pieces.
// sample has the first messages of each kind, and used the number of messages that each place sends.
func NewWeigher(l *ledger.Ledger, sample *ledger.Sample, used map[ledger.Place]int64, all []*Finding) *Weigher {
	w := &Weigher{messages: l.Messages, owners: ledger.NewOwners(l.Messages, l.Found), used: used, sample: sample,
		samples: map[ledger.Place][]*ledger.CellSample{}, findings: map[ledger.Place][]*Finding{}, cached: map[string]traffic{}}
	for _, of := range sample.Order {
		p := ledger.PlaceOf(of.Cell.Comm, of.Cell.Tag, of.Cell.Site)
		w.samples[p] = append(w.samples[p], of)
	}
	for _, f := range all {
		f.count(l.Messages)
		for _, p := range f.places {
			w.findings[p] = append(w.findings[p], f)
		}
	}
	return w
}

// count finds the places that send the finding's messages, and counts the messages.
func (f *Finding) count(messages []ledger.Message) {
	f.sent = map[ledger.Place]int64{}
	for _, i := range f.Instances {
		for _, m := range i.Messages {
			p := messages[m].Place()
			if f.sent[p] == 0 {
				f.places = append(f.places, p)
			}
			f.sent[p] += i.Times()
			f.messages += i.Times()
		}
	}
	f.countAgain(messages)
}

// countAgain finds the instances that repeat the payload of another instance. Payloads that were spread before at
// another place are not counted: a program may try several algorithms.
func (f *Finding) countAgain(messages []ledger.Message) {
	f.again = map[*ledger.Instance]bool{}
	seen := map[ledger.Payload]bool{}
	for _, repeated := range []bool{false, true} {
		for _, i := range f.Instances {
			if m := &messages[i.Messages[0]]; i.Repeated == repeated {
				payload := ledger.Payload{Hash: m.Hash, Bytes: m.Bytes}
				if repeated && seen[payload] {
					f.again[i] = true
				}
				seen[payload] = true
			}
		}
	}
}

// traffic counts the messages of a finding's places that no collective explains.
type traffic struct {
	messages float64 // all messages
	again    float64 // messages with a payload that was sent there before
	ended    float64 // payloads that were sent more than once, but did not reach all ranks
	singles  float64 // payloads that were sent once
}

// unexplained counts the other messages of a finding's places. Messages of another finding are explained if it has all
// ranks of a communicator, or the same ranks, or none of this finding's: overlapping sets of ranks are typical of
// chance.
func (w *Weigher) unexplained(f *Finding) traffic {
	t := w.free(f.places)
	for _, p := range f.places {
		t.messages += float64(w.used[p])
		for _, other := range w.findings[p] {
			switch {
			case other == f || f.allows(other):
				t.messages -= float64(other.sent[p])
			case other.places[0] == p: // counted once
				t.again += float64(other.messages - other.times())
				t.ended += float64(other.times())
			}
		}
	}
	t.messages = max(0, t.messages)
	return t
}

// allows reports whether another finding at the same place is no sign of chance.
func (f *Finding) allows(other *Finding) bool {
	return other.Whole || slices.Equal(f.Ranks, other.Ranks) || !slices.ContainsFunc(other.Ranks, func(r int32) bool {
		_, shared := slices.BinarySearch(f.Ranks, r)
		return shared
	})
}

// free counts the messages of places outside instances, by payload.
func (w *Weigher) free(places []ledger.Place) (t traffic) {
	key := fmt.Sprint(places)
	if t, known := w.cached[key]; known {
		return t
	}
	groups := map[ledger.Payload]float64{}
	for _, p := range places {
		for _, of := range w.samples[p] {
			w.group(of, groups)
		}
	}
	for _, n := range groups {
		if n < 2 {
			t.singles += n
		} else {
			t.again, t.ended = t.again+n-1, t.ended+1
		}
	}
	w.cached[key] = t
	return t
}

// group counts the messages of a cell outside instances, by payload.
func (w *Weigher) group(of *ledger.CellSample, groups map[ledger.Payload]float64) {
	for way, messages := range of.Ways {
		if way.Src == way.Dst {
			continue
		}
		for k := range messages.List {
			m := &messages.List[k]
			if w.owners.Owner(m.Src, m.SendSeq) == nil {
				groups[ledger.Payload{Hash: m.Hash, Bytes: m.Bytes}]++
			}
		}
	}
}
