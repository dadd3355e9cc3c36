package simulate

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// goldenCase is the content of a case.json.
type goldenCase struct {
	Name          string
	Ranks         int
	Communicators map[string][]int32
	Machine       goldenMachine
	Flags         []string `json:"dimemas_flags"`
	Programs      [][]goldenOp
	Expected      struct {
		FinishSeconds []float64 `json:"finish_seconds"`
		TotalSeconds  float64   `json:"total_seconds"`
	}
	Paper *struct {
		TotalSeconds float64 `json:"total_seconds"`
	} `json:"paper_formula"`
}

type goldenMachine struct {
	Nodes       int
	CPUs        int        `json:"cpus_per_node"`
	Rule        string     `json:"mapping_rule"`
	Ratio       float64    `json:"cpu_ratio"`
	Inter       goldenLink `json:"inter_node"`
	Intra       goldenLink `json:"intra_node"`
	Default     string     `json:"collective_default_model"`
	Collectives []struct {
		Name    string
		FanIn   string `json:"fan_in"`
		SizeIn  string `json:"size_in"`
		FanOut  string `json:"fan_out"`
		SizeOut string `json:"size_out"`
	}
}

type goldenLink struct {
	MiBps    float64 `json:"bandwidth_MiBps"`
	Latency  float64 `json:"latency_s"`
	Buses    int
	Half     bool `json:"half_duplex"`
	Links    int
	InLinks  int `json:"input_links"`
	OutLinks int `json:"output_links"`
}

type goldenOp struct {
	Op, Name, Protocol, Line string
	Seconds                  float64
	Peer, Tag                int32
	Bytes                    int64
	Send                     int64 `json:"bytes_send"`
	Recv                     int64 `json:"bytes_recv"`
	Root                     *int32
	Comm                     int32
	Equivalent               *goldenOp
}

var factors = map[string]models.Factor{"0": models.None, "CTE": models.CT, "CT": models.CT, "LIN": models.LIN,
	"LOG": models.LOG}
var sizes = map[string]models.Size{"MAX": models.MAX, "MIN": models.MIN, "MEAN": models.MEAN, "2MAX": models.TwoMAX,
	"S+R": models.SumSR}

func (l goldenLink) link(t *testing.T) models.Interconnect {
	i := models.Interconnect{Latency: models.Picoseconds(math.Round(l.Latency * 1e12)), Buses: l.Buses,
		InputLinks: l.InLinks, OutputLinks: l.OutLinks, HalfDuplex: l.Half}
	if l.Half {
		i.InputLinks, i.OutputLinks = l.Links, l.Links
	}
	bytes := l.MiBps * (1 << 20) * 1000
	if bytes != math.Trunc(bytes) {
		t.Fatalf("%v MiB/s", l.MiBps)
	}
	i.BytesPerSecond, i.BytesPer = int64(bytes), 1000
	return i
}

func (m *goldenMachine) machine(t *testing.T) *models.Machine {
	out, err := models.Named("flat")
	if err != nil {
		t.Fatal(err)
	}
	out.Name, out.Nodes, out.CPUsPerNode, out.CPURatio = "golden", m.Nodes, m.CPUs, m.Ratio
	out.Network, out.IntraNode = m.Inter.link(t), m.Intra.link(t)
	switch rule := strings.Fields(m.Rule); {
	case rule[0] == "INTERLEAVED":
		out.Mapping = models.RoundRobin
	case rule[0] == "FILL_NODES":
		out.Mapping = models.Fill
	default:
		out.Mapping = models.PerNode
		out.RanksPerNode, _ = strconv.Atoi(rule[0])
	}
	for op := range out.Collectives {
		f := factors[m.Default]
		out.SetCollective(op, models.Phases{FanIn: f, SizeIn: models.CURRENT, FanOut: f, SizeOut: models.CURRENT})
	}
	for _, c := range m.Collectives {
		out.SetCollective(callNamed(c.Name), models.Phases{FanIn: factors[c.FanIn], SizeIn: sizes[c.SizeIn],
			FanOut: factors[c.FanOut], SizeOut: sizes[c.SizeOut]})
	}
	return out
}

func callNamed(name string) schema.CallID {
	for _, c := range schema.Calls {
		if c.Name == name {
			return c.ID
		}
	}
	panic(name)
}

// rows returns the program of the case as rows of events.
func (c *goldenCase) rows() (*Program, []schema.Event) {
	p := &Program{Threads: make([]int32, c.Ranks)}
	world := run.Comm{}
	for r := range c.Ranks {
		world.Members = append(world.Members, int32(r))
		p.Threads[r] = 1
	}
	p.Comms = []run.Comm{world}
	for id, members := range c.Communicators {
		n, _ := strconv.Atoi(id)
		p.Comms = append(p.Comms, run.Comm{ID: int32(n), Members: members})
	}
	var rows []schema.Event
	for r, ops := range c.Programs {
		b := rowBuilder{rank: int32(r), instances: map[int32]int64{}}
		for _, o := range ops {
			b.golden(o)
		}
		b.row(schema.CallFinalize)
		rows = append(rows, b.rows...)
	}
	return p, rows
}

// rowBuilder builds the rows of a rank.
type rowBuilder struct {
	rank      int32
	rows      []schema.Event
	compute   int64
	openColl  []int
	open      []int // rows of requests that are not complete
	instances map[int32]int64
}

func (b *rowBuilder) row(call schema.CallID) *schema.Event {
	e := schema.NullEvent
	e.Rank, e.Seq, e.Call, e.Class, e.ComputeNs = b.rank, int64(len(b.rows)), int16(call),
		int16(schema.Calls[call].Class), b.compute
	b.compute = schema.NullInt64
	b.rows = append(b.rows, e)
	return &b.rows[len(b.rows)-1]
}

func (b *rowBuilder) golden(o goldenOp) {
	switch o.Op {
	case "compute":
		b.compute = max(b.compute, 0) + int64(math.Round(o.Seconds*1e9))
	case "send", "isend":
		call := map[string]schema.CallID{"sendeager": schema.CallSend, "sendrendezvous": schema.CallSsend,
			"isendeager": schema.CallIsend, "isendrendezvous": schema.CallIssend}[o.Op+o.Protocol]
		e := b.row(call)
		e.Comm, e.SendWorld, e.SendTag, e.SendBytes = max(o.Comm, 1), o.Peer, o.Tag, o.Bytes
	case "recv", "irecv":
		call := schema.CallRecv
		if o.Op == "irecv" {
			call = schema.CallIrecv
			b.open = append(b.open, len(b.rows))
		}
		e := b.row(call)
		e.Comm, e.RecvWorld, e.RecvTag, e.RecvBytes = max(o.Comm, 1), o.Peer, o.Tag, o.Bytes
	case "wait":
		for k, i := range b.open {
			if e := &b.rows[i]; e.RecvWorld == o.Peer && e.RecvTag == o.Tag && e.Comm == max(o.Comm, 1) {
				e.DoneSeq = int64(len(b.rows))
				b.open = append(b.open[:k], b.open[k+1:]...)
				break
			}
		}
		b.row(schema.CallWait)
	case "cwait":
		i := b.openColl[0]
		b.openColl = b.openColl[1:]
		b.rows[i].DoneSeq = int64(len(b.rows))
		b.row(schema.CallWait)
	case "collective", "icollective", "raw":
		if o.Op == "raw" {
			o = *o.Equivalent
			o.Comm = max(o.Comm, 1)
		}
		name := o.Name
		if o.Op == "icollective" {
			name = "MPI_I" + strings.ToLower(name[4:])
			b.openColl = append(b.openColl, len(b.rows))
		}
		e := b.row(callNamed(name))
		if o.Protocol != "" {
			e.Label = o.Protocol
		}
		e.Comm, e.SendBytes, e.RecvBytes, e.Instance = o.Comm, o.Send, o.Recv, b.instances[o.Comm]
		b.instances[o.Comm]++
		if o.Root != nil {
			e.RootWorld = *o.Root
		}
	default:
		panic(o.Op)
	}
}

// eventsOf returns the rows as a batch.
func eventsOf(rows []schema.Event) *schema.Events {
	b := &schema.Events{}
	for i := range rows {
		b.Append(&rows[i])
	}
	return b
}

// simulated simulates rows in one window.
func simulated(m *models.Machine, p *Program, d Dialect, rows []schema.Event) (*Result, error) {
	done := false
	return Simulate(m, p, &Options{Dialect: d}, func(add func(*schema.Events) error) error {
		if done {
			return io.EOF
		}
		done = true
		return add(eventsOf(rows))
	})
}

func goldenCases(t *testing.T) []string {
	files, err := filepath.Glob("../../testdata/golden/dimemas/*/case.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// Every rank ends within 2 ns of its time in Dimemas, and of the time by the paper's formulas where they apply.
func TestGoldenCases(t *testing.T) {
	for _, file := range goldenCases(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c goldenCase
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(file, err)
		}
		t.Run(c.Name, func(t *testing.T) {
			p, rows := c.rows()
			r, err := simulated(c.Machine.machine(t), p, Dimemas5, rows)
			if err != nil {
				t.Fatal(err)
			}
			for rank, want := range c.Expected.FinishSeconds {
				if got := float64(r.Ranks[rank].Finish) / 1e3; math.Abs(got-want*1e9) > 2 {
					t.Errorf("rank %d ends after %.3f ns; Dimemas says %.0f", rank, got, want*1e9)
				}
			}
			if c.Paper == nil {
				return
			}
			if r, err = simulated(c.Machine.machine(t), p, Paper, rows); err != nil {
				t.Fatal(err)
			}
			if got := float64(r.Time) / 1e3; math.Abs(got-c.Paper.TotalSeconds*1e9) > 0.01 {
				t.Errorf("paper: %.3f ns; the formula says %.3f", got, c.Paper.TotalSeconds*1e9)
			}
		})
	}
}
