package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// TestVerifiedFindingInWords: a reduction over all ranks whose payloads were compared.
func TestVerifiedFindingInWords(t *testing.T) {
	s := "MPI_Allreduce of MPI_SUM over MPI_COMM_WORLD (5 ranks)"
	p := Finding{Operation: "MPI_Allreduce", Reductions: []string{"MPI_SUM"}, Certainty: "verified", Bits: 41.7, Checks: 42,
		Groups: []Group{{Communicator: new(int32), CommunicatorName: "MPI_COMM_WORLD", Ranks: []int32{0, 1, 2, 3, 4},
			Completeness: 1}}}
	if got := p.Scope(); got != s {
		t.Errorf("the table says %q, want %q", got, s)
	}
	if got, want := p.remarks(), []string{"verified (41 bits): 42 payloads compared, all agree"}; !slices.Equal(got, want) {
		t.Errorf("the table remarks %q, want %q", got, want)
	}
	p.extent, p.Compared = ledger.FirstElement, ledger.FirstElement.String()
	if got, want := p.remarks()[0], "verified (41 bits): the first element of 42 payloads compared, all agree (the rest was not "+
		"compared)"; got != want {
		t.Errorf("the table remarks %q, want %q", got, want)
	}
}

// TestJoinKeepsTheLeastExtent: of one line whose groups were compared by more and by less, the finding tells the less.
func TestJoinKeepsTheLeastExtent(t *testing.T) {
	groups := []Group{{Ranks: []int32{0, 1}}}
	whole := Finding{Operation: "MPI_Allreduce", Groups: groups, Compared: "all elements"}
	front := Finding{Operation: "MPI_Allreduce", Groups: groups, Compared: "first 8 bytes", extent: ledger.FirstBytes}
	for _, joined := range []Finding{whole, front} {
		for _, other := range []Finding{whole, front} {
			f, want := joined, max(joined.extent, other.extent)
			if f.join(&other); f.extent != want || f.Compared != want.String() {
				t.Errorf("%s with %s: %s, %q", joined.Compared, other.Compared, f.extent, f.Compared)
			}
		}
	}
}

// TestPlaceOfTheCall: the functions to change, of ranks that send and of those that only receive.
func TestPlaceOfTheCall(t *testing.T) {
	in := func(names ...string) (out []Site) {
		for k, name := range names {
			out = append(out, Site{Function: name, Place: fmt.Sprint("a.c:", k)})
		}
		return out
	}
	rooted := []Group{{Roots: []int32{3}}}
	for _, c := range []struct {
		finding Finding
		want    string
	}{
		{Finding{SendSites: in("sum", "sum"), ReceiveSites: in("sum"), CompletionSites: in("sum")}, "call it in sum instead of"},
		{Finding{Groups: rooted, SendSites: in("master"), ReceiveSites: in("worker")},
			"call it in master, and in worker on ranks that only receive, instead of"},
		{Finding{SendSites: in("give"), ReceiveSites: in("ready"), CompletionSites: in("take")},
			"call it in give, where ranks send, instead of"},
		{Finding{SendSites: in(""), ReceiveSites: in("")}, "call it instead of"},
	} {
		if got := c.finding.place(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestGroupsAreOneFinding: what several groups of ranks do at the same lines is one finding.
func TestGroupsAreOneFinding(t *testing.T) {
	world := int32(0)
	row := func(first int32, line string) Finding {
		return Finding{Operation: "MPI_Allreduce", Certainty: "verified", Bits: float64(30 + first), Basis: "payload", CountMin: 7, CountMax: 7, Datatype: "MPI_DOUBLE",
			PayloadBytesMin: 56, PayloadBytesMax: 56, Instances: 3, Messages: 12, MessageBytes: 672, Checks: 5,
			SendSites: []Site{{Place: line}}, ReceiveSites: []Site{{Place: "r"}},
			Groups: []Group{{Communicator: &world, CommunicatorName: "MPI_COMM_WORLD", Ranks: []int32{first, first + 1},
				MissingRanks: []int32{9}, Instances: 3}}}
	}
	p := &Report{}
	for _, f := range []Finding{row(4, "a.c:1"), row(0, "a.c:1"), row(0, "a.c:2"), row(2, "a.c:1"), row(0, ""), row(2, "")} {
		p.add(f)
	}
	p.number()
	if len(p.Findings) != 4 {
		t.Fatalf("%d findings, want a.c:1, a.c:2 and two at unknown places", len(p.Findings))
	}
	f := &p.Findings[0]
	var text strings.Builder
	fmt.Fprintln(&text, f.Scope())
	fmt.Fprintln(&text, f.Amount())
	fmt.Fprintln(&text, strings.Join(f.remarks(), "\n"))
	const want = `MPI_Allreduce in 3 groups of 2 ranks
9 instances of 7 MPI_DOUBLE, by 36 messages of 2,016 B
verified (80 bits): 15 payloads compared, all agree
groups of ranks: 0-1 | 2-3 | 4-5; MPI_Comm_split makes a communicator of each
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if indices, err := p.Indices([]int{2, 1}); err != nil || fmt.Sprint(indices) != "[0 1 2 3]" {
		t.Errorf("groups of findings 1 and 2: %v, %v", indices, err)
	}
}

// TestBlocksOfSeveralSizes: a line that sends blocks of one size in one communicator and of several in another needs
// the call for several, whichever is found first.
func TestBlocksOfSeveralSizes(t *testing.T) {
	of := func(operation string, count int64) Finding {
		return Finding{Operation: operation, Certainty: "inferred", Basis: "structure", CountMin: count, CountMax: count, Datatype: "MPI_INT",
			PayloadBytesMin: 32, PayloadBytesMax: 32, Instances: 1, SendSites: []Site{{Place: "a.c:1", Line: 1}},
			Groups: []Group{{Ranks: []int32{0, 1, 2, 3, 4}}}, elementBytes: 4}
	}
	one, several := of("MPI_Alltoall", 2), of("MPI_Alltoallv", 8)
	for _, list := range [][]Finding{{one, several, one}, {several, one, one}, {one, one, several}} {
		p := &Report{}
		for _, f := range list {
			p.add(f)
		}
		if len(p.Findings) != 1 {
			t.Fatalf("%d findings, want one", len(p.Findings))
		}
		f := &p.Findings[0]
		if got, want := f.Operation+": "+f.Amount(), "MPI_Alltoallv: 3 instances of 8 MPI_INT in all, by 0 messages of 0 B"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	one.SendSites, several.SendSites = []Site{{Place: "exchange"}}, []Site{{Place: "exchange"}}
	if one.sameThing(&several) {
		t.Error("two operations in one function are joined though their lines are unknown")
	}
}

// TestCountOfNeighbours: MPI_Neighbor_alltoall takes the count for one neighbour, MPI_Neighbor_alltoallv those for all.
// A rank with three neighbours sends 500 MPI_DOUBLE to each.
func TestCountOfNeighbours(t *testing.T) {
	k := &maker{types: map[int32]*schema.Datatype{2: {ID: 2, Name: "MPI_DOUBLE", Combiner: "named", Bytes: 8}}, ranks: 5}
	of := func(op ledger.Operation, types ...int32) Finding {
		f := k.finding(&detect.Finding{Operation: op, Ranks: []int32{0, 1, 2, 3, 4}, BytesMin: 12000, BytesMax: 12000,
			BlockMin: 4000, BlockMax: 4000, Datatypes: types, Instances: 5, Comm: schema.NullInt32})
		f.SendSites = []Site{{Place: "a.c:1", Line: 1}}
		return f
	}
	one, untyped, several := of(ledger.NeighborAlltoall, 2), of(ledger.NeighborAlltoall), of(ledger.NeighborAlltoallv, 2)
	for _, c := range []struct {
		list []Finding
		want string
	}{
		{[]Finding{one}, "5 instances of 500 MPI_DOUBLE to each neighbour"},
		{[]Finding{one, untyped}, "10 instances of 4,000 bytes to each neighbour"},
		{[]Finding{one, several}, "10 instances of 1,500 MPI_DOUBLE"},
		{[]Finding{several, one}, "10 instances of 1,500 MPI_DOUBLE"},
	} {
		p := &Report{}
		for _, f := range c.list {
			p.add(f)
		}
		if got := p.Findings[0].Amount(); len(p.Findings) != 1 || got != c.want+", by 0 messages of 0 B" {
			t.Errorf("%d findings: %s, want %s", len(p.Findings), got, c.want)
		}
	}
}

// TestAlternativesAreShown: text and CSV name the operations that share messages with a finding, the same one once.
func TestAlternativesAreShown(t *testing.T) {
	gather := Finding{Operation: "MPI_Gatherv", Certainty: "inferred", Basis: "structure", SendSites: []Site{{Place: "a.c:1"}},
		Alternatives: []Alternative{{"MPI_Reduce", []int32{0, 1, 2, 5}, 4}}, Groups: []Group{{Ranks: []int32{0, 1, 2, 3}}}}
	p := &Report{}
	p.add(gather)
	gather.Groups, gather.Alternatives = []Group{{Ranks: []int32{4, 5, 6}}}, []Alternative{{"MPI_Reduce", []int32{0, 1, 2, 5}, 3}}
	p.add(gather)
	if got, want := p.Findings[0].remarks()[1], "or: MPI_Reduce over ranks 0-2,5, which shares messages of 7 instances"; got != want {
		t.Errorf("the table remarks %q, want %q", got, want)
	}
	if cells := p.Findings[0].cells(&p.Findings[0].Groups[0]); cells[len(cells)-1] != "MPI_Reduce over ranks 0-2,5" {
		t.Errorf("CSV has %q", cells)
	}
}

// TestCommunicatorsInWords: a duplicate is named as one, and ranks that are not all are listed.
func TestCommunicatorsInWords(t *testing.T) {
	five := int32(5)
	for _, c := range []struct {
		group Group
		want  string
	}{
		{Group{}, "ranks 0-2 of no communicator"},
		{Group{Communicator: &five}, "communicator 5 (ranks 0-2)"},
		{Group{Communicator: &five, CommunicatorName: "rows"}, "rows (ranks 0-2)"},
		{Group{Communicator: &five, CommunicatorLike: "MPI_COMM_WORLD", all: true},
			"communicator 5, a duplicate of MPI_COMM_WORLD (all 3 ranks)"},
		{Group{Communicator: &five, MissingRanks: []int32{7}}, "ranks 0-2 of communicator 5"},
	} {
		c.group.Ranks = []int32{0, 1, 2}
		if got := c.group.over(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestScopeAndNeighbors: rotating roots, and exchanges on grids.
func TestScopeAndNeighbors(t *testing.T) {
	comm := int32(3)
	many := make([]int32, mostRoots+1)
	for i := range many {
		many[i] = int32(i)
	}
	for _, c := range []struct {
		group Group
		want  string
	}{
		{Group{Roots: []int32{2}}, "root 2"},
		{Group{Roots: []int32{0, 1, 2}, RootOrder: []int32{1, 2, 0}}, "root varies: 1,2,0 in turn"},
		{Group{Roots: []int32{0, 1, 2, 5}}, "root varies: 0-2,5"},
		{Group{Roots: many, RootOrder: many}, "root varies: 0-16 in turn"},
	} {
		c.group.Communicator, c.group.Ranks = &comm, many
		f := Finding{Operation: "MPI_Bcast", Groups: []Group{c.group}}
		if want := "MPI_Bcast over communicator 3 (ranks 0-16), " + c.want; f.Scope() != want {
			t.Errorf("%q, want %q", f.Scope(), want)
		}
	}
	for _, c := range []struct {
		neighbors Neighbors
		want      string
	}{
		{Neighbors{Least: 2, Most: 4, Dims: []int{3, 4}, Periods: []bool{false, true}},
			"neighbours of a Cartesian grid: MPI_Cart_create with dims 3,4 and periods 0,1 makes its communicator"},
		{Neighbors{Least: 2, Most: 2, Dims: []int{3, 4}, Periods: []bool{false, true}, Along: []int{1}},
			"neighbours along dimension 1 of a Cartesian grid: MPI_Cart_create with dims 3,4 and periods 0,1, then MPI_Cart_sub, make its communicators"},
		{Neighbors{Least: 1, Most: 7},
			"1 to 7 neighbours each: MPI_Dist_graph_create_adjacent makes a communicator of them"},
		{Neighbors{Least: 6, Most: 6},
			"6 neighbours each: MPI_Dist_graph_create_adjacent makes a communicator of them"},
		{Neighbors{Least: 2, Most: 2, Graphs: 3}, "2 neighbours each, on 3 different graphs: " +
			"MPI_Dist_graph_create_adjacent makes a communicator for each"},
	} {
		if got := c.neighbors.text(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestGraphsOfOneLine: exchanges of a line on several graphs are one group, which counts the different graphs.
func TestGraphsOfOneLine(t *testing.T) {
	comm := int32(3)
	f := Finding{}
	for _, graphs := range []map[uint64]bool{{5: true}, {5: true, 9: true}, {7: true}} {
		f.joinGroup(Group{Communicator: &comm, Ranks: []int32{0, 1, 2, 4}, Instances: 3,
			Neighbors: &Neighbors{Least: 4 - len(graphs), Most: 2 + len(graphs), Graphs: len(graphs), graphs: graphs}})
	}
	f.joinGroup(Group{Communicator: &comm, Ranks: []int32{0, 1, 2, 4}, Neighbors: &Neighbors{Dims: []int{2, 2}}})
	if len(f.Groups) != 2 {
		t.Fatalf("%d groups, want one for graphs and one for the grid", len(f.Groups))
	}
	g := f.Groups[0]
	if n := g.Neighbors; n.Graphs != 3 || n.Least != 2 || n.Most != 4 || g.Instances != 9 {
		t.Errorf("%d instances on %+v, want 9 on 3 graphs of 2 to 4 neighbours", g.Instances, *n)
	}
}

// TestSARIF checks what SARIF 2.1.0 requires: version, a rule for each result, a location with a line.
func TestSARIF(t *testing.T) {
	site := Site{Calls: []string{"MPI_Send"}, Function: "spread", File: "/src/a b.c", Line: 17,
		Place: "/src/a b.c:17"}
	p := Report{Run: "r", Findings: []Finding{{Operation: "MPI_Bcast", Certainty: "verified", Bits: 21, Segments: 1, Instances: 2,
		Groups:          []Group{{Ranks: []int32{0, 3, 4}, Roots: []int32{3}, Completeness: 1}},
		PayloadBytesMin: 4097, PayloadBytesMax: 4097, CountMin: 4097, CountMax: 4097, Messages: 4, MessageBytes: 16388,
		SendSites: []Site{site}}}}
	var out strings.Builder
	if err := p.SARIF(&out, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID    string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	r := got.Runs[0].Results[0]
	at := r.Locations[0].PhysicalLocation
	line := fmt.Sprintf("%s %s %s %s %d %s", got.Version, got.Runs[0].Tool.Driver.Rules[0].ID, r.RuleID,
		at.ArtifactLocation.URI, at.Region.StartLine, r.Message.Text)
	const want = "2.1.0 manual-bcast manual-bcast file:///src/a%20b.c 17 MPI_Bcast over ranks 0,3-4 of no communicator, root 3; 2 instances of 4,097 bytes, by 4 messages of 16.4 kB; verified (21 bits): the ranks have the same payload afterwards, by its hash; make a communicator of these ranks"
	if line != want {
		t.Errorf("got\n%s\nwant\n%s", line, want)
	}
}

// TestInstancesSurviveJSON: replace gets the same instances that the report lists.
func TestInstancesSurviveJSON(t *testing.T) {
	instances := []detect.Instance{
		{Root: 3, Bytes: 4097, RankBytes: []int64{17, 0, 4080}, Messages: []detect.Message{
			{Src: 3, Dst: 5, SendSeq: 7, PostSeq: 9, DoneSeq: 11},
			{Src: 3, Dst: 4, SendSeq: 8, PostSeq: 2, DoneSeq: schema.NullInt64}}},
		{Root: schema.NullInt32, Bytes: 9, Messages: []detect.Message{{Src: 4, Dst: 3, SendSeq: 1, PostSeq: 1,
			DoneSeq: 2}}}}
	p := &Report{Run: "r", Findings: []Finding{
		{Finding: 2, Operation: "MPI_Allreduce", Reductions: []string{"MPI_MAX"},
			Groups: []Group{{Ranks: []int32{3, 4, 5}, Instances: 2}}}}}
	group := &p.Findings[0].Groups[0]
	for i := range instances {
		group.List = append(group.List, newInstance(&instances[i]))
	}
	got, err := p.Replaceable()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(instances, got[0].Instances); diff != "" || got[0].Operation != schema.CallAllreduce ||
		got[0].Comm != schema.NullInt32 || schema.OpNames[got[0].ReduceOp] != "MPI_MAX" {
		t.Errorf("%+v (-want +got):\n%s", got[0], diff)
	}
	group.Instances = 3
	if _, err := p.Replaceable(); err == nil ||
		!strings.Contains(err.Error(), "finding 2: 2 instances in its list of 3") {
		t.Errorf("an instance that is not listed: %v", err)
	}
}

func TestIndicesOfFindingNumbers(t *testing.T) {
	p := &Report{Run: "r", Findings: []Finding{{Finding: 3, Groups: make([]Group, 2)}, {Finding: 1, Groups: make([]Group, 1)},
		{Finding: 2, Groups: make([]Group, 1)}}}
	for _, c := range []struct {
		numbers []int
		want    string
	}{
		{nil, "[0 1 2 3] <nil>"},
		{[]int{2, 3, 2}, "[0 1 3] <nil>"},
		{[]int{4}, "[] finding 4: there are 3 findings; commq detect --run r lists them"},
	} {
		indices, err := p.Indices(c.numbers)
		if got := fmt.Sprint(indices, " ", err); got != c.want {
			t.Errorf("%v: %s, want %s", c.numbers, got, c.want)
		}
	}
}

func TestOmissionsAreReported(t *testing.T) {
	p := &Report{LeftOut: 4097, NoRoom: 97, Unclassed: 3, Unhashed: 1}
	want := []string{"4,000 messages of payloads that are sent too often were left out",
		"97 messages were left out for lack of memory; give more with --memory",
		"among 3 messages of too many kinds or too large communicators no alltoall was looked for",
		"1 message without a hash were left out"}
	if diff := cmp.Diff(want, p.omissions()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestByHandTellsWhatWasNotSearched: a rule that wants no collectives by hand is not kept if some messages were not
// searched.
func TestByHandTellsWhatWasNotSearched(t *testing.T) {
	group := []Group{{Ranks: []int32{0, 1, 2}, Roots: []int32{0}}}
	found := []Finding{{Operation: "MPI_Bcast", Groups: group}, {Operation: "MPI_Neighbor_alltoall", Groups: group}}
	const may = "run r: there may be collectives by hand that were not found: "
	for _, c := range []struct {
		report Report
		want   string
	}{
		{Report{Candidates: 7}, ""},
		{Report{Unhashed: 2}, may + "2 messages without a hash were left out"},
		{Report{LeftOut: 5, NoRoom: 5}, may + "5 messages were left out for lack of memory; give more with --memory"},
		{Report{LeftOut: 1, Unclassed: 4}, may + "1 message of payloads that are sent too often were left out; " +
			"among 4 messages of too many kinds or too large communicators no alltoall was looked for"},
	} {
		c.report.Run, c.report.Findings = "r", found
		list, err := c.report.byHand()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || len(list) != 1 || list[0].Operation != "MPI_Bcast" {
			t.Errorf("%+v, %q; want MPI_Bcast, %q", list, got, c.want)
		}
	}
}

// TestWhere: JSON, CSV and SARIF tell of each group where it does the operation, how often and how to make the
// communicator.
func TestWhere(t *testing.T) {
	comm := int32(2)
	p := &Report{Findings: []Finding{{Operation: "MPI_Gather", Certainty: "inferred", Groups: []Group{
		{Ranks: []int32{4, 6, 7}, Roots: []int32{6}, Instances: 9},
		{Communicator: &comm, CommunicatorName: "rows", Ranks: []int32{0, 1, 2}, Roots: []int32{0}, Instances: 5}}}}}
	p.number()
	want := []string{"rows (ranks 0-2), root 0: 5 instances",
		"ranks 4,6-7 of no communicator, root 6: 9 instances; MPI_Comm_split makes a communicator of these ranks"}
	if diff := cmp.Diff(want, p.Findings[0].Where); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	var table, log bytes.Buffer
	if err := errors.Join(p.CSV(&table), p.SARIF(&log, "1")); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := slices.Index(rows[0], "where")
	if got := []string{rows[1][column], rows[2][column]}; !slices.Equal(got, want) {
		t.Errorf("CSV: %q", got)
	}
	var got struct {
		Runs []struct {
			Results []struct {
				Properties struct {
					Where []string `json:"where"`
				} `json:"properties"`
			} `json:"results"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(log.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Runs[0].Results[0].Properties.Where); diff != "" {
		t.Errorf("SARIF (-want +got):\n%s", diff)
	}
}
