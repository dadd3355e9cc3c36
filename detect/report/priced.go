package report

import (
	"context"
	"slices"

	"github.com/commq/commq/detect/price"
	"github.com/commq/commq/detect/replace"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/run"
)

// OpenReplaceable opens the run of the report so that all findings in it can be replaced. The findings must list their
// instances.
func (p *Report) OpenReplaceable(ctx context.Context, r *run.Run) (*replace.Run, error) {
	if err := replace.Need.Check(r.Name, r.Manifest); err != nil {
		return nil, err
	}
	findings, err := p.Replaceable()
	if err != nil {
		return nil, err
	}
	return replace.Open(ctx, r, findings)
}

// AddPrices prices the findings in the run on a machine, and sorts them by what they save. ranks are other numbers of
// ranks to price one instance with.
func (p *Report) AddPrices(ctx context.Context, r *run.Run, target *simulate.Target, ranks []int) error {
	if err := stored.Need.Check(r.Name, r.Manifest); err != nil {
		return err
	}
	replaceable, err := p.OpenReplaceable(ctx, r)
	if err != nil {
		return err
	}
	program, err := stored.ProgramOf(ctx, r)
	if err != nil {
		return err
	}
	pricer := &price.Pricer{Run: r, Replaceable: replaceable, Machine: target.Machine,
		Program: program, Options: simulate.Options{Dialect: target.Dialect}}
	pricing, prices, err := pricer.Price(ctx, p.groups(), ranks)
	if err != nil {
		return err
	}
	p.attach(pricing, prices)
	return nil
}

// attach gives each finding its price, and sorts them by what they save.
func (p *Report) attach(pricing *price.Pricing, prices []*price.Price) {
	p.Pricing = pricing
	for i := range p.Findings {
		p.Findings[i].Price = prices[i]
	}
	slices.SortStableFunc(p.Findings, func(a, b Finding) int { return price.Compare(a.Price, b.Price) })
}
