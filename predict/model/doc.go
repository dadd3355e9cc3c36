// Package model finds the laws of a program from the signatures of its runs at several numbers of ranks. New (model.go)
// does it in these steps:
//
//  1. Package join puts the runs side by side in one joint signature, after pooling captures of equal size.
//  2. Package slots divides what ranks did into sites (events) and slots (an event at one place in the loops around).
//  3. families.go makes tables for package pattern: who makes the call of a slot, to whom it sends, from whom it
//     receives. comms.go does so for communicators that do not have all ranks. Package pattern finds their laws.
//  4. numbers.go samples tags, counts, bytes, roots and iterations of loops. Package law finds their laws. boxes.go
//     adds grids that cut the domain, which sizes show, for the least surface; then numbers have laws on these, too.
//  5. requests.go and persistent.go find rules for which requests a call completes or starts, parts.go for what
//     collectives with a count per peer send to each peer. exchanges.go groups sites that send and receive the same
//     messages.
//  6. Package compute finds the laws of compute times, when they are first needed.
//
// limits.go tells for which numbers of ranks the laws cannot hold. constant.go tells which calls all ranks make equally
// often, and which are in loops that are other ones than the calls show; peers.go which have other peers in each
// iteration. file.go writes and reads models with their laws. Package generate uses a model to make the run at another
// number of ranks.
package model
