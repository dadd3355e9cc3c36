package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature"
)

// SlotReport is what was predicted for the calls at a place in the program.
type SlotReport struct {
	// Call names the call and its place.
	Call string `json:"call"`
	// Destinations is the law of destinations, Equation its general equation as in Figure 7 of the paper; empty if
	// there is none.
	Destinations string `json:"destinations_law,omitempty"`
	Equation     string `json:"equation,omitempty"`
	// Size is the law of the bytes that a call sends. Members is the law of the members of its communicator.
	Size    string `json:"bytes_law,omitempty"`
	Members string `json:"comm_law,omitempty"`
	// Calls is the number of calls of all ranks, Bytes the number of bytes that they send, with its bounds.
	Calls int64 `json:"calls"`
	Bytes int64 `json:"bytes"`
	// BytesLow is the lower bound of Bytes.
	BytesLow int64 `json:"low_bytes"`
	// BytesHigh is the upper bound of Bytes.
	BytesHigh int64 `json:"high_bytes"`
}

// Slots reports on each call that sends or takes part in a collective operation, those with most bytes first.
func Slots(m *model.Model, x *generate.Prediction) (all []SlotReport) {
	if x.Signature == nil {
		return nil
	}
	occurrences := x.Signature.Occurrences(x.Signature.Roots)
	for _, s := range m.Sites {
		if !sendsBytes(m, s) {
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
			b, inexact := x.BoundsOf(s.Send.Bytes, v)
			if !inexact {
				b = generate.Bounds{Low: v, High: v}
			}
			r.Bytes, r.BytesLow = r.Bytes+n*v, r.BytesLow+n*max(b.Low, 0)
			r.BytesHigh = addProduct(r.BytesHigh, n, b.High)
		}
		if r.Calls == 0 {
			continue
		}
		r.Destinations, r.Equation = describeFamily(m, s.To)
		if s.Send.Bytes != nil && r.Bytes > 0 {
			r.Size = s.Send.Bytes.String()
		}
		if !s.Sends {
			r.Members = membersOf(m, s)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b SlotReport) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all
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
