// Package regress predicts a value at rank counts at which a program was never run, from its values at others. The
// method is in docs/method/prediction-regression.md.
//
// A Curve is one value over the number of ranks. It comes from Fit, from points of any origin:
//
//	regress.go       Point, Prediction, Warning, Curve, Fit; cross-validation of a form
//	laws.go          exact integer laws of a Curve over ranks, which come before any form
//	shares.go        how a program may round what a law divides
//	forms.go         the hypotheses: forms of the performance model normal form and others (Extra-P: Calotoiu et al., 2013)
//	least.go         least squares and prediction intervals of a form
//	choose.go        the choice of a form by its error on points left out, never by its residuals
//	warnings.go      reasons to doubt a prediction
//	table.go         points from a CSV file
//
// A Law is the value of a group of samples over ranks, grid and indices. It comes from FitGroups:
//
//	sample.go        Sample, Group, and rows, their form in a search
//	groups.go        FitGroups: which groups are searched for which laws, the choice of extents, Law
//	hypothesis.go    Hypothesis: an exact law over ranks, grid and indices as data, and its value at a place
//	blocks.go        cuts: how a domain is divided into blocks
//	whole.go         domain: whole elements, axes that never varied
//	remainders.go    divisions whose remainders no run shows
//	lengths.go       values by the extent of an axis, where no law fits
//	evidence.go      whether a group shows more than it takes to name its law
//	search.go        searcher: the exact laws that reproduce all rows of a group
package regress
