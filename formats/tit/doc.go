// Package tit reads and writes SimGrid's time-independent traces, which its smpirun -replay plays: for each rank a list
// of actions such as "0 send 1 9 4096". docs/reference/simulators.md says how each is translated.
//
//	action.go  the actions of the format: names, fields, datatypes
//	trace.go   finds the files of a trace, and the lines of each rank in them
//	rank.go    the actions of a rank -> rows, those of collectives in collective.go
//	import.go  ImportFile: a trace -> a run of a store
//	export.go  Export: a run -> a trace
package tit
