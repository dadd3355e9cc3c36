// Package models describes machines and computes how long messages and collectives take on them. A Machine is read
// from YAML or from a configuration of Dimemas; a Network returns the times. The formulas are in
// docs/method/time-model.md, from Girona, Labarta and Badia, "Validation of Dimemas communication model for MPI
// collective operations" (equations 1 to 4).
//
// The files, in reading order:
//
//	picoseconds.go  the unit of time
//	machine.go      Machine, Interconnect, Node; the time of a message
//	collective.go   phases, factors and sizes of collectives (the paper's tables); dimemas.go the rules of Dimemas 5
//	read.go         a machine from YAML; set.go changes one key; write.go writes it
//	cfg.go          a machine from a configuration of Dimemas; cfgwrite.go writes one
//	nccl.go         what NCCL does on a machine of GPUs
//	machines.go     the machines that commq knows by name; load.go finds a file or a name
//	mapping.go      which rank is on which node, as text
//	reference.go    the page docs/reference/machines.md
//
// Packages below: nccl has NCCL's estimates, simulate runs a program on a machine, sweep varies a machine, calibrate
// learns one from a run, critical finds the critical path.
package models
