// Package report assesses how far a prediction can be trusted: the assumptions behind it and the runs that would test
// them (warnings.go, layout.go, sizes.go), how much such a run would settle (weight.go, doubts.go), what has no law
// (unexplained.go), what was predicted for each call (slots.go), and how it compares with a measured run (score.go,
// coverage.go).
//
// The files in the order of reading:
//
//	warnings.go     Warning: an assumption, and the runs that would test it
//	layout.go       whether sizes switch to another layout
//	sizes.go        sizes whose laws differ
//	weight.go       Weigher: how much a run would settle
//	doubts.go       the rival laws behind what is unknown
//	slots.go        what was predicted for each call
//	unexplained.go  what has no law
//	partial.go      Partial: what is known where not all is
//	spread.go       how unknown calls are spread over ranks
//	score.go, coverage.go, verdict.go  a prediction beside a measured run
package report
