package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/run"
)

// text returns a place in words.
func (s *Site) text() string {
	return strings.TrimSpace(run.SiteText(strings.Join(s.Calls, ", "), s.Function, s.Place))
}

// mostRoots is how many roots that take turns are listed one by one.
const mostRoots = 16

// Scope tells the operation, its ranks and its root.
func (f *Finding) Scope() string {
	var s strings.Builder
	s.WriteString(f.Operation)
	if len(f.Reductions) > 0 {
		fmt.Fprintf(&s, " of %s", strings.Join(f.Reductions, " or "))
	}
	name := ""
	if f.Communicator != nil {
		name = fmt.Sprintf("communicator %d", *f.Communicator)
		if f.CommunicatorName != "" {
			name = f.CommunicatorName
		}
	}
	switch {
	case name == "":
		fmt.Fprintf(&s, " over ranks %s of no communicator", Ranges(f.Ranks))
	case len(f.MissingRanks) > 0:
		fmt.Fprintf(&s, " over ranks %s of %s", Ranges(f.Ranks), name)
	default:
		fmt.Fprintf(&s, " over %s (%s)", name, units.Count(int64(len(f.Ranks)), "rank"))
	}
	switch {
	case len(f.RootOrder) > mostRoots:
		fmt.Fprintf(&s, ", root varies: %s in turn", Ranges(f.Roots))
	case len(f.RootOrder) > 0:
		fmt.Fprintf(&s, ", root varies: %s in turn", strings.ReplaceAll(spaced(f.RootOrder), " ", ","))
	case len(f.Roots) > 1:
		fmt.Fprintf(&s, ", root varies: %s", Ranges(f.Roots))
	case len(f.Roots) > 0:
		fmt.Fprintf(&s, ", root %d", f.Roots[0])
	}
	return s.String()
}

// Amount tells how often a finding is done and how much it moves.
func (f *Finding) Amount() string {
	size := units.Count(f.PayloadBytesMax, "byte")
	if f.PayloadBytesMin != f.PayloadBytesMax {
		size = fmt.Sprintf("%s to %s", units.Comma(f.PayloadBytesMin), size)
	}
	if f.Segments > 1 {
		size += fmt.Sprintf(" in up to %d segments", f.Segments)
	}
	return fmt.Sprintf("%s of %s, by %s of %s", units.Count(f.Instances, "instance"), size,
		units.Count(f.Messages, "message"), units.Bytes(f.MessageBytes))
}

// remarks tell the evidence for a finding and what its replacement takes, a sentence each.
func (f *Finding) remarks() (out []string) {
	if text := f.evidence(); text != "" {
		out = append(out, text)
	}
	if len(f.KeptRanks) > 0 {
		out = append(out, "not seen, so inferred: what these ranks keep or contribute: "+Ranges(f.KeptRanks))
	}
	if len(f.Others) > 0 {
		out = append(out, fmt.Sprintf("the messages also fit %s: what ranks do with them is not seen",
			strings.Join(f.Others, " and ")))
	}
	if len(f.PossibleRoots) > len(f.Roots) {
		out = append(out, "possible roots: "+Ranges(f.PossibleRoots))
	}
	if f.Repeats > 0 {
		out = append(out, fmt.Sprintf("%s what all ranks had from an earlier one: do they need it again?",
			carry(f.Repeats)))
	}
	if f.Neighbors != nil {
		out = append(out, f.Neighbors.text())
	}
	if len(f.MissingRanks) > 0 {
		out = append(out, fmt.Sprintf("%s of the communicator: %s; make a communicator of those that do",
			units.Percent(f.Completeness), absent(f.MissingRanks)))
	} else if f.Communicator == nil {
		out = append(out, "make a communicator of these ranks")
	}
	return out
}

// evidence tells the certainty of a finding and its reason.
func (f *Finding) evidence() string {
	switch {
	case f.Certainty == detect.Addressed.String():
		return "addressed: sizes fit, and blocks lie side by side in memory"
	case f.Certainty == detect.Inferred.String() && f.BetweenNeighbors():
		return "inferred: who sends to whom and when fits in every instance; no payload was compared"
	case f.Certainty == detect.Inferred.String():
		return "inferred: who sends to whom, when and how much fits in every instance; no payload could be compared"
	case f.Checks > 0:
		return "verified: " + units.Count(f.Checks, "payload") + " compared, all agree"
	}
	return ""
}

// text describes the neighbours, and names the call that makes a communicator of them.
func (n *Neighbors) text() string {
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
