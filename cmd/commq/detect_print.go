package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/schema"
)

// printedDetection is the answer of commq detect.
type printedDetection struct {
	Run string `json:"run"`
	// RunDigest is the digest of the run.
	RunDigest string `json:"run_digest"`
	Hash      string `json:"hash"`
	// Messages is the number of messages; Unhashed of those whose payload is not known, which were left out.
	Messages int64 `json:"messages"`
	Unhashed int64 `json:"unhashed"`
	// LeftOut are messages that were not looked at because there are too many of their payload; Unclassed those among which no alltoall was
	// looked for.
	LeftOut   int64 `json:"left_out"`
	Unclassed int64 `json:"unclassed"`
	// NoRoom are those of LeftOut for which --memory-mib has no room.
	NoRoom int64 `json:"no_room,omitempty"`
	// Neighborhoods is the number of findings that are exchanges between neighbours, shown or not.
	Neighborhoods int `json:"neighborhoods"`
	// FalseMatchChance bounds the chance that any two different payloads of one size had the same hash.
	FalseMatchChance float64          `json:"false_match_chance"`
	Findings         []printedFinding `json:"findings"`
	// Pricing is there with --machine; findings are in the order of what they save then.
	Pricing *printedPricing `json:"pricing,omitempty"`
	// Replay is there with --replay.
	Replay *printedReplay `json:"replay,omitempty"`
}

// printedFinding is a finding.
type printedFinding struct {
	// Finding is its number, from 1: those with most bytes have the first.
	Finding          int     `json:"finding"`
	Operation        string  `json:"operation"`
	Communicator     *int32  `json:"communicator"`
	CommunicatorName string  `json:"communicator_name,omitempty"`
	Ranks            []int32 `json:"ranks"`
	MissingRanks     []int32 `json:"missing_ranks"`
	Completeness     float64 `json:"completeness"`
	Roots            []int32 `json:"roots"`
	PossibleRoots    []int32 `json:"possible_roots"`
	// RootOrder are the roots in the order in which they take turns, where there are several and they do.
	RootOrder []int32 `json:"root_order,omitempty"`
	// Neighbors is there for operations between neighbours.
	Neighbors       *printedNeighbors `json:"neighbors,omitempty"`
	PayloadBytesMin int64             `json:"payload_bytes_min"`
	PayloadBytesMax int64             `json:"payload_bytes_max"`
	Segments        int               `json:"segments"`
	Instances       int64             `json:"instances"`
	Repeats         int64             `json:"repeats"`
	Messages        int64             `json:"messages"`
	MessageBytes    int64             `json:"message_bytes"`
	// Certainty is verified, addressed or inferred; Reductions are the operations that fit, by MPI's names, Checks is how many
	// payloads were compared with what they must be, KeptRanks are those whose own part was not seen.
	Certainty  string   `json:"certainty"`
	Reductions []string `json:"reductions"`
	Checks     int64    `json:"checks"`
	KeptRanks  []int32  `json:"kept_ranks"`
	// Others are operations that fit all that was seen as well.
	Others []string `json:"others,omitempty"`
	// SendSites are where messages are sent, ReceiveSites where they are received or their receives are posted, CompletionSites where
	// requests of both are completed. Of a persistent request they have the call that makes it and the one that starts it.
	SendSites       []printedSite `json:"send_sites"`
	ReceiveSites    []printedSite `json:"receive_sites"`
	CompletionSites []printedSite `json:"completion_sites"`
	// List are the instances, with --messages.
	List []printedInstance `json:"list,omitempty"`
	// Price is there with --machine.
	Price *printedPrice `json:"price,omitempty"`
}

// printedNeighbors says how many neighbours ranks have, and of which Cartesian grid: its sizes and which of them are periodic, and the
// dimensions along which ranks exchange, where that is not all.
type printedNeighbors struct {
	Least   int    `json:"least"`
	Most    int    `json:"most"`
	Dims    []int  `json:"dims,omitempty"`
	Periods []bool `json:"periods,omitempty"`
	Along   []int  `json:"along,omitempty"`
}

// printedInstance is one time that an operation is done.
type printedInstance struct {
	Root  *int32 `json:"root"`
	Bytes int64  `json:"bytes"`
	// RankBytes is what each of the finding's ranks has of it, where they may differ.
	RankBytes []int64 `json:"rank_bytes,omitempty"`
	// Messages are src, dst, send_seq, recv_post_seq and recv_done_seq of each; the last is -1 where nothing completed the receive.
	Messages [][5]int64 `json:"messages"`
}

// printedSite is a place in the program where calls to remove stand.
type printedSite struct {
	Calls    []string `json:"calls"`
	Function string   `json:"function,omitempty"`
	File     string   `json:"file,omitempty"`
	Line     int32    `json:"line,omitempty"`
	Place    string   `json:"place"`
}

// printed puts what was found into words.
func (d *detection) printed() *printedDetection {
	r := d.result
	p := &printedDetection{Run: d.name, RunDigest: d.manifest.Digest, Hash: d.manifest.Hash, Messages: r.Messages, Unhashed: r.Unhashed, LeftOut: r.LeftOut, NoRoom: r.NoRoom, Unclassed: r.Unclassed, Neighborhoods: r.Neighborhoods, FalseMatchChance: r.FalseMatch, Findings: []printedFinding{}}
	for i := range r.Findings {
		f := d.finding(&r.Findings[i])
		f.Finding = i + 1
		p.Findings = append(p.Findings, f)
	}
	return p
}

func (d *detection) finding(f *detect.Finding) printedFinding {
	p := printedFinding{Operation: f.Operation.String(), Ranks: f.Ranks, MissingRanks: notNil(f.Missing), Completeness: f.Completeness,
		Roots: notNil(f.Roots), PossibleRoots: notNil(f.PossibleRoots), PayloadBytesMin: f.BytesMin, PayloadBytesMax: f.BytesMax,
		Segments: f.Segments, Instances: f.Instances, Repeats: f.Repeats, Messages: f.Messages, MessageBytes: f.MessageBytes,
		Certainty: f.Certainty.String(), Reductions: append([]string{}, f.Reductions...), Checks: f.Checks, KeptRanks: notNil(f.Kept),
		SendSites: d.places(f.SendSites), ReceiveSites: d.places(f.RecvSites), CompletionSites: d.places(f.DoneSites)}
	p.RootOrder = f.RootOrder
	for _, op := range f.Others {
		p.Others = append(p.Others, op.String())
	}
	if x := f.Neighbors; x != nil {
		p.Neighbors = &printedNeighbors{Least: x.Least, Most: x.Most, Dims: x.Dims, Periods: x.Periods, Along: x.Along}
	}
	if f.Comm != schema.NullInt32 {
		p.Communicator, p.CommunicatorName = &f.Comm, d.comms[f.Comm]
	}
	for i := range f.List {
		p.List = append(p.List, printInstance(&f.List[i]))
	}
	return p
}

func printInstance(in *detect.Instance) printedInstance {
	p := printedInstance{Bytes: in.Bytes, RankBytes: in.RankBytes, Messages: [][5]int64{}}
	if in.Root != schema.NullInt32 {
		p.Root = &in.Root
	}
	for _, m := range in.Messages {
		done := m.DoneSeq
		if done == math.MaxInt64 || done == schema.NullInt64 {
			done = -1
		}
		p.Messages = append(p.Messages, [5]int64{int64(m.Src), int64(m.Dst), m.SendSeq, m.PostSeq, done})
	}
	return p
}

// neighborly says whether a finding is an exchange between neighbours.
func (f *printedFinding) neighborly() bool { return strings.HasPrefix(f.Operation, "MPI_Neighbor_") }

// notNil is a list that JSON writes as one.
func notNil(list []int32) []int32 { return append([]int32{}, list...) }

func (d *detection) places(ids []int32) []printedSite {
	out := []printedSite{}
	for _, id := range ids {
		out = append(out, d.sites[id])
	}
	return out
}

// text is a place in words.
func (s *printedSite) text() string {
	words := strings.Join(s.Calls, ", ")
	if s.Function != "" && s.Function != s.Place {
		words += " in " + s.Function
	}
	if s.Place != "" {
		words += " at " + s.Place
	}
	return strings.TrimSpace(words)
}

// over is what a finding is over, in words.
func (f *printedFinding) over() string {
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
		fmt.Fprintf(&s, " over ranks %s of no communicator", ranges(f.Ranks))
	case len(f.MissingRanks) > 0:
		fmt.Fprintf(&s, " over ranks %s of %s", ranges(f.Ranks), name)
	default:
		fmt.Fprintf(&s, " over %s (%s)", name, counted(int64(len(f.Ranks)), "rank"))
	}
	switch {
	case len(f.RootOrder) > mostTurns:
		fmt.Fprintf(&s, ", root varies: %s in turn", ranges(f.Roots))
	case len(f.RootOrder) > 0:
		fmt.Fprintf(&s, ", root varies: %s in turn", strings.ReplaceAll(blanks(f.RootOrder), " ", ","))
	case len(f.Roots) > 1:
		fmt.Fprintf(&s, ", root varies: %s", ranges(f.Roots))
	case len(f.Roots) > 0:
		fmt.Fprintf(&s, ", root %d", f.Roots[0])
	}
	return s.String()
}

// mostTurns is how many roots are listed one by one.
const mostTurns = 16

// text is who are neighbours, and which communicator makes them so, in words.
func (n *printedNeighbors) text() string {
	if n.Dims == nil {
		return fmt.Sprintf("%s each: MPI_Dist_graph_create_adjacent makes a communicator of them", spanned(n.Least, n.Most, "neighbour"))
	}
	var dims, periods, along []string
	for k, size := range n.Dims {
		dims, periods = append(dims, strconv.Itoa(size)), append(periods, map[bool]string{false: "0", true: "1"}[n.Periods[k]])
	}
	text := fmt.Sprintf("MPI_Cart_create with dims %s and periods %s", strings.Join(dims, ","), strings.Join(periods, ","))
	if n.Along == nil {
		return "neighbours of a Cartesian grid: " + text + " makes its communicator"
	}
	for _, k := range n.Along {
		along = append(along, strconv.Itoa(k))
	}
	return fmt.Sprintf("neighbours along dimension %s of a Cartesian grid: %s, then MPI_Cart_sub, make its communicators", strings.Join(along, " and "), text)
}

// spanned is how many of something there are, from the least to the most.
func spanned(least, most int, what string) string {
	if least == most {
		return counted(int64(most), what)
	}
	return fmt.Sprintf("%d to %s", least, counted(int64(most), what))
}

// amount is how often a finding is done and what it moves, in words.
func (f *printedFinding) amount() string {
	size := counted(f.PayloadBytesMax, "byte")
	if f.PayloadBytesMin != f.PayloadBytesMax {
		size = fmt.Sprintf("%s to %s", grouped(f.PayloadBytesMin), size)
	}
	if f.Segments > 1 {
		size += fmt.Sprintf(" in up to %d segments", f.Segments)
	}
	return fmt.Sprintf("%s of %s, by %s of %s", counted(f.Instances, "instance"), size, counted(f.Messages, "message"), counted(f.MessageBytes, "byte"))
}

// remarks are what else there is to say of a finding.
func (f *printedFinding) remarks() (out []string) {
	switch {
	case f.Certainty == detect.Addressed.String():
		out = append(out, "addressed: sizes fit, and blocks lie side by side in memory")
	case f.Certainty == detect.Inferred.String() && f.neighborly():
		out = append(out, "inferred: who sends to whom and when fits in every instance; no payload was compared")
	case f.Certainty == detect.Inferred.String():
		out = append(out, "inferred: who sends to whom, when and how much fits in every instance; no payload could be compared")
	case f.Checks > 0:
		out = append(out, "verified: "+counted(f.Checks, "payload")+" compared, all agree")
	}
	if len(f.KeptRanks) > 0 {
		out = append(out, "not seen, so inferred, is what these ranks keep or contribute: "+ranges(f.KeptRanks))
	}
	if len(f.Others) > 0 {
		out = append(out, fmt.Sprintf("the messages fit %s as well: what ranks make of them is not seen", strings.Join(f.Others, " and ")))
	}
	if len(f.PossibleRoots) > len(f.Roots) {
		out = append(out, "could have as root: "+ranges(f.PossibleRoots))
	}
	if f.Repeats > 0 {
		out = append(out, fmt.Sprintf("%s what all ranks had from an earlier one: do they need it again?", carried(f.Repeats)))
	}
	if f.Neighbors != nil {
		out = append(out, f.Neighbors.text())
	}
	if len(f.MissingRanks) > 0 {
		out = append(out, fmt.Sprintf("completeness %.3f: %s; make a communicator of those that do", f.Completeness, absent(f.MissingRanks)))
	} else if f.Communicator == nil {
		out = append(out, "make a communicator of these ranks")
	}
	return out
}

// absent says that ranks take no part.
func absent(ranks []int32) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d takes no part", ranks[0])
	}
	return fmt.Sprintf("ranks %s take no part", ranges(ranks))
}

func carried(n int64) string {
	if n == 1 {
		return "1 instance carries"
	}
	return counted(n, "instance") + " carry"
}

// ranges are sorted ranks in short: 0-3,7.
func ranges(ranks []int32) string {
	var out []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		switch {
		case j == i:
			out = append(out, strconv.Itoa(int(ranks[i])))
		default:
			out = append(out, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}

// table writes the findings for people.
func (p *printedDetection) table(w io.Writer) error {
	var s strings.Builder
	for i := range p.Findings {
		f := &p.Findings[i]
		fmt.Fprintf(&s, "%d. %s\n   %s\n", f.Finding, f.over(), f.amount())
		for _, r := range append(f.remarks(), f.Price.remarks(p.Pricing)...) {
			fmt.Fprintf(&s, "   %s\n", r)
		}
		for k := range f.SendSites {
			fmt.Fprintf(&s, "   send: %s\n", f.SendSites[k].text())
		}
		for k := range f.ReceiveSites {
			fmt.Fprintf(&s, "   receive: %s\n", f.ReceiveSites[k].text())
		}
		for k := range f.CompletionSites {
			fmt.Fprintf(&s, "   complete: %s\n", f.CompletionSites[k].text())
		}
	}
	fmt.Fprintf(&s, "%s in %s of %s; chance of any false match of hashes (%s): %.2g\n", counted(int64(len(p.Findings)), "finding"),
		counted(p.Messages, "message"), p.Run, p.Hash, p.FalseMatchChance)
	if p.Pricing != nil && len(p.Findings) > 0 {
		fmt.Fprintf(&s, "all of them together: %s\n", p.Pricing.All.text(p.Pricing))
		for _, text := range p.Pricing.Warnings {
			fmt.Fprintf(&s, "%s\n", text)
		}
	}
	if p.Replay != nil {
		fmt.Fprintf(&s, "%s\n", p.Replay.text())
	}
	if p.Neighborhoods > 0 && !slices.ContainsFunc(p.Findings, func(f printedFinding) bool { return f.neighborly() }) {
		fmt.Fprintf(&s, "%s between neighbours not shown; --neighbors shows them\n", counted(int64(p.Neighborhoods), "exchange"))
	}
	if n := p.LeftOut - p.NoRoom; n > 0 {
		fmt.Fprintf(&s, "%s of payloads that are sent too often were left out\n", counted(n, "message"))
	}
	if p.NoRoom > 0 {
		fmt.Fprintf(&s, "%s were left out: there is no room for what is found; give more memory with --memory-mib\n", counted(p.NoRoom, "message"))
	}
	if p.Unclassed > 0 {
		fmt.Fprintf(&s, "among %s of too many kinds or too large communicators no alltoall was looked for\n", counted(p.Unclassed, "message"))
	}
	if p.Unhashed > 0 {
		fmt.Fprintf(&s, "%s without a hash were left out\n", counted(p.Unhashed, "message"))
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// csv writes a row per finding; lists have blanks between their members.
func (p *printedDetection) csv(w io.Writer) error {
	rows := [][]string{{"operation", "communicator", "ranks", "missing_ranks", "completeness", "roots", "possible_roots", "payload_bytes_min",
		"payload_bytes_max", "segments", "instances", "repeats", "messages", "message_bytes", "send_sites", "receive_sites", "completion_sites", "certainty", "reductions", "checks", "kept_ranks", "others"}}
	if p.Pricing != nil {
		rows[0] = append(rows[0], "finding", "replaced_ns", "saved_ns", "pays_from")
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for i := range p.Findings {
		f := &p.Findings[i]
		comm := ""
		if f.Communicator != nil {
			comm = number(int64(*f.Communicator))
		}
		rows = append(rows, []string{f.Operation, comm, blanks(f.Ranks), blanks(f.MissingRanks), strconv.FormatFloat(f.Completeness, 'g', -1, 64),
			blanks(f.Roots), blanks(f.PossibleRoots), number(f.PayloadBytesMin), number(f.PayloadBytesMax), strconv.Itoa(f.Segments),
			number(f.Instances), number(f.Repeats), number(f.Messages), number(f.MessageBytes), placesText(f.SendSites), placesText(f.ReceiveSites), placesText(f.CompletionSites),
			f.Certainty, strings.Join(f.Reductions, " "), number(f.Checks), blanks(f.KeptRanks), strings.Join(f.Others, " ")})
		if f.Price != nil {
			rows[len(rows)-1] = append(rows[len(rows)-1], append([]string{strconv.Itoa(f.Finding)}, f.Price.cells()...)...)
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func blanks(ranks []int32) string { return strings.Trim(fmt.Sprint(ranks), "[]") }

func placesText(sites []printedSite) string {
	var out []string
	for i := range sites {
		out = append(out, sites[i].Place)
	}
	return strings.Join(out, " ")
}

// sarif writes SARIF 2.1.0: a rule per operation, a result per finding, at the first call that sends; the other calls are related.
func (p *printedDetection) sarif(w io.Writer) error {
	tool := sarif.NewRunWithInformationURI("commq", "https://github.com/commq/commq")
	tool.Tool.Driver.WithVersion(version)
	for i := range p.Findings {
		f := &p.Findings[i]
		id := "manual-" + strings.ToLower(strings.TrimPrefix(f.Operation, "MPI_"))
		tool.AddRule(id).WithDescription(f.Operation + " done with point-to-point messages")
		text := strings.Join(slices.Concat([]string{f.over(), f.amount()}, f.remarks(), f.Price.remarks(p.Pricing)), "; ")
		level := "warning"
		if f.neighborly() {
			level = "note"
		}
		result := tool.CreateResultForRule(id).WithLevel(level).WithMessage(sarif.NewTextMessage(text))
		if f.Price != nil {
			result.WithProperties(f.Price.properties(p.Pricing))
		}
		at := 0
		for _, sites := range [][]printedSite{f.SendSites, f.ReceiveSites, f.CompletionSites} {
			for k := range sites {
				s := &sites[k]
				if s.File == "" {
					continue
				}
				l := s.location()
				if at++; at == 1 {
					result.AddLocation(l)
				} else {
					result.AddRelatedLocation(l.WithMessage(sarif.NewTextMessage(s.text())))
				}
			}
		}
	}
	report := sarif.NewReport()
	report.AddRun(tool)
	return report.PrettyWrite(w)
}

// location is the place in SARIF's words.
func (s *printedSite) location() *sarif.Location {
	uri := url.URL{Path: filepath.ToSlash(s.File)}
	if filepath.IsAbs(s.File) {
		uri.Scheme = "file"
	}
	l := sarif.NewLocationWithPhysicalLocation(sarif.NewPhysicalLocation().
		WithArtifactLocation(sarif.NewSimpleArtifactLocation(uri.String())).
		WithRegion(sarif.NewRegion().WithStartLine(int(s.Line))))
	if s.Function != "" {
		l.AddLogicalLocation(sarif.NewLogicalLocation().WithName(s.Function))
	}
	return l
}
