// Package paraver reads and writes traces of Paraver: the records (.prv), the names of states and events (.pcf) and
// those of the rows (.row), with the event types that Extrae writes and Dimemas' prv2dim reads. docs/method/paraver.md
// has the tables.
//
// Package timed makes the rows of an import. It wants the calls of one rank after those of another, and completions
// where they happen; a .prv has all ranks in one file by time, and each message once, at the time of its send. So an
// import reads the file once, sorts calls and both sides of messages by time and rank on disk, and the two passes of
// timed read from there. Messages keep the partners that their records name: each has a number (timed.Pair). MPI's
// order, by which timed matches else, counts by communicator, and the trace does not tell those of messages.
//
// In reading order:
//
//	calls.go    numbers and states of calls
//	header.go   the first lines: length, ranks, nodes, communicators
//	names.go    the .pcf and .row that an export writes
//	labels.go   the .pcf and .row that an import reads
//	lines.go    lines of a file, in bounded memory, and their numbers
//	scan.go     records become calls and sides of messages
//	sides.go    calls and sides on their way to the ranks: sorted, encoded
//	bytes.go    bytes of collectives as commq counts them
//	rank.go     the calls of a rank, with the sides that belong to them
//	waiting.go  sides that wait for their calls
//	sites.go    callers become call sites
//	import.go   a trace -> a run of a store
//	result.go   the manifest, and what was skipped
//	prv.go      a run -> a trace
//	sort.go     sorting by time in bounded memory
package paraver
