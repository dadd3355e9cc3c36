// Package guess guesses which collective operations a run does by hand from sources, destinations, sizes and order
// alone, for runs without payload hashes. It knows the algorithms in which all ranks do the same relative to their
// own place: rings, recursive doubling and halving, dissemination, and exchanges of each rank with each other. That
// messages have the shape of an algorithm does not prove that the program does what the algorithm is for.
//
// In reading order:
//
//	steps.go     messages of ranks that exchange with each other become one list of steps, if all do the same
//	patterns.go  steps become operations
//	find.go      the search
package guess
