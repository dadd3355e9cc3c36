package join

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/phases/clock"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/sign"
)

func signRun(t *testing.T, run *signature.Run) *signature.Signature {
	t.Helper()
	s, err := sign.FromRows(run)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Runs joined from their signatures have the signature that their joint rows have.
func TestRunsEqualsSigningJointRows(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for range 200 {
		var runs []*signature.Signature
		for ranks := 2; ranks <= 4; ranks++ {
			var scripts []string
			for range ranks {
				script := []byte{'s'}
				for range 1 + random.IntN(9) {
					for k := range 1 + random.IntN(3) {
						script = append(script, byte('a'+k))
					}
				}
				scripts = append(scripts, string(script)+"z")
			}
			s := signRun(t, testruns.Scripts(scripts...))
			if _, err := clock.Run(s, func(int32, int64, int32) {}); err != nil {
				continue // the ranks wait for each other
			}
			runs = append(runs, s)
		}
		if len(runs) < 2 {
			continue
		}
		got, all, err := joinRuns(runs)
		if err != nil {
			t.Fatal(err)
		}
		want := signRun(t, all)
		if a, b := templateText(got.Sig), templateText(want); a != b {
			t.Fatalf("the template is %s, want %s", a, b)
		}
		for r := range want.Ranks {
			a, err := got.Sig.Expand(r)
			if err != nil {
				t.Fatal(err)
			}
			b, err := want.Expand(r)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(b, a); d != "" {
				t.Fatalf("rank %d, from rows -, from signatures +:\n%s", r, d)
			}
		}
	}
}

// templateText writes the template with the frames of its calls, as symbols may be numbered differently.
func templateText(s *signature.Signature) string {
	text := ""
	for _, n := range s.Nodes() {
		text += fmt.Sprint(" ", n.Depth)
		if !n.Loop {
			text += fmt.Sprint(":", *s.Symbols[n.Symbol].Frame)
		}
	}
	return text
}

// The levels of a function that calls itself once are iterations of a loop; those of one that calls itself twice are
// not.
func TestRecursionThatBranches(t *testing.T) {
	for times, want := range map[int]bool{1: true, 2: false} {
		joint, err := Runs([]*signature.Signature{signRun(t, testruns.Cycles(2, times)),
			signRun(t, testruns.Cycles(4, times))})
		if err != nil {
			t.Fatal(err)
		}
		if joint.LevelsAsIterations != want {
			t.Errorf("%d calls of itself: levels are iterations %t, want %t", times, joint.LevelsAsIterations, want)
		}
	}
}
