// Package generate makes the run of a program at a number of ranks at which it was not run, from a model: call by call,
// rank by rank, as a signature.
//
//   - comms.go and topology.go make the communicators.
//   - peers.go asks the model's patterns who makes each call and who its peers are; ragged.go tells which places
//     families with holes have; conflicts.go picks one of several conflicting laws if that is wanted.
//   - rank.go goes through the template for one rank, decides how often loops are repeated and records each call;
//     reach.go doubts loops over neighbours where ranks have thinner parts of a domain than in all runs;
//     row.go fills in the call, requests.go which requests it completes, parts.go what collectives send to each peer.
//   - matching.go and samesizes.go check that what is sent is received, with the same sizes; zipped.go finds which
//     sizes of both sides are of one message.
//   - generate.go puts this together, checks with the logical clock that the run comes to an end, and collects what is
//     unknown or only estimated.
//
// Memory grows with the number of distinct calls, not with the number of calls.
package generate
