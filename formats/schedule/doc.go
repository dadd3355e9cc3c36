// Package schedule turns a run into what each rank does, for formats that know computing, messages and waiting: it
// resolves wildcards and requests, and can write collectives as messages.
//
//	schedule.go    Each: the rows of a run -> actions
//	collective.go  a collective call, and its messages as Rounds
package schedule
