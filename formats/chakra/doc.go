// Package chakra reads and writes Chakra execution traces (.et), MLCommons' graphs of what each process of a training
// job computes and communicates. docs/reference/training.md says what becomes of them, and of runs.
//
// The files are read with the official library's wire format (protowire), message by message, so that a trace does not
// have to be in memory; the numbers of fields are those of schema/protobuf/et_def.proto of Chakra 1.0.
//
//	node.go    reads the messages of a file
//	graph.go   the nodes of a rank -> its steps, in an order that its dependencies allow
//	import.go  ImportPath: the files of a job -> a run of a store
//	rows.go    the steps of all ranks -> rows
//	export.go  a run -> a file for each rank
package chakra
