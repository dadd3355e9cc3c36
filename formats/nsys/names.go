package nsys

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// meaning is the kind of thing that a name stands for.
type meaning uint8

const (
	other      meaning = iota
	annotation         // of PyTorch around an operation: nccl:all_reduce
	function           // of NCCL that asks for an operation: ncclAllReduce
	groupStart         // ncclGroupStart
	groupEnd           // ncclGroupEnd
	joins              // a function of NCCL that makes a communicator or ends one: ncclCommInitRank
	step               // of the training
	kernel             // of a library for collectives
)

// label is a name that matters.
type label struct {
	is   meaning
	text string
	call schema.CallID // 0 if unknown
	to   int32         // of an annotation of a message: the rank in the group, or Unknown
}

// longest is the number of characters of a name that are read.
const longest = 256

// labels are the texts of the table StringIds that matter, by their numbers.
type labels map[int64]label

// readLabels reads the table StringIds.
func readLabels(ctx context.Context, f *file) (labels, error) {
	all := labels{}
	err := f.query(ctx, "StringIds", []string{"value"}, "SELECT id, substr(value, 1, "+strconv.Itoa(longest)+
		") FROM StringIds", func(r *row) {
		if l := labelOf(r.text(0)); l.is != other {
			all[r.id] = l
		}
	})
	return all, err
}

var (
	stepWord = regexp.MustCompile(`(?i)^(?:profilerstep|(?:train(?:ing)?[ _-]?)?(?:step|iter(?:ation)?))[ _#:=-]*\d*$`)
	peerWord = regexp.MustCompile(`\d+(?:->|<-)(\d+)`)
)

// labelOf returns what a name stands for.
func labelOf(name string) label {
	l := label{text: name, to: training.Unknown}
	switch rest, isNCCL := strings.CutPrefix(name, "nccl"); {
	case stepWord.MatchString(name):
		l.is = step
	case isNCCL && strings.HasPrefix(rest, ":"):
		l.annotate()
	case training.IsCommunication(name) && strings.Contains(name, "Kernel"):
		l.is = kernel
		l.call = kernelCall(name)
	case rest == "GroupStart":
		l.is = groupStart
	case rest == "GroupEnd":
		l.is = groupEnd
	case isNCCL && strings.HasPrefix(rest, "Comm"):
		l.is = joins
	case isNCCL:
		if l.call = callOf(rest); l.call != 0 {
			l.is = function
		}
	}
	return l
}

// annotate reads an annotation of PyTorch: "nccl:all_reduce, op_id = 7", "nccl:send 0->1".
func (l *label) annotate() {
	text, _, _ := strings.Cut(l.text, ",")
	if l.call = training.CallOf(text); l.call == 0 {
		return
	}
	l.is = annotation
	if m := peerWord.FindStringSubmatch(text); m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 32); err == nil {
			l.to = int32(n)
		}
	}
}

// callOf returns the call for an operation of NCCL, 0 for others.
func callOf(name string) schema.CallID {
	if name == "Bcast" {
		return schema.CallIbcast
	}
	return training.CallOf(name)
}

// kernelCall returns the call for a kernel: ncclDevKernel_AllReduce_Sum_f32_RING_LL, ncclKernel_AllGather_RING_LL; 0
// for kernels of sends and receives, whose names do not contain the operation.
func kernelCall(name string) schema.CallID {
	name, _, _ = strings.Cut(name, "(")
	words := strings.Split(name, "_")
	if len(words) < 2 {
		return 0
	}
	return callOf(words[1])
}

// kernelNote returns what the name of a kernel has in addition to the operation: "Sum f32 RING LL".
func kernelNote(name string) string {
	name, _, _ = strings.Cut(name, "(")
	words := strings.Split(name, "_")
	if len(words) < 3 {
		return ""
	}
	return strings.Join(words[2:], " ")
}
