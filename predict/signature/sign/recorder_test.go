package sign

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
)

// Executions of a loop are the same value, whether their iterations are folded as they end or at the end of the loop.
func TestUnfoldedIterations(t *testing.T) {
	loop := &template.Node{Loop: true, Children: []*template.Node{{}}}
	s := &signature.Signature{Ranks: 3, Symbols: make([]signature.Symbol, 1),
		Template: &template.Node{Loop: true, Children: []*template.Node{loop}}}
	s.Link()
	r := NewRecorder(s)
	event := loop.Children[0]
	for rank, calls := range []int32{6, 6, 8} {
		p := r.NewPath()
		p.Enter(loop)
		for i := range calls {
			r.Take(p, event, i%2)
			if rank == 0 {
				r.EndIteration(p)
			} else {
				r.EndUnfolded(p)
			}
		}
		if p.DropIfEmpty() {
			t.Fatalf("rank %d: the loop is empty", rank)
		}
		r.Leave(p)
		r.Finish(p)
	}
	if d := cmp.Diff([]int32{0, 0, 1}, s.Roots); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if v := s.Values[loop.ID]; len(v.Loops) != 2 || v.Loops[0][0].Times != 3 || v.Loops[1][0].Times != 4 {
		t.Errorf("loops %+v", v.Loops)
	}
}
