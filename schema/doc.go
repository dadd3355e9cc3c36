// Package schema defines the words of commq: the tables of a run with their columns, types and units, the MPI calls
// with their permanent ids and what each call does, and the manifest. It computes nothing over rows and knows no
// files, no database and no MPI library. The C shim, the Go packages, the SQL views and docs/SCHEMA.md are generated
// from it or use it.
//
// Read the files in this order:
//
//	types.go       how a table and its columns are described, nulls, and Batch, rows held as a slice per column
//	tables.go      every table and column, with the descriptions that users read
//	enums.go       classes of calls, reduction operations, kinds of communicators, Call and CallID
//	facts.go       what calls do: facts such as point-to-point, nonblocking, rooted
//	collective.go  the operation of a collective call, and how many bytes a rank sends and receives in it
//	group.go       the labels of calls on windows: groups of ranks, types of locks
//	manifest.go    the manifest of a run
//	parse.go       how it is read and validated, and the paths of a table's files
//	sum.go         the hash of a manifest, and the digest of a run
//	leftout.go     which rows of calls a run was asked to leave out
//	evidence.go    how the calls of a run came about: captured, predicted, replayed ...
//	markdown.go    the tables as Markdown, for docs/SCHEMA.md
//	outline.go     the tables in short, for docs/skill
//
// calls.csv is the list of MPI functions. go generate makes two files from it and from tables.go: calls_gen.go (Calls
// and the constants CallSend ...) and batch_gen.go (the row and batch types of each table).
package schema
