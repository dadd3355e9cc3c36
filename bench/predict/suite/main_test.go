package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// slow are programs whose answers take about five seconds of processor time or more.
var slow = map[string]bool{"snap": true, "minisweep": true, "mg.W": true, "bt.A": true, "sp.A": true}

// The tables are those of the signatures in testdata. If laws changed, write them again with the commands in the pages.
// Signatures of some runs of the suite are not in testdata.
func TestTables(t *testing.T) {
	for _, page := range []string{"public", "suite"} {
		table, err := os.ReadFile("../../../docs/validation/prediction/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		list, err := os.Open("../" + page + ".tsv")
		if err != nil {
			t.Fatal(err)
		}
		defer list.Close()
		for name, ranks := range programs(list) {
			if slow[name] {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var got strings.Builder
				newSuite(&got, []string{"../../../testdata/signatures"}).predict(name, ranks.learn, ranks.held)
				isSigned := func(held string) bool {
					_, err := os.Stat("../../../testdata/signatures/" + name + "." + held + ".json.gz")
					return err == nil
				}
				if got.Len() == 0 && slices.ContainsFunc(ranks.held, isSigned) || !strings.Contains(string(table), "\n"+got.String()) {
					t.Errorf("not in the table:\n%s", got.String())
				}
			})
		}
	}
}
