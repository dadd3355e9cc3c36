// Package randomprograms makes random programs, for tests of prediction that know what a program does on any number of
// ranks. A program is drawn from a grammar:
//
//	program    = layout domain item { item }
//	item       = leaf | loop
//	loop       = "repeat" count item { item }          nested at most twice
//	count      = constant | extent of an axis | log2 P | index of the loop around it (a triangle)
//	leaf       = guard partners size [ nulls ] [ requests ] | collective | division [ division ] collective
//	partners   = shift | wrap | diagonal | directions | tree | butterfly | levels | pairwise | moving root | gather |
//	             scatter | triangle | transpose | mirror | by parity | skew | lawless
//	size       = constant | block of an axis | face | padded | cumulative | halo | share | doubling | of the partner |
//	             lawless
//	nulls      = MPI_PROC_NULL where there is no partner | the same with MPI_Sendrecv
//	requests   = nonblocking, and MPI_Waitall, MPI_Wait in order, or MPI_Waitany | waits a step later | left open to
//	             the end of an iteration, of the loop, or of the program
//	division   = lines | planes | halves | halves of lines | even and odd of lines | neighbours | every k-th | firsts of
//	             lines | firsts of neighbours | half | halved again and again
//
// Layouts are lines and grids as programs make them. Each statement has call sites of its own and the names of what
// it is made of: its features. Lawless ones depend on nothing that other runs show: what they do cannot be known.
//
//	program.go   Program, and how a rank executes it
//	layout.go    process grids, and the numbers of ranks on which they are run
//	partners.go  who communicates with whom
//	divisions.go who is in a communicator with whom
//	nulls.go     what ranks without a partner do
//	requests.go  who waits for requests, and where
//	sizes.go     how much
//	grammar.go   draws programs
package randomprograms
