package goal

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/formats/tit"
	"github.com/commq/commq/writer"
)

// exported writes a run as a schedule.
func exported(t testing.TB, dir string) (string, []string) {
	t.Helper()
	var b strings.Builder
	notes, err := Export(context.Background(), dir, &b)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), notes
}

// runOf makes a run of a trace of SimGrid, as the shortest way to write down what ranks do.
func runOf(t testing.TB, trace string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "trace.txt")
	if err := os.WriteFile(file, []byte(trace), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := tit.ImportFile(context.Background(), file, dir, "run", tit.Options{}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "run")
}

// A ping-pong with computing, and a message that is sent while the rank computes.
func TestSchedule(t *testing.T) {
	got, notes := exported(t, runOf(t, `0 init
0 compute 700
0 send 1 9 4097
0 recv 1 9 4097
0 isend 1 3 5
0 irecv 1 4 0
0 compute 900
0 wait 0 1 3
0 wait 1 0 4
0 send 1 5 1
1 init
1 recv 0 9 4097
1 send 0 9 4097
1 recv 0 3 5
1 send 0 4 0
1 recv 0 5 1
2 init
`))
	want := `num_ranks 3

rank 0 {
l1: calc 700
l2: send 4097b to 1 tag 9
l2 requires l1
l3: recv 4097b from 1 tag 9
l3 requires l2
l4: send 5b to 1 tag 3
l4 requires l3
l5: recv 1b from 1 tag 4
l5 irequires l4
l6: calc 900
l6 irequires l5
l7: send 1b to 1 tag 5
l7 requires l6
l7 requires l4
l7 requires l5
}

rank 1 {
l1: recv 4097b from 0 tag 9
l2: send 4097b to 0 tag 9
l2 requires l1
l3: recv 5b from 0 tag 3
l3 requires l2
l4: send 1b to 0 tag 4
l4 requires l3
l5: recv 1b from 0 tag 5
l5 requires l4
}

rank 2 {
l1: calc 0
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Ends of messages without data, written with a byte: 2."}, notes); diff != "" {
		t.Error(diff)
	}
}

// operation is an operation of a schedule.
type operation struct {
	kind         string // send, recv or calc
	bytes        int64
	peer, tag    int
	after, begun []int
	done         bool
}

// parse reads a schedule: the operations of each rank.
func parse(t testing.TB, text string) (ranks [][]operation) {
	t.Helper()
	s := bufio.NewScanner(strings.NewReader(text))
	for s.Scan() {
		line := s.Text()
		var label, before, rank int
		var o operation
		switch {
		case line == "" || line == "}" || strings.HasPrefix(line, "num_ranks"):
			continue
		case strings.HasPrefix(line, "rank"):
			if _, err := fmt.Sscanf(line, "rank %d {", &rank); err != nil || rank != len(ranks) {
				t.Fatalf("%q: %v", line, err)
			}
			ranks = append(ranks, nil)
			continue
		}
		ops := &ranks[len(ranks)-1]
		if strings.Contains(line, "requires") {
			var how string
			if _, err := fmt.Sscanf(line, "l%d %s l%d", &label, &how, &before); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if o := &(*ops)[label-1]; how == "requires" {
				o.after = append(o.after, before-1)
			} else {
				o.begun = append(o.begun, before-1)
			}
			continue
		}
		if _, err := fmt.Sscanf(line, "l%d: calc %d", &label, &o.bytes); err == nil {
			o.kind = "calc"
		} else if _, err := fmt.Sscanf(line, "l%d: send %db to %d tag %d", &label, &o.bytes, &o.peer, &o.tag); err == nil {
			o.kind = "send"
		} else if _, err := fmt.Sscanf(line, "l%d: recv %db from %d tag %d", &label, &o.bytes, &o.peer, &o.tag); err == nil {
			o.kind = "recv"
		} else {
			t.Fatalf("%q is nothing of a schedule", line)
		}
		if *ops = append(*ops, o); len(*ops) != label {
			t.Fatalf("%q: want label %d", line, len(*ops))
		}
	}
	return ranks
}

// plays runs a schedule with sends that wait for nobody, and returns the numbers of operations done and in all. A
// receive is matched in the order in which those of its channel began.
func plays(ranks [][]operation) (done, all int) {
	type channel struct{ src, dst, tag int }
	under, waiting := map[channel]int{}, map[channel][]*operation{}
	begun := make([][]bool, len(ranks))
	for i := range ranks {
		begun[i] = make([]bool, len(ranks[i]))
		all += len(ranks[i])
	}
	for moved := true; moved; {
		moved = false
		for me, ops := range ranks {
		next:
			for i := range ops {
				o := &ops[i]
				if begun[me][i] {
					continue
				}
				for _, b := range o.after {
					if !ops[b].done {
						continue next
					}
				}
				for _, b := range o.begun {
					if !begun[me][b] {
						continue next
					}
				}
				begun[me][i], moved = true, true
				switch o.kind {
				case "recv":
					c := channel{o.peer, me, o.tag}
					waiting[c] = append(waiting[c], o)
					continue
				case "send":
					under[channel{me, o.peer, o.tag}]++
				}
				o.done = true
				done++
			}
		}
		for c, ops := range waiting {
			for under[c] > 0 && len(ops) > 0 {
				ops[0].done, moved = true, true
				ops, under[c], done = ops[1:], under[c]-1, done+1
			}
			waiting[c] = ops
		}
	}
	return done, all
}

// Schedules of captured runs play to their end, and have the messages of the run beside those of its collectives.
func TestCapturedRunsPlay(t *testing.T) {
	for _, name := range []string{"is.W.16", "sp.W.4", "uneven.4"} {
		dir := filepath.Join("../../testdata/runs", name)
		m, err := writer.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		text, notes := exported(t, dir)
		ranks := parse(t, text)
		messages, bytes := int64(0), int64(0)
		for _, ops := range ranks {
			for _, o := range ops {
				if o.kind == "send" && o.tag < 1<<30 {
					messages, bytes = messages+1, bytes+o.bytes
				}
			}
		}
		if done, all := plays(ranks); done != all || len(ranks) != int(m.Ranks) {
			t.Errorf("%s: %d of %d operations; %q", name, done, all, notes)
		}
		if name != "sp.W.4" && (messages != m.Counts.Messages || bytes != m.Counts.MessageBytes) {
			t.Errorf("%s: %d messages of %d bytes; want %d of %d", name, messages, bytes, m.Counts.Messages,
				m.Counts.MessageBytes)
		}
	}
}
