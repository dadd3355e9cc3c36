// Package liballprof reads the traces of liballprof, which Schedgen makes schedules of for LogGOPSim and ATLAHS: a text
// for each rank with a line for each call of MPI. docs/reference/call-traces.md tells what becomes of each call.
//
// In reading order:
//
//	file.go        the files of a trace, their headers and clocks
//	functions.go   the arguments of each function
//	line.go        a line -> a call with arguments, for package calls
//	library.go     what the calls show of the MPI library
//	scan.go        a first look at all lines: communicators, clocks, what is not told
//	import.go      a trace -> a run of a store
package liballprof
