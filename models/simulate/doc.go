// Package simulate is a discrete-event simulator. It computes how long a program's calls would take on another machine.
// The semantics of its two dialects are in docs/method/simulator.md.
//
// Rows of events come in, as batches of whole epochs, together with a models.Machine and a Program (ranks, threads,
// communicators). The times of every row go out through Options.Done, sums in a Result, and what cannot go on in an
// error. Nothing is read from or written to disk.
//
// The stages, in the order in which the files are best read:
//
//	program.go       what comes in and what goes out: Program, Options, Result, Simulate
//	engine.go        the loop over the events, which hands each to its stage
//	clock.go         the simulated time and the queue of events
//	setting.go       what does not change: dialect, machine, where ranks are, latencies and transfer times
//	op.go, opqueue.go  operations, and the compact queue of those that a thread has still to do
//	rows.go, calls.go  translator: rows of events -> operations; epochs.go those of MPI_Win_post, start, complete and wait
//	scheduler.go     which thread has a CPU of its node
//	progress.go      a thread's operation ends and the next begins; requests complete; rows are read
//	request.go, message.go, ring.go  pools and queues
//	network.go       links and buses: where messages wait for each other
//	channel.go       where sends meet receives
//	probe.go         threads that wait in a probe
//	pointtopoint.go  sends, receives and one-sided transfers; posted.go (paper) and arrival.go (Dimemas)
//	collective.go    collective operations
//	locks.go         locks of windows
//	lookahead.go     threads that run ahead of the events where nothing is contended
//	kept.go          what-ifs: operations that cost less
//	report.go        what is left when nothing happens any more: deadlocks, messages without a partner
//	target.go        Target: the machine, dialect and options that a command names; Efficiency
//	checkpoint.go    saving the state and continuing from it
//
// Each stage has its own state and calls only the stages below it: engine -> pointToPoint, collectives, locks ->
// progress -> scheduler, translator -> requests; network -> clock. Threads, messages, requests, channels and
// collectives are numbers, indices into slices of their stages, and none (-1) is none of them: a simulation has
// millions, and checkpoints write them as they are in memory.
package simulate
