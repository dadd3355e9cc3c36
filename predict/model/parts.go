package model

import (
	"github.com/commq/commq/predict/model/join"
	"github.com/commq/commq/predict/signature"
)

// findPartsRules finds the rule by which the collectives of each site send to each peer. An exchange has a rule only
// if its parts are products of totals in all runs.
func findPartsRules(sites []*Site, t *join.Training) {
	isProduct := map[string]bool{} // by event path
	for _, s := range t.Runs {
		for id, path := range s.EventPaths(t.LevelsAsIterations) {
			n := s.Nodes()[id]
			if n.Loop || signature.PartsRuleOf(s.Symbols[n.Symbol].CallID) != signature.PartsExchange {
				continue
			}
			product := s.Values[id].Parts == signature.PartsProduct
			if before, known := isProduct[path]; known {
				product = product && before
			}
			isProduct[path] = product
		}
	}
	paths := t.Sig.EventPaths(t.LevelsAsIterations)
	for _, x := range sites {
		x.Parts = signature.PartsRuleOf(t.Sig.Symbols[x.Event.Symbol].CallID)
		if x.Parts == signature.PartsExchange && !isProduct[paths[x.Event.ID]] {
			x.Parts = signature.NoParts
		}
	}
}
