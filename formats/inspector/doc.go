// Package inspector reads the logs of NCCL Inspector, the profiler plugin that comes with NVIDIA's NCCL (JSON, a record
// for each operation, a file for each process), and makes a run of them with formats/training.
//
// A record names the operation's communicator, its rank there, its size and how long it took. It does not name the
// process's rank in the job, and only verbose logs tell when the operation ran.
//
// In reading order:
//
//	files.go    the files of a job
//	record.go   records of a file
//	read.go     records become operations of members of communicators
//	places.go   members become ranks of the run
//	together.go the operations that members made together, in an order that all logs allow
//	times.go    times of operations: those of verbose logs, else places for their durations
//	import.go   the run
//
// docs/reference/training.md tells what becomes of what.
package inspector
