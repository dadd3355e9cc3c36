package report

import (
	"context"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/stored"
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

// FindByHand detects the collectives that the run in a folder does by hand, with the default options. Exchanges between
// neighbours are left out. spill opens a temporary file for payloads that do not fit into memory.
func FindByHand(ctx context.Context, dir string, spill func() (stored.SpillFile, error)) ([]ByHand, error) {
	opened, err := run.Open(ctx, dir, stored.Need)
	if err != nil {
		return nil, err
	}
	answer, err := Detect(ctx, &stored.Detection{Run: opened, Spill: spill,
		Options: detect.Options{MinRanks: detect.DefaultMinRanks}})
	if err != nil {
		return nil, err
	}
	return answer.byHand(), nil
}

// byHand lists the findings but those between neighbours.
func (p *Report) byHand() (list []ByHand) {
	for k := range p.Findings {
		f := &p.Findings[k]
		if f.BetweenNeighbors() {
			continue
		}
		found := ByHand{Operation: f.Operation, Text: f.Scope() + ": " + f.Amount()}
		for _, site := range f.SendSites {
			if site.File != "" {
				found.File, found.Line = site.File, site.Line
				break
			}
		}
		list = append(list, found)
	}
	return list
}
