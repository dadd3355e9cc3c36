// Package calibrate learns a machine from the times of a run: latency and bandwidth from its messages, the eager
// threshold from sends whose receiver was late, and the phases of collectives from how long they took. The method and
// its limits are in docs/method/calibrate.md.
package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models"
)

// Eager counts the sends of one size whose receive was posted long after they began.
type Eager struct {
	// Bytes is the size, Returned the number of sends that ended before the receive was posted, and Waited the number
	// of the others.
	Bytes, Returned, Waited int64
}

// Threshold is the size from which sends wait for their receiver.
type Threshold struct {
	// Bytes is the smallest size that waits, 2^63-1 when none does. EagerBytes is the largest size that
	// does not, -1 when all wait. The library's threshold is above EagerBytes and at most Bytes.
	Bytes      int64 `json:"bytes"`
	EagerBytes int64 `json:"eager_bytes"`
	// Sends is the number of sends, and Against the number of those that behaved otherwise.
	Sends   int64 `json:"sends"`
	Against int64 `json:"against"`
}

// returnsCount is how many sends that waited a send counts for that returned before its receive was posted: to wait
// it is enough that a rank has lost its CPU.
const returnsCount = 3

// FindThreshold finds the threshold that the fewest sends contradict. It returns nil when there are no sends. sizes may
// be in any order.
func FindThreshold(sizes []Eager) *Threshold {
	t := &Threshold{Bytes: models.NoThreshold, EagerBytes: -1}
	for _, s := range sizes {
		t.Sends += s.Returned + s.Waited
	}
	if t.Sends == 0 {
		return nil
	}
	against := func(threshold int64) (returned, waited int64) {
		for _, s := range sizes {
			if s.Bytes >= threshold {
				returned += s.Returned
			} else {
				waited += s.Waited
			}
		}
		return returned, waited
	}
	weigh := func(threshold int64) int64 {
		returned, waited := against(threshold)
		return returnsCount*returned + waited
	}
	least := weigh(t.Bytes)
	for _, s := range sizes {
		if n := weigh(s.Bytes); n < least || n == least && t.Bytes != models.NoThreshold && s.Bytes < t.Bytes {
			t.Bytes, least = s.Bytes, n
		}
	}
	returned, waited := against(t.Bytes)
	t.Against = returned + waited
	for _, s := range sizes {
		if s.Bytes < t.Bytes && s.Returned > 0 {
			t.EagerBytes = max(t.EagerBytes, s.Bytes)
		}
	}
	return t
}

// Input is the measurements of a run.
type Input struct {
	// Name is the run's name, Hosts the number of its hosts, and RanksPerHost the most ranks on one of them.
	Name         string
	Hosts        int
	RanksPerHost int
	// CPUsPerNode is that of the machine; 0 means RanksPerHost.
	CPUsPerNode int
	// Inside and Between are the times of messages inside a host and between hosts.
	Inside, Between []Point
	// Eager has the sends whose receiver was late, inside hosts and between them.
	Eager []Eager
	// Collectives are the collective operations of the run; nil means that the machine's are not fitted.
	Collectives *Collectives
	// Nodes has the node of each rank. Rounds are sets of messages that were sent at once. Sharing is true if ranks
	// shared CPUs, so that messages may have waited for those.
	Nodes   []int32
	Rounds  [][]Transfer
	Sharing bool
	// CyclesNs are samples of the real cycle time of the CPUs in ns. StatedMHz is their clock by the operating system,
	// 0 if unknown, and StatedTop true if that is the highest one.
	CyclesNs  []float64
	StatedMHz int64
	StatedTop bool
	// Quantile is the quantile of the times of equal operations that represents them, as for the messages.
	Quantile Quantile
	// Pieces allows bandwidths that depend on the size.
	Pieces bool
}

// Calibration is a machine, and the fits that it comes from.
type Calibration struct {
	// Inside and Between are the fits of messages inside a host and between hosts; nil when there were none.
	Inside  *Fit `json:"intra_node"`
	Between *Fit `json:"network"`
	// Threshold is the eager threshold; nil if no send shows it.
	Threshold *Threshold `json:"eager_threshold"`
	// InsideContention and BetweenContention are the links and buses inside nodes and between them; nil if no messages
	// were sent at once there.
	InsideContention  *Contention `json:"intra_node_contention"`
	BetweenContention *Contention `json:"network_contention"`
	// CycleNs is the real cycle time of the CPUs in ns; 0 means not measured. Cycle tells more.
	CycleNs float64 `json:"cycle_ns,omitempty"`
	Cycle   *Cycle  `json:"cycle"`
	// Operations are the collective operations.
	Operations []Operation `json:"-"`
	// Warnings are sentences about properties that could not be learnt from the run.
	Warnings []string `json:"warnings"`
	// Machine is the machine for commq simulate.
	Machine *models.Machine `json:"-"`
}

// Calibrate learns a machine. It is an error when the run has no messages that tell latency from bandwidth.
func Calibrate(in *Input) (*Calibration, error) {
	c := &Calibration{Warnings: []string{}}
	var err error
	if c.Inside, err = c.fit(in.Inside, in.Pieces, "inside a node"); err != nil {
		return nil, err
	}
	if c.Between, err = c.fit(in.Between, in.Pieces, "between nodes"); err != nil {
		return nil, err
	}
	if c.Inside == nil && c.Between == nil {
		return nil, fmt.Errorf("run %q has no messages of two or more sizes whose receiver was waiting, which are needed to tell latency from bandwidth; measure with commq calibrate --launch, or use a run that has them", in.Name)
	}
	m := models.New(in.Name)
	m.CPUsPerNode = max(in.CPUsPerNode, in.RanksPerHost, 1)
	if in.CPUsPerNode > 0 {
		m.CPUsPerNode = in.CPUsPerNode
	}
	if c.Between == nil {
		m.Nodes = 1
		c.Warnings = append(c.Warnings, "The run was on one host: the machine has one node, and network, which "+
			"collectives use, has the values measured inside it.")
	} else if c.Inside == nil && m.CPUsPerNode > 1 {
		c.Warnings = append(c.Warnings, "No messages inside a node were measured: intra_node has the values measured "+
			"between nodes.")
	}
	m.Network, m.IntraNode = cmp.Or(c.Between, c.Inside).interconnect(), cmp.Or(c.Inside, c.Between).interconnect()
	if c.Threshold = FindThreshold(in.Eager); c.Threshold != nil {
		m.EagerThresholdBytes, m.EagerThresholdGiven = c.Threshold.Bytes, true
	} else {
		c.Warnings = append(c.Warnings, "No receive was posted late enough to find the eager threshold: on the "+
			"machine no send waits for its receiver.")
	}
	c.learnContention(in, m) // before the collectives, which take buses
	if in.Collectives != nil {
		c.Operations = in.Collectives.Fit(&m.Network, m.Collectives, in.Quantile)
		for _, o := range c.Operations {
			m.SetCollective(o.Call, o.Phases)
		}
		c.warnOfPoorCosts()
	}
	c.learnCycle(in, m)
	c.Machine = m
	return c, nil
}

// warnOfPoorCosts warns of the collectives whose costs are far from what was measured.
func (c *Calibration) warnOfPoorCosts() {
	var poor []string
	for _, o := range c.Operations {
		if o.Factor > poorFactor {
			poor = append(poor, fmt.Sprintf("%s (%s)", o.Call, units.Number(o.Factor)))
		}
	}
	if len(poor) > 0 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("The costs of these collectives are off by a typical factor of "+
			"more than %d: %s.", poorFactor, strings.Join(poor, ", ")))
	}
}

// learnCycle learns the cycle time.
func (c *Calibration) learnCycle(in *Input, m *models.Machine) {
	var why string
	if c.Cycle, why = FindCycle(in.CyclesNs, in.StatedMHz, in.StatedTop); c.Cycle != nil {
		m.CycleNs, c.CycleNs = c.Cycle.Ns, c.Cycle.Ns
	} else if why != "" {
		c.Warnings = append(c.Warnings, why)
	}
}

// learnContention learns links and buses, and warns of what the run does not show.
func (c *Calibration) learnContention(in *Input, m *models.Machine) {
	switch {
	case len(in.Rounds) == 0:
		return
	case in.Sharing:
		c.Warnings = append(c.Warnings, "Ranks shared CPUs, so that messages waited for those too: links and buses "+
			"are not learnt, and are unlimited on the machine. Start at most as many ranks as CPUs.")
		return
	}
	for _, part := range []struct {
		where  string
		inside bool
		fit    *Fit
		to     **Contention
		link   *models.Interconnect
	}{{"inside a node", true, c.Inside, &c.InsideContention, &m.IntraNode},
		{"between nodes", false, c.Between, &c.BetweenContention, &m.Network}} {
		if part.fit == nil {
			continue
		}
		found, err := FindContention(in.Rounds, in.Nodes, part.inside, part.fit.Line.LatencyNs, in.Quantile)
		switch {
		case err != nil:
			c.Warnings = append(c.Warnings, fmt.Sprintf("Messages %s: %v. Links and buses are unlimited on the "+
				"machine.", part.where, err))
		case found == nil:
			c.Warnings = append(c.Warnings, fmt.Sprintf("No messages were sent at once %s: links and buses are "+
				"unlimited there.", part.where))
		default:
			*part.to = found
			found.set(part.link)
			if open := found.undecided(); open != "" {
				c.Warnings = append(c.Warnings, fmt.Sprintf("Messages %s do not decide %s. Of what fits their times "+
					"the machine has the fewest limits: %s.", part.where, open, found.limitsText()))
			}
		}
	}
}

// fit fits a line. It returns nil when there are no messages of two sizes.
func (c *Calibration) fit(points []Point, pieces bool, where string) (*Fit, error) {
	if len(points) == 0 {
		return nil, nil
	}
	f, err := FitLine(points, pieces)
	if errors.Is(err, ErrOneSize) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("All timed messages %s have %d bytes: latency and bandwidth "+
			"cannot be told apart there.", where, points[0].Bytes))
		return nil, nil
	}
	if err == nil && f.ErrorTypical > poorFit {
		c.Warnings = append(c.Warnings, fmt.Sprintf("A line does not fit the times of messages %s: its typical error is %.0f %%. Look at the residuals; commq calibrate --launch on an idle machine measures better.", where, 100*f.ErrorTypical))
	}
	return f, err
}

// poorFit is the typical relative error above which a fit gets a warning.
const poorFit = 0.25

// poorFactor is the typical factor above which the costs of a collective get a warning.
const poorFactor = 3

// interconnect returns the line as the interconnect of a machine.
func (f *Fit) interconnect() models.Interconnect {
	l := &f.Line
	i := models.Interconnect{Latency: picoseconds(l.LatencyNs), BytesPerSecond: BytesPerSecond(l.NsPerByte)}
	for k, p := range l.Pieces {
		i.Pieces[k] = models.Piece{AboveBytes: p.AboveBytes, Step: picoseconds(p.StepNs),
			BytesPerSecond: BytesPerSecond(p.NsPerByte)}
	}
	return i
}

func picoseconds(ns float64) models.Picoseconds { return models.Picoseconds(math.Round(ns * 1000)) }

// Notes returns comments for the machine's YAML, by key, which tell where each value comes from.
func (c *Calibration) Notes(source string) map[string][]string {
	notes := map[string][]string{"": append([]string{"Learnt by commq calibrate from " + source + "."}, c.Warnings...)}
	describe := func(key string, f *Fit, where string) {
		if f == nil {
			return
		}
		notes[key] = append(notes[key], fmt.Sprintf("From %d messages of %d sizes, %d to %d bytes, %s: typical error "+
			"%.1f %%, largest %.1f %%.", f.Messages, len(f.Residuals), f.MinBytes, f.MaxBytes, where,
			100*f.ErrorTypical, 100*f.ErrorMax))
		if len(f.Line.Pieces) > 0 {
			notes[key] = append(notes[key], fmt.Sprintf("In one piece: latency_ns %.3f, bandwidth_bytes_per_s %s, "+
				"typical error %.1f %%.", f.Single.LatencyNs, bandwidth(f.Single.NsPerByte), 100*f.SingleErrorTypical))
		}
	}
	if k := c.Cycle; k != nil {
		notes["cycle_ns"] = []string{k.note()}
	}
	for key, found := range map[string]*Contention{"intra_node": c.InsideContention, "network": c.BetweenContention} {
		if found != nil {
			notes[key] = append(notes[key], found.note())
		}
	}
	describe("intra_node", c.Inside, "inside a node")
	describe("network", c.Between, "between nodes")
	if c.Between == nil {
		describe("network", c.Inside, "inside a node")
	}
	if t := c.Threshold; t != nil {
		text := fmt.Sprintf("From %d sends whose receive was posted late; %d of them behaved otherwise.", t.Sends,
			t.Against)
		if t.EagerBytes >= 0 {
			text += fmt.Sprintf(" Sends of %d bytes did not wait.", t.EagerBytes)
		} else {
			text += " All waited: the library's threshold may be lower."
		}
		notes["eager_threshold_bytes"] = []string{text}
	}
	if len(c.Operations) > 0 {
		notes["collectives"] = []string{"The phases of Girona et al. (Tables 1 and 2) that fit the measured times " +
			"best; \"off by\" is the typical factor between model and measurement."}
	}
	for _, o := range c.Operations {
		notes[o.Call.String()] = []string{fmt.Sprintf("%d on %d to %d ranks, %d to %d bytes: off by %.2f (Table 3 of "+
			"the paper: %.2f)", o.Count, o.MinRanks, o.MaxRanks, o.MinBytes, o.MaxBytes, o.Factor, o.Table3Factor)}
	}
	return notes
}

func bandwidth(nsPerByte float64) string {
	if b := BytesPerSecond(nsPerByte); b != 0 {
		return fmt.Sprint(b)
	}
	return "infinite"
}
