package law

import (
	"slices"

	"github.com/commq/commq/predict/pattern"
)

// Answers numbers the answers that the rival laws of a number give at points, which must be of one place in the loops,
// and all or none at roots of collectives: laws with the same number give the same values at all points. It is nil if
// no rivals are known, or if a value is not known. Laws of package regress are too many to be numbered: of these 0
// stands for the preferred one, and pattern.SeveralAnswers, where they differ, for the others.
func (l *Law) Answers(points []Point) (numbers []int) {
	if l.IsEmpty() || len(points) == 0 {
		return nil
	}
	switch at := l.ofPlace(&points[0]); {
	case at == nil:
	case len(at.Sums) > 0:
		return sumAnswers(at.Sums, points)
	case at.Group != nil && at.Group.exact:
		return at.Group.answers(points)
	}
	return nil
}

// ofPlace returns the law of a place; nil if there is none.
func (l *Law) ofPlace(p *Point) *Law {
	switch {
	case l.Root != nil && p.Root:
		return l.Root.ofPlace(p)
	case l.Root != nil:
		return l.Others.ofPlace(p)
	case len(l.Places) > 0:
		i, found := slices.BinarySearchFunc(l.Places, selectComponents(p.Index, l.Keep),
			func(a PlaceLaw, b []int32) int { return slices.Compare(a.Index, b) })
		if !found {
			return nil
		}
		return l.Places[i].Law.ofPlace(p)
	}
	return l
}

// sumAnswers numbers the answers of sums at points.
func sumAnswers(sums []Sum, points []Point) (numbers []int) {
	var different [][]int64
	for i := range sums {
		values := make([]int64, len(points))
		for k := range points {
			var ok bool
			if values[k], ok = sums[i].evaluate(&points[k]); !ok {
				return nil
			}
		}
		n := slices.IndexFunc(different, func(o []int64) bool { return slices.Equal(o, values) })
		if n < 0 {
			n, different = len(different), append(different, values)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// answers returns two numbers, which differ if laws that fit all samples differ at a point.
func (g *GroupLaw) answers(points []Point) (numbers []int) {
	differ := 0
	for i := range points {
		e, ok := g.Evaluate(&points[i])
		if !ok {
			return nil
		}
		if e.Low < e.High && e.Low > -Unbounded && e.High < Unbounded {
			differ = pattern.SeveralAnswers
		}
	}
	return []int{0, differ}
}
