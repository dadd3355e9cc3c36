// Package neighbours finds repeated exchanges in which each rank sends to some others: to a fixed set of neighbours, on
// grids (grid.go; axes.go: along an axis of two ranks) and on any graph (halos.go), which could be MPI-3 neighbourhood
// collectives, and to others each time (sparse.go; rounds.go: the rounds of messages), which could be MPI_Alltoallv.
// pieces.go withdraws what is only a piece of such an exchange, index.go numbers messages and sorts events once for a
// search, and repeat.go searches only the first repetitions of a loop and counts the others.
package neighbours
