package schema

import (
	"regexp"
	"strings"
	"testing"
)

func TestTablesAreWellFormed(t *testing.T) {
	word := regexp.MustCompile(`^[a-z][a-z_]*$`)
	for _, table := range Tables() {
		seen := map[string]bool{}
		for i, c := range table.Columns {
			at := table.Name + "." + c.Name
			if !word.MatchString(c.Name) || seen[c.Name] {
				t.Errorf("%s: want lower-case words, used once", at)
			}
			seen[c.Name] = true
			if !strings.HasSuffix(c.Doc, ".") || len(c.Doc) < 10 {
				t.Errorf("%s: the description %q is not a sentence", at, c.Doc)
			}
			if (c.Unit == "ns") != strings.HasSuffix(c.Name, "_ns") {
				t.Errorf("%s: unit %q; names of times, and only they, end in _ns", at, c.Unit)
			}
			if (c.Type == Enum) != (len(c.Names) > 0) {
				t.Errorf("%s: an enumeration, and only one, has names", at)
			}
			if _, j := table.Column(c.Name); j != i {
				t.Errorf("%s: Column finds it at %d, want %d", at, j, i)
			}
		}
		for _, k := range table.Key {
			if c, _ := table.Column(k); c == nil || c.Nullable {
				t.Errorf("%s: key column %s is missing or may be null", table.Name, k)
			}
		}
	}
}

func TestBatchesReturnAppendedRows(t *testing.T) {
	r := NullEvent
	r.Rank, r.Seq, r.Call, r.SendTag = 3, 4097, int16(CallIsend), 9
	var b Events
	b.Append(&NullEvent)
	b.Append(&r)
	var got Event
	b.Row(1, &got)
	if got != r || b.Len() != 2 || b.SendTag[0] != NullInt32 || b.Data(1).([]int64)[1] != 4097 {
		t.Errorf("row 1 is %+v of %d, want %+v", got, b.Len(), r)
	}
	if s := b.Slice(1, 2); s.Len() != 1 || s.Rank[0] != 3 {
		t.Errorf("slice [1,2) begins with rank %d, want 3", s.Rank[0])
	}
	b.Resize(1)
	if b.Len() != 1 {
		t.Errorf("%d rows after Resize(1)", b.Len())
	}
}

func TestClassOfCalls(t *testing.T) {
	for id, want := range map[CallID]string{
		CallSend: "MPI_Send send send", CallIrecv: "MPI_Irecv recv irecv",
		CallSendrecv: "MPI_Sendrecv sendrecv sendrecv",
		CallSendInit: "MPI_Send_init other send_init", CallWaitall: "MPI_Waitall complete waitall",
		CallIalltoallw: "MPI_Ialltoallw collective icollective", CallCommSplit: "MPI_Comm_split comm comm_new",
		CallMprobe: "MPI_Mprobe probe mprobe", CallFinalize: "MPI_Finalize other finalize",
	} {
		c := Calls[id]
		if got := c.Name + " " + c.Class.String() + " " + c.Recorder; got != want || c.ID != id ||
			id.String() != c.Name {
			t.Errorf("call %d is %q, want %q", id, got, want)
		}
	}
	if len(Calls) != 726 || len(CallNames) != len(Calls) {
		t.Errorf("%d calls, %d names; want the 725 lines of calls.csv and 0", len(Calls), len(CallNames))
	}
}
