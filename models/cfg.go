package models

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/commq/commq/schema"
)

// IsCFG reports whether a file that begins like this is a configuration of Dimemas, not YAML.
func IsCFG(start []byte) bool {
	first, _, _ := strings.Cut(string(start), "\n")
	return strings.Contains(first, cfgHeader) || strings.HasPrefix(strings.TrimSpace(first), "SDDF")
}

const cfgHeader = "#DIMEMAS_CONFIGURATION"

// ReadCFG reads a machine from a configuration of Dimemas, whose records are in docs/method/dimemas-files.md. If it
// names a communications file, open opens that. An error names the line, the value and the allowed values. The
// machine's collectives are those of Dimemas: operations without a line in the communications file have the default
// model of the environment and the sizes CURRENT.
func ReadCFG(name string, r io.Reader, open func(name string) (io.ReadCloser, error)) (*Machine, error) {
	text, err := readText(name, r)
	if err != nil {
		return nil, err
	}
	c := &cfg{m: flat(), nodes: -1}
	c.m.Name, c.m.Description = name, text
	if err := c.read(text); err != nil {
		return nil, fmt.Errorf("machine %s:%w", name, err)
	}
	if err := c.finish(); err != nil {
		return nil, fmt.Errorf("machine %s: %w", name, err)
	}
	if c.comms == "" {
		return c.m, nil
	}
	f, err := open(c.comms)
	if err != nil {
		return nil, fmt.Errorf("machine %s:%d: the communications file: %w", name, c.commsLine, err)
	}
	defer f.Close()
	comms, err := readText(c.comms, f)
	if err != nil {
		return nil, err
	}
	taken, err := c.readComms(comms)
	if err != nil {
		return nil, fmt.Errorf("machine %s: %s:%w", name, c.comms, err)
	}
	c.m.Description += "// " + c.comms + "\n" + taken
	return c.m, nil
}

// readText reads a file that describes a machine.
func readText(name string, r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return "", fmt.Errorf("machine %s: %w", name, err)
	}
	if len(data) > maxFileBytes {
		return "", fmt.Errorf("machine %s: more than %d bytes: not a description of a machine", name, maxFileBytes)
	}
	return string(data), nil
}

// cfg is a configuration that is being read.
type cfg struct {
	m     *Machine
	line  int
	nodes int // number in the environment; -1 before that was read
	kinds []nodeKind
	// described is the number of nodes in the records read so far.
	described int
	wan       bool
	// mappingLine is the line of the mapping, and commsLine that of the communications file; 0 for none.
	mappingLine, commsLine int
	comms                  string // name of the communications file
	model                  Factor // default model of collectives
	// comment is the line of a comment that has not ended.
	comment int
}

// nodeKind is a number of consecutive nodes that do not differ.
type nodeKind struct {
	Node
	count int
}

// maxUneven is the largest number of nodes of a machine whose nodes differ.
const maxUneven = 1 << 20

// records are the kinds of records, and the functions that read their fields.
var records = []struct {
	name   string
	fields int // their number; 0 means any
	read   func(*cfg, *fields) error
}{
	{"wide area network information", 7, (*cfg).readWAN},
	{"environment information", 7, (*cfg).readEnvironment},
	{"node information", 0, (*cfg).readNode},
	{"multi node information", 14, (*cfg).readNodes},
	{"mapping information", 0, (*cfg).readMapping},
	{"predefined mapping information", 0, (*cfg).readRule},
	{"configuration files", 4, (*cfg).readFiles},
	{"modules information", 3, (*cfg).readModule},
	{"file system parameters", 0, nil},
	{"accelerator node information", 0, nil},
	{"dedicated connection information", 0, (*cfg).readConnection},
}

// recordText matches "kind" {fields};;
var recordText = regexp.MustCompile(`^"([^"]*)"\s*\{(.*)\}\s*;;?$`)

func (c *cfg) read(text string) error {
	lines := strings.Split(text, "\n")
	if c.line = 1; !strings.Contains(lines[0], cfgHeader) {
		if strings.HasPrefix(strings.TrimSpace(lines[0]), "SDDF") {
			return c.bad("a configuration in the old format SDDF; convert it with the tools of Dimemas")
		}
		return c.bad("found %s; want %s in the first line", shown(lines[0]), cfgHeader)
	}
	for _, text := range lines[1:] {
		c.line++
		text = strings.TrimSpace(text)
		switch {
		case text == "" || strings.Contains(text, "//"):
		case strings.Contains(text, "/*"):
			c.comment = c.line
		case strings.Contains(text, "*/"):
			c.comment = 0
		case c.comment == 0:
			if err := c.record(text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cfg) bad(format string, args ...any) error {
	return fmt.Errorf("%d: %w", c.line, fmt.Errorf(format, args...))
}

func (c *cfg) record(text string) error {
	match := recordText.FindStringSubmatch(text)
	if match == nil {
		return c.bad(`found %s; want a record "KIND" {FIELDS};; on one line`, shown(text))
	}
	for i := range records {
		k := &records[i]
		if k.name != match[1] {
			continue
		}
		if k.read == nil {
			return nil
		}
		f := newFields(c, match[1], match[2])
		if k.fields != 0 && len(f.text) != k.fields {
			return c.bad("%s has %d fields; want %d", k.name, len(f.text), k.fields)
		}
		err := k.read(c, f)
		if f.err != nil {
			err = f.err
		}
		return err
	}
	var names []string
	for _, k := range records {
		names = append(names, k.name)
	}
	return c.bad("there are no records of kind %q; there are %s", match[1], strings.Join(names, ", "))
}

// finish checks that the records are complete, and completes the machine.
func (c *cfg) finish() error {
	comment := ""
	if c.comment != 0 {
		comment = fmt.Sprintf("; the comment in line %d is never closed by */", c.comment)
	}
	switch {
	case !c.wan:
		return fmt.Errorf("there is no record \"wide area network information\"%s", comment)
	case c.nodes < 0:
		return fmt.Errorf("there is no record \"environment information\"%s", comment)
	case c.described != c.nodes:
		return fmt.Errorf("the environment has %d nodes, and %d are described; give each a record \"node "+
			"information\", or all of a kind a \"multi node information\"%s", c.nodes, c.described, comment)
	case len(c.kinds) > 1 && c.nodes > maxUneven:
		return fmt.Errorf("%d nodes that differ; want at most %d", c.nodes, maxUneven)
	case c.mappingLine == 0:
		return fmt.Errorf("there is no mapping; add \"predefined mapping information\" {\"FILL_NODES\"};;, or \"n "+
			"TASKS_PER_NODE\", or \"INTERLEAVED\"%s", comment)
	}
	m := c.m
	m.Nodes = c.nodes
	m.setKinds(c.kinds)
	for n := range 16 {
		m.SetCollective(dimemasOperations[n], Phases{c.model, CURRENT, c.model, CURRENT})
	}
	return nil
}

// setKinds sets the nodes of the machine.
func (m *Machine) setKinds(nodes []nodeKind) {
	n := &nodes[0].Node
	m.CPUsPerNode, m.CPURatio, m.IntraNode = n.CPUs, n.CPURatio, n.IntraNode
	m.Network.Latency, m.Network.InputLinks, m.Network.OutputLinks, m.Network.HalfDuplex = n.Latency, n.InputLinks,
		n.OutputLinks, n.HalfDuplex
	if len(nodes) == 1 {
		return
	}
	for _, a := range nodes {
		for range a.count {
			m.Uneven = append(m.Uneven, a.Node)
		}
	}
}

// dimemasOperations are the collective operations by their numbers in Dimemas.
var dimemasOperations = [...]schema.CallID{
	schema.CallBarrier, schema.CallBcast, schema.CallGather, schema.CallGatherv, schema.CallScatter,
	schema.CallScatterv,
	schema.CallAllgather, schema.CallAllgatherv, schema.CallAlltoall, schema.CallAlltoallv, schema.CallReduce,
	schema.CallAllreduce, schema.CallReduceScatter, schema.CallReduceScatterBlock, schema.CallScan,
	schema.CallAlltoallw,
}

func (c *cfg) readWAN(f *fields) error {
	c.wan = true
	f.skip("name")
	if machines := f.count("machines", 0); f.err == nil && machines != 1 {
		return c.bad("%d machines; commq simulates one: describe it alone", machines)
	}
	if n := f.count("dedicated connections", 0); f.err == nil && n != 0 {
		return c.bad("%d dedicated connections; they are between machines, and commq simulates one", n)
	}
	f.count("traffic function", 0)
	f.number("max traffic")
	f.number("bandwidth")
	f.count("collective model", 0)
	return nil
}

func (c *cfg) readEnvironment(f *fields) error {
	if !c.wan {
		return c.bad("the environment comes before \"wide area network information\"; Dimemas wants it after")
	}
	if c.nodes >= 0 {
		return c.bad("a second environment; commq simulates one machine")
	}
	f.skip("name")
	if id := f.count("machine id", 0); f.err == nil && id != 0 {
		return c.bad("the machine id is %d; the only machine is 0", id)
	}
	f.skip("instrumented architecture")
	nodes := f.count("nodes", 1)
	f.bandwidth("bandwidth between nodes", &c.m.Network)
	c.m.Network.Buses = f.count("buses", 0)
	model := f.count("default collective model", 1)
	if f.err == nil && model > 3 {
		return c.bad("the default collective model is %d; want 1 (CTE), 2 (LIN) or 3 (LOG)", model)
	}
	c.nodes, c.model = nodes, Factor(model) // CT, LIN and LOG are 1, 2 and 3 too
	return nil
}

func (c *cfg) readNodes(f *fields) error {
	f.machine()
	return c.addNodes(f, f.count("number of nodes", 0))
}

// readNode reads the 13 fields of a node, or 14 with a number that is ignored.
func (c *cfg) readNode(f *fields) error {
	f.machine()
	switch len(f.text) {
	case 13:
	case 14:
		f.count("node number", 0)
	case 11:
		return c.bad("node information with 11 fields, of old versions, whose latencies Dimemas does not convert; " +
			"write it with 13")
	default:
		return c.bad("node information has %d fields; want 13, or 14 with the number of the node", len(f.text))
	}
	return c.addNodes(f, 1)
}

func (c *cfg) addNodes(f *fields, count int) error {
	if c.nodes < 0 {
		return c.bad("nodes come before \"environment information\"; Dimemas wants them after")
	}
	var n Node
	f.skip("architecture")
	n.CPUs = f.count("CPUs", 1)
	n.CPURatio, _ = f.number("CPU ratio").Float64()
	n.IntraNode.Latency = f.latency("latency inside the node")
	f.bandwidth("bandwidth inside the node", &n.IntraNode)
	n.IntraNode.Buses = f.count("buses inside the node", 0)
	n.IntraNode.InputLinks, n.IntraNode.OutputLinks, n.IntraNode.HalfDuplex = f.links("links inside the node")
	n.Latency = f.latency("latency between nodes")
	n.InputLinks, n.OutputLinks, n.HalfDuplex = f.links("links between nodes")
	f.number("latency between machines")
	if f.err != nil {
		return nil
	}
	if c.described += count; c.described > c.nodes {
		return c.bad("more nodes than the %d of the environment", c.nodes)
	}
	if last := len(c.kinds) - 1; last >= 0 && c.kinds[last].Node == n {
		c.kinds[last].count += count
	} else if count > 0 {
		c.kinds = append(c.kinds, nodeKind{n, count})
	}
	return nil
}

// readMapping reads a list with the node of each task.
func (c *cfg) readMapping(f *fields) error {
	if err := c.beginMapping(); err != nil {
		return err
	}
	m := mappingText.FindStringSubmatch(f.raw)
	if m == nil {
		return c.bad("mapping information: want trace, tasks, [n] {node of each task}")
	}
	list := strings.Split(m[3], ",")
	if m[2] != strconv.Itoa(len(list)) || m[1] != m[2] {
		return c.bad("mapping information: %s tasks, [%s] and %d nodes listed; want as many", m[1], m[2], len(list))
	}
	for _, text := range list {
		node, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || node < 0 || node >= max(c.nodes, 0) {
			return c.bad("mapping information: the node %s; want one of the environment's %d, from 0",
				shown(strings.TrimSpace(text)), max(c.nodes, 0))
		}
		c.m.NodeOf = append(c.m.NodeOf, node)
	}
	c.m.Mapping = Listed
	return nil
}

var mappingText = regexp.MustCompile(`^[^,]*,\s*([0-9]+)\s*,\s*\[\s*([0-9]+)\s*\]\s*\{([^{}]*)\}$`)

// beginMapping returns an error when there is a mapping already.
func (c *cfg) beginMapping() error {
	if c.mappingLine != 0 {
		return c.bad("a second mapping, after that of line %d; commq simulates one program", c.mappingLine)
	}
	c.mappingLine = c.line
	return nil
}

// readRule reads one of Dimemas' mapping rules.
func (c *cfg) readRule(f *fields) error {
	if err := c.beginMapping(); err != nil {
		return err
	}
	rule := ""
	if n := len(f.text); n == 1 || n == 2 {
		rule = unquoted(f.text[n-1])
	}
	words := strings.Fields(rule)
	switch {
	case rule == "FILL_NODES":
		c.m.Mapping = Fill
		return nil
	case rule == "INTERLEAVED":
		c.m.Mapping = RoundRobin
		return nil
	case len(words) == 2 && words[1] == "TASKS_PER_NODE":
		n, err := strconv.Atoi(words[0])
		if err == nil && n >= 1 && n <= maxCount {
			c.m.Mapping, c.m.RanksPerNode = PerNode, n
			return nil
		}
	}
	return c.bad(`the mapping is %s; want "FILL_NODES", "n TASKS_PER_NODE" or "INTERLEAVED"`, shown(f.raw))
}

// readFiles reads the names of other files. Dimemas ignores the first two if they are quoted.
func (c *cfg) readFiles(f *fields) error {
	if s := f.text[0]; s != "" && s[0] != '"' {
		return c.bad("the scheduler file %s; commq has only Dimemas' default, FIFO without costs: leave it empty",
			shown(s))
	}
	if s := unquoted(f.text[3]); s != "" {
		return c.bad("the file of random values %s; commq's machines are not random: leave it empty", shown(s))
	}
	c.comms, c.commsLine = unquoted(f.text[2]), c.line
	return nil
}

func (c *cfg) readModule(f *fields) error {
	f.count("event type", 0)
	f.count("event value", 0)
	if f.text[2] != "" && f.text[2][0] == '-' || f.number("ratio").Cmp(big.NewRat(1, 1)) != 0 && f.err == nil {
		return c.bad("modules information: the ratio is %s; a run has no events whose bursts it could change, so "+
			"only 1 is possible", shown(f.text[2]))
	}
	return nil
}

func (c *cfg) readConnection(*fields) error {
	return c.bad("a dedicated connection; they are between machines, and commq simulates one")
}

// fields reads the fields of a record one after the other. It keeps the first error.
type fields struct {
	c    *cfg
	kind string
	raw  string // all fields
	text []string
	next int
	err  error
}

func newFields(c *cfg, kind, raw string) *fields {
	f := &fields{c: c, kind: kind, raw: strings.TrimSpace(raw), text: strings.Split(raw, ",")}
	for i := range f.text {
		f.text[i] = strings.TrimSpace(f.text[i])
	}
	return f
}

func (f *fields) take() string {
	if f.next >= len(f.text) { // the record has too few fields
		return ""
	}
	f.next++
	return f.text[f.next-1]
}

func (f *fields) skip(string) { f.take() }

func (f *fields) wrong(name, found, want string) {
	if f.err == nil {
		f.err = f.c.bad("%s: %s is %s; want %s", f.kind, name, shown(found), want)
	}
}

// machine reads the number of the machine, which must be 0.
func (f *fields) machine() {
	if text := f.take(); text != "0" {
		f.wrong("the machine", text, "0, the only one")
	}
}

// count reads a whole number.
func (f *fields) count(name string, least int) int {
	text := f.take()
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > maxCount {
		f.wrong(name, text, fmt.Sprintf("a whole number from %d to %d", least, maxCount))
		return least
	}
	return n
}

// cfgNumber matches a decimal number that is not negative. Its length is limited so that a file cannot make the
// arithmetic expensive. The limits also make it slow to compile, so that is not done at each start of commq.
var cfgNumber = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\+?[0-9]{0,40}(\.[0-9]{0,100})?([eE][+-]?[0-9]{1,2})?$`)
})

// number reads a number.
func (f *fields) number(name string) *big.Rat {
	text := f.take()
	if cfgNumber().MatchString(text) {
		if x, ok := new(big.Rat).SetString(strings.TrimPrefix(text, "+")); ok {
			return x
		}
	}
	f.wrong(name, text, "a number, 0 or greater")
	return new(big.Rat)
}

// latency reads a time in seconds.
func (f *fields) latency(name string) Picoseconds {
	text := "" // for the message
	if f.next < len(f.text) {
		text = f.text[f.next]
	}
	x := f.number(name)
	x.Mul(x, big.NewRat(perSecond, 1))
	if x.Cmp(big.NewRat(maxLatency*1000, 1)) > 0 {
		f.wrong(name, text, "seconds from 0 to 1000")
		return 0
	}
	return rounded(x.Num(), x.Denom())
}

// megabyte is the number of bytes in Dimemas' MB.
const megabyte = 1 << 20

// bandwidth reads a bandwidth in MB/s; 0 means infinitely fast.
func (f *fields) bandwidth(name string, i *Interconnect) {
	x := f.number(name)
	x.Mul(x, big.NewRat(megabyte, 1))
	if x.Cmp(big.NewRat(maxBandwidth, 1)) > 0 {
		f.wrong(name, f.text[f.next-1], "at most 953674316406 MB/s")
		return
	}
	i.setBandwidth(x)
}

// setBandwidth sets the bandwidth in bytes/s: exactly if two numbers of 62 bits can express it, else the nearest one.
func (i *Interconnect) setBandwidth(x *big.Rat) {
	const most = 1 << 62
	i.BytesPerSecond, i.BytesPer = 0, 0
	if x.Sign() == 0 {
		return
	}
	if num, den := x.Num(), x.Denom(); num.IsInt64() && den.IsInt64() && num.Int64() < most && den.Int64() < most {
		i.BytesPerSecond, i.BytesPer = num.Int64(), den.Int64()
	} else {
		scale := big.NewInt(1)
		scaled := new(big.Rat)
		for range 61 {
			next := new(big.Int).Lsh(scale, 1)
			if s := new(big.Rat).Mul(x, new(big.Rat).SetInt(next)); s.Cmp(new(big.Rat).SetInt64(most-1)) > 0 {
				break
			}
			scale = next
		}
		scaled.Mul(x, new(big.Rat).SetInt(scale))
		i.BytesPerSecond, i.BytesPer = max(int64(rounded(scaled.Num(), scaled.Denom())), 1), scale.Int64()
	}
	if i.BytesPer == 1 {
		i.BytesPer = 0
	}
}

// links reads input and output links. 0 for both means any number, 0 for one of them half duplex.
func (f *fields) links(name string) (in, out int, half bool) {
	in, out = f.count("input "+name, 0), f.count("output "+name, 0)
	if (in == 0) != (out == 0) {
		n := max(in, out)
		return n, n, true
	}
	return in, out, false
}

func unquoted(s string) string {
	return strings.TrimSpace(strings.Trim(strings.TrimSpace(s), `"`))
}

// shown quotes a text for a message, and shortens it.
func shown(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%.*q...", most, s)
	}
	return fmt.Sprintf("%q", s)
}

// readComms reads a communications file, and returns the lines that say something of the machine. Like Dimemas it
// ignores unknown lines: who wrote the configuration may have named any file, and the lines get into manifests.
func (c *cfg) readComms(text string) (taken string, err error) {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		c.line = i + 1
		line = strings.TrimRight(line, "\r")
		known, err := c.readCommsLine(line)
		if err != nil {
			return "", err
		}
		if known {
			b.WriteString(line + "\n")
		}
	}
	return b.String(), nil
}

// readCommsLine reads a line; known is false for one that Dimemas ignores.
func (c *cfg) readCommsLine(line string) (known bool, err error) {
	if rest, ok := strings.CutPrefix(line, "Machine globalop:"); ok {
		w := strings.Fields(rest)
		if len(w) < 6 {
			return true, c.bad("found %s; want Machine globalop: machine operation model size model size", shown(line))
		}
		return true, c.collective(w[0], w[1:6])
	}
	if rest, ok := strings.CutPrefix(line, "Machine policy:"); ok {
		w := strings.Fields(rest)
		if len(w) < 2 || w[0] != "0" {
			return true, c.bad("found %s; want Machine policy: 0 FIFO", shown(line))
		}
		return true, c.policy(w[1])
	}
	if rest, ok := strings.CutPrefix(line, "Policy:"); ok {
		return true, c.policy(strings.TrimSpace(rest))
	}
	if w := strings.Fields(line); len(w) == 6 { // for all machines; the last word, a contention, is ignored
		if _, err := strconv.Atoi(w[0]); err == nil {
			return true, c.collective("0", w[:5])
		}
	}
	return false, nil
}

func (c *cfg) policy(name string) error {
	if name != "FIFO" {
		return c.bad("the policy is %s; commq has only FIFO", shown(name))
	}
	return nil
}

func (c *cfg) collective(machine string, w []string) error {
	op, err := strconv.Atoi(w[0])
	switch {
	case machine != "0":
		return c.bad("the machine is %s; the only one is 0", shown(machine))
	case err != nil || op < 0 || op >= len(dimemasOperations):
		return c.bad("the operation is %s; want a number from 0 to %d", shown(w[0]), len(dimemasOperations)-1)
	}
	in, errIn := model(w[1])
	sizeIn, errSizeIn := size(w[2])
	out, errOut := model(w[3])
	sizeOut, errSizeOut := size(w[4])
	if err := errors.Join(errIn, errSizeIn, errOut, errSizeOut); err != nil {
		return c.bad("operation %d: %w", op, err)
	}
	c.m.SetCollective(dimemasOperations[op], Phases{in, sizeIn, out, sizeOut})
	return nil
}

// cfgFactors are Dimemas' names of the factors.
var cfgFactors = [...]string{"0", "CTE", "LIN", "LOG"}

func model(word string) (Factor, error) {
	i := slices.Index(cfgFactors[:], word)
	if i < 0 {
		return 0, fmt.Errorf("the model is %s; want 0, CTE, LIN or LOG", shown(word))
	}
	return Factor(i), nil
}

func size(word string) (Size, error) {
	i := slices.Index(sizeNames[:], word)
	if i < 0 || Size(i) == CURRENT {
		return 0, fmt.Errorf("the size is %s; want MIN, MAX, MEAN, 2MAX or S+R", shown(word))
	}
	return Size(i), nil
}
