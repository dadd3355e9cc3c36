package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// slow are programs whose answers take about five seconds of processor time or more, so only make test compares them.
var slow = map[string]bool{"snap": true, "minisweep": true, "mg.W": true, "bt.A": true, "sp.A": true}

// The tables are those of the signatures in testdata. If laws changed, write them again with the commands in the pages.
func TestTables(t *testing.T) {
	all := os.Getenv("COMMQ_TEST_ALL") != ""
	for _, c := range []struct {
		page       string
		rows, slow int // all, and those of slow programs among them
	}{{"public", 31, 2}, {"suite", 113, 21}} {
		table, err := os.ReadFile("../../../docs/validation/prediction/" + c.page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		list, err := os.Open("../" + c.page + ".tsv")
		if err != nil {
			t.Fatal(err)
		}
		defer list.Close()
		var mu sync.Mutex
		compared := map[string]bool{} // rows; two lines of a list may give one where runs are missing
		t.Run(c.page, func(t *testing.T) {
			for name, ranks := range programs(list) {
				isSigned := func(held string) bool {
					_, err := os.Stat("../../../testdata/signatures/" + name + "." + held + ".json.gz")
					return err == nil
				}
				if slow[name] && !all || !slices.ContainsFunc(ranks.held, isSigned) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					var got strings.Builder
					newSuite(&got, []string{"../../../testdata/signatures"}).predict(name, ranks.learn, ranks.held)
					if !strings.Contains(string(table), "\n"+got.String()) {
						t.Errorf("not in the table:\n%s", got.String())
					}
					mu.Lock()
					defer mu.Unlock()
					for row := range strings.Lines(got.String()) {
						compared[row] = true
					}
				})
			}
		})
		want := c.rows
		if !all {
			want -= c.slow
		}
		if isWhole := flag.Lookup("test.run").Value.String() == ""; isWhole && len(compared) != want {
			t.Errorf("%s: %d rows were compared, want %d", c.page, len(compared), want)
		}
	}
}
