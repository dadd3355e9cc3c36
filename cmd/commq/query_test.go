package main

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// smallStore has two runs: ring.3, in which each rank sends 4097 bytes with tag 9 to the next and all meet in a
// barrier, and pair.2 with one message of 17 bytes.
func smallStore(t *testing.T) string {
	t.Helper()
	store := t.TempDir()
	message := func(src, dst int32, bytes int64) schema.Message {
		m := schema.NullMessage
		m.Src, m.Dst, m.Tag, m.Bytes = src, dst, 9, bytes
		return m
	}
	writeSmall(t, store, "ring.3", 3, message(0, 1, 4097), message(1, 2, 4097), message(2, 0, 4097))
	writeSmall(t, store, "pair.2", 2, message(1, 0, 17))
	return store
}

func writeSmall(t *testing.T, store, name string, ranks int32, rows ...schema.Message) {
	t.Helper()
	run, err := writer.Create(store, name, writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Abort()
	infos, comms := &schema.RankInfos{}, &schema.Comms{}
	events, messages := &schema.Events{}, &schema.Messages{}
	for rank := range ranks {
		r := schema.NullRankInfo
		r.Rank, r.Threads, r.Events = rank, 1, 1
		infos.Append(&r)
		c, e := schema.NullComm, schema.NullEvent
		c.CommRank, c.WorldRank, c.Kind = rank, rank, int16(schema.CommWorld)
		comms.Append(&c)
		e.Rank, e.Comm, e.Instance, e.Call, e.Class = rank, 0, 0, int16(schema.CallBarrier),
			int16(schema.ClassCollective)
		e.SendBytes, e.RecvBytes = 0, 0
		events.Append(&e)
	}
	m := schema.Manifest{Ranks: ranks, TimeOrigin: "untimed", ComputeClock: "none", Record: "messages", Hash: "none",
		Ended: "finalized", Epochs: 1}
	for i := range rows {
		messages.Append(&rows[i])
		m.Epochs = max(m.Epochs, rows[i].Epoch+1)
		if rows[i].PayloadHash != schema.NullMessage.PayloadHash {
			m.Hash = "crc64"
		}
	}
	for _, b := range []schema.Batch{infos, comms, events, messages} {
		if err := run.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err = run.Commit(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
}

// commandLine runs commq and returns its exit status, stdout and stderr.
func commandLine(stdin string, args ...string) (int, string, string) {
	var out, errs bytes.Buffer
	status := execute(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

func TestQueryCommand(t *testing.T) {
	store := smallStore(t)
	for _, c := range []struct{ line, want string }{
		{"query density --run ring.3", `
src  dst  messages  bytes
  0    1         2  4,097
  0    2         1      0
  1    0         1      0
  1    2         1  4,097
  2    0         2  4,097
`},
		{"query density --run ring.3 --collectives none --format csv", `
src,dst,messages,bytes
0,1,1,4097
1,2,1,4097
2,0,1,4097
`},
		{"query --run ring.3 --run pair.2 data-density --collectives none --format jsonl --limit 4", `
{"run":"ring.3","src":0,"dst":1,"bytes":4097,"messages":1}
{"run":"ring.3","src":1,"dst":2,"bytes":4097,"messages":1}
{"run":"ring.3","src":2,"dst":0,"bytes":4097,"messages":1}
{"run":"pair.2","src":1,"dst":0,"bytes":17,"messages":1}
`},
		{"query density --run " + filepath.Join(store, "pair.2") + " --where bytes>17 --format markdown", `
| src | dst | messages | bytes |
|----:|----:|---------:|------:|
|   0 |   1 |        1 |     0 |
|   1 |   0 |        1 |     0 |
`},
		{"query unmatched --run ring.3 --format json", "\n[]\n"},
		{"query density --run *.? --run pair.2 --collectives none --where bytes=17 --format csv", `
run,src,dst,messages,bytes
pair.2,1,0,1,17
`},
		{"query density --run " + filepath.Join(store, "[r-z]*") + " --collectives none --where src=0 --format csv", `
src,dst,messages,bytes
0,1,1,4097
`},
		{"query --exact density --run pair.2 --collectives none --format csv", `
src,dst,messages,bytes
1,0,1,17
`},
		{"sql --run pair.2 --run ring.3 --format csv -", `
run,ranks,n
pair.2,2,1
ring.3,3,3
`},
	} {
		sql := "SELECT run, ranks, count(*) AS n FROM messages JOIN runs USING (run) GROUP BY run, ranks ORDER BY run"
		status, out, errs := commandLine(sql, append([]string{"--store", store}, strings.Fields(c.line)...)...)
		if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), out); status != 0 || diff != "" || errs != "" {
			t.Errorf("%s: status %d, stderr %q (-want +got):\n%s", c.line, status, errs, diff)
		}
	}
}

func TestQueryWrongUse(t *testing.T) {
	store := smallStore(t)
	for _, c := range []struct{ line, want string }{
		{"query", "no query named; commq query --list names them"},
		{"query densty --run ring.3", `unknown query "densty"; did you mean density?`},
		{"query density", "no run given; name one as an argument or with --run"},
		{"query density --run ring.4", "ring.3"},
		{"query density --run ring.[4-9]", `no run fits "ring.[4-9]": none in the store`},
		{"query density --run ring.[", `runs "ring.[": syntax error in pattern; want * ? or [a-z]`},
		{"query density --run ring.3 --run ring.3", `run "ring.3" is given twice; give it once`},
		{"query density --run ring.3 --collectives all", `collectives "all": want one of rooted, logical, tree, none`},
		{"query density --run ring.3 --where tag=", "syntax error"},
		{"query density --run ring.3 --where tag='nine'", "query density of run ring.3: Conversion Error"},
		{"query density --run ring.3 --where colour=3", "columns of messages: src, dst"},
		{"query density --run ring.3 --where 1=1)", "a parenthesis closes"},
		{"query density --run ring.3 --format xml", `format "xml": want one of table, csv`},
		{"query density --run ring.3 --limit -1", "--limit -1: want a number of rows"},
		{"query density --run ring.3 --threads -1", "--threads -1: want a number of cores"},
		{"query density --run ring.3 --memory 1", "--memory 1: want at least 64"},
		{"query density --run ring.3 --memory 8796093022208", "--memory 8796093022208: want at most 1099511627776"},
		{"export extrap --run ring.3 --memory 8796093022208", "--memory 8796093022208: want at most 1099511627776"},
		{"predict --run nosuch --ranks 4 --name a/b", `"a/b"`},
		{"query density --run ring.3 --plot x.gif", "draw x.gif: want a file name ending in .png, .svg, .pdf"},
		{"query density --run ring.3 -o " + store + "/no/such.csv", "there is no folder"},
		{"query calls --run ring.3", "capture it again with --record all"},
		{"query density --run ring.3 extra", `no run "extra" in the store`},
		{"sql --run ring.3 SELECT", "SELECT clause without selection list"},
		{"sql --run ring.3 DROP", "syntax error"},
		{"sql --run ring.3", "nothing given; want one SQL text"},
		{"sql --run ring.3 -", "no SQL given"},
		{"sql SELECT", "no run given"},
	} {
		status, out, errs := commandLine("", append([]string{"--store", store}, strings.Fields(c.line)...)...)
		if status != exitCannot || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want 2, nothing, %q", c.line, status, out, errs, c.want)
		}
	}
	for _, sql := range []string{"COPY messages TO 'stolen.csv'", "SELECT 1; SELECT 2", "CREATE TABLE t (x INTEGER)"} {
		status, _, errs := commandLine("", "--store", store, "sql", "--run", "ring.3", sql)
		if status != exitCannot || errs == "" {
			t.Errorf("%s: status %d, stderr %q", sql, status, errs)
		}
	}
}

// TestQuerySQLRunsByItself runs the output of --sql in a fresh engine and compares with the answer.
func TestQuerySQLRunsByItself(t *testing.T) {
	store := smallStore(t)
	args := []string{"--store", store, "query", "density", "--run", "ring.3", "--collectives", "tree", "--where",
		"tag = 9"}
	status, sql, errs := commandLine("", append(args, "--sql")...)
	if status != 0 || !strings.Contains(sql, "CREATE VIEW") || !strings.Contains(sql, "'tree'") {
		t.Fatalf("status %d, %s\n%s", status, errs, sql)
	}
	_, want, _ := commandLine("", append(args, "--format", "csv")...)
	if got := shell(t, sql); got != want || strings.Count(got, "\n") < 4 {
		t.Errorf("by itself:\n%s\nwant:\n%s", got, want)
	}
}

// TestConditionsGivenAgain asks with several conditions, which must all hold.
func TestConditionsGivenAgain(t *testing.T) {
	store := smallStore(t)
	ask := func(conditions ...string) string {
		args := []string{"--store", store, "query", "density", "--run", "ring.3",
			"--collectives", "none", "--format", "csv"}
		for _, condition := range conditions {
			args = append(args, "--where", condition)
		}
		status, out, errs := commandLine("", args...)
		if status != 0 {
			t.Fatalf("%v: %s", conditions, errs)
		}
		return out
	}
	all, one := ask("TRUE"), ask("src = 0 AND (bytes >= 0 OR tag = 1)")
	if got := ask("src = 0", "bytes >= 0 OR tag = 1"); got != one || got == all {
		t.Errorf("two conditions:\n%s\nwant\n%s", got, one)
	}
	if got := ask("TRUE", "src = 0 -- the first", "TRUE", "bytes >= 0"); got != one {
		t.Errorf("conditions with a comment and defaults:\n%s\nwant\n%s", got, one)
	}
	if got := ask("src = 0 OR src = 1", "dst = 0 OR dst = 1 OR dst = 2", "src = 0"); got != one {
		t.Errorf("three conditions:\n%s\nwant\n%s", got, one)
	}
}

func TestQueryFiles(t *testing.T) {
	store, dir := smallStore(t), t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ask := func(args ...string) string {
		t.Helper()
		status, out, errs := commandLine("", append([]string{"--store", store, "query", "density", "--run", "ring.3"},
			args...)...)
		if status != 0 {
			t.Fatalf("%v: %s", args, errs)
		}
		return out
	}
	if out := ask("-o", file("d.csv")); out != "" {
		t.Errorf("stdout %q beside -o", out)
	}
	text, err := os.ReadFile(file("d.csv"))
	if err != nil || !strings.HasPrefix(string(text), "src,dst,messages,bytes\n0,1,2,4097\n") {
		t.Errorf("d.csv: %q, %v", text, err)
	}
	ask("-o", file("d.parquet"))
	if got := shell(t, "SELECT src, dst, messages, bytes FROM read_parquet('"+
		file("d.parquet")+"') ORDER BY src, dst;"); got != string(text) {
		t.Errorf("d.parquet has %q; want %q", got, text)
	}
	if out := ask("--plot", file("d.png")); out != "" {
		t.Errorf("stdout %q beside --plot", out)
	}
	picture, err := os.Open(file("d.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer picture.Close()
	if img, err := png.Decode(picture); err != nil || img.Bounds().Dx() < 900 {
		t.Errorf("d.png: %v", err)
	}
	if out := ask("--run", "pair.2", "--plot", file("two.svg")); out != "" {
		t.Errorf("stdout %q beside --plot", out)
	}
	two, err := os.ReadFile(file("two.svg"))
	if err != nil || !strings.Contains(string(two), ">Messages from rank to rank: ring.3<") ||
		!strings.Contains(string(two), ">Messages from rank to rank: pair.2<") {
		t.Errorf("two.svg: %v", err)
	}
	if out := ask("--plot", file("d.svg"), "--format", "csv"); out != string(text) {
		t.Errorf("stdout %q beside --plot --format csv", out)
	}
	if out := ask("-o", "/dev/null"); out != "" {
		t.Errorf("stdout %q", out)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 5 {
		t.Errorf("%d files in the folder; want the 5 that were asked for: %v", len(entries), entries)
	}
}

func TestCompletion(t *testing.T) {
	store := smallStore(t)
	for line, want := range map[string]string{
		"query den":                    "density\t",
		"query density --collectives|": "rooted\nlogical\ntree\nnone\n",
		"query density --store " + store + " --run pa": "pair.2\n",
		"query density --format|":                      "table\ncsv\n",
		"sql --store " + store + " --run|":             "pair.2\nring.3\n",
	} {
		words := strings.Fields(strings.TrimSuffix(line, "|"))
		if strings.HasSuffix(line, "|") {
			words = append(words, "")
		}
		if _, out, _ := commandLine("", append([]string{"__complete"}, words...)...); !strings.HasPrefix(out, want) {
			t.Errorf("completing %q: %q; want it to begin with %q", line, out, want)
		}
	}
}
