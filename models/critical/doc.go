// Package critical finds the critical path of a run: the chain of computing and communicating that determines its
// duration, found by walking back from the end of the last rank, as Böhme et al. do ("Scalable Critical-Path Based
// Performance Analysis", IPDPS 2012, after Yang and Miller, 1988). The rule and its limits are in
// docs/method/critical-path.md.
//
// A Graph takes in the rows of a run, then their simulated times if there are any, then its messages, all at once or
// epoch by epoch. Messages and collective operations determine which row of another rank each row waited for. From
// that follow the path and what delayed each wait.
//
// The files, in the order in which they are best read:
//
//	critical.go    what a path is made of: Kind, Segment, Options
//	rows.go        the rows of all ranks, and which other row each waited for
//	graph.go       Graph: takes in rows and messages
//	collective.go  the waits in collective operations
//	onesided.go    the waits on windows: for exposures, accesses and locks
//	read.go        reads a run into a Graph
//	walk.go        walks back along the waits
//	path.go        Path: the time on the path, by call site and by kind
//	parts.go       PathPart: a part of the path, as commands print it
//	trace.go       where the path was, step by step
//	tree.go        the causes of all waits at once, as a tree of rows
//	delays.go      Delay: what ranks did while others waited for them
//	instances.go   the longest waits, and waits over time
//	window.go      the same for runs larger than memory: rows are dropped after their epoch
package critical
