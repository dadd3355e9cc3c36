package models

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/schema"
)

// pairCFG has nodes of two kinds.
const pairCFG = `#DIMEMAS_CONFIGURATION
// "node information" {};;
/*
"environment information" {"not this", 0, "", 9, 9.0, 9, 9};;
*/
"wide area network information" {"", 1, 0, 4, 0.0, 0.0, 1};;

"environment information" {"pair", 0, "a, b", 3, 87.5, 10, 3};;
`

// files opens the files of a test.
func files(have map[string]string) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		text, ok := have[name]
		if !ok {
			return nil, errors.New("no such file")
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
}

// cfgOf returns a configuration with these records of nodes.
func cfgOf(environment string, records ...string) string {
	return "#DIMEMAS_CONFIGURATION\n\"wide area network information\" {\"\", 1, 0, 4, 0.0, 0.0, 1};;\n\"environment information\" {" + environment + "};;\n" + strings.Join(records, "\n") + "\n"
}

const comms = `Machine globalop: 0 0 LIN MAX CTE 2MAX
some words
External globalop: 1 CTE MAX CTE MAX
Machine policy: 0 FIFO
Machine globalop: 0 14 0 MEAN LOG S+R
11 CTE MIN 0 MAX 0.5
`

func TestReadCFG(t *testing.T) {
	text := cfgOf(`"pair", 0, "", 3, 87.5, 10, 3`,
		`"multi node information" {0, 2, "", 4, 1.5, 2e-06, 1024.0, 3, 1, 1, 2.5e-05, 5, 0, 0.0};;`,
		`"node information" {0, "", 2, 0.0, 0.0000000009, 0.0, 0, 0, 0, 1e-9, 2, 3, 0.0};;`,
		`"predefined mapping information" {"trace.dim", "FILL_NODES"};;`,
		`"modules information" {3, 4, 1.0};;`,
		`"configuration files" {"a scheduler that is not found", "", "comms.cfg", ""};;`,
		`"file system parameters" {0.0, 0.0, 8.0, 0, 1.0};;`)
	m, err := ReadCFG("m.cfg", strings.NewReader(text), files(map[string]string{"comms.cfg": comms}))
	if err != nil {
		t.Fatal(err)
	}
	big := Node{CPUs: 4, CPURatio: 1.5, IntraNode: Interconnect{Latency: 2_000_000, BytesPerSecond: 1 << 30, Buses: 3,
		InputLinks: 1, OutputLinks: 1},
		Latency: 25_000_000, InputLinks: 5, OutputLinks: 5, HalfDuplex: true}
	small := Node{CPUs: 2, IntraNode: Interconnect{Latency: 900}, Latency: 1000, InputLinks: 2, OutputLinks: 3}
	taken := strings.Replace(comms, "some words\nExternal globalop: 1 CTE MAX CTE MAX\n", "", 1)
	want := &Machine{Name: "m.cfg", Description: text + "// comms.cfg\n" + taken, Nodes: 3, Mapping: Fill,
		CPUsPerNode: 4, CPURatio: 1.5, IntraNode: big.IntraNode,
		Network: Interconnect{Latency: 25_000_000, BytesPerSecond: 91_750_400, Buses: 10, InputLinks: 5,
			OutputLinks: 5, HalfDuplex: true},
		Uneven: []Node{big, big, small}, EagerThresholdBytes: math.MaxInt64, Collectives: flat().Collectives,
		Declared: map[schema.CallID]bool{}}
	for _, op := range dimemasOperations {
		want.Collectives[op], want.Declared[op] = Phases{LOG, CURRENT, LOG, CURRENT}, true
	}
	want.Collectives[schema.CallBarrier] = Phases{LIN, MAX, CT, TwoMAX}
	want.Collectives[schema.CallScan] = Phases{None, MEAN, LOG, SumSR}
	want.Collectives[schema.CallAllreduce] = Phases{CT, MIN, None, MAX}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
}

// Forms of records that Dimemas accepts, too.
func TestReadCFGForms(t *testing.T) {
	node := `"node information" {0, "", 1, 1.0, 0.0, 0.0, 0, 0, 0, 1e-05, 1, 1, 0.0};;`
	numbered := `"node information" {0, 7, "", 1, +1, 0, .0, 0, 0, 0, 0.1E-4, 1, 1, 9};;`
	rule := `"predefined mapping information" {"3 TASKS_PER_NODE"};;`
	first := func(text string) *Machine {
		t.Helper()
		m, err := ReadCFG("m.cfg", strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	a := first(cfgOf(`"x", 0, "", 2, 100.0, 0, 1`, node, node, rule))
	if a.Mapping != PerNode || a.RanksPerNode != 3 || a.Uneven != nil || a.Nodes != 2 ||
		a.Network.BytesPerSecond != 104_857_600 ||
		a.Collectives[schema.CallBcast] != (Phases{CT, CURRENT, CT, CURRENT}) {
		t.Errorf("%+v", a)
	}
	b := first(cfgOf(`"x",0,"",2,100,0,1`, "  "+numbered+"  ", node, "// nothing", rule+"\r"))
	a.Description, b.Description = "", ""
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	c := first(cfgOf(`"x", 0, "", 2, 33.3, 0, 2`, node, node, `"mapping information" {"t.dim", 3, [3] {1, 0, 1}};;`))
	if c.Mapping != Listed || !cmp.Equal(c.NodeOf, []int{1, 0, 1}) || c.Network.BytesPerSecond != 174587904 ||
		c.Network.BytesPer != 5 {
		t.Errorf("%+v", c) // 33.3 x 2^20 = 34,917,580.8
	}
	d := first(cfgOf(`"x", 0, "", 1, 0.1234567890123456789012345, 0, 2`, node,
		`"predefined mapping information" {"INTERLEAVED"};;`))
	if x := float64(d.Network.BytesPerSecond) / float64(d.Network.BytesPer); d.Mapping != RoundRobin ||
		math.Abs(x/129453.82599540938-1) > 1e-15 || d.Network.BytesPer < 1<<40 {
		t.Errorf("%+v: %v", d, x)
	}
}

func TestReadCFGErrors(t *testing.T) {
	wan := `"wide area network information" {"", 1, 0, 4, 0.0, 0.0, 1};;`
	head := cfgHeader + "\n"
	env := `"x", 0, "", 1, 100.0, 0, 3`
	node := `"node information" {0, "", 1, 1.0, 0.0, 0.0, 0, 0, 0, 1e-05, 1, 1, 0.0};;`
	rule := `"predefined mapping information" {"FILL_NODES"};;`
	with := func(record string) string { return cfgOf(env, node, rule, record) }
	for _, c := range []struct{ text, want string }{
		{"", `machine m.cfg:1: found ""; want #DIMEMAS_CONFIGURATION in the first line`},
		{"nodes: 3", `machine m.cfg:1: found "nodes: 3"; want`},
		{"SDDFA\n", `machine m.cfg:1: a configuration in the old format SDDF`},
		{head, `machine m.cfg: there is no record "wide area network information"`},
		{head + "/*\n" + wan, `machine m.cfg: there is no record "wide area network information"; the comment in line 2 is never closed by */`},
		{head + wan, `machine m.cfg: there is no record "environment information"`},
		{head + wan[:20] + "\n" + wan[20:], `machine m.cfg:2: found "\"wide area network i"; want a record "KIND" {FIELDS};; on one line`},
		{head + `"wide area network" {};;`, `machine m.cfg:2: there are no records of kind "wide area network"; there are wide area network information, environment information, `},
		{head + `"wide area network information" {"", 2, 0, 4, 0.0, 0.0, 1};;`,
			`machine m.cfg:2: 2 machines; commq simulates one`},
		{head + `"wide area network information" {"", 1, 1, 4, 0.0, 0.0, 1};;`,
			`machine m.cfg:2: 1 dedicated connections`},
		{head + `"wide area network information" {"", 1, 0, 4, 0.0, 1};;`,
			`machine m.cfg:2: wide area network information has 6 fields; want 7`},
		{head + `"environment information" {` + env + `};;`,
			`machine m.cfg:2: the environment comes before "wide area`},
		{cfgOf(env, `"environment information" {`+env+`};;`), `machine m.cfg:4: a second environment`},
		{cfgOf(`"x", 1, "", 1, 100.0, 0, 3`), `machine m.cfg:3: the machine id is 1`},
		{cfgOf(`"x", 0, "", 0, 100.0, 0, 3`),
			`machine m.cfg:3: environment information: nodes is "0"; want a whole number from 1 to 1073741824`},
		{cfgOf(`"x", 0, "", 1.5, 100.0, 0, 3`), `machine m.cfg:3: environment information: nodes is "1.5"`},
		{cfgOf(`"x", 0, "", 1, fast, 0, 3`), `machine m.cfg:3: environment information: bandwidth between nodes is "fast"; want a number, 0 or greater`},
		{cfgOf(`"x", 0, "", 1, -1, 0, 3`), `machine m.cfg:3: environment information: bandwidth between nodes is "-1"`},
		{cfgOf(`"x", 0, "", 1, 1e90, 0, 3`), `machine m.cfg:3: environment information: bandwidth between nodes is "1e90"; want at most 953674316406 MB/s`},
		{cfgOf(`"x", 0, "", 1, 1, -3, 3`), `machine m.cfg:3: environment information: buses is "-3"`},
		{cfgOf(`"x", 0, "", 1, 1, 3, 4`), `machine m.cfg:3: the default collective model is 4; want 1 (CTE), 2 (LIN) or 3 (LOG)`},
		{cfgOf(env, rule), `machine m.cfg: the environment has 1 nodes, and 0 are described`},
		{cfgOf(env, node, node, rule), `machine m.cfg:5: more nodes than the 1 of the environment`},
		{head + wan + "\n" + node, `machine m.cfg:3: nodes come before "environment information"`},
		{cfgOf(env, node), `machine m.cfg: there is no mapping; add "predefined mapping information" {"FILL_NODES"};;`},
		{cfgOf(env, strings.Replace(node, "{0", "{1", 1)),
			`machine m.cfg:4: node information: the machine is "1"; want 0`},
		{cfgOf(env, `"node information" {0, 0, "", 1, 1, 1, 0.0, 0.0, 1.0, 0.0, 0.0};;`),
			`machine m.cfg:4: node information with 11 fields, of old versions`},
		{cfgOf(env, `"node information" {0, ""};;`), `machine m.cfg:4: node information has 2 fields; want 13`},
		{cfgOf(env, strings.Replace(node, `"", 1,`, `"", 0,`, 1)),
			`machine m.cfg:4: node information: CPUs is "0"; want a whole number from 1`},
		{cfgOf(env, strings.Replace(node, "1e-05", "2000", 1)),
			`machine m.cfg:4: node information: latency between nodes is "2000"; want seconds from 0 to 1000`},
		{cfgOf(env, strings.Replace(node, "1.0, 0.0", "1.0, x", 1)),
			`machine m.cfg:4: node information: latency inside the node is "x"; want a number`},
		{with(rule), `machine m.cfg:6: a second mapping, after that of line 5`},
		{cfgOf(env, node, `"predefined mapping information" {"BLOCK"};;`),
			`machine m.cfg:5: the mapping is "\"BLOCK\""; want "FILL_NODES", "n TASKS_PER_NODE" or "INTERLEAVED"`},
		{cfgOf(env, node, `"predefined mapping information" {"0 TASKS_PER_NODE"};;`),
			`machine m.cfg:5: the mapping is "\"0 TASKS_PER_NODE\""`},
		{cfgOf(env, node, `"mapping information" {"t", 2, [2] {0, 1}};;`),
			`machine m.cfg:5: mapping information: the node "1"; want one of the environment's 1, from 0`},
		{cfgOf(env, node, `"mapping information" {"t", 3, [2] {0, 0}};;`),
			`machine m.cfg:5: mapping information: 3 tasks, [2] and 2 nodes listed`},
		{cfgOf(env, node, `"mapping information" {0, 0};;`),
			`machine m.cfg:5: mapping information: want trace, tasks, [n] {node of each task}`},
		{with(`"configuration files" {"", "", "x"};;`), `machine m.cfg:6: configuration files has 3 fields; want 4`},
		{with(`"configuration files" {sched.cfg, "", "", ""};;`),
			`machine m.cfg:6: the scheduler file "sched.cfg"; commq has only Dimemas' default`},
		{with(`"configuration files" {"", "", "", "random.cfg"};;`),
			`machine m.cfg:6: the file of random values "random.cfg"`},
		{with(`"configuration files" {"", "", "gone.cfg", ""};;`),
			`machine m.cfg:6: the communications file: no such file`},
		{with(`"modules information" {1, 2, 0.5};;`), `machine m.cfg:6: modules information: the ratio is "0.5"`},
		{with(`"modules information" {1, 2, -0.5};;`), `machine m.cfg:6: modules information: the ratio is "-0.5"`},
		{with(`"dedicated connection information" {0, 0, 1};;`), `machine m.cfg:6: a dedicated connection`},
		{with(`"configuration files" {"", "", "0.cfg", ""};;`),
			`machine m.cfg: 0.cfg:2: the machine is "1"; the only one is 0`},
		{with(`"configuration files" {"", "", "1.cfg", ""};;`),
			`machine m.cfg: 1.cfg:1: the operation is "16"; want a number from 0 to 15`},
		{with(`"configuration files" {"", "", "2.cfg", ""};;`),
			`machine m.cfg: 2.cfg:1: operation 1: the model is "CT"; want 0, CTE, LIN or LOG`},
		{with(`"configuration files" {"", "", "3.cfg", ""};;`),
			`machine m.cfg: 3.cfg:1: operation 1: the size is "2*MAX"; want MIN, MAX, MEAN, 2MAX or S+R`},
		{with(`"configuration files" {"", "", "4.cfg", ""};;`),
			`machine m.cfg: 4.cfg:1: found "Machine globalop: 0 1 CTE MAX"; want Machine globalop: machine operation`},
		{with(`"configuration files" {"", "", "5.cfg", ""};;`),
			`machine m.cfg: 5.cfg:1: the policy is "RR"; commq has only FIFO`},
		{with(`"configuration files" {"", "", "6.cfg", ""};;`),
			`machine m.cfg: 6.cfg:1: found "Machine policy: 1 FIFO"; want Machine policy: 0 FIFO`},
		{with(`"configuration files" {"", "", "7.cfg", ""};;`),
			`machine m.cfg: 7.cfg:1: operation 1: the size is "CURRENT"`},
	} {
		m, err := ReadCFG("m.cfg", strings.NewReader(c.text), files(map[string]string{
			"0.cfg": "\nMachine globalop: 1 1 CTE MAX 0 MAX", "1.cfg": "Machine globalop: 0 16 CTE MAX 0 MAX",
			"2.cfg": "Machine globalop: 0 1 CT MAX 0 MAX",
			"3.cfg": "Machine globalop: 0 1 CTE 2*MAX 0 MAX", "4.cfg": "Machine globalop: 0 1 CTE MAX",
			"5.cfg": "Policy: RR", "6.cfg": "Machine policy: 1 FIFO",
			"7.cfg": "1 LOG CURRENT LOG CURRENT 0",
		}))
		if m != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.300q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestCommunicationsFile(t *testing.T) {
	for config, want := range map[string]string{"net.cfg": "net.comms.cfg", "a.b/net": "a.b/net.comms.cfg",
		"net.4.cfg": "net.4.comms.cfg"} {
		if got := CommunicationsFile(config); got != want {
			t.Errorf("%s: %s, want %s", config, got, want)
		}
	}
}

func TestIsCFG(t *testing.T) {
	for text, want := range map[string]bool{"#DIMEMAS_CONFIGURATION\nx": true, "// #DIMEMAS_CONFIGURATION": true,
		"SDDFA\n": true, "": false, "nodes: 3\n#DIMEMAS_CONFIGURATION": false} {
		if got := IsCFG([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// mustCFG writes a machine as a configuration and reads that.
func mustCFG(t testing.TB, m *Machine, ranks int) (again *Machine, config string, notes []string) {
	t.Helper()
	c, co, notes, err := m.CFG(ranks, "c")
	if err != nil {
		t.Fatal(err)
	}
	if again, err = ReadCFG(m.Name, bytes.NewReader(c), files(map[string]string{"c": string(co)})); err != nil {
		t.Fatalf("%v\n%s%s", err, c, co)
	}
	return again, string(c), notes
}

// A configuration that is read and written stays the same.
func TestCFGRoundTrip(t *testing.T) {
	uneven := cfgOf(`"x", 0, "", 3, 33.33, 10, 2`,
		`"multi node information" {0, 2, "", 4, 1.25, 2e-06, 1024.1, 3, 1, 1, 2.5e-05, 5, 0, 0.0};;`,
		`"node information" {0, "", 2, 0.0, 0.0, 0.0, 0, 0, 4, 1e-09, 2, 3, 0.0};;`,
		`"predefined mapping information" {"FILL_NODES"};;`,
		`"configuration files" {"", "", "comms.cfg", ""};;`)
	for _, rule := range []string{"FILL_NODES", "3 TASKS_PER_NODE", "INTERLEAVED"} {
		m, err := ReadCFG("m.cfg", strings.NewReader(strings.Replace(uneven, "FILL_NODES", rule, 1)),
			files(map[string]string{"comms.cfg": comms}))
		if err != nil {
			t.Fatal(err)
		}
		again, _, notes := mustCFG(t, m, 7)
		m.Description, again.Description = "", ""
		if diff := cmp.Diff(m, again); diff != "" || len(notes) != 0 {
			t.Error(diff, notes)
		}
	}
}

// A machine in YAML becomes an equivalent configuration, with notes about settings that Dimemas takes elsewhere.
func TestCFGOfYAML(t *testing.T) {
	m := mustRead(t, `nodes: 4
cpus_per_node: 2
network: {latency_ns: 7000.125, bandwidth_bytes_per_s: 250e6, buses: 9, input_links: 3, output_links: 3, half_duplex: true}
intra_node: {latency_ns: 500, bandwidth_bytes_per_s: infinite}
cpu_ratio: 1.25
eager_threshold_bytes: 4097
collectives: {MPI_Bcast: {fan_in: LIN, size_in: 2MAX, fan_out: CT, size_out: MIN}, MPI_Exscan: {fan_in: CT, size_in: MAX, fan_out: 0, size_out: MAX}}
`)
	again, text, notes := mustCFG(t, m, 8)
	for _, want := range []string{`"environment information" {"machine", 0, "", 4, 238.4185791015625, 9, 3};;`,
		`"multi node information" {0, 4, "", 2, 1.25, 0.0000005, 0.0, 0, 0, 0, 0.000007000125, 3, 0, 0.0};;`,
		`"predefined mapping information" {"2 TASKS_PER_NODE"};;`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if diff := cmp.Diff(m.Network, again.Network); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Dimemas does not have the operation MPI_Exscan.",
		"A configuration has no eager_threshold_bytes: start Dimemas with -S 4097, or give the sends of the trace their protocol."}, notes); diff != "" {
		t.Error(diff)
	}
	for _, op := range dimemasOperations {
		if m.Collectives[op] != again.Collectives[op] {
			t.Errorf("%s: %v", op, again.Collectives[op])
		}
	}
	for _, c := range []struct {
		yaml  string
		ranks int
		rule  string
		nodes int
	}{
		{clan, 5, "1 TASKS_PER_NODE", 5},
		{clan + "cpus_per_node: 4\nintra_node: {latency_ns: 0, bandwidth_bytes_per_s: 1}\n", 6, "4 TASKS_PER_NODE", 2},
		{clan + "cpus_per_node: 4\nintra_node: {latency_ns: 0, bandwidth_bytes_per_s: 1}\n", 3, "3 TASKS_PER_NODE", 1},
		{clan + "nodes: 2\n", 6, "3 TASKS_PER_NODE", 2},
		{clan + "nodes: 3\nmapping: round-robin\n", 6, "INTERLEAVED", 3},
	} {
		again, text, _ := mustCFG(t, mustRead(t, c.yaml), c.ranks)
		if !strings.Contains(text, c.rule) || again.Nodes != c.nodes {
			t.Errorf("%s: %s", c.yaml, text)
		}
	}
}

func TestCFGErrors(t *testing.T) {
	current := Phases{LOG, CURRENT, LOG, CURRENT}
	for _, c := range []struct {
		yaml  string
		edit  func(*Machine)
		ranks int
		want  string
	}{
		{clan, nil, 0, "0 ranks; want the number of the program's ranks"},
		{clan + "nodes: 4\n", nil, 6, "6 ranks cannot share these CPUs equally"},
		{"network: {latency_ns: 0.5, bandwidth_bytes_per_s: 1}\n", nil, 2,
			"intra_node.latency_ns is less than 1, which Dimemas treats as 0 for messages"},
		{"network: {latency_ns: 1, bandwidth_bytes_per_s: 1, input_links: 3}\n", nil, 2,
			"network has 3 input and 0 output links, 0 for any number; in a configuration this means half duplex"},
		{clan, func(m *Machine) { m.Mapping, m.NodeOf = Listed, []int{0, 0, 1, 0} }, 4, "mapping is a list of nodes"},
		{clan, func(m *Machine) { m.Collectives[schema.CallBcast] = Phases{LOG, CURRENT, None, MAX} }, 4, "collectives.MPI_Bcast has the size CURRENT"},
		{clan, func(m *Machine) {
			m.Collectives[schema.CallBcast], m.Collectives[schema.CallScan] = current,
				Phases{LIN, CURRENT, LIN, CURRENT}
		}, 4, "collectives.MPI_Scan has the model LIN and the size CURRENT, and MPI_Bcast the model LOG"},
	} {
		m := mustRead(t, c.yaml)
		if c.edit != nil {
			c.edit(m)
		}
		_, _, _, err := m.CFG(c.ranks, "c")
		if err == nil || !strings.Contains(err.Error(), "machine test.yaml") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.yaml, err, c.want)
		}
	}
	if _, _, _, err := mustRead(t, clan).CFG(2, "a{b"); err == nil || !strings.Contains(err.Error(), `"a{b"`) {
		t.Error(err)
	}
	m := mustRead(t, clan)
	m.Mapping, m.NodeOf = Listed, []int{0, 0, 1, 1}
	if _, config, _, err := mustCFGText(m, 4); err != nil || !strings.Contains(config, `"2 TASKS_PER_NODE"`) {
		t.Error(err, config)
	}
}

func mustCFGText(m *Machine, ranks int) (*Machine, string, string, error) {
	c, co, _, err := m.CFG(ranks, "c")
	return m, string(c), string(co), err
}

// Any files give an error, or a machine that is the same after it is written and read again.
func FuzzReadCFG(f *testing.F) {
	f.Add([]byte(pairCFG), []byte(comms))
	f.Add([]byte(cfgOf(`"x", 0, "", 3, 33.33, 10, 2`,
		`"multi node information" {0, 2, "", 4, 1.25, 2e-06, 1024.1, 3, 1, 1, 2.5e-05, 5, 0, 0.0};;`,
		`"node information" {0, 4, "", 2, 0.0, 0.0, 0.0, 0, 0, 4, 1e-09, 2, 3, 0.0};;`,
		`"predefined mapping information" {"2 TASKS_PER_NODE"};;`,
		`"configuration files" {"", "", "comms.cfg", ""};;`)), []byte(comms))
	f.Add([]byte(cfgOf(`"x", 0, "", 1, 1e-30, 0, 1`,
		`"node information" {0, "", 1, 1, 0, 0.1234567890123456789, 0, 0, 0, 1e-05, 0, 1, 0.0};;`,
		`"mapping information" {"t", 2, [2] {0, 0}};;`)), []byte("0 LOG MAX 0 MAX 1"))
	f.Fuzz(fuzzReadCFG)
}

func fuzzReadCFG(t *testing.T, config, comms []byte) {
	m, err := ReadCFG("fuzz", bytes.NewReader(config),
		func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(comms)), nil })
	if err != nil {
		if m != nil || !strings.HasPrefix(err.Error(), "machine ") {
			t.Fatal(err)
		}
		return
	}
	ranks := max(len(m.NodeOf), 3)
	if _, _, err := m.Place(ranks); err != nil || m.Mapping == Listed {
		return
	}
	c, co, _, err := m.CFG(ranks, "c")
	if err != nil {
		if strings.Contains(err.Error(), "bandwidth_bytes_per_s is so low") {
			return
		}
		t.Fatal(err)
	}
	again, err := ReadCFG("fuzz", bytes.NewReader(c),
		func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(co)), nil })
	if err != nil {
		t.Fatalf("%v\n%s", err, c)
	}
	m.Description, again.Description = "", ""
	if diff := cmp.Diff(m, again); diff != "" {
		t.Fatalf("%s\n%s", diff, c)
	}
}

// The same with files whose records are changed as a whole.
func FuzzReadCFGEdited(f *testing.F) {
	f.Add([]byte{0, 9, 1, 8, 1, 0, 4, 7}, []byte{})
	f.Add([]byte{0, 2, 6, 3}, []byte{0, 3, 1, 9})
	f.Fuzz(func(t *testing.T, edits, editsOfComms []byte) {
		fuzzReadCFG(t, []byte(mutate.Text(pairCFG, edits)), []byte(mutate.Text(comms, editsOfComms)))
	})
}
