// Package exectrace reads PyTorch's execution traces (JSON of torch.profiler.ExecutionTraceObserver, schema 1.0.1 to
// 1.1), which have a node for each operator of a process and no times, and makes an untimed run of their communication
// with formats/training.
//
// In reading order:
//
//	files.go       the files of a job, and which is of which rank
//	node.go        nodes that communicate
//	call.go        calls of c10d, and the annotations of its backends
//	operations.go  operations by the number of their function, for traces of Kineto
//	import.go      the run
//
// docs/reference/training.md tells what becomes of what.
package exectrace
