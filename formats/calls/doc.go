// Package calls turns calls of MPI with their arguments, as traces of DUMPI and liballprof have them, into calls for
// package timed: it knows communicators, groups, requests, windows and files by their handles.
//
// In reading order:
//
//	args.go     the arguments of a call
//	resolve.go  who is in which communicator: constructors of all ranks, put together
//	made.go     the members of what a constructor makes
//	rank.go     the handles of a rank
//	handle.go   communicators whose handle the trace does not show
//	agree.go    what other ranks tell of them
//	fill.go     a call's row: messages, requests
//	moved.go    a call's row: collectives, windows, files
package calls
