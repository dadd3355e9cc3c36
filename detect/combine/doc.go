// Package combine finds operations whose payloads are assembled, divided or reduced: many to one, and what is made of
// it.
//
// A Sample of all messages comes in, cell by cell; instances go into the ledger. The files, in reading order:
//
//	combine.go     Find: groups of messages, and the search in each; facts.go has what is known of ranks and payloads
//	occurrence.go  one repetition of a group: which messages belong to it
//	search.go      tries the operations on a group, cheapest first
//	gather.go      gathers and scatters; turns.go those whose ranks take turns
//	blocks.go      what the order, tags and sizes of blocks say about gathers and scatters
//	packed.go      trees and scans of packed objects, which show by their shape alone
//	reduce.go      reductions and scans; reducescatter.go reductions to blocks
//	bruck.go       operations in log2(ranks) rounds after Bruck and others
//	check.go       what sums and first elements of payloads say about MPI_Ops
package combine
