// Package dimemas reads and writes the traces of Dimemas, files named .dim: what each task of a program computes,
// sends, receives and does collectively, without times. docs/method/dimemas-files.md describes the format and how
// each record is translated.
//
// The files, in reading order:
//
//	record.go   the records of the format, and Dimemas' numbers of collectives; seconds.go its durations
//	file.go     ImportFile: a file -> a run of a store
//	import.go   Import: the passes over a trace, epoch by epoch
//	index.go    reads the header and finds the records of each task
//	task.go     the records of a task -> its actions
//	decode.go   actions -> rows
//	comms.go    the file's communicators -> those of the run
//	export.go   Export: a run -> a trace
package dimemas
