// Package nccl estimates how long NCCL's collectives take, as NCCL itself does before it chooses an algorithm and a
// protocol: a latency, and a bandwidth for the bytes.
//
// The figures and formulas are those of NCCL 2.30 (github.com/NVIDIA/nccl, commit 5067397c): ncclTopoTuneModel and
// ncclTopoGetAlgoTime in src/graph/tuning.cc, and the parts of ncclTopoCompute in src/graph/search.cc that give the
// number and bandwidth of channels. What the algorithms do is described by Hu et al., "Demystifying NCCL" (arXiv
// 2507.04786), and the trees by Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
// and scan" (Parallel Computing 35, 2009). docs/method/nccl.md has the formulas, and what this package leaves out.
//
// The files, in reading order:
//
//	nccl.go      the machine, the operations, and the choice
//	channels.go  how many channels a communicator gets, and their bandwidth
//	tables.go    NCCL's constants
//	tune.go      latency and bandwidth of each algorithm with each protocol
package nccl
