package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// SlotReport is the prediction of the calls at a place in the program.
type SlotReport struct {
	// Call names the call and its place.
	Call string `json:"call"`
	// Destinations is the law of destinations, Equation its general equation as in Figure 7 of the paper; empty if
	// there is none.
	Destinations string `json:"destinations_law,omitempty"`
	Equation     string `json:"equation,omitempty"`
	// Size is the law of the bytes that a call sends; without a formula where calls of a run differ and have no exact
	// law. Members is the law of the members of its communicator.
	Size    string `json:"bytes_law,omitempty"`
	Members string `json:"comm_law,omitempty"`
	// Calls is the number of calls of all ranks, Bytes the number of bytes that they send.
	Calls int64 `json:"calls"`
	Bytes int64 `json:"bytes"`
	// CallsLow is the lower bound of Calls, which differs where loops may repeat less or more often.
	CallsLow int64 `json:"low_calls"`
	// CallsHigh is the upper bound of Calls; the largest number of 64 bits if none is known.
	CallsHigh int64 `json:"high_calls"`
	// BytesLow is the lower bound of Bytes.
	BytesLow int64 `json:"low_bytes"`
	// BytesHigh is the upper bound of Bytes.
	BytesHigh int64 `json:"high_bytes"`
}

// CertainSlots returns those of Slots that are in no loop with an uncertain number of iterations.
func CertainSlots(m *model.Model, x *generate.Prediction) []SlotReport {
	return slices.DeleteFunc(Slots(m, x), func(r SlotReport) bool { return r.CallsLow != r.CallsHigh })
}

// Slots reports on each call that sends or takes part in a collective operation and has no gap (Prediction.Gaps), those
// with most bytes first.
func Slots(m *model.Model, x *generate.Prediction) (all []SlotReport) {
	if x.Signature == nil {
		return nil
	}
	occurrences, factors := x.Signature.Occurrences(x.Signature.Roots), iterationRanges(m, x)
	for _, s := range m.Sites {
		if !sendsBytes(m, s) || x.Gaps[s.Event.ID] != nil {
			continue
		}
		r := SlotReport{Call: m.NodeName(s.Event)}
		for i, c := range x.Signature.Values[s.Event.ID].Events {
			n := occurrences[s.Event.ID][i]
			r.Calls += n
			if !c.Send.HasBytes() {
				continue
			}
			v := int64(c.Send[signature.SideBytes])
			b := boundsOf(x, s, v)
			r.Bytes, r.BytesLow = r.Bytes+n*v, r.BytesLow+n*max(b.Low, 0)
			r.BytesHigh = addProduct(r.BytesHigh, n, b.High)
		}
		f := factors[s.Event.ID]
		r.CallsLow, r.CallsHigh = scale(r.Calls, f.low), scale(r.Calls, f.high)
		r.BytesLow, r.BytesHigh = scale(r.BytesLow, f.low), scale(r.BytesHigh, f.high)
		if r.Calls == 0 {
			continue
		}
		r.Destinations, r.Equation = describeFamily(m, s.To)
		if s.Send.Bytes != nil && r.Bytes > 0 {
			r.Size = s.Send.Bytes.TextAt(int64(x.Signature.Ranks))
		}
		if !s.Sends {
			r.Members = membersOf(m, s)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b SlotReport) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all
}

// Bounded is a number of all ranks with its interval. High is math.MaxInt64 if there is no upper bound.
type Bounded struct{ Value, Low, High int64 }

// add adds a value, n times, with its interval and the factors by which n may be less or more.
func (b *Bounded) add(n, value int64, of generate.Bounds, factor interval) {
	b.Value = addProduct(b.Value, n, value)
	b.Low = addProduct(b.Low, scale(n, factor.low), max(of.Low, 0))
	b.High = addProduct(b.High, scale(n, factor.high), of.High)
}

// Totals are the messages of all ranks, their bytes, and the calls of collective operations.
type Totals struct{ Messages, Bytes, Collectives Bounded }

// NewTotals adds up a prediction's calls.
func NewTotals(m *model.Model, x *generate.Prediction) (t Totals) {
	occurrences, factors := x.Signature.Occurrences(x.Signature.Roots), iterationRanges(m, x)
	for _, s := range m.Sites {
		t.addSite(x, s, occurrences[s.Event.ID], factors[s.Event.ID])
	}
	return t
}

// addSite adds the calls of a site: times has how often each of its values occurs, factor by how much that may be less
// or more.
func (t *Totals) addSite(x *generate.Prediction, s *model.Site, times []int64, factor interval) {
	one, node := generate.Bounds{Low: 1, High: 1}, x.Signature.Nodes()[s.Event.ID]
	for i, c := range x.Signature.Values[s.Event.ID].Events {
		switch {
		case x.Signature.SendsMessage(node, c):
			bytes := int64(max(c.Send[signature.SideBytes], 0))
			t.Messages.add(times[i], 1, one, factor)
			t.Bytes.add(times[i], bytes, boundsOf(x, s, bytes), factor)
		case x.Signature.Class(node, c) == schema.ClassCollective:
			t.Collectives.add(times[i], 1, one, factor)
		}
	}
}

// boundsOf returns the interval of the bytes of a site's call.
func boundsOf(x *generate.Prediction, s *model.Site, bytes int64) generate.Bounds {
	if b, inexact := x.BoundsOf(s.Send.Bytes, bytes); inexact {
		return b
	}
	return generate.Bounds{Low: bytes, High: bytes}
}

// scale multiplies a number that is not negative. It returns math.MaxInt64 if the product is more.
func scale(n int64, factor float64) int64 {
	switch x := math.Round(float64(n) * factor); {
	case math.IsInf(factor, 1):
		return math.MaxInt64
	case n == 0 || factor == 1:
		return n
	case x >= math.MaxInt64:
		return math.MaxInt64
	default:
		return int64(x)
	}
}

// describeFamily returns the law of a family, and its general equation if it has one.
func describeFamily(m *model.Model, family string) (law, equation string) {
	if family == "" {
		return "", ""
	}
	for i := range m.Pattern.Laws {
		l := &m.Pattern.Laws[i]
		if l.Site != family || len(l.Forms) == 0 {
			continue
		}
		for _, member := range l.Members {
			if g, ok := l.General(member); ok {
				equation = g.String()
				break
			}
		}
		return l.Forms[0].String(), equation
	}
	for _, u := range m.Pattern.Unexplained {
		if strings.HasPrefix(u.Slot, family) {
			return "no law: " + u.Why, ""
		}
	}
	return "", ""
}

// membersOf describes who is in the communicators of a site's calls.
func membersOf(m *model.Model, s *model.Site) string {
	switch {
	case s.CommAt != nil:
		return "several communicators, by the iteration of the loops around"
	case s.Comm == nil:
		return ""
	case s.Comm.World >= 0:
		return "all ranks"
	}
	if law := m.Partition(s.Comm); law != nil && len(law.Forms) > 0 {
		return law.Forms[0].String()
	}
	next, _ := describeFamily(m, s.Comm.Slot)
	return "some ranks: each with the next, " + cmp.Or(next, "no law")
}
