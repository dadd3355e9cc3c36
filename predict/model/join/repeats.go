package join

import (
	"slices"

	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/signature/template"
)

// Two nested loops whose inner one is all that the outer one does look like a single loop: its calls follow one another
// in the same way. What ranks do tells: all of them do the same several times over, each as often as the others.

// maxRepeatCalls limits the calls that are searched for repetitions.
const maxRepeatCalls = 1 << 22

// execution is one execution of a loop by a rank: its calls from seq first on, as pairs of a node and its value.
type execution struct {
	rank  int32 // joint
	first int64
	calls []int64
}

// nestRepeats puts each loop whose executions are repetitions of the same calls into a loop over these repetitions. It
// returns, by joint rank, where repetitions end; nil if there is no such loop.
func nestRepeats(t *Training) (cuts [][]sign.Cut) {
	found, nested := collectExecutions(t), map[*template.Node]bool{}
	for _, n := range t.Sig.Nodes() {
		executions := found[n.ID]
		if len(executions) == 0 || isBelow(n, nested) {
			continue
		}
		lengths := repetitions(t, executions)
		if lengths == nil {
			continue
		}
		if cuts == nil {
			cuts = make([][]sign.Cut, len(t.Sig.Roots))
		}
		nested[n] = true
		for i, x := range executions {
			for k := lengths[i]; k < int64(len(x.calls)); k += lengths[i] {
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

// repetitions returns the number of calls of one repetition, by execution; nil if the executions are not repetitions,
// or none differs from iteration to iteration.
func repetitions(t *Training, executions []execution) []int64 {
	exponents, varied := make([]int64, len(executions)), false
	for i, x := range executions {
		exponents[i] = exponent(x.calls)
		varied = varied || int64(len(x.calls)) > exponents[i]
	}
	if !varied {
		return nil
	}
	if lengths := evenRepetitions(t, executions, exponents); lengths != nil {
		return lengths
	}
	return unevenRepetitions(t, executions, exponents)
}

// evenRepetitions returns the lengths of repetitions if all executions of a run have the same number of them. That
// number may differ from run to run.
func evenRepetitions(t *Training, executions []execution, exponents []int64) (lengths []int64) {
	times := make([]int64, len(t.First))
	for i, x := range executions {
		run := t.runOf(x.rank)
		times[run] = gcd(times[run], exponents[i])
	}
	for _, x := range executions {
		n := times[t.runOf(x.rank)]
		if n == 1 {
			return nil
		}
		lengths = append(lengths, int64(len(x.calls))/n)
	}
	return lengths
}

// unevenRepetitions returns the lengths of repetitions if those of a rank are equally long, and if all ranks of all
// runs have the same numbers of them, execution by execution. For example, a program sends to all others once, then has
// a barrier, then sends to all others three times.
func unevenRepetitions(t *Training, executions []execution, exponents []int64) (lengths []int64) {
	length, counts := make([]int64, len(t.Sig.Roots)), make([][]int64, len(t.Sig.Roots))
	for i, x := range executions {
		n := int64(len(x.calls))
		if n == 0 {
			return nil
		}
		period := n / exponents[i]
		if l := length[x.rank]; l != 0 {
			period *= l / gcd(period, l)
		}
		length[x.rank] = period
	}
	several := false
	for _, x := range executions {
		n, l := int64(len(x.calls)), length[x.rank]
		if n%l != 0 {
			return nil
		}
		lengths = append(lengths, l)
		counts[x.rank] = append(counts[x.rank], n/l)
		several = several || n > l
	}
	for _, c := range counts {
		if c != nil && !slices.Equal(c, counts[executions[0].rank]) {
			return nil
		}
	}
	if !several {
		return nil
	}
	return lengths
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
