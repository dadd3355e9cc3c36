package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
)

// diffStore has two runs of three ranks: b.3 sends one message more, another payload, and none between two ranks.
func diffStore(t *testing.T) string {
	t.Helper()
	store := t.TempDir()
	message := func(src, dst int32, seq, bytes int64) schema.Message {
		m := schema.NullMessage
		m.Src, m.Dst, m.Tag, m.Bytes, m.SendSeq = src, dst, 9, bytes, seq
		return m
	}
	writeSmall(t, store, "a.3", 3, message(0, 1, 1, 4097), message(1, 2, 1, 4097), message(2, 0, 1, 17))
	writeSmall(t, store, "b.3", 3, message(0, 1, 1, 4097), message(0, 1, 2, 4097), message(0, 2, 3, 4097),
		message(2, 0, 1, 17))
	return store
}

func TestDiffCommand(t *testing.T) {
	store := diffStore(t)
	status, out, errs := commandLine("", "diff", "--store", store, "a.3", "b.3")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	for _, line := range []string{
		"messages               3       4  +33.3 %",
		"message_bytes      8,211  12,308  +49.9 %", // 3*4097+17 over 2*4097+17
		"rank_messages_max      1       3  +200 %",
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
	if strings.Contains(out, "\npairs ") { // both have the same three pairs
		t.Errorf("pairs in\n%s", out)
	}
	if status, _, _ := commandLine("", "diff", "--store", store, "a.3", "b.3", "--exit-code"); status != exitFailed {
		t.Errorf("--exit-code: %d", status)
	}
	if status, out, _ := commandLine("", "diff", "--store", store, "a.3", "a.3", "--exit-code"); status != 0 ||
		!strings.Contains(out, "exact measures are the same.") {
		t.Errorf("--exit-code of equal runs: %d\n%s", status, out)
	}
	status, out, _ = commandLine("", "diff", "--store", store, "--base", "a.*", "--run", "b.*", "--format", "json")
	var d compare.Comparison
	if err := json.Unmarshal([]byte(out), &d); status != 0 || err != nil || d.Base[0] != "a.3" || d.NewRanks != 3 {
		t.Errorf("json: %d %v %+v", status, err, d)
	}
	status, out, _ = commandLine("", "diff", "--store", store, "a.3", "b.3", "--format", "csv")
	if status != 0 || !strings.Contains(out, "\nmessages,,1,true,more,1,3,3,3,1,4,4,4,1.3333333333333333,1,,,\n") {
		t.Errorf("csv: %d\n%s", status, out)
	}
	picture := filepath.Join(t.TempDir(), "d.png")
	if status, _, errs := commandLine("", "diff", "--store", store, "a.3", "b.3", "--plot", picture, "--by",
		"bytes"); status != 0 {
		t.Error(errs)
	}
	if info, err := os.Stat(picture); err != nil || info.Size() < 1000 {
		t.Error("no picture", err)
	}
}

func TestDiffWrongUse(t *testing.T) {
	store := diffStore(t)
	writeSmall(t, store, "c.5", 5)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "want two runs, commq diff BASE NEW"},
		{[]string{"a.3"}, "want two runs"},
		{[]string{"a.3", "b.3", "--run", "a.3"}, "but not both"},
		{[]string{"a.3", "no.3"}, "new: "},
		{[]string{"--base", "x.*", "--run", "b.3"}, "base: "},
		{[]string{"--base", "a.3", "--run", "b.3", "--run", "c.5"}, "run b.3 has 3 ranks and run c.5 5"},
		{[]string{"--base", "a.3", "--base", "a.3", "--run", "b.3"}, `run "a.3" is given twice`},
		{[]string{"a.3", "b.3", "--format", "xml"}, "want one of table, markdown, csv, json"},
		{[]string{"a.3", "b.3", "--alpha", "1"}, "want a p-value between 0 and 1"},
		{[]string{"a.3", "b.3", "--plot", "d.gif"}, "ending in .png"},
		{[]string{"a.3", "b.3", "--machine", "flat"}, "capture it again with --record all"},
	} {
		status, _, errs := commandLine("", append([]string{"diff", "--store", store}, c.args...)...)
		if status != exitCannot || !strings.Contains(errs, c.want) {
			t.Errorf("%v: status %d, %q; want %q", c.args, status, errs, c.want)
		}
	}
}

// wireStore has runs of three ranks in which rank 1 sends rank 2 two messages with tag 9 and rank 2 sends rank 0 one.
// In c.3 the second message has another payload. In d.3 only the order between the two senders differs. In e.3 the
// last message has another size.
func wireStore(t *testing.T) string {
	t.Helper()
	store := t.TempDir()
	message := func(src, dst int32, seq, bytes, hash int64) schema.Message {
		m := schema.NullMessage
		m.Src, m.Dst, m.Tag, m.Bytes, m.SendSeq, m.RecvPostSeq, m.PayloadHash = src, dst, 9, bytes, seq, seq, hash
		return m
	}
	writeSmall(t, store, "a.3", 3, message(1, 2, 1, 4097, 77), message(1, 2, 2, 4097, 78), message(2, 0, 1, 17, 79))
	writeSmall(t, store, "c.3", 3, message(1, 2, 1, 4097, 77), message(1, 2, 2, 4097, 99), message(2, 0, 1, 17, 79))
	writeSmall(t, store, "d.3", 3, message(1, 2, 4, 4097, 77), message(1, 2, 6, 4097, 78), message(2, 0, 9, 17, 79))
	writeSmall(t, store, "e.3", 3, message(1, 2, 1, 4097, 77), message(1, 2, 2, 4097, 78), message(2, 0, 1, 18, 79),
		message(2, 1, 3, 5, 3))
	writeSmall(t, store, "none.3", 3)
	return store
}

func TestDiffWire(t *testing.T) {
	store := wireStore(t)
	for _, c := range []struct {
		base, new string
		status    int
		want      string
	}{
		{"a.3", "d.3", exitDone, "3 messages of a.3 and all contributions to collectives are the same in d.3, byte by byte\n"},
		{"a.3", "c.3", exitFailed, "first difference: message 2 from rank 1 to rank 2 with tag 9 on communicator 0: another payload of 4,097 bytes\n" +
			"all differences: 1 with another payload (--format csv lists them); a.3 has 3 messages\n"},
		{"a.3", "e.3", exitFailed, "first difference: message 1 from rank 2 to rank 0 with tag 9 on communicator 0: 18 bytes, before 17\n" +
			"all differences: 1 with another size, 1 only in e.3 (--format csv lists them); a.3 has 3 messages\n"},
		{"e.3", "a.3", exitFailed, "first difference: message 1 from rank 2 to rank 0 with tag 9 on communicator 0: 17 bytes, before 18\n" +
			"all differences: 1 with another size, 1 only in e.3 (--format csv lists them); e.3 has 4 messages\n"},
	} {
		status, out, errs := commandLine("", "diff", "--store", store, c.base, c.new, "--wire", "--exit-code")
		if status != c.status || out != c.want {
			t.Errorf("%s and %s: status %d\n%s%s\nwant %s", c.base, c.new, status, out, errs, c.want)
		}
	}
	var w compare.Wire
	status, out, _ := commandLine("", "diff", "--store", store, "a.3", "c.3", "--wire", "--format", "json")
	if err := json.Unmarshal([]byte(out), &w); status != 0 || err != nil || w.First == nil || w.First.Rank != 1 ||
		*w.First.Peer != 2 || w.First.Nth != 2 || w.Counts["payload"] != 1 {
		t.Errorf("%d %v %s", status, err, out)
	}
	status, out, _ = commandLine("", "diff", "--store", store, "a.3", "e.3", "--wire", "--format", "csv")
	if status != 0 || !strings.Contains(out, "\nmessage,2,0,0,9,1,bytes,17,18,") ||
		!strings.Contains(out, "\nmessage,2,1,0,9,1,new,,5,") {
		t.Errorf("%d %s", status, out)
	}
	if status, _, errs := commandLine("", "diff", "--store", store, "a.3", "none.3",
		"--wire"); status != exitCannot || !strings.Contains(errs,
		`run "none.3" was captured without payload hashes; capture it again with --hash crc64`) {
		t.Errorf("%d %s", status, errs)
	}
}

// TestExportBenchfmt reads the export with benchstat's own reader.
func TestExportBenchfmt(t *testing.T) {
	store := diffStore(t)
	status, out, errs := commandLine("", "export", "benchfmt", "--store", store, "--run", "a.3", "--run", "b.3",
		"--benchmark", "halo-x")
	if status != 0 || errs != "commq: export benchfmt: left out: messages/...\n" {
		t.Fatal(status, errs)
	}
	r := benchfmt.NewReader(strings.NewReader(out), "a.txt")
	var messages []float64
	for r.Scan() {
		switch record := r.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Fatalf("%v in\n%s", record, out)
		case *benchfmt.Result:
			if name := record.Name.String(); name != "Halo_x/ranks=3" {
				t.Errorf("the name is %q", name)
			}
			v, ok := record.Value("messages")
			if !ok {
				t.Errorf("no messages in\n%s", out)
			}
			messages = append(messages, v)
		}
	}
	if err := r.Err(); err != nil || len(messages) != 2 || messages[0] != 3 || messages[1] != 4 {
		t.Errorf("%v %v in\n%s", err, messages, out)
	}
	if unit := r.Units()[benchfmt.UnitMetadataKey{Unit: "messages", Key: "assume"}]; unit == nil ||
		unit.Value != "exact" {
		t.Errorf("messages are not exact in\n%s", out)
	}
}

// Between runs of planted programs in virtual times diff names the faults that came, went and grew, each with its line.
func TestDiffNamesFindings(t *testing.T) {
	captureEnvironment(t)
	lines := plantedLines(t, "planted.c")
	for _, library := range []string{"openmpi", "mpich"} {
		exe := compilePlanted(t, library, "planted.c")
		store, machine := t.TempDir(), filepath.Join(t.TempDir(), "machine.yaml")
		if err := os.WriteFile(machine, []byte(slowMachine), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ name, fault, us string }{
			{"small", "late_sender", "500"}, {"large", "late_sender", "5000"}, {"root", "late_root", "5000"},
		} {
			commq(t, "capture", "--store", store, "--name", c.name, "-q", "-n", "4", "--sim-ranks", "1", "--machine", machine,
				"--clock", "none", "--", exe, c.fault, c.us, fmt.Sprint(plantedSteps))
		}
		for _, c := range []struct {
			base, new string
			want      []string
		}{
			{"small", "large", []string{"grew late-sender " + lines["late_sender"]}},
			{"large", "small", []string{"shrank late-sender " + lines["late_sender"]}},
			{"large", "root", []string{"came late-root " + lines["late_root"], "went late-sender " + lines["late_sender"]}},
		} {
			var d compare.Comparison
			out := commq(t, "diff", "--store", store, c.base, c.new, "--format", "json")
			if err := json.Unmarshal([]byte(out), &d); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range d.Findings {
				got = append(got, f.What+" "+f.Rule+" "+filepath.Base(f.Place))
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) || len(d.FindingNotes) > 0 {
				t.Errorf("%s: %s and %s: %q, want %q; notes %q", library, c.base, c.new, got, c.want, d.FindingNotes)
			}
		}
	}
}

// Runs that cannot be diagnosed are compared without their findings; the reason is given if they have times.
func TestDiffSaysWhyFindingsAreMissing(t *testing.T) {
	const head = "\nfindings: "
	for _, c := range []struct{ store, base, new, want string }{
		{"../../testdata/runs", "mg.W.4", "mg.W.8", head + `not looked for: run "mg.W.4" does not have the rows of all calls (record messages)`},
		{diffStore(t), "a.3", "b.3", ""}, // without times
	} {
		_, out, _ := strings.Cut(commq(t, "diff", "--store", c.store, c.base, c.new), "the same.\n")
		if _, note, found := strings.Cut(out, head); found != (c.want != "") || !strings.HasPrefix(head+note, c.want) {
			t.Errorf("%s and %s: %s\nwant %s", c.base, c.new, out, c.want)
		}
	}
	equal := commq(t, "diff", "--store", "../../testdata/runs", "--base", "uneven.4", "--run", "uneven.4")
	if strings.Contains(equal, "findings") {
		t.Errorf("equal runs: %s", equal)
	}
}

// Runs with many calls together are not diagnosed.
func TestDiffLeavesOutLargeRuns(t *testing.T) {
	run := func(calls int64) queries.Run {
		m := &schema.Manifest{TimeOrigin: "virtual", Record: "all"}
		m.Counts.Calls = calls
		return queries.Run{Name: "r", Manifest: m}
	}
	for calls, want := range map[int64]string{
		reportDiagnosed / 2: "",
		reportDiagnosed:     "not looked for: the runs have 1,572,864 calls, which would take long here; commq diagnose finds those of a run",
	} {
		if got := (&diffOptions{}).undiagnosed([]queries.Run{run(calls), run(reportDiagnosed / 2)}); got != want {
			t.Errorf("%d calls: %q, want %q", calls, got, want)
		}
	}
}
