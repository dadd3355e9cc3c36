package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/run"
)

// text returns a place in words.
func (s *Site) text() string {
	return strings.TrimSpace(run.SiteText(strings.Join(s.Calls, ", "), s.Function, s.Place))
}

// mostRoots limits the roots that take turns and are listed one by one.
const mostRoots = 16

// Scope tells the operation, its ranks and its root.
func (f *Finding) Scope() string {
	var s strings.Builder
	s.WriteString(f.Operation)
	if len(f.Reductions) > 0 {
		fmt.Fprintf(&s, " of %s", strings.Join(f.Reductions, " or "))
	}
	if len(f.Groups) > 1 {
		least, most := len(f.Groups[0].Ranks), 0
		for i := range f.Groups {
			least, most = min(least, len(f.Groups[i].Ranks)), max(most, len(f.Groups[i].Ranks))
		}
		fmt.Fprintf(&s, " in %d groups of %s", len(f.Groups), span(least, most, "rank"))
		return s.String()
	}
	for i := range f.Groups {
		fmt.Fprintf(&s, " over %s%s", f.Groups[i].over(), f.Groups[i].root())
	}
	return s.String()
}

// world is the name of the communicator of all ranks, which need not be listed.
const world = "MPI_COMM_WORLD"

// over tells the ranks of a group and their communicator.
func (g *Group) over() string {
	switch {
	case g.Communicator == nil:
		return fmt.Sprintf("ranks %s of no communicator", Ranges(g.Ranks))
	case len(g.MissingRanks) > 0:
		return fmt.Sprintf("ranks %s of %s", Ranges(g.Ranks), g.communicator())
	case g.CommunicatorName == world:
		return fmt.Sprintf("%s (%s)", world, units.Count(int64(len(g.Ranks)), "rank"))
	case g.all:
		return fmt.Sprintf("%s (all %s)", g.communicator(), units.Count(int64(len(g.Ranks)), "rank"))
	}
	return fmt.Sprintf("%s (ranks %s)", g.communicator(), Ranges(g.Ranks))
}

// communicator names the communicator of a group.
func (g *Group) communicator() string {
	name := cmp.Or(g.CommunicatorName, fmt.Sprintf("communicator %d", *g.Communicator))
	if g.CommunicatorLike != "" {
		name += ", a duplicate of " + g.CommunicatorLike
	}
	return name
}

// root tells the root or roots of a group, after a comma; "" if it has none.
func (g *Group) root() string {
	switch {
	case len(g.RootOrder) > mostRoots:
		return fmt.Sprintf(", root varies: %s in turn", Ranges(g.Roots))
	case len(g.RootOrder) > 0:
		return fmt.Sprintf(", root varies: %s in turn", strings.ReplaceAll(spaced(g.RootOrder), " ", ","))
	case len(g.Roots) > 1:
		return fmt.Sprintf(", root varies: %s", Ranges(g.Roots))
	case len(g.Roots) > 0:
		return fmt.Sprintf(", root %d", g.Roots[0])
	}
	return ""
}

// Amount tells how often a finding is done and how much it moves.
func (f *Finding) Amount() string {
	size := ""
	if f.PayloadBytesMax > 0 {
		size = " of " + f.count()
	}
	if f.Segments > 1 {
		size += fmt.Sprintf(", in up to %d segments", f.Segments)
	}
	return fmt.Sprintf("%s%s, by %s of %s", units.Count(f.Instances, "instance"), size,
		units.Count(f.Messages, "message"), units.Bytes(f.MessageBytes))
}

// count tells what the call takes as count and datatype.
func (f *Finding) count() string {
	if f.Datatype == bytesType || f.Datatype == "" {
		return amount(f.CountMin, f.CountMax) + " " + plural(f.CountMax, "byte") + f.perRank()
	}
	return amount(f.CountMin, f.CountMax) + " " + f.Datatype + f.perRank()
}

// amount returns a number that may vary: 3 to 5,000.
func amount(least, most int64) string {
	if least == most {
		return units.Comma(most)
	}
	return units.Comma(least) + " to " + units.Comma(most)
}

func plural(n int64, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// remarks tell the evidence for a finding and what its replacement takes, a sentence each.
func (f *Finding) remarks() []string {
	out := []string{f.evidence()}
	if kept := f.union(func(g *Group) []int32 { return g.KeptRanks }); len(kept) > 0 {
		out = append(out, "not seen, so inferred: what these ranks keep or contribute: "+Ranges(kept))
	}
	if len(f.Others) > 0 {
		out = append(out, fmt.Sprintf("the messages also fit %s: what ranks do with them is not seen",
			strings.Join(f.Others, " and ")))
	}
	for _, a := range f.Alternatives {
		out = append(out, fmt.Sprintf("or: %s, which shares messages of %s", a.text(), units.Count(a.Instances, "instance")))
	}
	if f.Repeats > 0 {
		out = append(out, fmt.Sprintf("%s what all ranks had from an earlier one: do they need it again?",
			carry(f.Repeats)))
	}
	if len(f.Groups) > 1 {
		return append(out, f.groups())
	}
	for i := range f.Groups {
		out = append(out, f.Groups[i].remarks()...)
	}
	return out
}

// text tells the operation and its ranks.
func (a *Alternative) text() string { return a.Operation + " over ranks " + Ranges(a.Ranks) }

// remarks tell what only a finding of one group has room for.
func (g *Group) remarks() (out []string) {
	if len(g.PossibleRoots) > len(g.Roots) {
		out = append(out, "possible roots: "+Ranges(g.PossibleRoots))
	}
	if g.Neighbors != nil {
		out = append(out, g.Neighbors.text())
	}
	if len(g.MissingRanks) > 0 {
		out = append(out, fmt.Sprintf("%s of the communicator: %s; make a communicator of those that do",
			units.Percent(g.Completeness), absent(g.MissingRanks)))
	} else if g.Communicator == nil {
		out = append(out, "make a communicator of these ranks")
	}
	return out
}

// union returns ranks of all groups, ascending.
func (f *Finding) union(ranks func(*Group) []int32) (all []int32) {
	for i := range f.Groups {
		all = append(all, ranks(&f.Groups[i])...)
	}
	return joinRanks(nil, all)
}

// mostGroups limits the groups of ranks that are listed one by one.
const mostGroups = 8

// groups lists the groups, and how to make the communicators that they lack.
func (f *Finding) groups() string {
	var list []string
	times := map[string]int{}
	for i := range f.Groups {
		ranks := Ranges(f.Groups[i].Ranks) + f.Groups[i].root()
		if times[ranks]++; times[ranks] == 1 {
			list = append(list, ranks)
		}
	}
	rest := max(0, len(list)-mostGroups)
	list = list[:len(list)-rest]
	for k, ranks := range list {
		if n := times[ranks]; n > 1 {
			list[k] += fmt.Sprintf(" (%d communicators)", n)
		}
	}
	text := "groups of ranks: " + strings.Join(list, " | ")
	if rest > 0 {
		text += fmt.Sprintf(" and %d more (--format json and csv have all)", rest)
	}
	if !slices.ContainsFunc(f.Groups, func(g Group) bool { return !g.hasCommunicator() }) {
		return text + "; each has a communicator"
	}
	return text + fmt.Sprintf("; %s makes a communicator of each", splitter(f.Groups))
}

// hasCommunicator reports whether the group has a communicator of its own.
func (g *Group) hasCommunicator() bool { return g.Communicator != nil && len(g.MissingRanks) == 0 }

// splitter names the call that makes a communicator of each group: MPI_Comm_split needs groups without common ranks.
func splitter(groups []Group) string {
	seen := map[int32]bool{}
	for i := range groups {
		for _, rank := range groups[i].Ranks {
			if seen[rank] {
				return "MPI_Comm_create_group"
			}
			seen[rank] = true
		}
	}
	return "MPI_Comm_split"
}

// where tells for each group its communicator or how to make one, its ranks and roots, and how often it does it.
func (f *Finding) where() []string {
	list := []string{}
	for i := range f.Groups {
		g := &f.Groups[i]
		text := fmt.Sprintf("%s%s: %s", g.over(), g.root(), units.Count(g.Instances, "instance"))
		switch {
		case g.Neighbors != nil:
			text += "; " + g.Neighbors.text()
		case !g.hasCommunicator():
			text += fmt.Sprintf("; %s makes a communicator of these ranks", splitter(f.Groups))
		}
		list = append(list, text)
	}
	return list
}

// isGuess reports whether no payload could be compared.
func isGuess(f *Finding) bool {
	return f.Certainty == detect.Candidate.String() && f.Basis == detect.ByStructure.String() && f.Bits == 0
}

// evidence tells the certainty of a finding, its bits and the reason.
func (f *Finding) evidence() string {
	if isGuess(f) {
		return fmt.Sprintf("guess: %s; other programs may send the same messages", f.reason())
	}
	text := fmt.Sprintf("%s (%.0f bits): %s", f.Certainty, math.Floor(f.Bits), f.reason())
	if f.Certainty == detect.Candidate.String() {
		return text + "; chance may have done it"
	}
	return text
}

// advice is place; of a guess it says what must be true first.
func advice(f *Finding) string {
	if isGuess(f) {
		return "if the program does what this guess says, " + f.place()
	}
	return f.place()
}

// place tells in which functions to call the collective; the calls that go away follow.
func (f *Finding) place() string {
	senders, receivers := functions(f.SendSites), functions(f.ReceiveSites, f.CompletionSites)
	only := slices.DeleteFunc(receivers, func(name string) bool { return slices.Contains(senders, name) })
	switch {
	case len(senders) == 0:
		return "call it instead of"
	case len(only) == 0:
		return fmt.Sprintf("call it in %s instead of", strings.Join(senders, ", "))
	case len(f.Groups) > 0 && len(f.Groups[0].Roots) > 0:
		return fmt.Sprintf("call it in %s, and in %s on ranks that only receive, instead of", strings.Join(senders, ", "),
			strings.Join(only, ", "))
	}
	return fmt.Sprintf("call it in %s, where ranks send, instead of", strings.Join(senders, ", "))
}

// functions returns the functions of call sites, each once.
func functions(lists ...[]Site) (out []string) {
	for _, list := range lists {
		for i := range list {
			if name := list[i].Function; name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// reason tells what a finding rests on.
func (f *Finding) reason() string {
	switch {
	case f.Operation == ledger.Barrier.String():
		return "every rank hears of every other before it goes on"
	case f.Basis == detect.ByAddress.String():
		return "sizes fit, and blocks lie side by side in memory"
	case f.Basis == detect.ByStructure.String() && f.BetweenNeighbors():
		return "who sends to whom and when fits in every instance; no payload was compared"
	case f.Basis == detect.ByStructure.String() && f.Operation == ledger.Bcast.String():
		return "the root sends the same to all others, in the order of their ranks and at calls that do nothing else"
	case f.Basis == detect.ByStructure.String():
		return "who sends to whom, when and how much fits in every instance; no payload could be compared"
	case f.extent != ledger.AllElements:
		return fmt.Sprintf("the %s of %s compared, all agree (the rest was not compared)", f.Compared,
			units.Count(f.Checks, "payload"))
	case f.Checks > 0:
		return units.Count(f.Checks, "payload") + " compared, all agree"
	}
	return "the ranks have the same payload afterwards, by its hash"
}

// text describes the neighbours, and names the call that makes a communicator of them.
func (n *Neighbors) text() string {
	if n.Dims == nil && n.Graphs > 1 {
		return fmt.Sprintf("%s each, on %d different graphs: MPI_Dist_graph_create_adjacent makes a communicator for each",
			span(n.Least, n.Most, "neighbour"), n.Graphs)
	}
	if n.Dims == nil {
		return fmt.Sprintf("%s each: MPI_Dist_graph_create_adjacent makes a communicator of them",
			span(n.Least, n.Most, "neighbour"))
	}
	var dims, periods, along []string
	for k, size := range n.Dims {
		dims = append(dims, strconv.Itoa(size))
		periods = append(periods, map[bool]string{false: "0", true: "1"}[n.Periods[k]])
	}
	create := fmt.Sprintf("MPI_Cart_create with dims %s and periods %s", strings.Join(dims, ","),
		strings.Join(periods, ","))
	if n.Along == nil {
		return "neighbours of a Cartesian grid: " + create + " makes its communicator"
	}
	for _, k := range n.Along {
		along = append(along, strconv.Itoa(k))
	}
	return fmt.Sprintf("neighbours along dimension %s of a Cartesian grid: %s, then MPI_Cart_sub, make its communicators",
		strings.Join(along, " and "), create)
}

// span returns a count that may vary: 3 to 5 neighbours.
func span(least, most int, what string) string {
	if least == most {
		return units.Count(int64(most), what)
	}
	return fmt.Sprintf("%d to %s", least, units.Count(int64(most), what))
}

// absent tells that ranks take no part.
func absent(ranks []int32) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d takes no part", ranks[0])
	}
	return fmt.Sprintf("ranks %s take no part", Ranges(ranks))
}

func carry(n int64) string {
	if n == 1 {
		return "1 instance carries"
	}
	return units.Count(n, "instance") + " carry"
}

// Ranges abbreviates sorted ranks: 0-3,7.
func Ranges(ranks []int32) string {
	var out []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if j == i {
			out = append(out, strconv.Itoa(int(ranks[i])))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}

// spaced lists ranks with blanks between them.
func spaced(ranks []int32) string { return strings.Trim(fmt.Sprint(ranks), "[]") }
