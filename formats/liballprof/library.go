package liballprof

import (
	"strings"

	"github.com/commq/commq/formats/calls"
)

// library is the MPI library that a trace was made with, as far as its calls show it. MPI_ANY_SOURCE and MPI_PROC_NULL
// are -1 and -2 in Open MPI and in the standard ABI, -2 and -1 in MPICH and those made of it.
type library struct {
	mpichWorld bool  // a communicator has the number of MPICH's MPI_COMM_WORLD
	openMPI    bool  // a communicator is a pointer, or Fortran's 0
	toOne      bool  // something is sent to -1, which thus is MPI_PROC_NULL
	toTwo      bool  // to -2
	negative   int64 // receives from -1 or -2
	narrow     bool  // a request is at an address that 8 does not divide, so requests have 4 bytes
}

const (
	mpichWorld = 0x44000000
	// mostIndex is more than the handles of libraries that count them; higher ones are pointers or MPICH's.
	mostIndex = 1 << 16
)

// see takes a call.
func (b *library) see(a *calls.Args, f *function, args []string, request uint64, requests int64) {
	b.narrow = b.narrow || requests > 0 && request%8 == 4
	argument := func(kind string) string {
		if at := strings.Index(f.layout, kind); at >= 0 && len(args) == len(f.layout) {
			return args[at]
		}
		return ""
	}
	if strings.Contains(f.layout, "c") {
		mpichs := uint32(a.Comm.Number)>>26&15 == 1 // the kind that MPICH has in handles of communicators
		b.mpichWorld = b.mpichWorld || a.Comm.Number == mpichWorld
		b.openMPI = b.openMPI || a.Comm.Number == 0 || !mpichs && uint64(a.Comm.Number) > mostIndex
	}
	to, from := argument("d"), argument("f")
	b.toOne, b.toTwo = b.toOne || to == "-1", b.toTwo || to == "-2"
	if from == "-1" || from == "-2" {
		b.negative++
	}
}

// join adds what another rank shows.
func (b *library) join(o library) {
	b.mpichWorld, b.openMPI = b.mpichWorld || o.mpichWorld, b.openMPI || o.openMPI
	b.toOne, b.toTwo = b.toOne || o.toOne, b.toTwo || o.toTwo
	b.negative, b.narrow = b.negative+o.negative, b.narrow || o.narrow
}

// mpich reports whether the numbers are those of MPICH.
func (b *library) mpich() bool { return b.mpichWorld || b.toOne }

// unsure reports whether there are receives from -1 or -2, and nothing tells which number is which.
func (b *library) unsure() bool {
	return b.negative > 0 && !b.mpichWorld && !b.openMPI && !b.toOne && !b.toTwo
}

// stride returns the size of a request in bytes: Open MPI's are pointers, at addresses that 8 divides, MPICH's and
// those of Fortran are of 4 bytes.
func (b *library) stride() uint64 {
	if b.narrow || b.mpichWorld {
		return 4
	}
	return 8
}
