// Package spread finds operations in which payloads spread: one to many.
//
// The messages of a ledger come in, and instances go into it, in these stages:
//
//	finder.go          groups the messages of one payload, widest scope first
//	replay.go          re-enacts them to see which rank had the payload when
//	splitter.go        divides them into broadcasts and barriers
//	doubt.go           withdraws broadcasts of payloads that say nothing about their origin
//	answers.go         withdraws broadcasts that are a root's talks with one rank after the other
//	compose.go         segmented broadcasts, and allgathers made of broadcasts
//	crossed.go         withdraws broadcasts that are pieces of an exchange
//	alltoall.go        direct exchanges of every rank with every other
//	arranged.go        weighs that a root sends to all others in their order
//	replies.go         withdraws exchanges whose messages answer others
//	neighbourhoods.go  broadcasts of each rank to neighbours of its own
package spread
