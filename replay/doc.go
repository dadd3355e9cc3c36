// Package replay turns the rows of a run into a schedule, and builds the program that plays it: the same MPI calls on
// the same communicators, with as many bytes, after as much computing. docs/method/replay-run.md describes the
// method.
//
// A Source comes in, a Schedule goes out (New); Schedule.WriteTo writes the file that the player reads, Build compiles
// the player. Compare checks whether a played run communicates as the original did. The stages of New, in the order in
// which to read them:
//
//	replay.go        Source, Options, Schedule, and New, which runs the stages
//	comms.go         communicators of the run, by number
//	types.go         datatypes, and counts of elements
//	playable.go      which rows can be played at all
//	survey.go        a first pass over the rows: first uses, constructors, what ranks exchange in collectives
//	assign.go        which constructor made which communicator
//	window.go        with Options.Windows: which rows of a repetition can be played by themselves
//	schedule.go      a second pass: an operation for each row
//	wildcards.go     persistent wildcard receives, a request for each source and tag of their messages
//	rank.go          a rank's operations, requests and receive area (area.go) while they are made
//	constructors.go  the arguments of constructors of communicators
//	collective.go    the arguments of collectives
//	ops.go           the operations that the player knows
//	file.go          the file of a schedule, and the times that the player measures
//	player.go        the player, src/player.c
//	compare.go       Compare
//	phases.go        the time of a run from the times of its phases, played by themselves
package replay
