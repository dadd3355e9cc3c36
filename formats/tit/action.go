package tit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// datatype is one of SMPI's predefined datatypes.
type datatype struct {
	name  string
	bytes int64
}

// byteType and doubleType are the datatypes of sizes without one: after "init", and after "init 1".
const byteType, doubleType = 6, 0

// datatypes are SMPI's predefined datatypes by their number in traces (src/smpi/mpi/smpi_datatype.cpp of SimGrid).
var datatypes = [...]datatype{
	{"MPI_DOUBLE", 8}, {"MPI_INT", 4}, {"MPI_CHAR", 1}, {"MPI_SHORT", 2}, {"MPI_LONG", 8}, {"MPI_FLOAT", 4},
	{"MPI_BYTE", 1}, {"MPI_LONG_LONG", 8}, {"MPI_SIGNED_CHAR", 1}, {"MPI_UNSIGNED_CHAR", 1}, {"MPI_UNSIGNED_SHORT", 2},
	{"MPI_UNSIGNED", 4}, {"MPI_UNSIGNED_LONG", 8}, {"MPI_UNSIGNED_LONG_LONG", 8}, {"MPI_LONG_DOUBLE", 16},
	{"MPI_WCHAR", 4}, {"MPI_C_BOOL", 1}, {"MPI_INT8_T", 1}, {"MPI_INT16_T", 2}, {"MPI_INT32_T", 4}, {"MPI_INT64_T", 8},
	{"MPI_UINT8_T", 1}, {"MPI_UINT16_T", 2}, {"MPI_UINT32_T", 4}, {"MPI_UINT64_T", 8}, {"MPI_C_FLOAT_COMPLEX", 8},
	{"MPI_C_DOUBLE_COMPLEX", 16}, {"MPI_C_LONG_DOUBLE_COMPLEX", 32}, {"MPI_AINT", 8}, {"MPI_OFFSET", 8},
	{"MPI_FLOAT_INT", 8}, {"MPI_LONG_INT", 16}, {"MPI_DOUBLE_INT", 16}, {"MPI_SHORT_INT", 8}, {"MPI_2INT", 8},
	{"MPI_2FLOAT", 8}, {"MPI_2DOUBLE", 16}, {"MPI_2LONG", 16}, {"MPI_REAL", 4}, {"MPI_REAL4", 4}, {"MPI_REAL8", 8},
	{"MPI_REAL16", 16}, {"MPI_COMPLEX8", 8}, {"MPI_COMPLEX16", 16}, {"MPI_COMPLEX32", 16}, {"MPI_INTEGER1", 4},
	{"MPI_INTEGER2", 2}, {"MPI_INTEGER4", 4}, {"MPI_INTEGER8", 8}, {"MPI_INTEGER16", 16}, {"MPI_LONG_DOUBLE_INT", 32},
	{"MPI_CXX_BOOL", 1}, {"MPI_CXX_FLOAT_COMPLEX", 8}, {"MPI_CXX_DOUBLE_COMPLEX", 16},
	{"MPI_CXX_LONG_DOUBLE_COMPLEX", 32}, {"MPI_UB", 0}, {"MPI_LB", 0}, {"MPI_PACKED", 1},
}

// collectives are the actions that are collective operations.
var collectives = map[string]schema.CallID{
	"barrier": schema.CallBarrier, "bcast": schema.CallBcast, "reduce": schema.CallReduce,
	"allreduce": schema.CallAllreduce, "gather": schema.CallGather, "gatherv": schema.CallGatherv,
	"scatter": schema.CallScatter, "scatterv": schema.CallScatterv, "allgather": schema.CallAllgather,
	"allgatherv": schema.CallAllgatherv, "alltoall": schema.CallAlltoall, "alltoallv": schema.CallAlltoallv,
	"reducescatter": schema.CallReduceScatter, "scan": schema.CallScan, "exscan": schema.CallExscan,
}

// others are the remaining actions.
var others = map[string]bool{
	"init": true, "finalize": true, "comm_size": true, "comm_split": true, "comm_dup": true, "send": true,
	"isend": true, "recv": true, "irecv": true, "sendRecv": true, "wait": true, "waitall": true, "test": true,
	"compute": true, "sleep": true, "location": true,
}

// IsTrace reports whether a file that begins with these bytes is a trace: its first line with text is an action.
func IsTrace(head []byte) bool {
	for line := range strings.Lines(string(head)) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) < 2 {
			return false
		}
		_, err := strconv.ParseUint(f[0], 10, 31)
		_, known := collectives[f[1]]
		return err == nil && (known || others[f[1]])
	}
	return false
}

// fields are the fields of a line after the rank and the name of the action. The first error of a field is kept, so
// that a line is read without a check at each.
type fields struct {
	all []string
	err error
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// has reports whether there is a field with this index.
func (f *fields) has(i int) bool { return i < len(f.all) }

// number returns a field as a number, which may be written like 1e6 and is cut to a whole one, as SimGrid does.
func (f *fields) number(i int, what string, least, most float64) float64 {
	if !f.has(i) {
		f.fail("field %d is missing: %s", i+1, what)
		return 0
	}
	x, err := strconv.ParseFloat(f.all[i], 64)
	if x = math.Trunc(x); err != nil || !(x >= least && x <= most) {
		f.fail("%s is %q; want a number from %.0f to %.0f", what, f.all[i], least, most)
		return 0
	}
	return x
}

// mostElements is more than the elements of any call: greater numbers are not believed.
const mostElements = 1 << 48

func (f *fields) count(i int, what string) int64 { return int64(f.number(i, what, 0, mostElements)) }

// counts returns n fields from i on as counts.
func (f *fields) counts(i, n int, what string) []int64 {
	if !f.has(i + n - 1) {
		f.fail("%d fields; want %d numbers, one for each rank, from the %d. field on: %s", len(f.all), n, i+1, what)
		return nil
	}
	all := make([]int64, n)
	for k := range all {
		all[k] = f.count(i+k, what)
	}
	return all
}

// anySource and anyTag are SimGrid's numbers for MPI_ANY_SOURCE and MPI_ANY_TAG.
const anySource, anyTag = -333, -444

// rank returns a field that is a rank.
func (f *fields) rank(i int, what string, ranks int) int32 {
	if f.has(i) && f.all[i] == strconv.Itoa(anySource) {
		f.fail("%s is MPI_ANY_SOURCE; the trace does not tell whose message it got: trace the program with its "+
			"sources named", what)
		return 0
	}
	return int32(f.number(i, what, 0, float64(ranks-1)))
}

// tag returns a field that is a tag.
func (f *fields) tag(i int) int32 {
	if f.has(i) && f.all[i] == strconv.Itoa(anyTag) {
		f.fail("the tag is MPI_ANY_TAG; the trace does not tell which message it got: trace the program with its tags " +
			"named")
		return 0
	}
	return int32(f.number(i, "the tag", -math.MaxInt32, math.MaxInt32))
}

// optionalRank returns a field that is a rank, 0 if there is none.
func (f *fields) optionalRank(i int, what string, ranks int) int32 {
	if !f.has(i) {
		return 0
	}
	return f.rank(i, what, ranks)
}

// datatype returns a field that is a datatype: the default if there is none.
func (f *fields) datatype(i, byDefault int) int {
	if !f.has(i) {
		return byDefault
	}
	return int(f.number(i, "the datatype", 0, float64(len(datatypes)-1)))
}
