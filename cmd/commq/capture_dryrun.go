package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/commq/commq/capture/spool"
)

// printVolume writes the volume as text or JSON.
func printVolume(w io.Writer, v *spool.Volume, format string) error {
	if format == "json" {
		return printJSON(w, v)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "rank\tthreads\tcalls\tspool bytes\t\n")
	for _, r := range v.Ranks {
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t\n", r.Rank, r.Threads, grouped(int64(r.Calls)), grouped(int64(r.SpoolBytes)))
	}
	t.Flush()
	fmt.Fprintf(w, "spool: %s in all, %s per second over %.3f s\n", bytesText(int64(v.SpoolBytes)),
		bytesText(int64(v.SpoolBytesPerSecond)), float64(v.DurationNs)/1e9)
	fmt.Fprintf(w, "run: about %s, by %.0f bytes per call (13 to 18 in the NPB runs of testdata, without payload "+
		"hashes)\n",
		bytesText(int64(v.RunBytes)), v.RunBytesPerEvent)
	if !v.Complete {
		fmt.Fprintln(w, "Not every rank reached MPI_Finalize: calls of its last second may be missing.")
	}
	return nil
}

// finishDryRun reports how much the job would have written, and removes the spool. status is the launcher's;
// simulators is the error of waiting for the simulator ranks, and lost is set if some of them ended before the
// program.
func (o *captureOptions) finishDryRun(a *app, spoolDir string, status int, lost bool, simulators error) error {
	defer os.RemoveAll(spoolDir)
	v, err := spool.ReadVolume(spoolDir)
	if err == nil && len(v.Ranks) == 0 {
		err = errNothing
	}
	if err == nil {
		err = printVolume(a.stdout, v, o.format)
	}
	err = errors.Join(simulators, err)
	switch {
	case err != nil && status != 0 && simulators == nil && errors.Is(err, errNothing):
		fmt.Fprintf(a.stderr, "commq: %v\n", err)
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
	case n/uint64(o.ranks) < leastSpool:
		return 0, fmt.Errorf("--max-spool %s: %d bytes for each of %d ranks; want at least %d", o.maxSpool,
			n/uint64(o.ranks), o.ranks, leastSpool)
	}
	return int64(n / uint64(o.ranks)), nil
}
