package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExtrapolatedMatrix: runs on 32 ranks that were extrapolated from signatures of CG and IS on fewer ranks send what
// another program counted on 32 ranks.
func TestExtrapolatedMatrix(t *testing.T) {
	for _, c := range []struct {
		program string
		ranks   []int
	}{
		{"cg.W", []int{2, 4, 8, 16}},
		{"is.W", []int{4, 8, 16}},
	} {
		t.Run(c.program, func(t *testing.T) {
			dir := t.TempDir()
			var runs []string
			for _, p := range c.ranks {
				runs = append(runs, filepath.Join("../../testdata/signatures",
					fmt.Sprintf("%s.%d.json.gz", c.program, p)))
			}
			models := filepath.Join(dir, "models.json")
			mustCommq(t, append([]string{"fit", "-o", models}, runs...)...)
			mustCommq(t, "predict", "--store", dir, "--models", models, "--ranks", "32", "--name", "x")
			mustCommq(t, "runs", "check", "--store", dir, "x")
			got := mustCommq(t, "sql", "--store", dir, "--run", "x", "--format", "csv",
				"SELECT src, dst, count(*) AS msgs, sum(bytes)::BIGINT AS bytes FROM messages GROUP BY ALL ORDER BY src, dst")
			want, err := os.ReadFile(filepath.Join(goldenDir, c.program+".32.csv"))
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) || strings.Count(got, "\n") < 3 {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
