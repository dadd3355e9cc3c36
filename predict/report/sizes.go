package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// sizeWarnings returns the warnings about sizes, counts and tags.
func sizeWarnings(w *Weigher, next []int32) (all []Warning) {
	m, x := w.model, w.prediction
	if x == nil {
		return nil
	}
	var differ, estimated []string
	run := int32(0)
	for _, s := range m.Sites {
		for _, n := range []struct {
			what string
			law  *law.Law
		}{{"bytes", s.Send.Bytes}, {"bytes", s.Recv.Bytes}, {"count", s.Send.Count}, {"tag", s.Send.Tag}} {
			if n.law == nil || !x.HasInexact(n.law) {
				continue
			}
			text := n.what + " of " + m.NodeName(s.Event)
			if n.law.IsExact() {
				if !slices.Contains(differ, text) {
					differ = append(differ, text)
				}
				if run == 0 {
					run = n.law.ResolvingRun(runsWithCall(m, s, next))
				}
			} else if !slices.Contains(estimated, text) {
				estimated = append(estimated, text)
			}
		}
	}
	if len(differ) > 0 {
		run = w.bestForBytes(next, run)
		all = append(all, Warning{LawsDiffer,
			"laws that fit all runs give different numbers (mostly because the extents " +
				"of the runs' grids all divide the domain's): " + firstThree(differ) +
				shareText(sumEstimates(m, x, true), "are of such laws", "one of the laws is right"), run})
	}
	if len(estimated) > 0 {
		all = append(all, Warning{Estimated, "no law fits all runs, so the numbers are estimates: " +
			firstThree(estimated) +
			shareText(sumEstimates(m, x, false), "are such estimates",
				"the trend of the runs continues; sizes that depend on data need not follow it"), 0})
	}
	return all
}

// firstThree lists at most three texts and how many more there are.
func firstThree(texts []string) string {
	list := strings.Join(texts[:min(3, len(texts))], ", ")
	if len(texts) > 3 {
		list += fmt.Sprintf(" and %d more", len(texts)-3)
	}
	return list
}

// shareText describes how many of the bytes that are sent are estimates; empty if none are, but only other numbers.
func shareText(e estimates, are, condition string) string {
	if e.bytes == 0 {
		return ""
	}
	interval := fmt.Sprintf("from %d to %d", e.low, e.high)
	if e.high == math.MaxInt64 {
		interval = fmt.Sprintf("from %d with no known upper bound", e.low)
	}
	return fmt.Sprintf(". %d of the %d bytes that are sent (%.3g %%) %s, in an interval %s that holds if %s", e.bytes,
		e.all, 100*float64(e.bytes)/float64(max(e.all, 1)), are, interval, condition)
}

// estimates has the bytes sent, how many of them are estimates, and the bounds of these.
type estimates struct{ all, bytes, low, high int64 }

// sumEstimates adds up the bytes of all sends and collective operations. Estimates are those whose laws fit all runs
// and differ, or those that have no such law. Without the communications that are not known it would be the sum of a
// few calls, so there is none.
func sumEstimates(m *model.Model, x *generate.Prediction, differ bool) (e estimates) {
	if x.Signature == nil || len(x.Unknown) > 0 {
		return e
	}
	occurrences := x.Signature.Occurrences(x.Signature.Roots)
	for _, s := range m.Sites {
		if !sendsBytes(m, s) {
			continue
		}
		for i, c := range x.Signature.Values[s.Event.ID].Events {
			if !c.Send.HasBytes() {
				continue
			}
			n, v := occurrences[s.Event.ID][i], int64(c.Send[signature.SideBytes])
			e.all = addProduct(e.all, n, v)
			if b, inexact := x.BoundsOf(s.Send.Bytes, v); inexact && s.Send.Bytes.IsExact() == differ {
				e.bytes, e.low = addProduct(e.bytes, n, v), addProduct(e.low, n, max(b.Low, 0))
				e.high = addProduct(e.high, n, b.High)
			}
		}
	}
	return e
}

// sendsBytes reports whether the calls of a site are sends or collective operations.
func sendsBytes(m *model.Model, s *model.Site) bool {
	return s.Sends || schema.Calls[m.Joint.Sig.Symbols[s.Event.Symbol].CallID].Class == schema.ClassCollective
}

// addProduct returns sum + n x, or math.MaxInt64 if that is more.
func addProduct(sum, n, x int64) int64 {
	if n > 0 && x > (math.MaxInt64-sum)/n {
		return math.MaxInt64
	}
	return sum + n*x
}
