// Package scan reads the messages of a run and decides which of them detection has to look at.
//
// A Source comes in; Count makes a Census of it, in these stages:
//
//	reader.go      passes over the messages, with the columns that are wanted
//	census.go      counts payloads: one that is sent once cannot be part of an operation
//	streams.go     addresses and sizes of what ranks send again and again, which tell where cutting may pay
//	cutter.go, layout.go  divide messages that carry several payloads side by side
//	exchangers.go  ranks that exchange messages of one class with all others
//	limit.go       how many messages of one payload are looked at
//	plan.go        divides the candidates into parts that fit in memory
//	keep.go        loads the candidates into a ledger
//	outline.go     reads the rows of some messages in little room
package scan
