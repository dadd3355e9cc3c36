package training_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// collective is an operation on the group of all ranks.
func collective(call schema.CallID, seq int64, splits ...int64) training.Op {
	return training.Op{Call: call, Seq: seq, InElements: 6, OutElements: 6, Type: "float", Root: training.Unknown,
		Peer: training.Unknown, InSplit: splits, OutSplit: splits}
}

// without names the group of no operation.
func without(ops ...training.Op) []training.Op {
	for i := range ops {
		ops[i].Group = training.Unknown
	}
	return ops
}

const even, uneven, reduce = schema.CallIalltoall, schema.CallIalltoallv, schema.CallIallreduce

// made imports a job of ranks that made these operations one after the other, and returns the calls of each as text,
// with their instances, and how the run ended. Operations whose Group is 0 are on the group of all ranks.
func made(t *testing.T, o training.Options, ops ...[]training.Op) (calls []string, ended string) {
	t.Helper()
	everyone := training.Group{Name: "0"}
	for n := range ops {
		everyone.Ranks = append(everyone.Ranks, int32(n))
	}
	var ranks []*training.Rank
	for n, list := range ops {
		r := &training.Rank{Rank: int32(n), World: int32(len(ops)), Groups: []training.Group{everyone}, Ops: list}
		for i := range list {
			at := int64(i) * 1000
			r.Ops[i].IssuedNs, r.Ops[i].ReturnedNs, r.Ops[i].StartNs, r.Ops[i].EndNs = at, at, at, at+100
		}
		r.Close()
		ranks = append(ranks, r)
	}
	calls = make([]string, len(ops))
	o.Format = "test"
	m, err := training.Collect(context.Background(), ranks, func(_ int, b schema.Batch) error {
		if b, ok := b.(*schema.Events); ok {
			var e schema.Event
			for i := range b.Len() {
				if b.Row(i, &e); e.Class == int16(schema.ClassCollective) {
					name := strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_I")
					calls[e.Rank] = strings.TrimSpace(fmt.Sprintf("%s %s:%d", calls[e.Rank], name, e.Instance))
				}
			}
		}
		return nil
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	return calls, m.Ended
}

// All-to-alls are the same operation if all ranks made the same, or if they are numbered: then splits that one rank
// tells, or the name there, make those of all ranks uneven. Else each stays as its own rank tells it.
func TestUnevenAllToAlls(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     training.Options
		ranks [2][]training.Op
		want  []string
	}{
		{"splits on one rank", training.Options{},
			[2][]training.Op{{collective(even, -1), collective(even, -1, 2, 4)}, {collective(even, -1), collective(even, -1)}},
			[]string{"alltoall:0 alltoallv:1", "alltoall:0 alltoallv:1"}},
		{"name on one rank", training.Options{},
			[2][]training.Op{{collective(even, -1)}, {collective(uneven, -1)}}, []string{"alltoallv:0", "alltoallv:0"}},
		// Rank 1 lacks the first: its uneven one is at the place of rank 0's even one, and its even one at that of the
		// uneven.
		{"the first is lacking", training.Options{},
			[2][]training.Op{{collective(even, -1), collective(even, -1, 2, 4), collective(even, -1)},
				{collective(even, -1, 2, 4), collective(even, -1)}},
			[]string{"alltoall:0 alltoallv:1 alltoall:2", "alltoallv:0 alltoall:1"}},
		{"the first is lacking, numbered", training.Options{Numbered: true},
			[2][]training.Op{{collective(even, 7), collective(even, 8, 2, 4), collective(even, 9)},
				{collective(even, 8), collective(even, 9)}},
			[]string{"alltoall:7 alltoallv:8 alltoall:9", "alltoallv:8 alltoall:9"}},
		{"numbered, without a number", training.Options{Numbered: true},
			[2][]training.Op{{collective(even, -1, 2, 4)}, {collective(even, -1)}},
			[]string{"alltoallv:-1", "alltoall:-1"}},
	} {
		if got, _ := made(t, c.o, c.ranks[0], c.ranks[1]); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Threads of a process may take operations from queues in another order than its neighbours' do: numbers tell which is
// which.
func TestNumbersOrderOperations(t *testing.T) {
	got, ended := made(t, training.Options{}, []training.Op{collective(even, 3), collective(reduce, 5)},
		[]training.Op{collective(reduce, 5), collective(even, 3)})
	if want := []string{"alltoall:0 allreduce:1", "allreduce:1 alltoall:0"}; !slices.Equal(got, want) ||
		ended != "finalized" {
		t.Errorf("%q, %s", got, ended)
	}
}

// Where traces name no groups all operations are on all ranks if these made the same: an all-to-all may be uneven on
// one and not tell that on the other.
func TestOneGroup(t *testing.T) {
	got, ended := made(t, training.Options{}, without(collective(reduce, -1), collective(uneven, -1)),
		without(collective(reduce, -1), collective(even, -1)))
	if want := []string{"allreduce:0 alltoallv:1", "allreduce:0 alltoallv:1"}; !slices.Equal(got, want) ||
		ended != "finalized" {
		t.Errorf("%q, %s", got, ended)
	}
	got, _ = made(t, training.Options{}, without(collective(reduce, -1)), without(collective(even, -1)))
	null := fmt.Sprint(schema.NullInt64)
	if want := []string{"allreduce:" + null, "alltoall:" + null}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Both names that PyTorch has for a type are one.
func TestType(t *testing.T) {
	for _, names := range [][2]string{{"short int", "Short"}, {"long int", "Long"}, {"unsigned short", "UInt16"},
		{"unsigned int", "UInt32"}, {"unsigned long", "UInt64"}, {"c10::Half", "Half"}, {"unsigned char", "Byte"}} {
		a, n := training.Type(names[0])
		if b, m := training.Type(names[1]); a != b || n != m || n == 0 {
			t.Errorf("%s is %s of %d bytes, %s is %s of %d", names[0], a, n, names[1], b, m)
		}
	}
}
