// Package predict predicts how a program communicates on more processes than it was run on, after Panadero, Wong,
// Rexachs and Luque, "Predicting the communication pattern evolution for scalability analysis" (PAS2P).
// docs/method/prediction.md describes the method.
//
// What comes in are runs of the program at several numbers of ranks. What comes out is the run at another number of
// ranks, call by call, and what is assumed or unknown about it. The idea, in the words that the packages use:
//
//   - The template is the program as a tree of loops and calls, which all ranks share. A call in it is an event. The
//     signature of a run is its template and what each rank did at every event, with peers relative to the own rank.
//   - A phase is a part of the run that all ranks repeat; its weight is the number of repetitions.
//   - The runs' signatures are joined on one template. A slot is an event at one iteration of the loops around it:
//     there a rank makes at most one call. So for each slot and run there is a table of who sends to whom, and how
//     much.
//   - A law continues such tables to other numbers of ranks: each rank sends to the next on a ring, or to its neighbour
//     along an axis of a process grid; a face of the domain has n/x times m/y cells. Laws that fit all runs are exact;
//     others are estimates with an interval. Laws that fit all runs and give different answers are a conflict.
//   - The model is all laws of a program. Evaluated at a number of ranks, slot by slot, it gives a signature again,
//     which expands to the rows of a run.
//
// The stages are packages:
//
//	pattern         laws of who communicates with whom
//	regress         laws of sizes and times against the number of ranks
//	signature       what a run did, small enough to be kept; signature/sign makes it from the run's rows,
//	                signature/template finds the loops, signature/fold writes repetitions once
//	phases          what ranks repeat, and when; phases/clock is the logical clock
//	slots           divides the calls of runs into slots
//	communications  to whom ranks send, on one number of ranks
//	model           all laws of a program; model/join puts its runs side by side, model/law finds the laws of numbers,
//	                model/compute those of compute times
//	generate        the run at a number of ranks
//	report          how far the prediction can be trusted
//	times           the execution time of the predicted run on a machine
//	training        signs the runs in a store, and reads files of signatures and models
//	extrapolated    writes the predicted run into a store
//
// A package imports only those above it in this list, or parts of itself; a test in cmd/commq checks that. Package
// predict itself has only Sign, which makes a complete signature. Read the package comments of signature, slots, model
// and generate next, in this order.
package predict

import (
	"github.com/commq/commq/predict/communications"
	"github.com/commq/commq/predict/phases"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/sign"
)

// Sign makes the signature of a run, with its phases and communications, and tells when each rank was in which phase.
// It is an error if the run does not have the rows of all calls, or if its ranks would wait for one another forever.
func Sign(run *signature.Run) (*signature.Signature, []phases.Band, error) {
	sig, err := sign.FromRows(run)
	if err != nil {
		return nil, nil, err
	}
	events := run.Events
	if sig.TimeOrigin == "untimed" {
		events = nil
	}
	found, err := phases.Find(sig, events)
	if err != nil {
		return nil, nil, err
	}
	sig.Phases, sig.Ticks = found.Phases, found.Ticks
	sig.Communications, sig.Irregular = communications.Find(sig)
	return sig, found.Bands, nil
}
