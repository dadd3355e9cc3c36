// Package kineto reads the traces that PyTorch's profiler writes (Kineto: JSON in the Trace Event Format, a file per
// process), with the dumps of PyTorch's flight recorder and its execution traces beside them, and makes a run of them
// with formats/training.
//
// In reading order:
//
//	files.go   the files of a job, and which is of which rank
//	event.go   the fields of an event that are read
//	trace.go   the events of a process: what is kept of each
//	join.go    execution traces add to calls: sizes, roots, splits, groups
//	link.go    host calls, kernels and launches become operations
//	flight.go  dumps of the flight recorder: groups and numbers of operations
//	import.go  the run
//
// docs/reference/training.md tells what becomes of what.
package kineto
