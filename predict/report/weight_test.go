package report

import (
	"testing"

	"github.com/commq/commq/predict/pattern"
)

// A run tells laws apart that have other answers there. Which of several laws is right that have one answer in common it
// does not tell: such a doubt is never settled.
func TestAnswersOfSeveralLawsAreNotSettled(t *testing.T) {
	for name, c := range map[string]struct {
		wanted, there []int
		want          float64
	}{
		"two laws":                  {[]int{0, 1}, []int{0, 1}, 1},
		"two laws that agree there": {[]int{0, 1}, []int{0, 0}, 0},
		"three laws":                {[]int{0, 1, 2}, []int{0, 1, 1}, 2.0 / 3},
		"all others":                {[]int{0, pattern.SeveralAnswers}, []int{0, pattern.SeveralAnswers}, 0.5},
		"what no run shows":         {[]int{0, 0, pattern.SeveralAnswers}, []int{0, 0, 1}, 0.5},
		"not asked":                 {[]int{0, 1}, nil, 0},
	} {
		q := &question{c.wanted, func(int32) []int { return c.there }}
		if got := q.shareTold(8); got != c.want {
			t.Errorf("%s: %g of the pairs; want %g", name, got, c.want)
		}
	}
}
