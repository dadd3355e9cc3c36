package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// In an exported trace records are sorted by time, states of a thread do not overlap, every call that begins ends,
// and there are as many calls and messages as in the run.
func TestPrvIsConsistent(t *testing.T) {
	for _, run := range []string{"mg.W.16", "is.W.16", "rma.3", "bt-io.S.4", "ft.A.64"} {
		file := filepath.Join(t.TempDir(), "trace.prv")
		mustCommq(t, "export", "prv", "--store", runsDir, "--run", run, "-o", file)
		trace := readPrv(t, file)
		count := mustCommq(t, "sql", "--store", runsDir, "--run", run, "--format", "csv",
			"SELECT (SELECT count(*) FROM events WHERE end_ns IS NOT NULL), (SELECT count(*) FROM messages WHERE recv_end_ns IS NOT NULL AND send_start_ns IS NOT NULL), (SELECT max(end_ns) FROM events)")
		want := strings.Split(strings.TrimSpace(count), "\n")[1]
		if got := fmt.Sprintf("%d,%d,%d", trace.calls, trace.messages, trace.end); got != want {
			t.Errorf("%s: the trace has %s calls, messages and ns, the run %s", run, got, want)
		}
		for _, ending := range []string{".pcf", ".row"} {
			if text, err := os.ReadFile(strings.TrimSuffix(file, ".prv") + ending); err != nil || len(text) < 50 {
				t.Errorf("%s: %q, %v", run, text, err)
			}
		}
	}
}

// prvTrace is the counts of readPrv.
type prvTrace struct{ calls, messages, end int64 }

func readPrv(t *testing.T, file string) (x prvTrace) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	var last int64
	until, inside := map[string]int64{}, map[string]int64{}
	for n := 1; in.Scan(); n++ {
		line := in.Text()
		switch {
		case strings.HasPrefix(line, "#Paraver ("):
			_, rest, _ := strings.Cut(line, "):")
			text, _, _ := strings.Cut(rest, "_ns:")
			if x.end, err = strconv.ParseInt(text, 10, 64); err != nil || n != 1 {
				t.Fatalf("%s:%d: %s", file, n, line)
			}
			continue
		case strings.HasPrefix(line, "c:1:"):
			continue
		}
		var v []int64
		for field := range strings.SplitSeq(line, ":") {
			number, err := strconv.ParseInt(field, 10, 64)
			if err != nil || number < 0 {
				t.Fatalf("%s:%d: %s", file, n, line)
			}
			v = append(v, number)
		}
		if len(v) < 8 || v[5] < last || v[5] > x.end {
			t.Fatalf("%s:%d: at %d, after %d: %s", file, n, v[5], last, line)
		}
		last = v[5]
		thread := fmt.Sprint(v[1:5])
		switch {
		case v[0] == 1 && len(v) == 8:
			if v[5] < until[thread] || v[6] <= v[5] || v[6] > x.end {
				t.Fatalf("%s:%d: a state after %d: %s", file, n, until[thread], line)
			}
			until[thread] = v[6]
		case v[0] == 2 && len(v)%2 == 0:
			if begins := v[7] != 0; begins == (inside[thread] != 0) || !begins && v[6] != inside[thread] {
				t.Fatalf("%s:%d: inside %d: %s", file, n, inside[thread], line)
			}
			inside[thread] = 0
			if v[7] != 0 {
				inside[thread] = v[6]
				x.calls++
			}
		case v[0] == 3 && len(v) == 15:
			if v[12] < v[11] {
				t.Fatalf("%s:%d: received before it was posted: %s", file, n, line)
			}
			x.messages++
		default:
			t.Fatalf("%s:%d: %s", file, n, line)
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(mapValues(inside), func(typ int64) bool { return typ != 0 }); i >= 0 {
		t.Errorf("%s: a call does not end", file)
	}
	return x
}

func mapValues(m map[string]int64) (all []int64) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}
