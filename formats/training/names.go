package training

import (
	"strings"

	"github.com/commq/commq/schema"
)

// calls are the nonblocking calls of MPI that do what the operations do, by their names without backend, underscores
// and the endings that tell only how arguments are passed.
var calls = map[string]schema.CallID{
	"allreduce":        schema.CallIallreduce,
	"allreducesparse":  schema.CallIallreduce,
	"broadcast":        schema.CallIbcast,
	"reduce":           schema.CallIreduce,
	"allgather":        schema.CallIallgather,
	"allgatherinto":    schema.CallIallgather,
	"reducescatter":    schema.CallIreduceScatterBlock,
	"gather":           schema.CallIgather,
	"scatter":          schema.CallIscatter,
	"alltoall":         schema.CallIalltoall,
	"alltoallsingle":   schema.CallIalltoall,
	"alltoallv":        schema.CallIalltoallv,
	"barrier":          schema.CallIbarrier,
	"send":             schema.CallIsend,
	"recv":             schema.CallIrecv,
	"recvanysource":    schema.CallIrecv,
	"irecv":            schema.CallIrecv,
	"isend":            schema.CallIsend,
	"allreducebarrier": schema.CallIbarrier,
}

// CallOf returns the call for the name of an operation: nccl:all_reduce, c10d::_allgather_base_, all_to_allv,
// ALL_REDUCE; 0 if it is none that moves data or synchronises.
func CallOf(name string) schema.CallID {
	name = strings.ToLower(name)
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	if word, _, ok := strings.Cut(name, " "); ok { // nccl:send 0->1
		name = word
	}
	name = strings.ReplaceAll(name, "_", "")
	for _, ending := range []string{"coalesced", "tensor", "base", "oop", "v1"} {
		name = strings.TrimSuffix(name, ending)
	}
	return calls[name]
}

// IsCommunication reports whether a kernel belongs to a library for collectives.
func IsCommunication(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "nccl") || strings.HasPrefix(name, "rccl") || strings.HasPrefix(name, "msccl")
}

// ArgumentSizes returns the bytes that a member of a group gives and gets by the count of a call of NCCL times the size
// of the type: of an all-gather it is what a member gives, of a reduce-scatter what it gets, of an all-to-all what goes
// to each. ranks is the size of the group; Unknown leaves out what follows from it.
func ArgumentSizes(call schema.CallID, bytes, ranks int64) (in, out int64) {
	all := int64(Unknown)
	if ranks > 0 {
		all = bytes * ranks
	}
	switch {
	case bytes < 0:
		return Unknown, Unknown
	case call == schema.CallIallgather || call == schema.CallIgather:
		return bytes, all
	case call == schema.CallIreduceScatterBlock || call == schema.CallIscatter:
		return all, bytes
	case call == schema.CallIalltoall:
		return all, all
	case call == schema.CallIallgatherv:
		return bytes, Unknown
	}
	return bytes, bytes
}

// AreAlike reports whether two calls may be the same operation: not all names of all-to-alls tell whether they are
// uneven.
func AreAlike(a, b schema.CallID) bool {
	isExchange := func(c schema.CallID) bool { return c == schema.CallIalltoall || c == schema.CallIalltoallv }
	return a == b || isExchange(a) && isExchange(b)
}

// elementBytes are the sizes of elements by the names that traces use, in lower case and without spaces.
var elementBytes = map[string]int64{
	"byte": 1, "char": 1, "bool": 1, "unsignedchar": 1, "signedchar": 1, "uint8": 1, "int8": 1, "uint8_t": 1, "int8_t": 1,
	"float8_e5m2": 1, "float8_e4m3fn": 1, "float8_e5m2fnuz": 1, "float8_e4m3fnuz": 1, "float8_e8m0fnu": 1,
	"short": 2, "shortint": 2, "int16": 2, "uint16": 2, "half": 2, "float16": 2, "bfloat16": 2, "unsignedshort": 2,
	"int": 4, "int32": 4, "uint32": 4, "float": 4, "float32": 4, "unsignedint": 4, "complexhalf": 4,
	"long": 8, "longint": 8, "int64": 8, "uint64": 8, "double": 8, "float64": 8, "complexfloat": 8, "longlong": 8,
	"unsignedlong": 8, "complexdouble": 16,
}

// Type returns one name for a type of elements, in lower case, and the size of an element in bytes; an empty name if
// it is unknown.
func Type(name string) (string, int64) {
	s := strings.ToLower(strings.ReplaceAll(name, " ", ""))
	s = strings.TrimPrefix(s, "c10::")
	s = strings.TrimPrefix(s, "torch.")
	n, ok := elementBytes[s]
	if !ok {
		return "", 0
	}
	switch s {
	case "longint":
		s = "long"
	case "unsignedchar", "uint8", "uint8_t":
		s = "byte"
	case "signedchar", "int8", "int8_t":
		s = "char"
	case "shortint":
		s = "short"
	case "unsignedshort":
		s = "uint16"
	case "unsignedint":
		s = "uint32"
	case "unsignedlong":
		s = "uint64"
	}
	return s, n
}
