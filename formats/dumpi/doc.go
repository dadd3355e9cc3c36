// Package dumpi reads the traces of SST's DUMPI: a binary file for each rank with the calls of MPI, their times and
// arguments, and a file .meta for the whole. docs/reference/call-traces.md tells what becomes of each call.
//
// In reading order:
//
//	functions.go   the functions of the format and the layouts of their records (functions.txt)
//	cursor.go      numbers, arrays and texts of a file, in bounded memory
//	file.go        the files of a trace; header, sizes of datatypes, index
//	record.go      the records of a rank
//	arguments.go   records become calls with arguments, for package calls
//	types.go       sizes of datatypes
//	import.go      a trace -> a run of a store
package dumpi
