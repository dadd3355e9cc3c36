package main

import (
	"os"
	"strings"
	"testing"
)

// slow are programs whose answers take more than ten seconds of processor time each.
var slow = map[string]bool{"snap": true, "minisweep": true}

// The table of public programs is that of the signatures in testdata. If laws changed, write it again with the command
// in docs/validation/prediction/public.md.
func TestPublicTable(t *testing.T) {
	table, err := os.ReadFile("../../../docs/validation/prediction/public.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.Open("../public.tsv")
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
			if got.Len() == 0 || !strings.Contains(string(table), "\n"+got.String()) {
				t.Errorf("not in the table:\n%s", got.String())
			}
		})
	}
}
