// Package pattern finds the rules by which the ranks of a program choose their destinations, from runs at a few
// process counts, and applies them at other process counts: local equations per communication and process count, the
// process grid of the program, and general equations in the process count, after Panadero, Wong, Rexachs and Luque,
// "Predicting the communication pattern evolution for scalability analysis" (2013). The rules are in
// docs/method/prediction-patterns.md.
//
// Slots come in: tables of destinations, without runs or files. Fit returns a Program with a Law for each family of
// slots. A law fits when it reproduces every destination of every training run. All forms that are about as simple as
// the simplest are kept: where they disagree, the answer is a Refusal that names them.
//
// The files in the order of reading; the stages of Fit pass units (families of slots) on:
//
//	slot.go          Slot, Mapping: what comes in
//	program.go       Program, Law, Fit: what goes out, and the stages in their order
//	grid.go, boxes.go  process grids: extents as a function of the process count; those of boxes
//	form.go, guard.go, law.go  a form: operations on coordinates, who takes part, and its map at a process count
//	family.go        slots -> units
//	library.go       the steps, guards and roots that are tried
//	searchunit.go, search.go, presence.go  units -> forms on each class of grids that reproduce the runs
//	cover.go         the choice of grids
//	hierarchy.go, shape.go, direction.go, siblings.go  what units learn from each other where the runs leave a choice
//	stencil.go       a stencil along all axes of a grid tells it from others
//	twins.go         laws on other grids that the runs cannot tell from the chosen ones
//	halves.go        half of all ranks, or an axis of two
//	asseen.go        the rival that just the ranks which did it in the runs do it
//	inverse.go       sends and receives determine each other
//	answer.go, begin.go, ends.go  the ranges of a family's index, Law.Map, Refusal
//	partition.go     laws of communicators
//	question.go      where rival laws give different answers
//	local.go, general.go, print.go  the local and general equations of the paper
//	topology.go      rings, meshes and tori
package pattern
