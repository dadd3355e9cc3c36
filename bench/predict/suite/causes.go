package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// edgesUnknown is the cause of unknown pairs of ranks.
const edgesUnknown = "pairs of ranks of calls that are not known"

// causes are the reasons of gaps by a part of their text, as the table names them.
var causes = []struct{ text, name string }{
	{"other side of its messages", "the other side of its messages is not known"},
	{"completes", "it completes requests of calls that are not known"},
	{"unaligned", "levels of a hierarchy that the runs have too few ranks to show"},
	{"laws that give all runs differ", "laws of partners that fit all runs differ"},
	{"a run with more there shows how", "too few ranks along an axis in all runs"},
	{"no law gives all its destinations", "no law of partners fits"},
	{"more than a quarter of", "no law of partners fits"},
	{"too few messages to tell a law from chance", "too few messages to tell a law from chance"},
	{"may be chance", "too few messages to tell a law from chance"},
	{"seen at one process count only", "seen on one number of ranks"},
	{"unknown place", "how far a loop over partners goes is not known"},
	{"unknown range", "how far a loop over partners goes is not known"},
	{"begins with an iteration that no run shows", "how far a loop over partners goes is not known"},
	{"iterations", "the number of iterations is not known"},
	{"differently often", "the number of iterations is not known"},
	{"different messages there", "laws of sends and of receives differ"},
	{"layout-switch", "the program may change its layout"},
}

// causeOf returns the name of a reason; the reason itself if it has none.
func causeOf(why string) string {
	if why == "" {
		return "calls that the prediction lacks"
	}
	for _, c := range causes {
		if strings.Contains(why, c.text) {
			return c.name
		}
	}
	return why
}

// losses counts unknown numbers by cause and program.
type losses map[string]map[string]int64

func (l losses) add(why, program string, n int64) {
	if n == 0 {
		return
	}
	cause := causeOf(why)
	if l[cause] == nil {
		l[cause] = map[string]int64{}
	}
	l[cause][program] += n
}

// print writes a table of the causes, those of most numbers first, with the programs that lose most.
func (l losses) print(numbers int64) {
	const mostNamed = 3
	sum := func(cause string) (n int64) {
		for _, x := range l[cause] {
			n += x
		}
		return n
	}
	order := slices.SortedFunc(maps.Keys(l), func(a, b string) int {
		return cmp.Or(cmp.Compare(sum(b), sum(a)), cmp.Compare(a, b))
	})
	fmt.Println("\n| not known because | numbers | % of all | most of |\n|---|---|---|---|")
	for _, cause := range order {
		of := l[cause]
		programs := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
			return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
		})
		for i, p := range programs {
			programs[i] = fmt.Sprintf("%s %d", p, of[p])
		}
		fmt.Printf("| %s | %d | %.2f | %s |\n", cause, sum(cause), 100*float64(sum(cause))/float64(numbers),
			strings.Join(programs[:min(len(programs), mostNamed)], ", "))
	}
}
