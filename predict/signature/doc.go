// Package signature holds what a run did, call by call, in a form that is small even when the run is not.
//
// A Signature has these parts:
//
//   - Symbols are the distinct calls of the program: an MPI function at a call path. The template (package template)
//     is the tree of loops over these calls that all ranks share; its leaves are called events.
//   - Values hold the distinct things that ranks did at each node. The value of an event is a Call: peers relative to
//     the own rank, tag, count, datatype, bytes, completed requests. So all ranks of a ring share one Call. The value
//     of a loop is its iterations, folded by package fold; an iteration lists which children were executed, and with
//     which value each.
//   - Roots has the value of the root for each rank. Walk unfolds it into the rank's calls.
//   - Phases and Communications describe the run; packages phases and communications find them.
//
// Package sign makes signatures from the rows of runs. This package defines them (signature.go, call.go, ranks.go),
// writes and reads their files (file.go, check.go), walks through them (walk.go, names.go), turns them back into rows
// of the table events (expand.go, stream.go, times.go) and compares them with the run they are of (compare.go).
// run.go is the run as signatures are made of it; parts.go derives the counts per peer of v-collectives from totals.
package signature
