package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/dustin/go-humanize"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/secrets"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/queries"
)

var volumeColumns = []queries.Column{{Name: "rank", Type: "INTEGER"}, {Name: "threads", Type: "BIGINT", Unit: "1"},
	{Name: "calls", Type: "BIGINT", Unit: "1"}, {Name: "spool_bytes", Type: "BIGINT", Unit: "bytes"}}

// printVolume writes the volume as text or JSON.
func printVolume(a *app, v *spool.Volume, format string) error {
	if format == "json" {
		return printJSON(a.stdout, v)
	}
	var rows [][]any
	for _, r := range v.Ranks {
		rows = append(rows, []any{r.Rank, int64(r.Threads), int64(r.Calls), int64(r.SpoolBytes)})
	}
	if err := a.writeRows("table", queries.RowsOf(volumeColumns, rows)); err != nil {
		return err
	}
	w := a.out()
	fmt.Fprintf(w, "spool: %s in all, %s over %s\n", inBytes(int64(v.SpoolBytes)), units.Rate(v.SpoolBytesPerSecond),
		units.Duration(v.DurationNs))
	fmt.Fprintf(w, "run: about %s, by %s for the files of any run and %s bytes per call (13 to 18 in the NPB runs of "+
		"testdata, without payload hashes)\n", inBytes(int64(v.RunBytes)), inBytes(int64(v.RunBytesFixed)),
		units.Number(v.RunBytesPerEvent))
	switch {
	case v.Missing > 0:
		fmt.Fprintf(w, "%s of %d left no records here, and calls of others may be missing; if they ran on other nodes, "+
			"--gather copies their records.\n", counted(int64(v.Missing), "rank"), v.Missing+len(v.Ranks))
	case !v.Complete:
		fmt.Fprintln(w, "Not every rank reached MPI_Finalize: calls of its last second may be missing.")
	}
	return nil
}

// finishDryRun reports how much the job would have written, and removes the spool. status is the launcher's;
// before is the error of waiting for the simulator ranks or of gathering the records, and lost is set if some of these
// ranks ended before the program.
func (o *captureOptions) finishDryRun(ctx context.Context, a *app, spoolDir string, launcher []string,
	status int, lost bool, before error) error {
	defer os.RemoveAll(spoolDir)
	v, err := spool.ReadVolume(spoolDir)
	if err == nil && len(v.Ranks) == 0 {
		err = errNothing
	}
	if err == nil {
		err = printVolume(a, v, o.format)
	}
	err = errors.Join(before, err)
	switch {
	case err != nil && status != 0 && before == nil && errors.Is(err, errNothing):
		fmt.Fprint(a.log(), secrets.Text(o.failedText(ctx, err, status, launcher)))
		return exitError(status)
	case err != nil:
		return err
	case status != 0:
		return exitError(status)
	case lost:
		return exitError(exitCannot)
	}
	return nil
}

// leastSpool is the smallest limit of a spool file that the shim accepts, in bytes.
const leastSpool = 65536

// spoolBound returns the limit of each rank's spool file in bytes, --max-spool divided by the ranks; 0 means no
// limit.
func (o *captureOptions) spoolBound() (int64, error) {
	if o.maxSpool == "" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(o.maxSpool)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--max-spool %s: not a size; want for example 500MB or 10GiB", o.maxSpool)
	case o.ranks < 1:
		return 0, errors.New("--max-spool: the bound is for the whole job and divided by the ranks: give their " +
			"number with -n")
	case n/uint64(o.ranks) > math.MaxInt64:
		return 0, fmt.Errorf("--max-spool %s: more than any disk has; want less, or no limit", o.maxSpool)
	case n/uint64(o.ranks) < leastSpool:
		return 0, fmt.Errorf("--max-spool %s: %d bytes for each of %d ranks; want at least %d", o.maxSpool,
			n/uint64(o.ranks), o.ranks, leastSpool)
	}
	return int64(n / uint64(o.ranks)), nil
}
