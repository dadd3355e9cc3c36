package pattern

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestFigure7 checks the general equation of the paper's example, BT's first communication: fitted to 9, 16, 25 and
// 36 ranks, it predicts each destination on 49 ranks, K = 1 hop away.
func TestFigure7(t *testing.T) {
	pr := torus("bt", square, true, []int32{9, 16, 25, 36}, nil, [2]int32{1, 0}, [2]int32{0, -1})
	p := fitted(t, pr)
	for i, want := range []struct{ law, general string }{
		{"dst = wrap_x(+1) on a q x q grid", "[+1{+(q-1),+q}], [-(q-1){+1,+q}]; q = 6+K, K hops from P = 36"},
		{"dst = wrap_y(-1) on a q x q grid", "[+(q-1)*q{+q,+q*q}], [-q{+(q-1)*q,+q*q}]; q = 6+K, K hops from P = 36"},
	} {
		l := p.Laws[i]
		if got := l.Forms[0].String(); got != want.law {
			t.Errorf("the law is %q, want %q", got, want.law)
		}
		g, ok := l.General(l.Members[0])
		if !ok || g.String() != want.general {
			t.Errorf("the general equation is %v %q, want %q", ok, g, want.general)
		}
	}
	if _, err := p.Map("s0", 49); err != nil {
		t.Error(err)
	}
	var r *Refusal
	if _, err := p.Map("s0", 50); !errors.As(err, &r) || r.Reason != Undefined {
		t.Errorf("at 50: %v, want a refusal: 50 is no square", err)
	}
}

// TestQuestionAnswers has neighbours in the second axis of two grids, the most square one and one of two columns. 4 and
// 6 ranks do not tell them apart: both are 2 x 2 and 2 x 3. A run where their answers differ must leave fewer laws.
func TestQuestionAnswers(t *testing.T) {
	p := fitted(t, torus("rows", divisor2, false, []int32{4, 6}, nil, [2]int32{0, 1}, [2]int32{0, -1}))
	if _, err := p.Map("s0", 12); err == nil {
		t.Fatal("4 and 6 ranks do not tell 3 x 4 from 2 x 6")
	}
	q, different := p.Questions()["s0"], 0
	for _, ranks := range []int32{4, 8, 9, 12} {
		answers := q[0].Answers(ranks)
		if slices.Min(answers) == slices.Max(answers) {
			continue
		}
		different++
		if ranks == 4 {
			t.Errorf("the answers to a training run are %v, want one", answers)
		}
		more := fitted(t, torus("rows", divisor2, false, []int32{4, 6, ranks}, nil, [2]int32{0, 1}, [2]int32{0, -1}))
		before, after := p.Laws[0].rivals(12), more.Laws[0].rivals(12)
		if after >= before {
			t.Errorf("answers differ on %d ranks, and a run there leaves %d of %d laws", ranks, after, before)
		}
	}
	if different == 0 {
		t.Error("answers do not differ anywhere")
	}
}

// rivals counts the different answers of a law.
func (l Law) rivals(ranks int32) int {
	maps, _, _, _ := l.bind(ranks, nil)
	return len(maps)
}

// TestProgramSurvivesJSON writes and reads all programs of the tests, and compares the answers of both copies.
func TestProgramSurvivesJSON(t *testing.T) {
	for _, pr := range programs() {
		p := fitted(t, pr)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back Program
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(*p, back, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Form{})); d != "" {
			t.Errorf("%s: %s", pr.name, d)
		}
		for _, c := range pr.slots {
			a, errA := p.Map(c.name, pr.test[0])
			b, errB := back.Map(c.name, pr.test[0])
			if (errA == nil) != (errB == nil) || errA == nil && !slices.Equal(a.Mapping().Dst, b.Mapping().Dst) {
				t.Errorf("%s %s: %v %v", pr.name, c.name, errA, errB)
			}
		}
	}
}

// BenchmarkAt evaluates a law of 128 slots at 16,384 ranks.
func BenchmarkAt(b *testing.B) {
	p := fitted(b, torus("bt", square, true, []int32{9, 16, 25, 36}, nil, [2]int32{1, 0}))
	for b.Loop() {
		for range 128 {
			m, err := p.Map("s0", 16384)
			if err != nil {
				b.Fatal(err)
			}
			for r := range int32(16384) {
				m.Dst(r)
			}
		}
	}
}
