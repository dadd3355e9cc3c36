// Package calibrate learns a machine from what a run measured: latency and bandwidth from the times of messages, the eager
// threshold from sends whose receiver came late, the collectives' phases from how long they took. docs/method/calibrate.md has the
// method and its limits.
package calibrate

import (
	"errors"
	"fmt"
	"math"

	"github.com/commq/commq/models"
)

// Eager is what sends of one size did whose receive was posted long after they began.
type Eager struct {
	// Bytes is the size, Returned how many were over before the post, Waited how many were not.
	Bytes, Returned, Waited int64
}

// Threshold is from which size on sends wait for their receiver.
type Threshold struct {
	// Bytes is the least size that waits; models.NoThreshold: none waited. EagerBytes is the largest that did not, -1 where all
	// waited: the library's threshold is above it, and at most Bytes.
	Bytes      int64 `json:"bytes"`
	EagerBytes int64 `json:"eager_bytes"`
	// Sends is how many there were, Against how many of them did otherwise.
	Sends   int64 `json:"sends"`
	Against int64 `json:"against"`
}

// FindThreshold finds the threshold that the fewest sends speak against; nil where there are no sends. sizes are in any order.
func FindThreshold(sizes []Eager) *Threshold {
	t := &Threshold{Bytes: models.NoThreshold, EagerBytes: -1}
	for _, s := range sizes {
		t.Sends += s.Returned + s.Waited
	}
	if t.Sends == 0 {
		return nil
	}
	against := func(threshold int64) (n int64) {
		for _, s := range sizes {
			if s.Bytes >= threshold {
				n += s.Returned
			} else {
				n += s.Waited
			}
		}
		return n
	}
	t.Against = against(t.Bytes)
	for _, s := range sizes {
		if n := against(s.Bytes); n < t.Against || n == t.Against && t.Bytes != models.NoThreshold && s.Bytes < t.Bytes {
			t.Bytes, t.Against = s.Bytes, n
		}
	}
	for _, s := range sizes {
		if s.Bytes < t.Bytes && s.Returned > 0 {
			t.EagerBytes = max(t.EagerBytes, s.Bytes)
		}
	}
	return t
}

// Input is what a run measured.
type Input struct {
	// Name is the run's, Hosts how many machines it ran on, and RanksPerHost the most on one of them.
	Name         string
	Hosts        int
	RanksPerHost int
	// CPUsPerNode is the machine's; 0: RanksPerHost.
	CPUsPerNode int
	// Inside and Between are how long messages took inside a host and between hosts.
	Inside, Between []Point
	// Eager has the sends whose receiver came late, of both.
	Eager []Eager
	// Collectives are those of the run; nil: they are left as they are.
	Collectives *Collectives
	// CycleNs is the real cycle time of the CPUs; 0: not measured.
	CycleNs float64
	// Quantile is which time stands for equal operations: the one that was taken for the messages.
	Quantile Quantile
	// Pieces allows bandwidths that depend on the size.
	Pieces bool
}

// Calibration is a machine, and what it was learnt from.
type Calibration struct {
	// Inside and Between are the lines of messages inside a host and between hosts; nil where there were none.
	Inside  *Fit `json:"intra_node"`
	Between *Fit `json:"network"`
	// Threshold is the eager threshold; nil: no send says anything about it.
	Threshold *Threshold `json:"eager_threshold"`
	// CycleNs is the real cycle time of the CPUs; 0: not measured.
	CycleNs float64 `json:"cycle_ns,omitempty"`
	// Operations are the collective operations.
	Operations []Operation `json:"-"`
	// Warnings say what the run could not tell, a sentence each.
	Warnings []string `json:"warnings"`
	// Machine is what commq simulate takes.
	Machine *models.Machine `json:"-"`
}

// Calibrate learns a machine. It is an error when the run has no messages from which latency and bandwidth can be told.
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
		return nil, fmt.Errorf("run %q has no messages of two sizes or more whose receiver was waiting, and they are needed to tell latency from bandwidth; measure with commq calibrate --launch, or take a run with more", in.Name)
	}
	m := models.New(in.Name)
	m.CPUsPerNode = max(in.CPUsPerNode, in.RanksPerHost, 1)
	if in.CPUsPerNode > 0 {
		m.CPUsPerNode = in.CPUsPerNode
	}
	if c.Between == nil {
		m.Nodes = 1
		c.Warnings = append(c.Warnings, "The run was on one host: the machine is one node, and network has what was measured inside it, which is what collectives go by.")
	} else if c.Inside == nil && m.CPUsPerNode > 1 {
		c.Warnings = append(c.Warnings, "No messages inside a node were measured: intra_node has what was measured between nodes.")
	}
	m.Network, m.IntraNode = c.Between.or(c.Inside).interconnect(), c.Inside.or(c.Between).interconnect()
	if c.Threshold = FindThreshold(in.Eager); c.Threshold != nil {
		m.EagerThresholdBytes, m.EagerThresholdGiven = c.Threshold.Bytes, true
	} else {
		c.Warnings = append(c.Warnings, "No receive was posted late enough to tell the eager threshold: no send waits for its receiver.")
	}
	if in.Collectives != nil {
		c.Operations = in.Collectives.Fit(&m.Network, m.Collectives, in.Quantile)
		for _, o := range c.Operations {
			m.SetCollective(o.Call, o.Phases)
		}
	}
	m.CycleNs, c.CycleNs = in.CycleNs, in.CycleNs
	c.Machine = m
	return c, nil
}

// fit fits a line where there are messages of two sizes.
func (c *Calibration) fit(points []Point, pieces bool, where string) (*Fit, error) {
	if len(points) == 0 {
		return nil, nil
	}
	f, err := FitLine(points, pieces)
	if errors.Is(err, ErrOneSize) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("All messages %s whose time is known have %d bytes: latency and bandwidth cannot be told apart there.", where, points[0].Bytes))
		return nil, nil
	}
	if err == nil && f.ErrorTypical > poorFit {
		c.Warnings = append(c.Warnings, fmt.Sprintf("The times of messages %s are no line: it is off by %.0f %% typically. Look at the residuals; a run of commq calibrate --launch on an idle machine says more.", where, 100*f.ErrorTypical))
	}
	return f, err
}

// poorFit is the typical relative error from which on a fit has a warning.
const poorFit = 0.25

// or is the fit, or where there is none the other one.
func (f *Fit) or(other *Fit) *Fit {
	if f == nil {
		return other
	}
	return f
}

// interconnect is the line as a machine has it.
func (f *Fit) interconnect() models.Interconnect {
	l := &f.Line
	i := models.Interconnect{Latency: picoseconds(l.LatencyNs), BytesPerSecond: BytesPerSecond(l.NsPerByte)}
	for k, p := range l.Pieces {
		i.Pieces[k] = models.Piece{AboveBytes: p.AboveBytes, Step: picoseconds(p.StepNs), BytesPerSecond: BytesPerSecond(p.NsPerByte)}
	}
	return i
}

func picoseconds(ns float64) models.Picoseconds { return models.Picoseconds(math.Round(ns * 1000)) }

// Notes are comments for the machine's YAML, by key, which say where each value is from.
func (c *Calibration) Notes(source string) map[string][]string {
	notes := map[string][]string{"": append([]string{"Learnt by commq calibrate from " + source + "."}, c.Warnings...)}
	say := func(key string, f *Fit, where string) {
		if f == nil {
			return
		}
		notes[key] = append(notes[key], fmt.Sprintf("From %d messages of %d sizes, %d to %d bytes, %s: typical error %.1f %%, largest %.1f %%.",
			f.Messages, len(f.Residuals), f.MinBytes, f.MaxBytes, where, 100*f.ErrorTypical, 100*f.ErrorMax))
		if len(f.Line.Pieces) > 0 {
			notes[key] = append(notes[key], fmt.Sprintf("In one piece: latency_ns %.3f, bandwidth_bytes_per_s %s, typical error %.1f %%.",
				f.Single.LatencyNs, bandwidth(f.Single.NsPerByte), 100*f.SingleErrorTypical))
		}
	}
	if c.CycleNs > 0 {
		notes["cycle_ns"] = []string{"The least time of a chain of additions, one for a cycle, while floating-point instructions were executed and nothing was missed in a cache."}
	}
	say("intra_node", c.Inside, "inside a node")
	say("network", c.Between, "between nodes")
	if c.Between == nil {
		say("network", c.Inside, "inside a node")
	}
	if t := c.Threshold; t != nil {
		text := fmt.Sprintf("From %d sends whose receive was posted late, of which %d did otherwise.", t.Sends, t.Against)
		if t.EagerBytes >= 0 {
			text += fmt.Sprintf(" Sends of %d bytes did not wait.", t.EagerBytes)
		} else {
			text += " All waited: the library's threshold may be lower."
		}
		notes["eager_threshold_bytes"] = []string{text}
	}
	if len(c.Operations) > 0 {
		notes["collectives"] = []string{"The model of Girona et al. (Tables 1 and 2) that fits what was measured; off by: a typical point's factor."}
	}
	for _, o := range c.Operations {
		notes[o.Call.String()] = []string{fmt.Sprintf("%d on %d to %d ranks, %d to %d bytes: off by %.2f (Table 3 of the paper: %.2f)",
			o.Count, o.MinRanks, o.MaxRanks, o.MinBytes, o.MaxBytes, o.Factor, o.Table3Factor)}
	}
	return notes
}

func bandwidth(nsPerByte float64) string {
	if b := BytesPerSecond(nsPerByte); b != 0 {
		return fmt.Sprint(b)
	}
	return "infinite"
}
