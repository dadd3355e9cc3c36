// Package check holds the invariants of a run: what is true of every run that commq writes. "commq runs check" reports
// where a run breaks one, and docs/SCHEMA.md lists them.
//
// Rules lists the invariants. A Checker goes through all rows of a run once, in batches, and reports each breach as a
// Problem. It knows no files: package writer reads them, checks what only a reader sees (RuleFiles, RuleDigests,
// RuleRepeats, RuleCollectiveParts) and gives the rows to the Checker in the order that Checker.Add wants.
//
// Read the files in this order:
//
//	rules.go      the rule table: name, description, tables and implementation of every rule
//	checker.go    Problem, Checker, and how rules report
//	run.go        what several rules know of the run: ranks, communicators, persistent collectives
//	rows.go       rules about single rows and ranks: nulls, order, world ranks, epochs, seq, flags, requests
//	times.go      rules about times
//	comms.go      rules about communicators, ids and collective operations
//	messages.go   rules that compare messages with the rows that sent and received them, and their hashes
//	sides.go      what those rules have of one side of a message, until the other description comes
//	parts.go      the rule that compares collectives with their rows in parts
//	transfers.go  rules about one-sided communication and MPI-IO
//	derived.go    rules that make the derived tables again
//	counts.go     the rule that compares rows with the manifest's counts
package check

//go:generate go run ./internal/gendocs ../../docs/SCHEMA.md
