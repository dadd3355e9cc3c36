// Package report makes the answer of commq detect from the findings of a detection: as values that JSON holds and that
// commq replace reads back (report.go, stored.go, replaceable.go), with prices (priced.go), in words (words.go), and as
// a table, CSV and SARIF.
package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/price"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Report is the answer of commq detect.
type Report struct {
	// Run is the name of the run.
	Run string `json:"run"`
	// RunDigest is the digest of the run.
	RunDigest string `json:"run_digest"`
	// Hash is the payload hash of the run: crc64 or crc32.
	Hash string `json:"hash"`
	// Messages is the number of messages; Unhashed are those without a payload hash, which were left out.
	Messages int64 `json:"messages"`
	Unhashed int64 `json:"unhashed"`
	// LeftOut are messages that were left out because too many have their payload. Unclassed are messages among which
	// no alltoall was looked for.
	LeftOut   int64 `json:"left_out"`
	Unclassed int64 `json:"unclassed"`
	// NoRoom are those of LeftOut that do not fit into --memory.
	NoRoom int64 `json:"no_room,omitempty"`
	// FalseMatchChance bounds the chance that any two different payloads of one size had the same hash.
	FalseMatchChance float64 `json:"false_match_chance"`
	// Candidates is the number of findings that chance may have made and that are not listed.
	Candidates int `json:"candidates"`
	// Findings are the collectives made by hand.
	Findings []Finding `json:"findings"`
	// Pricing is there with --machine; the findings are then sorted by what they save.
	Pricing *price.Pricing `json:"pricing,omitempty"`
	// Replay is there with --replay.
	Replay *price.Measured `json:"replay,omitempty"`
}

// Finding is a collective operation that the program does by hand: one thing to do, at the same lines, by one or
// several groups of ranks.
type Finding struct {
	// Finding is its number, from 1 by descending bytes.
	Finding int `json:"finding"`
	// Operation is the collective to call, for example MPI_Bcast.
	Operation string `json:"operation"`
	// CountMin and CountMax are the least and the greatest count that the call takes: of a block where it moves a block
	// for each rank. Datatype is what they count; MPI_BYTE if messages have several datatypes, or a derived one.
	CountMin int64  `json:"count_min"`
	CountMax int64  `json:"count_max"`
	Datatype string `json:"datatype"`
	// elementBytes is the size of what the counts count.
	elementBytes int64
	// PayloadBytesMin is the least payload of an instance: what the root has, or all that a rank contributes.
	PayloadBytesMin int64 `json:"payload_min_bytes"`
	// PayloadBytesMax is the greatest payload of an instance.
	PayloadBytesMax int64 `json:"payload_max_bytes"`
	// Segments is the greatest number of pieces that a payload is sent in.
	Segments int `json:"segments"`
	// Instances is how often the program does it, in all groups together.
	Instances int64 `json:"instances"`
	// Repeats is how many of the instances carry what all ranks had from an earlier one.
	Repeats int64 `json:"repeats"`
	// Messages is the number of messages of all instances.
	Messages int64 `json:"messages"`
	// MessageBytes is their payload.
	MessageBytes int64 `json:"message_bytes"`
	// Certainty is verified, inferred or candidate: chance makes such a finding in less than one of a million runs,
	// less than one of a thousand, or more.
	Certainty string `json:"certainty"`
	// Bits is the evidence against chance: it makes such a finding in one of 2^Bits runs.
	Bits float64 `json:"bits"`
	// Basis is what the finding rests on: payload, address or structure.
	Basis string `json:"basis"`
	// Reductions are the operations that fit, by MPI's names. Checks is how many payloads were compared with what they
	// must be.
	Reductions []string `json:"reductions"`
	Checks     int64    `json:"checks"`
	// Compared is what of these payloads was compared for the Reductions: all elements, first element, first 8 bytes.
	// The other elements may result from something else.
	Compared string `json:"compared,omitempty"`
	extent   ledger.Extent
	// Others are other operations that fit everything that was seen.
	Others []string `json:"others,omitempty"`
	// Alternatives are other operations that share messages with this one; only one of them can replace a message.
	Alternatives []Alternative `json:"alternatives,omitempty"`
	// Groups are the ranks that do it together, by their first rank.
	Groups []Group `json:"groups"`
	// Where has a sentence for each of the groups, in their order: its communicator or how to make one, its ranks as
	// ranges, its roots and how often it does it.
	Where []string `json:"where"`
	// SendSites are where messages are sent, ReceiveSites where they are received or their receives are posted,
	// CompletionSites where requests of both are completed. For a persistent request they have the call that makes it
	// and the one that starts it.
	SendSites       []Site `json:"send_sites"`
	ReceiveSites    []Site `json:"receive_sites"`
	CompletionSites []Site `json:"completion_sites"`
	// Price is there with --machine.
	Price *price.Price `json:"price,omitempty"`
}

// Alternative is another operation that explains messages of a finding.
type Alternative struct {
	// Operation is the collective, for example MPI_Reduce.
	Operation string `json:"operation"`
	// Ranks are the world ranks that would take part.
	Ranks []int32 `json:"ranks"`
	// Instances is how often it shares messages with the finding.
	Instances int64 `json:"instances"`
}

// Group are ranks that do a finding's operation together.
type Group struct {
	// Communicator is the id of the communicator that the collective could use, or of the one that its messages use if
	// none has these ranks; nil if messages use several.
	Communicator *int32 `json:"comm"`
	// CommunicatorName is its name. CommunicatorLike names the communicator that it is a duplicate of.
	CommunicatorName string `json:"comm_name,omitempty"`
	CommunicatorLike string `json:"comm_like,omitempty"`
	// Ranks are the world ranks that take part.
	Ranks []int32 `json:"ranks"`
	// MissingRanks are world ranks of the communicator that do not take part.
	MissingRanks []int32 `json:"missing_ranks"`
	// Completeness is the fraction of the communicator's ranks that take part.
	Completeness float64 `json:"completeness"`
	// Roots are the world ranks of the roots; empty if the operation has none.
	Roots []int32 `json:"roots"`
	// PossibleRoots are the roots that it could be as well.
	PossibleRoots []int32 `json:"possible_roots"`
	// RootOrder are the roots in the order in which they take turns, if there are several and they do.
	RootOrder []int32 `json:"root_order,omitempty"`
	// Neighbors is there for operations between neighbours.
	Neighbors *Neighbors `json:"neighbors,omitempty"`
	// Instances is how often this group does it.
	Instances int64 `json:"instances"`
	// Messages is the number of its messages, and MessageBytes their payload.
	Messages     int64 `json:"messages"`
	MessageBytes int64 `json:"message_bytes"`
	// KeptRanks are ranks whose own part was not seen.
	KeptRanks []int32 `json:"kept_ranks"`
	// List are the instances, with --messages.
	List []Instance `json:"list,omitempty"`

	all bool // all ranks of the run take part
}

// Neighbors are the neighbours of an exchange.
type Neighbors struct {
	// Least and Most are how many neighbours ranks have.
	Least int `json:"least"`
	Most  int `json:"most"`
	// Graphs is the number of different graphs that the instances exchange on, 1 on a grid.
	Graphs int `json:"graphs"`

	graphs map[uint64]bool // hashes of the graphs; nil on a grid
	// Dims and Periods are the Cartesian grid's, if it is one. Along are the dimensions of the exchange; nil for all.
	Dims    []int  `json:"dims,omitempty"`
	Periods []bool `json:"periods,omitempty"`
	Along   []int  `json:"along,omitempty"`
}

// Instance is one execution of an operation.
type Instance struct {
	// Root is the world rank of the root; nil if the operation has none.
	Root *int32 `json:"root"`
	// Bytes is the payload.
	Bytes int64 `json:"bytes"`
	// RankBytes is the payload of each of the finding's ranks, if it may differ.
	RankBytes []int64 `json:"rank_bytes,omitempty"`
	// Messages are src, dst, send_seq, recv_post_seq and recv_done_seq of each; the last is -1 if no call completed the
	// receive.
	Messages [][5]int64 `json:"messages"`
}

// Site is a place in the program with calls to remove.
type Site struct {
	// Calls are the MPI functions that are called there.
	Calls []string `json:"calls"`
	// Function is the function of the program.
	Function string `json:"function,omitempty"`
	// File is its source file.
	File string `json:"file,omitempty"`
	// Line is the line in it.
	Line int32 `json:"line,omitempty"`
	// Place is the place for people: file and line, or what else is known.
	Place string `json:"place"`
}

// maker makes a report from a result.
type maker struct {
	sites map[int32]Site             // by call site id
	comms map[int32]*run.Comm        // by id
	types map[int32]*schema.Datatype // by id
	ranks int32                      // of the run
}

// report makes the report of a run.
func (k *maker) report(name string, m *schema.Manifest, r *detect.Result) *Report {
	p := &Report{Run: name, RunDigest: m.Digest, Hash: m.Hash, Messages: r.Messages,
		Unhashed: r.Unhashed, LeftOut: r.LeftOut, NoRoom: r.NoRoom, Unclassed: r.Unclassed,
		FalseMatchChance: r.FalseMatch, Findings: []Finding{}}
	for i := range r.Findings {
		p.add(k.finding(&r.Findings[i]))
	}
	p.number()
	return p
}

// finding returns a finding of one group.
func (k *maker) finding(f *detect.Finding) Finding {
	p := Finding{Operation: f.Operation.String(), PayloadBytesMin: f.BytesMin, PayloadBytesMax: f.BytesMax,
		Segments: f.Segments, Instances: f.Instances, Repeats: f.Repeats, Messages: f.Messages, MessageBytes: f.MessageBytes,
		Certainty: f.Certainty.String(), Bits: math.Floor(10*f.Bits) / 10, Basis: f.Basis.String(), Reductions: append([]string{}, f.Reductions...), Checks: f.Checks,
		SendSites: k.places(f.SendSites), ReceiveSites: k.places(f.RecvSites), CompletionSites: k.places(f.DoneSites)}
	for _, op := range f.Others {
		p.Others = append(p.Others, op.String())
	}
	for _, a := range f.Alternatives {
		p.Alternatives = append(p.Alternatives, Alternative{a.Operation.String(), a.Ranks, a.Instances})
	}
	k.count(&p, f)
	if len(p.Reductions) > 0 {
		p.Compared, p.extent = f.Compared.String(), f.Compared
	}
	p.Groups = []Group{k.group(f)}
	return p
}

// group returns the ranks of a finding.
func (k *maker) group(f *detect.Finding) Group {
	g := Group{Ranks: f.Ranks, MissingRanks: nonNil(f.Missing), Completeness: f.Completeness,
		Roots: nonNil(f.Roots), PossibleRoots: nonNil(f.PossibleRoots), RootOrder: f.RootOrder,
		Instances: f.Instances, Messages: f.Messages, MessageBytes: f.MessageBytes, KeptRanks: nonNil(f.Kept),
		all: len(f.Ranks) == int(k.ranks)}
	if x := f.Neighbors; x != nil {
		g.Neighbors = &Neighbors{Least: x.Least, Most: x.Most, Graphs: max(1, len(x.Graphs)), Dims: x.Dims,
			Periods: x.Periods, Along: x.Along, graphs: x.Graphs}
	}
	if f.Comm != schema.NullInt32 {
		g.Communicator = &f.Comm
		if c := k.comms[f.Comm]; c != nil {
			g.CommunicatorName, g.CommunicatorLike = c.Name, k.original(c)
		}
	}
	for i := range f.List {
		g.List = append(g.List, newInstance(&f.List[i]))
	}
	return g
}

// original names the communicator of which one is a duplicate, or a duplicate of a duplicate; "" if it is none.
func (k *maker) original(c *run.Comm) string {
	from := c
	for from.Kind == schema.CommDup && k.comms[from.Parent] != nil {
		from = k.comms[from.Parent]
	}
	if from == c {
		return ""
	}
	return cmp.Or(from.Name, fmt.Sprintf("communicator %d", from.ID))
}

func newInstance(in *detect.Instance) Instance {
	p := Instance{Bytes: in.Bytes, RankBytes: in.RankBytes, Messages: [][5]int64{}}
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

func (k *maker) places(ids []int32) []Site {
	out := []Site{}
	for _, id := range ids {
		s := k.sites[id]
		if s.Place == "" || !slices.ContainsFunc(out, func(o Site) bool { return o.text() == s.text() }) {
			out = append(out, s)
		}
	}
	return out
}

// nonNil returns a list that JSON writes as [] if it is empty.
func nonNil(list []int32) []int32 { return append([]int32{}, list...) }

// DropLists removes the lists of instances, which only replace needs.
func (p *Report) DropLists() {
	for i := range p.Findings {
		for k := range p.Findings[i].Groups {
			p.Findings[i].Groups[k].List = nil
		}
	}
}

// DropCandidates removes the findings that chance may have made, counts them, and numbers the others.
func (p *Report) DropCandidates() {
	all := len(p.Findings)
	p.Findings = slices.DeleteFunc(p.Findings, func(f Finding) bool { return f.Certainty == detect.Candidate.String() })
	p.Candidates += all - len(p.Findings)
	p.number()
}

// BetweenNeighbors reports whether a finding is an exchange between neighbours.
func (f *Finding) BetweenNeighbors() bool { return strings.HasPrefix(f.Operation, "MPI_Neighbor_") }
