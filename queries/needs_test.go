package queries

import (
	"testing"

	"github.com/commq/commq/schema"
)

// TestLacksOfATrace: a program cannot be captured again from a trace of another tool.
func TestLacksOfATrace(t *testing.T) {
	for trace, want := range map[*schema.Trace]string{
		nil: `run "r" was captured without payload hashes; capture it again with --hash crc64`,
		{Format: "dumpi"}: `run "r" was imported without payload hashes; its trace (dumpi) does not tell that: ` +
			`record the program with commq capture, with --hash crc64`,
	} {
		run := Run{Name: "r", Manifest: &schema.Manifest{Hash: "none", Origin: schema.Origin{Trace: trace}}}
		got := (&Query{Needs: []string{"hashes"}}).lacks(run)
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
