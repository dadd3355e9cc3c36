// Package ingest turns a spool into a run: it reads what the ranks of a job recorded, finds out which communicators and
// datatypes are the same, brings all times onto one clock, matches sends with receives and writes the tables.
//
// It reads the spool twice, with as many workers as there are cores. The first pass collects definitions, counts and an
// index; from these follow the communicators, the clocks and the epochs. The second pass makes the rows, epoch by
// epoch, each written while the next is made. Memory is thus bounded by two epochs and by what is in flight, whatever
// the size of the job.
//
// The stages, in reading order:
//
//	ingest.go       Options and Ingest; makeRun calls the stages one after the other
//	spool.go        a folder -> the jobs in it, and one of them opened: job, with a rankSpool for each rank
//	cursor.go       the records of a rank -> groups of slots, one for each call; slots.go and ops.go read a group
//	damage.go       records whose checksum does not fit
//	scan.go         first pass over a rank -> rankFacts, blocks, definitions
//	plan.go         all ranks -> plan: what is the same on all of them (packages handles, sites and clocks), and
//	                layout: which rows go to which file
//	epochs.go       plan -> where epochs begin (epochBounds), where that is on each rank, and how requests end
//	                that live across a border
//	decode.go       second pass over a rank -> its rows; decoder hands each call to the method for its kind:
//	                messages.go, persistent.go, collectives.go, onesided.go, all reading arguments with arguments.go
//	requests.go     requests that have not ended yet
//	envelopes.go    the sends and receives of an epoch, for matching
//	completions.go  how requests end -> the rows that posted them
//	filter.go       which rows are written
//	match.go        pass: decode all ranks of an epoch, and give their sends and receives to package run/match,
//	                which pairs them
//	overlap.go      an epoch, and how it is written while the next is made
//	rows.go         the rows of an epoch -> the sink
//	tally.go        what a pass counted
//	definitions.go  the small tables, the manifest and its warnings
//	cores.go        the cores that ranks might use
//	parts.go        several processes that ingest the ranks of one node each; index.go and partfiles.go are the files
//	                that they exchange
//	store.go        a job of a folder -> a run of a store, and its records removed; all.go does this for all jobs of a
//	                capture
//	simulation.go   what the simulator ranks of a job left
//	parallel.go     one function for many ranks at once
//
// capture/shim/src/spool.h describes the records, docs/method/matching.md the matching.
package ingest
