// Package handles finds out which communicators and datatypes of different ranks are the same.
//
// Every process numbers its handles itself. Definitions hold what one rank defined, in order (definitions.go).
// UnifyComms compares the communicators of all ranks and numbers them for the run (comms.go, table.go); UnifyTypes
// does the same for datatypes (types.go). A Resolver then turns the numbers in the records of one rank into those of
// the run (resolver.go). Readers of a spool that is still being written only need a View (view.go).
package handles
