// Package replace replaces the point-to-point messages of collectives done by hand with calls of collective
// operations: it makes the rows of the run that the changed program would have. docs/method/replace.md explains where
// the calls go and what they move.
//
// The files, in reading order:
//
//	replace.go  Source, Finding, and Run, which knows the messages and calls of a run
//	events.go   the rows of a run -> what Run knows of them
//	plan.go     Plan: which messages are removed, and which instances cannot be replaced
//	place.go    runs the changed program, without times, to find where each rank calls the new collectives
//	comms.go    the communicators that the run lacks
//	fill.go     the rows of the new collectives
//	rewrite.go  the new numbers of the rows that stay
//	stored.go   Open and Write: runs of a store
//	pattern.go  Pattern: how a program does a collective by hand, for package price
package replace
