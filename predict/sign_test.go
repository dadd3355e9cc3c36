package predict

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// sites makes a run whose ranks make sends to the next rank at call sites: a letter each.
func sites(scripts ...string) *Run {
	run := &Run{Name: "test", Manifest: &schema.Manifest{Ranks: int32(len(scripts)), Record: "all"}}
	for r := range scripts {
		run.Comms = append(run.Comms, schema.Comm{CommRank: int32(r), WorldRank: int32(r), Name: schema.NullText, Parent: schema.NullInt32,
			CartDims: schema.NullText, CartPeriods: schema.NullText, GraphEdges: schema.NullText})
	}
	for c := 'a'; c <= 'z'; c++ {
		f := schema.NullCallsite
		f.ID, f.Function = int32(c), string(c)
		run.Callsites = append(run.Callsites, f)
	}
	run.Events = func(add func(*schema.Events) error) error {
		b := &schema.Events{}
		for r, script := range scripts {
			for seq, c := range script {
				e := schema.NullEvent
				e.Rank, e.Seq, e.Call, e.Class, e.Callsite, e.Comm = int32(r), int64(seq), int16(schema.CallSend), int16(schema.ClassSend), int32(c), 0
				e.SendPeer = (int32(r) + 1) % int32(len(scripts))
				e.SendWorld, e.SendTag, e.SendCount, e.SendDatatype, e.SendBytes = e.SendPeer, 9, 4097, 5, 4097
				b.Append(&e)
			}
		}
		return add(b)
	}
	return run
}

// String is the template as an expression: letters of call sites, loops in parentheses.
func expression(s *Signature) string {
	var b strings.Builder
	var write func(n *Node)
	write = func(n *Node) {
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
		{"straight", []string{"abc", "abc"}, "(abc)"},
		{"a loop", []string{"iabababz", "iabababz"}, "(i(ab)z)"},
		{"of one call", []string{"iaaaz", "iaz"}, "(i(a)z)"},
		{"nested", []string{"iabbbcabbbcz"}, "(i(a(b)c)z)"},
		{"ends of a line lack calls", []string{"icdcdcdz", "iabcdabcdabcdz", "iabababz"}, "(i(abcd)z)"},
		{"the first has not the head", []string{"ibcbcbcz", "iabcabcabcz", "iacacacz"}, "(i(abc)z)"},
		{"only one call of the loop", []string{"iaaaz", "iabababz", "ibbbz"}, "(i(ab)z)"},
		{"first and last iteration differ", []string{"isrwsrwsrwz", "isrwsrwsrwz"}, "(i(srw)z)"},
		{"a loop that begins with a loop", []string{"iabababcabababcz", "iabababcabababcz"}, "(i((ab)c)z)"},
		{"the end of an iteration is missing at times", []string{"iabcabcabcababz"}, "(i(abc)z)"},
		{"each rank has one of two ways", []string{"iabdabdz", "iacdacdz"}, "(i(abcd)z)"},
		{"others in the other order", []string{"iabz", "ibaz"}, "(i(ab)z)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := sites(c.scripts...)
			s, err := Sign(run)
			if err != nil {
				t.Fatal(err)
			}
			if got := expression(s); got != c.want {
				t.Errorf("the template is %s, want %s", got, c.want)
			}
			roundTrip(t, run, s)
		})
	}
}

// roundTrip writes a signature, reads it, and compares what it expands to with the run.
func roundTrip(t *testing.T, run *Run, s *Signature) {
	t.Helper()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	again, err := Read(strings.NewReader(text))
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
		t.Errorf("written again (-before +after):\n%s", d)
	}
}

// TestAnyWalk: whatever ranks do, the signature gives it back.
func TestAnyWalk(t *testing.T) {
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
			run := sites(scripts...)
			s, err := Sign(run)
			if err != nil {
				t.Fatal(err)
			}
			roundTrip(t, run, s)
		})
	}
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		in   []int32
		want string
	}{
		{[]int32{1, 2, 3}, "[1,2,3]"},
		{[]int32{1, 1, 1}, "[[3,1]]"},
		{[]int32{7, 1, 1, 2, 1, 1, 2, 1, 1, 2, 9}, "[7,[3,[2,1],2],9]"},
	} {
		var f folder
		for _, x := range c.in {
			f.add(x)
		}
		var back []int32
		each(f.items, func(x int32) bool { back = append(back, x); return true })
		if d := cmp.Diff(c.in, back); d != "" {
			t.Errorf("%v (-in +out):\n%s", c.in, d)
		}
		var parts []string
		for _, x := range f.items {
			text, err := x.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, string(text))
		}
		if got := "[" + strings.Join(parts, ",") + "]"; got != c.want {
			t.Errorf("%v becomes %s, want %s", c.in, got, c.want)
		}
	}
}

// FuzzRead: a broken signature is an error, and one that is read can be expanded or says why not.
func FuzzRead(f *testing.F) {
	s, err := Sign(sites("iababz", "iabz"))
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Add(`{"commq_signature":1,"ranks":1,"template":{"loop":true},"values":[{"loops":[[[9,[9,0]]]]}],"roots":[0]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read(strings.NewReader(text))
		if err != nil || s.Calls > 1<<16 {
			return
		}
		for r := range s.Ranks {
			_, _ = s.Expand(r)
		}
	})
}
