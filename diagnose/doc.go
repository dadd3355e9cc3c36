// Package diagnose names what limits a run: the findings, in order of the time that the run would gain without them.
// docs/method/diagnose.md has the method and its limits.
//
// The stages, in the order in which the files are best read:
//
//	diagnose.go   what comes in and what goes out: Options, Diagnosis, Finding, Run
//	rows.go       the rows of the run summed, once for all diagnoses
//	computing.go  how long ranks compute, and where
//	segments.go   what ranks compute between calls that all of them make, in the course of the run
//	cause.go      delays of the run (models/critical), those with one cause together
//	instructions.go  whether ranks that compute longer also execute more
//	groups.go     groups of ranks that compute longer than others, each with its lines
//	rule.go       which kind of finding a cause is, and what is said about it
//	chain.go      ranks that compute one after the other
//	whatif.go     the run without a cause, simulated
//	instead.go    why a finding with long waits gains little
//	serial.go     work of some ranks that the others can only wait for
//	startup.go    ranks that begin MPI_Init late
//	evidence.go   findings of rules that are files, asked by the caller
//	cores.go      what is known of the cores that the ranks had
//	speeds.go     times of the run and of the machine's CPUs
//	path.go       calls that take long themselves, from the critical path
//	marks.go      the messages and operations that belong to such a call
//	pictures.go   what pictures of a finding need
//	window.go     where a finding is seen best
//	instances.go  the ranks of a finding, when it was, and the longest instances
//	callers.go    who calls the function with the call of a finding
//	look.go       the calls before a finding, from its rows
//	print.go      the diagnosis for people
//	detail.go     one finding with all evidence, for people
package diagnose
