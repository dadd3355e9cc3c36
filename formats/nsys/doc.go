// Package nsys reads exports of NVIDIA's Nsight Systems (SQLite databases that nsys export writes, one for all
// processes of a host or one for each) and makes a run of them: of the operations of NCCL with formats/training, a rank
// for each GPU of a process, or of the calls of MPI with formats/timed, if there are more of these and the
// exports tell their ranks.
//
// The tables are those of NVIDIA's SQLite Schema Reference. Versions differ: columns that an export does not have are
// null, and what follows from them is not known.
//
// In reading order:
//
//	file.go       an open database: its tables, their rows, errors that say where
//	names.go      what names of ranges and kernels stand for
//	payload.go    what NCCL attached to its ranges: sizes, communicators, ranks
//	info.go       the host, the environment, the zero of times
//	process.go    what is kept of each process
//	operations.go ranges, launches and kernels become operations
//	ranks.go      processes and GPUs become ranks, communicators groups
//	align.go      recordings that begin at different operations, without communicators
//	import.go     the run of the operations of NCCL
//	result.go     what the run lacks
//	mpi.go        calls of MPI, kept by rank in the order of their starts
//	mpicomms.go   which of their communicators have all ranks
//	mpiread.go    a kept call becomes one with arguments, for formats/calls
//	mpiimport.go  the run of the calls of MPI
//
// docs/reference/nsight-systems.md tells what becomes of what.
package nsys
