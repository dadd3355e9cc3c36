package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/commq/commq/detect/price"
	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/units"
)

// Text writes the findings for people.
func (p *Report) Text(w io.Writer) error {
	var s strings.Builder
	if p.Pricing != nil && len(p.Findings) > 0 {
		for _, text := range p.Pricing.Warnings { // first, as all prices depend on it
			fmt.Fprintf(&s, "prices: %s\n", text)
		}
	}
	for i := range p.Findings {
		f := &p.Findings[i]
		fmt.Fprintf(&s, "%d. %s\n   %s\n", f.Finding, f.Scope(), f.Amount())
		for _, r := range append(f.remarks(), f.Price.Remarks(p.Pricing)...) {
			fmt.Fprintf(&s, "   %s\n", r)
		}
		if len(f.SendSites)+len(f.ReceiveSites)+len(f.CompletionSites) > 0 || !p.guesses() {
			fmt.Fprintf(&s, "   %s\n", advice(f))
		}
		for _, group := range f.sites() {
			for k := range group.sites {
				fmt.Fprintf(&s, "      %s: %s\n", group.does, group.sites[k].text())
			}
		}
	}
	if len(p.Findings) == 0 {
		looked := lookedFor
		if p.guesses() {
			looked = lookedForByStructure
		}
		fmt.Fprintf(&s, "Looked for %s: none was found.\n", looked)
	}
	if p.guesses() {
		noun := "guesses"
		if len(p.Findings) == 1 {
			noun = "guess"
		}
		fmt.Fprintf(&s, "%s %s by structure in %s of %s, which has no payload hashes: nothing shows that the data moves so\n",
			units.Comma(int64(len(p.Findings))), noun, units.Count(p.Messages, "message"), p.Run)
	} else {
		fmt.Fprintf(&s, "%s in %s of %s; chance of any false match of hashes (%s): %s\n",
			units.Count(int64(len(p.Findings)), "finding"), units.Count(p.Messages, "message"), p.Run, p.Hash,
			chanceText(p.FalseMatchChance))
	}
	if p.Pricing != nil && len(p.Findings) > 0 {
		fmt.Fprintf(&s, "all of them together: %s\n", p.Pricing.All.Text(p.Pricing))
	}
	if p.Replay != nil {
		fmt.Fprintf(&s, "%s\n", p.Replay.Text())
		if p.Replay.Contradiction != "" {
			fmt.Fprintf(&s, "%s\n", p.Replay.Contradiction)
		}
	}
	for _, text := range p.omissions() {
		fmt.Fprintf(&s, "%s\n", text)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// lookedFor names what a detection looks for.
const lookedFor = "broadcasts, barriers, allgathers, alltoalls, gathers, scatters, reductions, scans and exchanges " +
	"between neighbours"

// lookedForByStructure names what a detection without hashes looks for.
const lookedForByStructure = "messages in the shape of rings, recursive doubling and halving, dissemination, and each " +
	"rank sending to each other"

// guesses reports whether the findings rest on structure alone, as the run has no hashes.
func (p *Report) guesses() bool { return p.Hash == "none" }

// chanceText writes a probability; people need not know how far below one in a billion it is.
func chanceText(p float64) string {
	const small = 1e-9
	if p > 0 && p < small {
		return "less than 1 in a billion"
	}
	return units.Percent(p)
}

// group are the call sites of a finding that do the same.
type group struct {
	does  string
	sites []Site
}

// sites returns all call sites of a finding.
func (f *Finding) sites() []group {
	return []group{{"send", f.SendSites}, {"receive", f.ReceiveSites}, {"complete", f.CompletionSites}}
}

// omissions tell what is not among the findings, and why.
func (p *Report) omissions() (out []string) {
	if p.Candidates > 0 {
		out = append(out, fmt.Sprintf("%s not shown, which may be chance; --all shows all",
			units.Count(int64(p.Candidates), "candidate")))
	}
	return append(out, p.unsearched()...)
}

// unsearched tells among which messages nothing was looked for, or no alltoall, and why.
func (p *Report) unsearched() (out []string) {
	add := func(n int64, noun, text string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(text, units.Count(n, noun)))
		}
	}
	add(p.LeftOut-p.NoRoom, "message", "%s of payloads that are sent too often were left out")
	add(p.NoRoom, "message", "%s were left out for lack of memory; give more with --memory")
	add(p.Unclassed, "message", "among %s of too many kinds or too large communicators no alltoall was looked for")
	if !p.guesses() {
		add(p.Unhashed, "message", "%s without a hash were left out")
	}
	return out
}

// CSV writes a row per finding and group of ranks; lists have blanks between their members. Places and prices are the
// whole finding's.
func (p *Report) CSV(w io.Writer) error {
	rows := [][]string{{"finding", "operation", "comm", "ranks", "missing_ranks", "completeness", "roots",
		"possible_roots", "count_min", "count_max", "datatype", "segments", "instances", "messages",
		"message_bytes", "send_sites", "receive_sites", "completion_sites", "certainty", "bits", "basis", "reductions",
		"compared", "kept_ranks", "others", "alternatives", "where"}}
	if p.Pricing != nil {
		rows[0] = append(rows[0], "replaced_ns", "saved_ns", "pays_from", "called_as", "problem")
	}
	for i := range p.Findings {
		f := &p.Findings[i]
		for k := range f.Groups {
			row := append(f.cells(&f.Groups[k]), f.Where[k])
			if f.Price != nil {
				row = append(row, priceCells(f.Price)...)
			}
			rows = append(rows, row)
		}
	}
	return printable.NewCSV(w).WriteAll(rows)
}

// cells returns a group of a finding as a row of CSV.
func (f *Finding) cells(g *Group) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	comm := ""
	if g.Communicator != nil {
		comm = number(int64(*g.Communicator))
	}
	var alternatives []string
	for i := range f.Alternatives {
		alternatives = append(alternatives, f.Alternatives[i].text())
	}
	return []string{strconv.Itoa(f.Finding), f.Operation, comm, spaced(g.Ranks), spaced(g.MissingRanks),
		strconv.FormatFloat(g.Completeness, 'g', -1, 64), spaced(g.Roots), spaced(g.PossibleRoots),
		number(f.CountMin), number(f.CountMax), f.Datatype, strconv.Itoa(f.Segments), number(g.Instances),
		number(g.Messages), number(g.MessageBytes), placesText(f.SendSites),
		placesText(f.ReceiveSites), placesText(f.CompletionSites), f.Certainty,
		strconv.FormatFloat(f.Bits, 'f', -1, 64), f.Basis, strings.Join(f.Reductions, " "),
		f.Compared, spaced(g.KeptRanks), strings.Join(f.Others, " "), strings.Join(alternatives, "; ")}
}

// priceCells returns replaced_ns, saved_ns and pays_from, empty where they are not known, what the call is priced as,
// and why there is no price.
func priceCells(p *price.Price) []string {
	out := []string{"", "", "", p.CalledAs, p.Problem}
	if p.SavedNs != nil {
		out[0], out[1] = strconv.FormatInt(*p.ReplacedNs, 10), strconv.FormatInt(*p.SavedNs, 10)
	}
	if p.PaysFrom != nil {
		out[2] = strconv.Itoa(*p.PaysFrom)
	}
	return out
}

func placesText(sites []Site) string {
	var out []string
	for i := range sites {
		out = append(out, sites[i].Place)
	}
	return strings.Join(out, " ")
}
