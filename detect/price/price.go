// Package price tells how much time replacing findings by collective operations saves: by simulation on a machine
// (Pricer), or by playing both runs (Measure).
package price

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/commq/commq/detect/replace"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Pricing is the cost of a run on a machine, and what replacements save of it.
type Pricing struct {
	// Machine is the name of the machine.
	Machine string `json:"machine"`
	// Dialect is the dialect of the simulation: paper or dimemas5.
	Dialect string `json:"dialect"`
	// PredictedNs is the time of the run as it is.
	PredictedNs int64 `json:"predicted_ns"`
	// All is the price of all findings replaced together.
	All Price `json:"all"`
	// Withheld is the reason why there are no prices; "" where there are.
	Withheld string `json:"withheld,omitempty"`
	// Warnings are assumptions about the machine behind the prices.
	Warnings []string `json:"warnings,omitempty"`
}

// Price is what replacing findings saves.
type Price struct {
	// ReplacedNs is the predicted time of the replaced run, SavedNs the difference to the time of the run (negative
	// if it takes longer), and Saved that as a fraction. They are nil if prices are withheld or the replaced run cannot
	// be simulated; Problem then says why.
	ReplacedNs *int64   `json:"replaced_ns"`
	SavedNs    *int64   `json:"saved_ns"`
	Saved      *float64 `json:"saved_share"`
	Problem    string   `json:"problem,omitempty"`
	// CalledAs is the algorithm that prices a call of the collective: messages that the machine's description has for
	// it, or NCCL's algorithm and protocol.
	CalledAs string `json:"called_as,omitempty"`
	// Collectives is how many collectives the replaced run has instead of messages; Left is how many instances cannot
	// be replaced.
	Collectives int `json:"collectives"`
	Left        int `json:"left"`
	// Pattern describes how the program does an instance by hand if that is known for other numbers of ranks; else
	// PatternProblem has the reason.
	Pattern        string `json:"pattern,omitempty"`
	PatternProblem string `json:"pattern_problem,omitempty"`
	// AtRanks are the times of one instance, by ascending number of ranks. PaysFrom is the least of these numbers from
	// which on the collective is always faster; nil if it is not faster at the largest.
	AtRanks  []AtRanks `json:"at_ranks,omitempty"`
	PaysFrom *int      `json:"pays_from,omitempty"`
}

// AtRanks is the time of one instance with a number of ranks that do nothing else.
type AtRanks struct {
	// Ranks is the number of ranks.
	Ranks int `json:"ranks"`
	// ByHandNs is the time of the messages; nil if they cannot be simulated.
	ByHandNs *int64 `json:"by_hand_ns"`
	// CalledNs is the time of the collective; nil if it cannot be simulated.
	CalledNs *int64 `json:"called_ns"`
	// Problem is the reason if one of them is not known.
	Problem string `json:"problem,omitempty"`
}

// Pricer simulates a run with and without replacements.
type Pricer struct {
	// Run is the run, and Replaceable the same run with its findings.
	Run         *run.Run
	Replaceable *replace.Run
	// Machine, Program and Options are those of a simulation of the run.
	Machine *models.Machine
	Program *simulate.Program
	Options simulate.Options
}

// Price prices findings, each alone and all together. findings has the indices of each one's groups in Replaceable, and
// ranks are other numbers of ranks to price one instance with.
func (p *Pricer) Price(ctx context.Context, findings [][]int, ranks []int) (*Pricing, []*Price, error) {
	result, err := p.simulate(ctx, p.Program, func(b *schema.Events) *schema.Events { return b })
	if err != nil {
		return nil, nil, fmt.Errorf("simulate %s on %s: %w", p.Run.Name, p.Machine.Name, err)
	}
	base := nanoseconds(result.Time)
	pricing := &Pricing{Machine: p.Machine.Name, Dialect: p.Options.Dialect.String(), PredictedNs: base}
	if pricing.Withheld, pricing.Warnings, err = p.doubts(len(p.Program.Threads)); err != nil {
		return nil, nil, err
	}
	if pricing.Withheld != "" {
		pricing.All.Problem = pricing.Withheld
		return pricing, p.withheld(findings, pricing.Withheld, ranks), nil
	}
	var all []int
	var prices []*Price
	for _, groups := range findings {
		all = append(all, groups...)
		price, replaced, err := p.together(ctx, groups, base)
		if err != nil {
			return nil, nil, err
		}
		price.CalledAs = p.calledAs(groups[0], added(result, replaced))
		p.addRanks(price, groups[0], ranks)
		prices = append(prices, price)
	}
	total, _, err := p.together(ctx, all, base)
	if err != nil {
		return nil, nil, err
	}
	pricing.All = *total
	return pricing, prices, nil
}

// Compare orders prices by what they save, the most first and unknown ones last.
func Compare(a, b *Price) int {
	x, y := a.SavedNs, b.SavedNs
	switch {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return 1
	case y == nil:
		return -1
	}
	return int(max(min(*y-*x, 1), -1))
}

// withheld returns findings without a price for their run. One instance may still have one on other numbers of ranks.
func (p *Pricer) withheld(findings [][]int, reason string, ranks []int) (prices []*Price) {
	for _, groups := range findings {
		price := &Price{Problem: reason, CalledAs: p.calledAs(groups[0], nil)}
		p.addRanks(price, groups[0], ranks)
		prices = append(prices, price)
	}
	return prices
}

// calledAs names the algorithm that prices a call of a group's collective. byNCCL are those by which NCCL did the
// calls, if it did.
func (p *Pricer) calledAs(group int, byNCCL []simulate.NCCLCount) string {
	operation := p.Replaceable.Operation(group)
	switch {
	case !p.Machine.NCCL.Does(operation):
		return p.Machine.Collectives[operation].String()
	case len(byNCCL) == 0:
		return "what NCCL takes"
	}
	var ways []string
	for _, n := range byNCCL {
		ways = append(ways, fmt.Sprint(n.Algorithm, " ", n.Protocol))
	}
	return "NCCL's " + strings.Join(ways, " and ")
}

// added returns the collectives that NCCL does in the replaced run and not in the run; nil for a replaced run that
// cannot be simulated.
func added(before, after *simulate.Result) (more []simulate.NCCLCount) {
	if after == nil {
		return nil
	}
	for _, n := range after.NCCL {
		for _, old := range before.NCCL {
			if old.Algorithm == n.Algorithm && old.Protocol == n.Protocol {
				n.Collectives -= old.Collectives
			}
		}
		if n.Collectives > 0 {
			more = append(more, n)
		}
	}
	return more
}

// doubts returns why nothing can be priced with count ranks on the machine; "" if it can be, and then warnings of what
// its description leaves out of the prices.
func (p *Pricer) doubts(count int) (withheld string, warnings []string, err error) {
	nodes, nodeOf, err := p.Machine.Place(count)
	if err != nil {
		return "", nil, err
	}
	ranks := make([]int, nodes)
	for _, n := range nodeOf {
		ranks[n]++
	}
	boundedLinks := true
	for i, n := range ranks {
		node := p.Machine.NodeAt(i)
		if n > node.CPUs {
			return fmt.Sprintf("%s share %s: real ranks poll while they wait, which takes CPU time from others, and "+
				"the model's do not. Give each a CPU (--set cpus_per_node=%d), or measure with --replay",
				units.Count(int64(n), "rank"), units.Count(int64(node.CPUs), "CPU"), n), nil, nil
		}
		boundedLinks = boundedLinks && (n < 2 || node.IntraNode.OutputLinks > 0) &&
			(nodes < 2 || node.OutputLinks > 0)
	}
	if !boundedLinks && p.Machine.Network.Buses == 0 {
		warnings = append(warnings, "the machine has no bound on links or buses, so messages of one rank to several "+
			"arrive at once; --set output_links=1 (or intra_node.output_links=1) sends them one after the other")
	}
	return "", warnings, nil
}

// together prices findings replaced together in a run that takes baseNs, and returns the replaced run's simulation. A
// replaced run that cannot go on is a price with a Problem.
func (p *Pricer) together(ctx context.Context, findings []int, baseNs int64) (*Price, *simulate.Result, error) {
	plan := p.Replaceable.Plan(findings)
	price := &Price{Left: len(plan.Left)}
	for _, f := range findings {
		price.Collectives += plan.Collectives(f)
	}
	rewriter, out := plan.Rewriter(), &schema.Events{}
	r, err := p.simulate(ctx, withComms(p.Program, plan.Comms()), func(b *schema.Events) *schema.Events {
		out.Resize(0)
		rewriter.Events(b, out)
		return out
	})
	var reading *readError
	if errors.As(err, &reading) {
		return nil, nil, reading.err
	}
	if err != nil {
		price.Problem = err.Error()
		return price, nil, nil
	}
	ns := nanoseconds(r.Time)
	saved := baseNs - ns
	price.ReplacedNs, price.SavedNs = &ns, &saved
	if baseNs > 0 {
		part := float64(saved) / float64(baseNs)
		price.Saved = &part
	}
	return price, r, nil
}

// withComms returns a program with additional communicators; rows of one communicator follow each other.
func withComms(from *simulate.Program, rows []schema.Comm) *simulate.Program {
	program := *from
	program.Comms = slices.Clone(program.Comms)
	for _, c := range rows {
		if last := program.Comms[len(program.Comms)-1].ID; last != c.Comm {
			program.Comms = append(program.Comms, run.Comm{ID: c.Comm})
		}
		comm := &program.Comms[len(program.Comms)-1]
		comm.Members = append(comm.Members, c.WorldRank)
	}
	return &program
}

// readError is an error of reading the run, as opposed to one of the simulation.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// simulate simulates a program with the rows of the run as change returns them, and returns the result.
func (p *Pricer) simulate(ctx context.Context, program *simulate.Program,
	change func(*schema.Events) *schema.Events) (*simulate.Result, error) {
	rows, err := p.Run.EventEpochs(simulate.Columns...)
	if err != nil {
		return nil, &readError{err}
	}
	var reading error
	r, err := simulate.Simulate(p.Machine, program, &p.Options, func(add func(*schema.Events) error) error {
		err := rows.Next(ctx, func(b *schema.Events) error { return add(change(b)) })
		if !errors.Is(err, io.EOF) {
			reading = err
		}
		return err
	})
	if reading != nil {
		return nil, &readError{reading}
	}
	return r, err
}

// nanoseconds rounds a time.
func nanoseconds(t models.Picoseconds) int64 { return int64((t + 500) / 1000) }
