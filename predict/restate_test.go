package predict

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRestated: runs put together call by call have the signature that their rows have.
func TestRestated(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for range 200 {
		var runs []*Signature
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
			s, err := Sign(sites(scripts...))
			if err != nil {
				continue // they wait for one another
			}
			runs = append(runs, s)
		}
		if len(runs) < 2 {
			continue
		}
		got, all, err := sideBySide(runs)
		if err != nil {
			t.Fatal(err)
		}
		want := emptySigner(all)
		if err := want.signFrom(rowsOf{all}); err != nil {
			t.Fatal(err)
		}
		if a, b := nodeTexts(got.Signature), nodeTexts(want.sig); a != b {
			t.Fatalf("the template is %s, want %s", a, b)
		}
		for r := range want.sig.Ranks {
			a, err := got.Expand(r)
			if err != nil {
				t.Fatal(err)
			}
			b, err := want.sig.Expand(r)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(b, a); d != "" {
				t.Fatalf("rank %d, from rows -, from signatures +:\n%s", r, d)
			}
		}
	}
}

// nodeTexts is the template by the frames of its calls, whatever numbers its symbols have.
func nodeTexts(s *Signature) string {
	text := ""
	for _, n := range s.nodes {
		text += fmt.Sprint(" ", n.depth)
		if !n.Loop {
			text += fmt.Sprint(":", *s.Symbols[n.Symbol].Frame)
		}
	}
	return text
}
