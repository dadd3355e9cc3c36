// Package timed makes a run of a trace that tells when each rank called MPI. A reader for each thread hands over its
// calls in the order of their starts; this package fills in rows when their requests are completed, cuts them into
// epochs, matches messages by MPI's order, or by their numbers where the trace has them, and writes the run. The
// trace is read twice, once to learn, once to write, so that memory grows only with what waits: open requests, and
// sends and receives without a partner.
//
// In reading order:
//
//	call.go    what a reader hands over
//	comms.go   communicators
//	rank.go    calls become the rows of a rank, with its requests
//	unknown.go receives whose message the trace does not tell, or tells late
//	sketch.go  what the first pass tells of a rank
//	import.go  the two passes over all ranks
//	write.go   rows and messages of an epoch
//	result.go  counts, ranks, and the manifest that all such traces share
package timed
