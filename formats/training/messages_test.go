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

// exchange is a message from a rank to a member of one of its groups, as both sides tell it: without the group.
type exchange struct {
	from  int
	group string
	to    int // world rank
	n     int64
}

// imports makes the traces of a grid of rows and columns of processes, of which each row and each column is a group,
// and returns the messages of the imported run as "from-to elements on group", and its warnings. Ranks in without have
// no trace.
func imports(t *testing.T, rows, columns int, all []exchange, without ...int) (messages []string, warnings string) {
	t.Helper()
	groupOf := func(rank int, name string) training.Group {
		g := training.Group{Name: fmt.Sprint(name, rank/columns), Description: name}
		if name == "column" {
			g.Name = fmt.Sprint(name, rank%columns)
		}
		for r := range rows * columns {
			if name == "row" && r/columns == rank/columns || name == "column" && r%columns == rank%columns {
				g.Ranks = append(g.Ranks, int32(r))
			}
		}
		return g
	}
	ranks := make([]*training.Rank, rows*columns)
	for r := range ranks {
		ranks[r] = &training.Rank{Rank: int32(r), World: int32(len(ranks)), HasGroups: true,
			Groups: []training.Group{groupOf(r, "row"), groupOf(r, "column")}}
	}
	at := int64(0)
	for _, x := range all {
		members := groupOf(x.from, x.group).Ranks
		add := func(rank, other int, call schema.CallID) {
			at += 1000
			ranks[rank].Ops = append(ranks[rank].Ops, training.Op{Call: call, Group: training.Unknown, Seq: training.Unknown,
				IssuedNs: at, ReturnedNs: at, StartNs: at, EndNs: at + 100, InElements: x.n, OutElements: training.Unknown,
				Type: "float", Root: training.Unknown, Peer: int32(slices.Index(members, int32(other))), PeerInGroup: true})
		}
		add(x.from, x.to, schema.CallIsend)
		add(x.to, x.from, schema.CallIrecv)
	}
	ranks = slices.DeleteFunc(ranks, func(r *training.Rank) bool { return slices.Contains(without, int(r.Rank)) })
	for _, r := range ranks {
		r.Close()
	}
	names := map[int32]string{}
	m, err := training.Collect(context.Background(), ranks, func(_ int, b schema.Batch) error {
		switch b := b.(type) {
		case *schema.Messages:
			for i := range b.Len() {
				messages = append(messages, fmt.Sprintf("%d-%d %d on %d", b.Src[i], b.Dst[i], b.Bytes[i]/4, b.Comm[i]))
			}
		case *schema.Comms:
			for i := range b.Len() {
				names[b.Comm[i]] = b.Name[i]
			}
		}
		return nil
	}, training.Options{Format: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range messages {
		var from, to, comm int
		var n int64
		if _, err := fmt.Sscanf(text, "%d-%d %d on %d", &from, &to, &n, &comm); err != nil {
			t.Fatal(err)
		}
		messages[i] = fmt.Sprintf("%d-%d %d on %s", from, to, n, names[int32(comm)])
	}
	slices.Sort(messages)
	return messages, strings.Join(m.Warnings, "\n")
}

// On a grid of 3 x 3 processes each column passes 77 elements down. Rank 4 is number 1 of its row and of its column,
// and sends to number 2 of one. Both numbers 2, ranks 5 and 7, receive from a number. That of rank 5 is 0, and rank 4
// is not number 0 of its row: it sends to rank 7. Rank 3 sends to number 2 as well, and rank 5 receives from number 0,
// which rank 3 is in their row; but rank 2, which is number 0 of their column, sends to number 1, and to nobody but
// rank 5.
func TestGroupsOfMessages(t *testing.T) {
	var down []exchange
	for r := range 6 {
		down = append(down, exchange{r, "column", r + 3, 77})
	}
	got, warnings := imports(t, 3, 3, down)
	want := []string{"0-3 77 on column", "1-4 77 on column", "2-5 77 on column", "3-6 77 on column", "4-7 77 on column",
		"5-8 77 on column"}
	if !slices.Equal(got, want) || !strings.Contains(warnings, "whose group the traces do not name: 12;") {
		t.Errorf("%v, want %v\n%s", got, want, warnings)
	}
}

// On a grid of 2 x 2 each process sends 77 elements to the other one of its row. The first row has the numbers that its
// processes have in the group of all, so its messages may be on either: only those of the second row are known, and 88
// elements that go down the first column, but not without the trace of the other side.
func TestGroupsOfMessagesAreOpen(t *testing.T) {
	all := []exchange{{0, "row", 1, 77}, {1, "row", 0, 77}, {2, "row", 3, 77}, {3, "row", 2, 77}, {0, "column", 2, 88}}
	got, warnings := imports(t, 2, 2, all)
	if !slices.Equal(got, []string{"0-2 88 on column", "2-3 77 on row", "3-2 77 on row"}) ||
		!strings.Contains(warnings, "Sends and receives whose other side the traces do not tell, which have no row: 4.") {
		t.Errorf("%v\n%s", got, warnings)
	}
	got, warnings = imports(t, 2, 2, all[4:], 2)
	if len(got) != 0 ||
		!strings.Contains(warnings, "Sends and receives whose other side the traces do not tell, which have no row: 1.") {
		t.Errorf("without a trace of rank 2: %v\n%s", got, warnings)
	}
}
