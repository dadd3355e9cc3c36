package template

import (
	"math"
	"strings"
	"testing"
)

// flowsOf returns the flows of ranks whose calls are letters.
func flowsOf(scripts []string) (flows []Flow, first []int64, recursive []bool) {
	first, recursive = make([]int64, 26), make([]bool, 26)
	for i := range first {
		first[i] = math.MaxInt64
	}
	for _, script := range scripts {
		f, last := Flow{}, int32(Outside)
		for i, c := range script {
			symbol := c - 'a'
			first[symbol] = min(first[symbol], int64(i))
			f[Edge{From: last, To: symbol}]++
			last = symbol
		}
		f[Edge{From: last, To: Outside}]++
		flows = append(flows, f)
	}
	return flows, first, recursive
}

// expression writes a template with the letters that occur in the scripts, and loops in parentheses.
func expression(n *Node, first []int64) string {
	if !n.Loop {
		if first[n.Symbol] == math.MaxInt64 {
			return ""
		}
		return string('a' + n.Symbol)
	}
	var b strings.Builder
	b.WriteByte('(')
	for _, c := range n.Children {
		b.WriteString(expression(c, first))
	}
	b.WriteByte(')')
	return b.String()
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name    string
		scripts []string
		want    string
	}{
		{"no loop", []string{"abc", "abc"}, "(abc)"},
		{"a loop of one call", []string{"iaaaz", "iaz"}, "(i(a)z)"},
		{"nested loops", []string{"iabbbcabbbcz"}, "(i(a(b)c)z)"},
		{"classes with different heads", []string{"ibcbcbcz", "iabcabcabcz", "iacacacz"}, "(i(abc)z)"},
		{"branches", []string{"iabdabdz", "iacdacdz"}, "(i(abcd)z)"},
		// Flows cannot show that ab repeats before c; package sign sees it in the iterations.
		{"a loop that begins with a loop", []string{"iabababcabababcz"}, "(i(abc)z)"},
	} {
		flows, first, recursive := flowsOf(c.scripts)
		root, branches := Find(flows, first, recursive)
		if got := expression(root, first); got != c.want || branches {
			t.Errorf("%s: got %s, branches %t, want %s", c.name, got, branches, c.want)
		}
	}
}

// Symbol b is called by a function that calls itself: deeper levels follow, then the program goes back up by c.
func TestFindRecursion(t *testing.T) {
	const a, b, c = 0, 1, 2
	flow := Flow{{Outside, a, 0}: 1, {a, b, 1}: 1, {b, b, 1}: 3, {b, c, 0}: 1, {c, c, -1}: 3, {c, Outside, 0}: 1}
	root, branches := Find([]Flow{flow}, []int64{0, 1, 5}, []bool{false, true, true})
	if branches || len(root.Children) != 3 {
		t.Fatalf("branches %t, %d nodes, want 3", branches, len(root.Children))
	}
	for i, want := range []bool{false, true, true} {
		if n := root.Children[i]; n.Loop != want || n.RecursionLevels != want {
			t.Errorf("node %d: loop %t over levels %t, want %t", i, n.Loop, n.RecursionLevels, want)
		}
	}
}
