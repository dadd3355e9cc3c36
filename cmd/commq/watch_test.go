package main

import (
	"bytes"
	"context"
	"strings"
	"syscall"
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

// A watch that Ctrl-C ends has not seen the job finish.
func TestInterruptedWatch(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(context.Background())
	interrupt(signalError(syscall.SIGINT))
	var out, errs bytes.Buffer
	if got := execute(ctx, []string{"watch", t.TempDir()}, nil, &out, &errs); got != 130 {
		t.Errorf("status %d; %s", got, errs.String())
	}
}

// Each line of a report is a row of the terminal, also where a word is longer than a row: the next report moves up by
// as many.
func TestRowsOfWatch(t *testing.T) {
	parts := []string{"a_program_with_a_long_name.x: 3 of 3 ranks", "35 calls"}
	for _, columns := range []int{5, 22, 80} {
		rows := reportRows(parts, columns)
		if got := strings.Join(strings.Fields(rows), ""); got != strings.ReplaceAll(strings.Join(parts, ""), " ", "") {
			t.Errorf("%d columns: %q", columns, rows)
		}
		for row := range strings.Lines(rows) {
			if n := len(strings.TrimSuffix(row, "\n")); n >= columns {
				t.Errorf("%d columns: a row of %d: %q", columns, n, row)
			}
		}
	}
}
