// Package neighbours finds repeated exchanges in which each rank has a fixed set of neighbours: on grids (grid.go)
// and on any graph (halos.go). They could be MPI-3 neighbourhood collectives.
package neighbours
