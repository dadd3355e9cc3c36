//go:build dimemas

package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/models"
)

// TestAgainstDimemas runs random programs on random machines, here and in Dimemas 5.5.0
// (go test -tags dimemas). $COMMQ_DIMEMAS names its binary, $COMMQ_DIMEMAS_CASES the number of cases (300),
// $COMMQ_DIMEMAS_SEED the first seed.
func TestAgainstDimemas(t *testing.T) {
	binary := os.Getenv("COMMQ_DIMEMAS")
	if binary == "" {
		t.Fatal("COMMQ_DIMEMAS does not name the Dimemas binary")
	}
	cases, _ := strconv.Atoi(os.Getenv("COMMQ_DIMEMAS_CASES"))
	first, _ := strconv.Atoi(os.Getenv("COMMQ_DIMEMAS_SEED"))
	if cases == 0 {
		cases = 300
	}
	bad, stuck, failed := 0, 0, 0
	for seed := first; seed < first+cases; seed++ {
		c := randomCase(seed)
		finish, ok, err := dimemas(t, binary, c)
		if err != nil {
			failed++
			continue
		}
		p, rows := c.rows()
		r, err := simulated(c.Machine.machine(t), p, Dimemas5, rows)
		if !ok {
			stuck++
			if c.reduces() {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), "deadlock") {
				t.Errorf("seed %d: Dimemas does not end; here %v", seed, err)
				bad++
			}
			continue
		}
		if err != nil && !strings.Contains(err.Error(), "without a partner") {
			t.Errorf("seed %d: %v", seed, err)
			bad++
			continue
		}
		if err != nil {
			continue
		}
		for rank, want := range finish {
			if got := float64(r.Ranks[rank].Finish) / 1e3; math.Abs(got-want) > 2 {
				t.Errorf("seed %d: rank %d ends after %.3f ns; Dimemas says %.0f", seed, rank, got, want)
				bad++
				break
			}
		}
		if bad > 20 {
			break
		}
	}
	t.Logf("%d of %d programs differ; %d do not end in Dimemas, which failed on %d", bad, cases, stuck, failed)
}

// reduces reports whether the case has a Reduce by messages. Dimemas may lose ranks of one: those whose message waits
// for a link, and those with a nonblocking collective in progress on the communicator, because it numbers both in one
// series.
func (c *goldenCase) reduces() bool {
	for _, ops := range c.Programs {
		for _, o := range ops {
			if o.Name == "MPI_Reduce" && o.Protocol == "" {
				return true
			}
		}
	}
	return false
}

// randomCase returns a random program on a random machine. A program that deadlocks must do so in both simulators.
func randomCase(seed int) *goldenCase {
	g := rand.New(rand.NewPCG(uint64(seed), 7))
	pick := func(values ...float64) float64 { return values[g.IntN(len(values))] }
	c := &goldenCase{Ranks: 2 + g.IntN(7)}
	m := &c.Machine
	link := func(bandwidths []float64, latencies []float64) goldenLink {
		l := goldenLink{MiBps: pick(bandwidths...), Latency: pick(latencies...), Buses: int(pick(0, 0, 1, 2, 3))}
		switch g.IntN(4) {
		case 0:
			l.Half, l.Links = true, 1+g.IntN(2)
		case 1:
			l.InLinks, l.OutLinks = 1+g.IntN(2), 1+g.IntN(3)
		case 2:
			l.InLinks, l.OutLinks = 1, 1
		}
		return l
	}
	m.Inter = link([]float64{100, 87.5, 0, 13}, []float64{0, 1e-5, 2.5e-5, 1e-6})
	m.Intra = link([]float64{1024, 500, 0}, []float64{0, 1e-6, 3e-6})
	m.Ratio = pick(1, 1, 2, 0.5, 0)
	m.CPUs = 1 + g.IntN(3)
	switch g.IntN(3) {
	case 0:
		m.Nodes = 1 + g.IntN(c.Ranks)
		m.Rule = "INTERLEAVED"
	case 1:
		m.Nodes = 1 + g.IntN(c.Ranks)
		m.Rule = "FILL_NODES"
	case 2:
		n := 1 + g.IntN(3)
		m.Nodes = (c.Ranks + n - 1) / n
		m.Rule = fmt.Sprintf("%d TASKS_PER_NODE", n)
	}
	m.Default = []string{"CTE", "LIN", "LOG"}[g.IntN(3)]
	names := []string{"MPI_Barrier", "MPI_Bcast", "MPI_Gather", "MPI_Allreduce", "MPI_Alltoall", "MPI_Scan",
		"MPI_Scatter"}
	for _, name := range names {
		if g.IntN(2) == 0 {
			continue
		}
		f := []string{"0", "CTE", "LIN", "LOG"}
		s := []string{"MAX", "MIN", "MEAN", "2MAX", "S+R"}
		m.Collectives = append(m.Collectives, struct {
			Name    string
			FanIn   string `json:"fan_in"`
			SizeIn  string `json:"size_in"`
			FanOut  string `json:"fan_out"`
			SizeOut string `json:"size_out"`
		}{name, f[g.IntN(4)], s[g.IntN(5)], f[g.IntN(4)], s[g.IntN(5)]})
	}
	c.Communicators = map[string][]int32{"1": nil}
	for r := range c.Ranks {
		c.Communicators["1"] = append(c.Communicators["1"], int32(r))
	}
	if c.Ranks > 3 {
		for r := range c.Ranks {
			if g.IntN(2) == 0 {
				c.Communicators["2"] = append(c.Communicators["2"], int32(r))
			}
		}
		if len(c.Communicators["2"]) == 0 {
			delete(c.Communicators, "2")
		}
	}
	c.Programs = make([][]goldenOp, c.Ranks)
	for r := range c.Programs {
		c.Programs[r] = []goldenOp{{Op: "compute", Seconds: float64(g.IntN(4)) * 1e-4}}
	}
	for range 1 + g.IntN(25) {
		c.randomStep(g, names)
	}
	for r := range c.Programs {
		if p := c.Programs[r]; p[len(p)-1].Op != "compute" {
			c.Programs[r] = append(p, goldenOp{Op: "compute", Seconds: float64(g.IntN(3)) * 1e-4})
		}
	}
	return c
}

// randomStep adds a message or a collective to the program, in an order in which it can run.
func (c *goldenCase) randomStep(g *rand.Rand, names []string) {
	bytes := []int64{0, 1, 1000, 4097, 65536, 1 << 20}[g.IntN(6)]
	compute := func(r int32) {
		// two bursts differ from one long burst
		if p := c.Programs[r]; g.IntN(3) == 0 && p[len(p)-1].Op != "compute" {
			c.Programs[r] = append(p, goldenOp{Op: "compute", Seconds: float64(g.IntN(500)) * 1e-6})
		}
	}
	if g.IntN(5) == 0 {
		comm := int32(1)
		if c.Communicators["2"] != nil && g.IntN(2) == 0 {
			comm = 2
		}
		members := c.Communicators[strconv.Itoa(int(comm))]
		name := names[g.IntN(len(names))]
		var root *int32
		if name == "MPI_Bcast" || name == "MPI_Gather" || name == "MPI_Scatter" {
			root = &members[g.IntN(len(members))]
		}
		back := []int64{0, 77, 100_000}[g.IntN(3)]
		op, protocol := "collective", ""
		switch g.IntN(5) {
		case 0:
			op = "icollective"
		case 1:
			name, root = "MPI_Reduce", &members[g.IntN(len(members))]
			protocol = []string{"", DimemasSync1}[g.IntN(2)]
			if c.Machine.Inter.Buses+c.Machine.Intra.Buses > 0 {
				protocol = DimemasSync1 // Dimemas crashes on messages of a Reduce that wait for a bus
			}
		}
		for _, r := range members {
			compute(r)
			c.Programs[r] = append(c.Programs[r],
				goldenOp{Op: op, Name: name, Protocol: protocol, Send: bytes, Recv: back + int64(r), Root: root,
					Comm: comm})
			if op == "icollective" {
				compute(r)
				c.Programs[r] = append(c.Programs[r], goldenOp{Op: "cwait", Name: name, Comm: comm})
			}
		}
		return
	}
	src, dst := int32(g.IntN(c.Ranks)), int32(g.IntN(c.Ranks))
	if src == dst { // Dimemas needs its receive to be posted first
		m := goldenOp{Op: "irecv", Peer: src, Tag: 5, Bytes: bytes}
		send, wait := m, m
		send.Op, send.Protocol, wait.Op = "send", "eager", "wait"
		compute(src)
		c.Programs[src] = append(c.Programs[src], m, send, wait)
		return
	}
	tag := int32(g.IntN(2))
	compute(src)
	send := goldenOp{Op: []string{"send", "isend"}[g.IntN(2)],
		Protocol: []string{"eager", "eager", "rendezvous"}[g.IntN(3)], Peer: dst, Tag: tag, Bytes: bytes}
	c.Programs[src] = append(c.Programs[src], send)
	recv := goldenOp{Op: "recv", Peer: src, Tag: tag, Bytes: bytes}
	compute(dst)
	if g.IntN(2) == 0 {
		c.Programs[dst] = append(c.Programs[dst], recv)
		return
	}
	at := len(c.Programs[dst]) - g.IntN(min(4, len(c.Programs[dst])))
	irecv, wait := recv, recv
	irecv.Op, wait.Op = "irecv", "wait"
	ops := append(append(append([]goldenOp{}, c.Programs[dst][:at]...), irecv), c.Programs[dst][at:]...)
	c.Programs[dst] = append(ops, wait)
}

// dimemas runs the case in Dimemas. It returns the end of each rank in ns, and false if some rank does not end.
func dimemas(t *testing.T, binary string, c *goldenCase) ([]float64, bool, error) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("trace.dim", c.dim())
	machine, comms := c.Machine.cfg()
	write("machine.cfg", machine)
	write("comms.cfg", comms)
	cmd := exec.Command(binary, "--dim", "trace.dim", "--config-file", "machine.cfg", "--xtra-sched-debug")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MALLOC_PERTURB_=255")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, false, err
	}
	finish := make([]float64, c.Ranks)
	seen := 0
	for _, line := range strings.Split(string(out), "\n") {
		if !strings.Contains(line, "SCHEDULER no more actions") {
			continue
		}
		f := strings.Fields(line)
		at, err := strconv.ParseFloat(strings.TrimSuffix(f[0], ":"), 64)
		if err != nil {
			continue
		}
		for _, w := range f {
			if rank, err := strconv.Atoi(strings.TrimPrefix(w, "T")); err == nil && w[0] == 'T' {
				finish[rank] = at * 1e9
				seen++
			}
		}
	}
	return finish, seen == c.Ranks, nil
}

var dimemasOps = []string{"MPI_Barrier", "MPI_Bcast", "MPI_Gather", "MPI_Gatherv", "MPI_Scatter", "MPI_Scatterv",
	"MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv", "MPI_Reduce", "MPI_Allreduce",
	"MPI_Reduce_scatter", "", "MPI_Scan"}

func dimemasOp(name string) int {
	for i, n := range dimemasOps {
		if n == name {
			return i
		}
	}
	panic(name)
}

// dim formats the program as a trace of Dimemas.
func (c *goldenCase) dim() string {
	var body strings.Builder
	for id, members := range c.Communicators {
		fmt.Fprintf(&body, "d:1:%s:%d", id, len(members))
		for _, m := range members {
			fmt.Fprintf(&body, ":%d", m)
		}
		body.WriteString("\n")
	}
	starts := make([]int, c.Ranks)
	for r, ops := range c.Programs {
		starts[r] = body.Len()
		for _, o := range ops {
			switch o.Op {
			case "compute":
				fmt.Fprintf(&body, "1:%d:0:%.9f\n", r, o.Seconds)
			case "send", "isend":
				sync := map[string]int{"sendeager": 0, "sendrendezvous": 1, "isendeager": 2,
					"isendrendezvous": 3}[o.Op+o.Protocol]
				fmt.Fprintf(&body, "2:%d:0:%d:-1:%d:%d:1:%d\n", r, o.Peer, o.Bytes, o.Tag, sync)
			case "recv", "irecv", "wait":
				fmt.Fprintf(&body, "3:%d:0:%d:-1:%d:%d:1:%d\n", r, o.Peer, o.Bytes, o.Tag,
					map[string]int{"recv": 0, "irecv": 1, "wait": 2}[o.Op])
			case "collective", "icollective", "cwait":
				root, sync := int32(0), map[string]int{"collective": 1, "icollective": 0, "cwait": 2}[o.Op]
				if o.Root != nil && *o.Root == int32(r) {
					root = 1
				}
				if o.Name == "MPI_Reduce" && o.Root != nil {
					root = *o.Root
					if o.Protocol == "" {
						sync = 3
					}
				}
				fmt.Fprintf(&body, "10:%d:0:%d:%d:%d:0:%d:%d:%d\n", r, dimemasOp(o.Name), o.Comm, root, o.Send,
					o.Recv, sync)
			}
		}
	}
	threads := strings.TrimSuffix(strings.Repeat("1,", c.Ranks), ",")
	head := func(offset int) string {
		return fmt.Sprintf("#DIMEMAS:\"random\":1,%09d:%d(%s),%d,0,0\n", offset, c.Ranks, threads, len(c.Communicators))
	}
	header := len(head(0))
	text := head(header+body.Len()) + body.String()
	for r, at := range starts {
		text += fmt.Sprintf("s:%d:%d\n", r, header+at)
	}
	return text
}

// cfg formats the machine as a configuration of Dimemas and its file of collectives.
func (m *goldenMachine) cfg() (machine, comms string) {
	links := func(l goldenLink) (in, out int) {
		if l.Half {
			return l.Links, 0
		}
		return l.InLinks, l.OutLinks
	}
	model := map[string]int{"CTE": 1, "LIN": 2, "LOG": 3}[m.Default]
	in, out := links(m.Inter)
	inside, outside := links(m.Intra)
	machine = "#DIMEMAS_CONFIGURATION\n" +
		`"wide area network information" {"", 1, 0, 4, 0.0, 0.0, 1};;` + "\n" +
		fmt.Sprintf(`"environment information" {"random", 0, "", %d, %v, %d, %d};;`, m.Nodes, m.Inter.MiBps,
			m.Inter.Buses, model) + "\n" +
		fmt.Sprintf(`"multi node information" {0, %d, "", %d, %v, %v, %v, %d, %d, %d, %v, %d, %d, 0.0};;`, m.Nodes,
			m.CPUs, m.Ratio, m.Intra.Latency, m.Intra.MiBps, m.Intra.Buses, inside, outside, m.Inter.Latency, in,
			out) + "\n" +
		fmt.Sprintf(`"predefined mapping information" {"%s"};;`, m.Rule) + "\n" +
		`"configuration files" {"", "", "comms.cfg", ""};;` + "\n"
	for _, c := range m.Collectives {
		comms += fmt.Sprintf("Machine globalop: 0 %d %s %s %s %s\n", dimemasOp(c.Name), c.FanIn, c.SizeIn, c.FanOut,
			c.SizeOut)
	}
	return machine, comms
}

var _ = models.Forever
