package predict_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
)

// expression writes the template as letters of call sites, with loops in parentheses.
func expression(s *signature.Signature) string {
	var b strings.Builder
	var write func(n *template.Node)
	write = func(n *template.Node) {
		if !n.Loop {
			b.WriteRune(rune(*s.Symbols[n.Symbol].Frame))
			return
		}
		b.WriteByte('(')
		for _, c := range n.Children {
			write(c)
		}
		b.WriteByte(')')
	}
	write(s.Template)
	return b.String()
}

func TestTemplate(t *testing.T) {
	for _, c := range []struct {
		name    string
		scripts []string
		want    string
	}{
		{"no loop", []string{"abc", "abc"}, "(abc)"},
		{"a loop", []string{"iabababz", "iabababz"}, "(i(ab)z)"},
		{"a loop of one call", []string{"iaaaz", "iaz"}, "(i(a)z)"},
		{"nested loops", []string{"iabbbcabbbcz"}, "(i(a(b)c)z)"},
		{"ranks at the ends of a line lack calls", []string{"icdcdcdz", "iabcdabcdabcdz", "iabababz"}, "(i(abcd)z)"},
		{"the first rank lacks the head", []string{"ibcbcbcz", "iabcabcabcz", "iacacacz"}, "(i(abc)z)"},
		{"ranks with only one call of the loop", []string{"iaaaz", "iabababz", "ibbbz"}, "(i(ab)z)"},
		{"first and last iteration differ", []string{"isrwsrwsrwz", "isrwsrwsrwz"}, "(i(srw)z)"},
		{"a loop that begins with a loop", []string{"iabababcabababcz", "iabababcabababcz"}, "(i((ab)c)z)"},
		{"the last iteration is cut short", []string{"iabcabcabcababz"}, "(i(abc)z)"},
		{"each rank takes one of two branches", []string{"iabdabdz", "iacdacdz"}, "(i(abcd)z)"},
		{"ranks with different orders", []string{"iabz", "ibaz"}, "(i(ab)z)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := testruns.Scripts(c.scripts...)
			s := sign(t, run)
			if got := expression(s); got != c.want {
				t.Errorf("the template is %s, want %s", got, c.want)
			}
			roundTrip(t, run, s)
		})
	}
}

// roundTrip writes a signature, reads it, and compares its expansion with the run.
func roundTrip(t *testing.T, run *signature.Run, s *signature.Signature) {
	t.Helper()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	again, err := signature.Read(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := again.Compare(run); err != nil {
		t.Error(err)
	}
	b.Reset()
	if err := again.Write(&b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text, b.String()); d != "" {
		t.Errorf("written again (-first +second):\n%s", d)
	}
}

// Whatever ranks do, the signature expands to it.
func TestRandomScripts(t *testing.T) {
	for seed := range uint64(300) {
		g := rand.New(rand.NewPCG(seed, 8))
		var scripts []string
		for range 1 + g.IntN(5) {
			var b strings.Builder
			for range g.IntN(60) {
				b.WriteByte(byte('a' + g.IntN(1+g.IntN(7))))
			}
			scripts = append(scripts, b.String())
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			run := testruns.Scripts(scripts...)
			s := sign(t, run)
			roundTrip(t, run, s)
		})
	}
}
