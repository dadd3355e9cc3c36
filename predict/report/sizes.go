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
func sizeWarnings(m *model.Model, x *generate.Prediction, next []int32) (all []Warning) {
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
		all = append(all, Warning{LawsDiffer,
			"laws that fit all runs give different numbers (mostly because the extents " +
				"of the runs' grids all divide the domain's): " + firstThree(differ), run})
	}
	if len(estimated) > 0 {
		all = append(all, estimateWarning(sumEstimates(m, x), estimated))
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

// estimateWarning describes numbers that are estimates.
func estimateWarning(e estimates, estimated []string) Warning {
	if e.bytes == 0 { // only sizes of receives are estimates
		return Warning{Estimated, "no law fits all runs, so the numbers are estimates: " + firstThree(estimated), 0}
	}
	interval := fmt.Sprintf("from %d to %d", e.low, e.high)
	if e.high == math.MaxInt64 {
		interval = fmt.Sprintf("from %d with no known upper bound", e.low)
	}
	return Warning{Estimated, fmt.Sprintf("no law fits all runs: %s. %.3g %% of the bytes that are sent, %d, are "+
		"estimates, in an interval %s that holds if the trend of the runs continues; sizes that depend on data need "+
		"not follow it", firstThree(estimated), 100*float64(e.bytes)/float64(max(e.all, 1)), e.bytes, interval), 0}
}

// estimates has the bytes sent, how many of them are estimates, and the bounds of these.
type estimates struct{ all, bytes, low, high int64 }

// sumEstimates adds up the bytes of all sends and collective operations.
func sumEstimates(m *model.Model, x *generate.Prediction) (e estimates) {
	if x.Signature == nil {
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
			if b, inexact := x.BoundsOf(s.Send.Bytes, v); inexact {
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
	if x > (math.MaxInt64-sum)/max(n, 1) {
		return math.MaxInt64
	}
	return sum + n*x
}
