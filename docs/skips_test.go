package docs

import (
	"regexp"
	"testing"
)

var (
	// skips finds tests that skip themselves, and not by way of testenv.
	skips = regexp.MustCompile(`\b(?:t|b|f|tb)\.(?:Skip|Skipf|SkipNow)\(`)
	// maySkip are the files that may: notebooks are executed where $COMMQ_TEST_ALL is set, and a benchmark measures
	// what the user names.
	maySkip = map[string]bool{"notebooks/notebooks_test.go": true, "bench/simulate_test.go": true}
)

// TestNoTestSkipsItself: tests skip with testenv alone, which fails them where all must run (make test), so that
// "none skipped" stays true.
func TestNoTestSkipsItself(t *testing.T) {
	for name, text := range testTexts(t) {
		if call := skips.Find(text); call != nil && !maySkip[name] {
			t.Errorf("%s: %s...) is not noticed where all tests must run; want testenv.Skip", name, call)
		}
	}
}
