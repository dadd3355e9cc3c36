package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/stored"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
)

// ByHand is a collective that a run does by hand.
type ByHand struct {
	// Operation is the collective that would replace it.
	Operation string
	// Text says over which ranks, how often and how much.
	Text string
	// File and Line are the first known place in the source that sends its messages.
	File string
	Line int32
}

// PricedByHand is a collective that a run does by hand, with what calling it saves.
type PricedByHand struct {
	ByHand
	// Place is where its messages are sent.
	Place string
	// Call is the MPI function that sends there.
	Call string
	// Ranks are the world ranks that take part, ascending.
	Ranks []int32
	// SavedNs is the time that calling the collective saves by simulation, in ns; nil if that is not known.
	SavedNs *int64
}

// FindByHand detects the collectives that the run in a folder does by hand, with the default options. What chance may
// have made and exchanges between neighbours are left out. If messages of the run were not searched, the error says so
// and the list has what was found among the others. spill opens a temporary file for payloads that do not fit into
// memory.
func FindByHand(ctx context.Context, dir string, spill func() (stored.SpillFile, error)) ([]ByHand, error) {
	opened, err := run.Open(ctx, dir, stored.Need)
	if err != nil {
		return nil, err
	}
	answer, err := detectByHand(ctx, opened, spill, false)
	if err != nil {
		return nil, err
	}
	return answer.byHand()
}

// detectByHand detects with the default options. As commq detect does, it leaves out what chance may have made.
func detectByHand(ctx context.Context, r *run.Run, spill func() (stored.SpillFile, error),
	messages bool) (*Report, error) {
	answer, err := Detect(ctx, &stored.Detection{Run: r, Spill: spill,
		Options: detect.Options{MinRanks: detect.DefaultMinRanks, Messages: messages}})
	if err != nil {
		return nil, err
	}
	answer.DropCandidates()
	return answer, nil
}

// PriceByHand does the same for an open run, with what calling each collective saves on a machine.
func PriceByHand(ctx context.Context, r *run.Run, target *simulate.Target,
	spill func() (stored.SpillFile, error)) (list []PricedByHand, err error) {
	answer, err := detectByHand(ctx, r, spill, true)
	if err != nil {
		return nil, err
	}
	answer.Findings = slices.DeleteFunc(answer.Findings, func(f Finding) bool { return f.BetweenNeighbors() })
	if len(answer.Findings) == 0 {
		return nil, nil
	}
	if err := answer.AddPrices(ctx, r, target, nil); err != nil {
		return nil, err
	}
	for k := range answer.Findings {
		f := &answer.Findings[k]
		p := PricedByHand{ByHand: f.byHand(), Ranks: f.union(func(g *Group) []int32 { return g.Ranks }), SavedNs: f.Price.SavedNs}
		if len(f.SendSites) > 0 {
			p.Place, p.Call = f.SendSites[0].Place, strings.Join(f.SendSites[0].Calls, ", ")
		}
		list = append(list, p)
	}
	return list, nil
}

// byHand lists the findings but those between neighbours. The error tells which messages were not searched.
func (p *Report) byHand() (list []ByHand, err error) {
	for k := range p.Findings {
		if f := &p.Findings[k]; !f.BetweenNeighbors() {
			list = append(list, f.byHand())
		}
	}
	if lacks := p.unsearched(); len(lacks) > 0 {
		err = fmt.Errorf("run %s: there may be collectives by hand that were not found: %s", p.Run,
			strings.Join(lacks, "; "))
	}
	return list, err
}

func (f *Finding) byHand() ByHand {
	found := ByHand{Operation: f.Operation, Text: f.Scope() + ": " + f.Amount()}
	for _, site := range f.SendSites {
		if site.File != "" {
			found.File, found.Line = site.File, site.Line
			break
		}
	}
	return found
}
