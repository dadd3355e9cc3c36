package report

import (
	"testing"

	"github.com/commq/commq/detect/price"
)

// The finding that saves most comes first, with its own price, and one whose savings are unknown last.
func TestPricesAreAttached(t *testing.T) {
	saved := func(ns int64) *price.Price { return &price.Price{SavedNs: &ns} }
	p := &Report{Findings: []Finding{{Finding: 1}, {Finding: 2}, {Finding: 3}}}
	pricing, prices := &price.Pricing{Machine: "flat"}, []*price.Price{{}, saved(7), saved(97)}
	p.attach(pricing, prices)
	for i, want := range []int{3, 2, 1} {
		if f := &p.Findings[i]; f.Finding != want || f.Price != prices[want-1] {
			t.Errorf("place %d: finding %d, price %+v", i+1, f.Finding, f.Price)
		}
	}
	if p.Pricing != pricing {
		t.Errorf("%+v", p.Pricing)
	}
}
