// Package law finds the laws of numbers: bytes, counts, tags, roots, iterations. A Sample is a number that a rank of
// a run has at some Point (number of ranks, own rank, peer, iterations of the loops around). A Law gives the number
// at any point, with an interval. A Fitter looks for laws from simple to general:
//
//  1. constants;
//  2. separate laws for roots of collectives and other ranks;
//  3. sums of up to two features of the point, such as 2*x0 + 1 for coordinate x0 on a process grid (sums.go), for
//     numbers that are not sizes, with rivals for numbers of iterations (counts.go);
//  4. laws of package regress: sizes of blocks of a domain that is divided over a grid, or curves over the number of
//     ranks (settle.go). They are fitted for all numbers together, as the program has one domain.
//
// A size seen at only one number of ranks has no law of its own; it borrows those of similar numbers (single.go). Where
// rival laws differ, a run shows which one is right (answers.go).
//
// The files in the order of reading:
//
//	law.go        Sample, Point, Law: what comes in and goes out
//	feature.go    Feature: a number that follows from a point
//	fit.go        Fitter: laws from simple to general
//	sums.go       sums of features
//	counts.go     numbers of iterations, with rivals
//	settle.go     laws of package regress, for all numbers together
//	single.go     sizes that were seen at only one number of ranks
//	rivals.go     laws that give the samples as well
//	twins.go      laws on grids that the runs cannot tell from the chosen one
//	answers.go    where rival laws give different answers
//	file.go       laws as JSON
package law
