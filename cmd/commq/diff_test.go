package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/compare"
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
	writeSmall(t, store, "b.3", 3, message(0, 1, 1, 4097), message(0, 1, 2, 4097), message(0, 2, 3, 4097), message(2, 0, 1, 17))
	return store
}

func TestDiffCommand(t *testing.T) {
	store := diffStore(t)
	status, out, errs := commandLine("", "diff", "--store", store, "a.3", "b.3")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	for _, line := range []string{
		"messages               3       4  +33.33%",
		"message_bytes      8,211  12,308  +49.90%", // 3*4097+17 over 2*4097+17
		"rank_messages_max      1       3  +200.00%",
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
	if strings.Contains(out, "\npairs ") { // three of both
		t.Errorf("pairs in\n%s", out)
	}
	if status, _, _ := commandLine("", "diff", "--store", store, "a.3", "b.3", "--exit-code"); status != exitFailed {
		t.Errorf("--exit-code: %d", status)
	}
	if status, out, _ := commandLine("", "diff", "--store", store, "a.3", "a.3", "--exit-code"); status != 0 || !strings.Contains(out, "exact measures are the same.") {
		t.Errorf("--exit-code of equal runs: %d\n%s", status, out)
	}
	status, out, _ = commandLine("", "diff", "--store", store, "--base", "a.*", "--new", "b.*", "--format", "json")
	var d compare.Comparison
	if err := json.Unmarshal([]byte(out), &d); status != 0 || err != nil || d.Base[0] != "a.3" || d.NewRanks != 3 {
		t.Errorf("json: %d %v %+v", status, err, d)
	}
	status, out, _ = commandLine("", "diff", "--store", store, "a.3", "b.3", "--format", "csv")
	if status != 0 || !strings.Contains(out, "\nmessages,,1,true,more,1,3,3,3,1,4,4,4,1.3333333333333333,1,,,\n") {
		t.Errorf("csv: %d\n%s", status, out)
	}
	picture := filepath.Join(t.TempDir(), "d.png")
	if status, _, errs := commandLine("", "diff", "--store", store, "a.3", "b.3", "--plot", picture, "--by", "bytes"); status != 0 {
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
		{[]string{"a.3", "b.3", "--base", "a.3"}, "but not both"},
		{[]string{"a.3", "no.3"}, "new: "},
		{[]string{"--base", "x.*", "--new", "b.3"}, "base: "},
		{[]string{"--base", "a.3", "--new", "b.3", "--new", "c.5"}, "run b.3 has 3 ranks and run c.5 5"},
		{[]string{"--base", "a.3", "--base", "a.3", "--new", "b.3"}, `two runs are called "a.3"`},
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
