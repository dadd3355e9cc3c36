package sign

import (
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
)

// Flows cannot tell a loop that begins with an inner loop from a single loop, since both have the same head; and they
// may show a nest of two loops where different ranks repeat one loop in different ways. The recorded iterations tell.

// leadingLoopShare is the fraction of a loop's executions whose first calls must look like a loop of their own.
const leadingLoopShare = 0.9

// nestLeadingLoops makes an inner loop of the first nodes of loops if these repeat before the rest comes. It reports
// whether it changed the template; then the values must be recorded again.
func nestLeadingLoops(sig *signature.Signature) (changed bool) {
	for _, n := range sig.Nodes() {
		if !n.Loop || n.RecursionLevels || len(n.Children) < 2 {
			continue
		}
		if m := leadingLoopLength(sig, n); m > 0 {
			inner := &template.Node{Loop: true, Children: slices.Clone(n.Children[:m])}
			n.Children = append([]*template.Node{inner}, n.Children[m:]...)
			changed = true
		}
	}
	return changed
}

// leadingLoopLength returns how many of the first nodes of a loop are an inner loop; 0 if there is none.
func leadingLoopLength(sig *signature.Signature, n *template.Node) int {
	v := &sig.Values[n.ID]
	var ends []int32
	for _, b := range v.Bodies {
		ends = append(ends, b[len(b)-2]+1)
	}
	slices.Sort(ends)
	for _, m := range slices.Compact(ends) {
		if int(m) == len(n.Children) {
			break
		}
		fitting, repeats, all := 0, false, 0
		for _, l := range v.Loops {
			fewest, most, trailing := shortIterations(v, l, m)
			if fewest < 0 {
				continue // no iteration has any of the rest
			}
			all++
			if fewest > 0 || most == 0 && trailing == 0 {
				fitting++
			}
			repeats = repeats || fewest > 0
		}
		if repeats && float64(fitting) >= leadingLoopShare*float64(all) {
			return int(m)
		}
	}
	return 0
}

// shortIterations counts, in an execution of a loop, runs of iterations that have only the first m nodes: the shortest
// and longest run before an iteration that has some of the rest, and the run at the end. fewest is -1 if no iteration
// has any of the rest.
func shortIterations(v *signature.Values, iterations []fold.Item, m int32) (fewest, most, trailing int64) {
	fewest = -1
	fold.Each(iterations, func(body int32) bool {
		b := v.Bodies[body]
		if b[len(b)-2] < m {
			trailing++
			return true
		}
		if b[0] >= m { // it has only the rest
			fewest = 0
			most = max(most, 1)
		} else {
			if fewest < 0 || trailing < fewest {
				fewest = trailing
			}
			most = max(most, trailing)
		}
		trailing = 0
		return true
	})
	return fewest, most, trailing
}

// mergeAlternatingLoop merges a loop with an inner one if no rank repeats both: ranks at different borders of a grid
// repeat a loop by different calls, and with three borders or more no nesting fits all of them. It changes at most
// one pair of loops and reports whether it did; then the values must be recorded before the next.
func mergeAlternatingLoop(sig *signature.Signature) bool {
	for _, n := range sig.Nodes()[1:] {
		if !n.Loop || n.RecursionLevels {
			continue
		}
		for i := 0; i < len(n.Children); i++ {
			if c := n.Children[i]; c.Loop && !c.RecursionLevels && alternate(sig, n, c) {
				n.Children = slices.Concat(n.Children[:i], c.Children, n.Children[i+1:])
				return true
			}
		}
	}
	return false
}

// alternate reports whether executions repeat either the outer or the inner loop but never both, and both cases occur.
func alternate(sig *signature.Signature, outer, inner *template.Node) bool {
	v, in := &sig.Values[outer.ID], &sig.Values[inner.ID]
	repeatsInner := make([]bool, len(v.Bodies))
	found := false
	for i, b := range v.Bodies {
		for k := 0; k < len(b); k += 2 {
			if b[k] == inner.Place && fold.Len(in.Loops[b[k+1]]) > 1 {
				if len(b) > 2 {
					return false
				}
				repeatsInner[i], found = true, true
			}
		}
	}
	if !found {
		return false
	}
	repeatsOuter := false
	for _, l := range v.Loops {
		if fold.Len(l) < 2 {
			continue
		}
		repeatsOuter = true
		if !fold.Each(l, func(body int32) bool { return !repeatsInner[body] }) {
			return false
		}
	}
	return repeatsOuter
}
