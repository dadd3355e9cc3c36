package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/commq/commq/capture/hang"
)

// Records that were packed between two reports take fewer bytes: no rate is below 0.
func TestWatchRates(t *testing.T) {
	for format, want := range map[string]string{"text": "35 calls (2/s), 500 B of records (0 B/s)",
		"json": `"spool_bytes_per_s":0}`} {
		var out bytes.Buffer
		w := &watching{app: &app{stdout: &out}, o: &watchOptions{format: format}, reports: 1,
			before: hang.Progress{Calls: 10, Bytes: 9000}, last: time.Now().Add(-10 * time.Second)}
		if err := w.show(&hang.Progress{Calls: 35, Bytes: 500, Exact: true}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s; want %s", out.String(), want)
		}
	}
}
