package join

import (
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/signature/template"
)

// Two nested loops whose inner one is all that the outer one does look like a single loop: its calls follow one another
// in the same way. What ranks do tells: all of them do the same several times over, each as often as the others.

// maxRepeatCalls is the largest number of calls that are looked at for repetitions.
const maxRepeatCalls = 1 << 22

// execution is what a rank does in one execution of a loop: its calls, as pairs of a node and its value, from a position
// on.
type execution struct {
	rank  int32 // joint
	first int64
	calls []int64
}

// nestRepeats puts each loop of which all executions of a run are the same number of repetitions into a loop over these
// repetitions. The number may differ from run to run. It returns, by joint rank, where repetitions end; nil if there is
// no such loop.
func nestRepeats(t *Training) (cuts [][]sign.Cut) {
	found, nested := collectExecutions(t), map[*template.Node]bool{}
	for _, n := range t.Sig.Nodes() {
		executions := found[n.ID]
		if len(executions) == 0 || isBelow(n, nested) {
			continue
		}
		times, ok := repetitions(t, executions)
		if !ok {
			continue
		}
		if cuts == nil {
			cuts = make([][]sign.Cut, len(t.Sig.Roots))
		}
		nested[n] = true
		for _, x := range executions {
			length := int64(len(x.calls)) / times[t.runOf(x.rank)]
			for k := length; k < int64(len(x.calls)); k += length {
				cuts[x.rank] = append(cuts[x.rank], sign.Cut{Seq: x.first + k, Loop: n})
			}
		}
	}
	for n := range nested {
		n.Children = []*template.Node{{Loop: true, Children: n.Children}}
	}
	sortCuts(cuts)
	return cuts
}

// isBelow reports whether a node is in one of some loops.
func isBelow(n *template.Node, loops map[*template.Node]bool) bool {
	for l := n.Parent; l != nil; l = l.Parent {
		if loops[l] {
			return true
		}
	}
	return false
}

// runOf returns the index of the run that a joint rank belongs to.
func (t *Training) runOf(rank int32) int {
	run := 0
	for run+1 < len(t.First) && t.First[run+1] <= rank {
		run++
	}
	return run
}

// repetitions returns, by run, how often each execution repeats the same calls. ok is false if that is once, or if no
// execution differs from iteration to iteration.
func repetitions(t *Training, executions []execution) (times []int64, ok bool) {
	times = make([]int64, len(t.First))
	varied := false
	for i := range executions {
		x := &executions[i]
		run := t.runOf(x.rank)
		n := exponent(x.calls)
		times[run] = gcd(times[run], n)
		varied = varied || int64(len(x.calls)) > n
	}
	for _, n := range times {
		if n == 1 {
			return nil, false
		}
	}
	return times, varied
}

// exponent returns how often a sequence repeats its shortest period.
func exponent(calls []int64) int64 {
	border := make([]int, len(calls)+1) // length of the longest border of each prefix
	border[0] = -1
	for i := range calls {
		k := border[i]
		for k >= 0 && calls[k] != calls[i] {
			k = border[k]
		}
		border[i+1] = k + 1
	}
	n := len(calls)
	if period := n - border[n]; n%period == 0 {
		return int64(n / period)
	}
	return 1
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// collectExecutions returns the executions of loops whose iterations differ, by node; nil if there are too many calls.
func collectExecutions(t *Training) map[int32][]execution {
	c := &executionCollector{t: t, found: map[int32][]execution{}, wanted: map[int32]bool{}}
	for _, n := range t.Sig.Nodes()[1:] {
		if n.Loop && !n.RecursionLevels {
			for _, l := range t.Sig.Values[n.ID].Loops {
				c.wanted[n.ID] = c.wanted[n.ID] || !isUniform(l)
			}
		}
	}
	for r := range t.Sig.Roots {
		c.rank, c.seq = int32(r), 0
		if !c.walk(t.Sig.Nodes()[0], t.Sig.Roots[r]) {
			return nil
		}
	}
	return c.found
}

// isUniform reports whether all iterations of an execution are equal.
func isUniform(iterations []fold.Item) bool {
	first := int32(unset)
	return fold.Each(iterations, func(body int32) bool {
		if first == unset {
			first = body
		}
		return body == first
	})
}

// executionCollector walks through the calls of ranks.
type executionCollector struct {
	t      *Training
	wanted map[int32]bool
	found  map[int32][]execution
	rank   int32
	seq    int64 // of the next call
	open   []*execution
	total  int
}

// walk goes through what a rank did at a node. It returns false if there are too many calls.
func (c *executionCollector) walk(n *template.Node, value int32) bool {
	if !n.Loop {
		for _, x := range c.open {
			x.calls = append(x.calls, int64(n.ID)<<32|int64(value))
			c.total++
		}
		c.seq++
		return c.total <= maxRepeatCalls
	}
	if c.wanted[n.ID] {
		x := &execution{rank: c.rank, first: c.seq}
		c.open = append(c.open, x)
		defer func() {
			c.open = c.open[:len(c.open)-1]
			c.found[n.ID] = append(c.found[n.ID], *x)
		}()
	}
	v := &c.t.Sig.Values[n.ID]
	return fold.Each(v.Loops[value], func(body int32) bool {
		b := v.Bodies[body]
		for i := 0; i < len(b); i += 2 {
			if !c.walk(n.Children[b[i]], b[i+1]) {
				return false
			}
		}
		return true
	})
}
