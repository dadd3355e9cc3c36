// Package training makes a run of what traces of machine learning jobs tell of each process: operations between
// processes, on groups of them. Packages that read such traces fill in a Rank for each file; this one finds the groups
// as communicators, sets the clocks by matched collectives, and writes the rows.
//
// In reading order:
//
//	rank.go      what a reader tells: operations, groups, steps
//	names.go     names of operations and types of elements
//	busy.go      when a process computed
//	groups.go    groups become communicators, operations get their numbers in them
//	messages.go  groups of messages of which the traces tell only the rank in a group
//	clocks.go    offsets of the clocks, and bounds of their errors
//	rows.go      operations become rows
//	import.go    the run
//	store.go     the run in a store, with its name
//
// docs/reference/training.md tells what becomes of what.
package training
