package objects

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatternsMatchNamesOfRuns(t *testing.T) {
	s := &Store{URL: "s3://jobs/2026"}
	all := []Info{{Name: "cg.A.4"}, {Name: "cg.A.16"}, {Name: "cg.B.9", Err: errors.New("broken")}, {Name: "mg.W.2"}}
	for _, c := range []struct{ pattern, want, leftOut, err string }{
		{"cg.*", "cg.A.4 cg.A.16", "broken", ""},
		{"*.[0-9]", "cg.A.4 mg.W.2", "broken", ""},
		{"cg.B.?", "", "broken", `no run matches "cg.B.?" in s3://jobs/2026; commq runs list --store s3://jobs/2026`},
		{"[", "", "", `runs "[": syntax error in pattern; want * ? or [a-z]`},
		{"a/b", "", "", `no run "a/b" in s3://jobs/2026: a run cannot have this name`},
	} {
		var names, left []string
		runs, err := s.matching(all, c.pattern, func(err error) { left = append(left, err.Error()) })
		for _, r := range runs {
			names = append(names, r.Name)
		}
		got := strings.Join(names, " ")
		if diff := cmp.Diff([]string{c.want, c.leftOut}, []string{got, strings.Join(left, " ")}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.pattern, diff)
		}
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v; want %q", c.pattern, err, c.err)
		}
	}
}
