// Package detect finds collective operations that a program does by hand, with point-to-point messages, after
// Calotoiu, Siebert and Wolf, "Pattern-Independent Detection of Manual Collectives in MPI Programs" (EuroMPI 2012).
// It looks at the messages of a run with the hashes of their payloads and asks which rank had which payload before
// and after; the arrangement of the messages does not matter. docs/method/detection.md and detection-combining.md
// explain the rules.
//
// A Run comes in (run.go): streams of messages and events, communicators, datatypes. A Result goes out (result.go): a
// Finding for each operation, with its instances. Detect (detect.go) runs the stages, each a package, over one ledger:
//
//	ledger      the candidate messages, and the instances of operations found among them
//	rankset     sets of ranks, compact for a million ranks
//	scan        counts all payloads in a first pass over the messages, keeps the candidates, divides messages that
//	            carry several payloads
//	spread      one to many: broadcasts, barriers, allgathers, alltoalls, by replaying who had which payload when
//	combine     many to one: gathers, scatters, reductions and scans, by what can be computed from hashes (package crc),
//	            sums and first elements
//	neighbours  exchanges with fixed neighbours on grids and graphs
//	guess       guesses from structure alone, for runs without hashes (guess.go)
//	evidence    weighs findings against chance
//
// passes.go repeats spread in batches if the candidates do not fit in memory. sites.go finds the lines of the calls
// to remove, report.go merges instances into findings, and choose.go picks one of those that share messages. api.go
// gives callers the types of the stages. What uses the result:
//
//	stored      reads a run on disk for Detect
//	report      the answer of commq detect in words, JSON, CSV and SARIF
//	price       what the real collective would save, by simulation or by playing both
//	replace     the run that calls the collective instead
//
// Read run.go, detect.go and ledger/instance.go first, then scan/census.go, spread/finder.go and combine/combine.go.
package detect
