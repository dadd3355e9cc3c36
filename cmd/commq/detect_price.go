package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/spf13/cobra"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// priceOptions are the flags that say what findings are priced on.
type priceOptions struct {
	machine string   // --machine
	dialect string   // --dialect
	set     []string // --set
	ranks   []int    // --ranks
}

func (o *priceOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.machine, "machine", "", "price each finding on this machine: a YAML file, a configuration of Dimemas, or one of "+strings.Join(models.Names(), ", "))
	f.StringVar(&o.dialect, "dialect", "", "with --machine: how messages and collectives behave: "+strings.Join(simulate.Dialects, ", ")+" (default: dimemas5 for a configuration of Dimemas, else paper)")
	f.StringArrayVar(&o.set, "set", nil, "with --machine: change a `KEY=VALUE` of it; several times for several")
	f.IntSliceVar(&o.ranks, "ranks", nil, "with --machine: also what one instance takes with these numbers of ranks, where it is known how it goes then")
	register(c, fixed(models.Names(), cobra.ShellCompDirectiveDefault), "machine")
	complete(c, "dialect", simulate.Dialects...)
	completeNothing(c, "set", "ranks")
}

// check looks at what needs no run.
func (o *priceOptions) check() error {
	if o.machine == "" {
		for name, given := range map[string]bool{"--dialect": o.dialect != "", "--set": len(o.set) > 0, "--ranks": len(o.ranks) > 0} {
			if given {
				return fmt.Errorf("%s: it is for prices; name the machine with --machine", name)
			}
		}
	}
	for _, p := range o.ranks {
		if p < 2 {
			return fmt.Errorf("--ranks %d: want 2 or more", p)
		}
	}
	return nil
}

// printedPricing is what findings cost on a machine.
type printedPricing struct {
	Machine string `json:"machine"`
	Dialect string `json:"dialect"`
	// PredictedNs is the time of the run as it is.
	PredictedNs int64 `json:"predicted_ns"`
	// All is the run with all findings replaced.
	All printedPrice `json:"all"`
	// Warnings say what of the machine the prices hang on.
	Warnings []string `json:"warnings,omitempty"`
}

// printedPrice is what it brings to replace a finding.
type printedPrice struct {
	// ReplacedNs is the predicted time of the replaced run, SavedNs what it is less than that of the run, Saved the part of it. They are
	// not there when the replaced run cannot be simulated: Problem says why.
	ReplacedNs *int64   `json:"replaced_ns"`
	SavedNs    *int64   `json:"saved_ns"`
	Saved      *float64 `json:"saved"`
	Problem    string   `json:"problem,omitempty"`
	// Collectives are put in place; Left instances stay, because they cannot be.
	Collectives int `json:"collectives"`
	Left        int `json:"left"`
	// Pattern is how an instance is done, where it is known how it goes with other numbers of ranks, else PatternProblem says why not;
	// AtRanks what one takes. PaysFrom is the least of these numbers from which on the collective is faster at each.
	Pattern        string           `json:"pattern,omitempty"`
	PatternProblem string           `json:"pattern_problem,omitempty"`
	AtRanks        []printedAtRanks `json:"at_ranks,omitempty"`
	PaysFrom       *int             `json:"pays_from,omitempty"`
}

// printedAtRanks is what one instance takes with a number of ranks.
type printedAtRanks struct {
	Ranks    int    `json:"ranks"`
	ByHandNs *int64 `json:"by_hand_ns"`
	CalledNs *int64 `json:"called_ns"`
	Problem  string `json:"problem,omitempty"`
}

// pricing simulates a run with and without what was found in it.
type pricing struct {
	*runSimulation
	replacement *replacement
	printed     *printedDetection
}

// price prices what was found, and sorts it by what it saves.
func (p *printedDetection) price(ctx context.Context, a *app, dir string, o *priceOptions) error {
	s, err := (&simulateOptions{run: dir, machine: o.machine, dialect: o.dialect, set: o.set}).simulation(ctx, a)
	if err != nil {
		return err
	}
	w := &pricing{runSimulation: s, replacement: &replacement{dir: dir, name: s.name, manifest: s.manifest}, printed: p}
	if w.replacement.findings, err = p.replaceable(); err != nil {
		return err
	}
	if err := w.replacement.read(ctx); err != nil {
		return err
	}
	base, err := s.simulate(ctx, s.machine)
	if err != nil {
		return fmt.Errorf("simulate %s on %s: %w", s.name, s.machine.Name, err)
	}
	p.Pricing = &printedPricing{Machine: s.machine.Name, Dialect: s.options.Dialect.String(), PredictedNs: inNs(base.Time)}
	p.Pricing.Warnings = w.warnings()
	var all []int
	for i := range p.Findings {
		all = append(all, i)
		price, err := w.of(ctx, []int{i})
		if err != nil {
			return err
		}
		w.atRanks(price, i, o.ranks)
		p.Findings[i].Price = price
	}
	one, err := w.of(ctx, all)
	if err != nil {
		return err
	}
	p.Pricing.All = *one
	slices.SortStableFunc(p.Findings, func(a, b printedFinding) int {
		x, y := a.Price.SavedNs, b.Price.SavedNs
		switch {
		case x == nil && y == nil:
			return 0
		case x == nil:
			return 1
		case y == nil:
			return -1
		}
		return int(max(min(*y-*x, 1), -1))
	})
	return nil
}

// warnings say what is not in the prices.
func (w *pricing) warnings() (out []string) {
	nodes, of, err := w.machine.Place(len(w.program.Threads))
	if err != nil {
		return nil
	}
	on := make([]int, nodes)
	for _, n := range of {
		on[n]++
	}
	shared, links := false, true
	for i, n := range on {
		node := w.machine.NodeAt(i)
		shared = shared || n > node.CPUs
		links = links && (n < 2 || node.IntraNode.OutputLinks > 0)
		links = links && (nodes < 2 || node.OutputLinks > 0)
	}
	if shared {
		out = append(out, "ranks share CPUs: what those that wait take of them, by polling, is in no price")
	}
	if !links && w.machine.Network.Buses == 0 {
		out = append(out, "the machine has no bound on links or buses: what a rank sends to several at once arrives at once; --set output_links=1 (or intra_node.output_links=1) sends one after the other")
	}
	return out
}

// of prices some findings, replaced together. That the replaced run cannot go on is part of the answer.
func (w *pricing) of(ctx context.Context, which []int) (*printedPrice, error) {
	plan := w.replacement.run.Plan(which)
	p := &printedPrice{Left: len(plan.Left)}
	for _, f := range which {
		p.Collectives += plan.Collectives(f)
	}
	rows, err := writer.ReadEpochs(w.dir, &schema.EventsTable, eventRows, simulate.Columns...)
	if err != nil {
		return nil, err
	}
	rewriter, out := plan.Rewriter(), &schema.Events{}
	program := *w.program
	program.Comms = slices.Clone(program.Comms)
	for _, c := range plan.Comms() {
		if last := program.Comms[len(program.Comms)-1].ID; last != c.Comm {
			program.Comms = append(program.Comms, simulate.Comm{ID: c.Comm})
		}
		k := &program.Comms[len(program.Comms)-1]
		k.Members = append(k.Members, c.WorldRank)
	}
	var reading error
	r, err := simulate.Simulate(w.machine, &program, &w.options, func(add func(*schema.Events) error) error {
		err := rows.Next(ctx, func(b schema.Batch) error {
			out.Resize(0)
			rewriter.Events(b.(*schema.Events), out)
			return add(out)
		})
		if !errors.Is(err, io.EOF) {
			reading = err
		}
		return err
	})
	if reading != nil {
		return nil, reading
	}
	if err != nil {
		p.Problem = err.Error()
		return p, nil
	}
	ns := inNs(r.Time)
	saved := w.printed.Pricing.PredictedNs - ns
	p.ReplacedNs, p.SavedNs = &ns, &saved
	if whole := w.printed.Pricing.PredictedNs; whole > 0 {
		part := float64(saved) / float64(whole)
		p.Saved = &part
	}
	return p, nil
}

// atRanks says what an instance takes with other numbers of ranks.
func (w *pricing) atRanks(p *printedPrice, finding int, ranks []int) {
	if len(ranks) == 0 {
		return
	}
	pattern, err := w.replacement.run.Pattern(finding)
	if err != nil {
		p.PatternProblem = err.Error()
		return
	}
	p.Pattern = pattern.String()
	sorted := slices.Clone(ranks)
	slices.Sort(sorted)
	for _, n := range slices.Compact(sorted) {
		at := printedAtRanks{Ranks: n}
		byHand, called, err := pattern.Rows(n)
		if err == nil {
			var problems [2]error
			at.ByHandNs, problems[0] = w.alone(n, byHand)
			at.CalledNs, problems[1] = w.alone(n, called)
			err = errors.Join(problems[:]...)
		}
		if err != nil {
			at.Problem = err.Error()
		}
		p.AtRanks = append(p.AtRanks, at)
	}
	for k := len(p.AtRanks) - 1; k >= 0; k-- {
		switch at := &p.AtRanks[k]; {
		case at.Problem != "":
		case !at.pays():
			return
		default:
			p.PaysFrom = &at.Ranks
		}
	}
}

// pays says whether the collective is faster.
func (p *printedAtRanks) pays() bool {
	return p.ByHandNs != nil && p.CalledNs != nil && *p.CalledNs < *p.ByHandNs
}

// alone simulates ranks that do nothing else.
func (w *pricing) alone(ranks int, list []schema.Event) (*int64, error) {
	program := &simulate.Program{Comms: []simulate.Comm{{}}}
	for rank := range ranks {
		program.Threads = append(program.Threads, 1)
		program.Comms[0].Members = append(program.Comms[0].Members, int32(rank))
	}
	rows := &schema.Events{}
	for i := range list {
		rows.Append(&list[i])
	}
	given := false
	r, err := simulate.Simulate(w.machine, program, &w.options, func(add func(*schema.Events) error) error {
		if given {
			return io.EOF
		}
		given = true
		return add(rows)
	})
	if err != nil {
		return nil, err
	}
	ns := inNs(r.Time)
	return &ns, nil
}

// remarks are what a price says, in words.
func (p *printedPrice) remarks(of *printedPricing) (out []string) {
	if p == nil {
		return nil
	}
	out = append(out, p.text(of))
	switch {
	case p.PatternProblem != "":
		out = append(out, "other numbers of ranks: not known, "+p.PatternProblem)
	case len(p.AtRanks) > 0:
		text := p.Pattern
		for i := range p.AtRanks {
			at := &p.AtRanks[i]
			if at.Problem != "" {
				first, _, _ := strings.Cut(at.Problem, "\n")
				text += fmt.Sprintf("; %d ranks: %s", at.Ranks, first)
				continue
			}
			text += fmt.Sprintf("; %d ranks: %s by hand, %s called", at.Ranks, duration(*at.ByHandNs), duration(*at.CalledNs))
		}
		if p.PaysFrom != nil {
			text += fmt.Sprintf("; pays from %d ranks", *p.PaysFrom)
		} else {
			text += "; does not pay at the largest of these"
		}
		out = append(out, text)
	}
	return out
}

// leastMeasurable is the least part of a run's time that is told to people.
const leastMeasurable = 0.0001

// duration is a time for people, with four digits or the nanoseconds that there are: 13.29 us.
func duration(ns int64) string {
	value, unit := float64(ns), "ns"
	for _, next := range []string{"us", "ms", "s"} {
		if value < 999.95 {
			break
		}
		value, unit = value/1000, next
	}
	return fmt.Sprintf("%.4g %s", value, unit)
}

// text is what replacing saves, in words.
func (p *printedPrice) text(of *printedPricing) string {
	if p.Problem != "" {
		first, _, _ := strings.Cut(p.Problem, "\n")
		return fmt.Sprintf("no price on %s: the replaced run cannot be simulated: %s", of.Machine, first)
	}
	verb, saved := "saves", *p.SavedNs
	if saved < 0 {
		verb, saved = "costs", -saved
	}
	text := fmt.Sprintf("saves and costs nothing measurable of %s on %s", duration(of.PredictedNs), of.Machine)
	if part := float64(saved) / float64(max(of.PredictedNs, 1)); part >= leastMeasurable {
		text = fmt.Sprintf("%s %s of %s on %s (%.2f %%)", verb, duration(saved), duration(of.PredictedNs), of.Machine, 100*part)
	}
	if p.Left > 0 {
		text += fmt.Sprintf("; %s cannot be put in place", counted(int64(p.Left), "instance"))
	}
	return text
}

// cells are those of a row of CSV: replaced_ns, saved_ns, pays_from.
func (p *printedPrice) cells() []string {
	out := []string{"", "", ""}
	if p.SavedNs != nil {
		out[0], out[1] = strconv.FormatInt(*p.ReplacedNs, 10), strconv.FormatInt(*p.SavedNs, 10)
	}
	if p.PaysFrom != nil {
		out[2] = strconv.Itoa(*p.PaysFrom)
	}
	return out
}

// properties are the price as SARIF has it, beside a result.
func (p *printedPrice) properties(of *printedPricing) *sarif.PropertyBag {
	bag := sarif.NewPropertyBag()
	bag.Add("machine", of.Machine).Add("predicted_ns", of.PredictedNs)
	if p.SavedNs != nil {
		bag.Add("replaced_ns", *p.ReplacedNs).Add("saved_ns", *p.SavedNs)
	}
	if p.PaysFrom != nil {
		bag.Add("pays_from", *p.PaysFrom)
	}
	return bag
}
