package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/commq/commq/capture/spool"
)

// runBytesPerEvent is what a call takes in a run on disk, over all tables: 13.0 to 17.8 bytes in the runs cg.A, mg.W and sp.W of
// testdata, without payload hashes.
const runBytesPerEvent = 16.0

// rankSize is what one rank would write.
type rankSize struct {
	// Rank is its rank in MPI_COMM_WORLD.
	Rank int32 `json:"rank"`
	// Threads is the number of its threads that made calls.
	Threads int `json:"threads"`
	// Calls is the number of calls that it recorded.
	Calls uint64 `json:"calls"`
	// SpoolBytes are the bytes of its files.
	SpoolBytes uint64 `json:"spool_bytes"`
}

// volume is what a job would write, by a capture that kept nothing.
type volume struct {
	// Ranks are those that recorded, ascending.
	Ranks []rankSize `json:"ranks"`
	// Calls and SpoolBytes are sums over ranks.
	Calls      uint64 `json:"calls"`
	SpoolBytes uint64 `json:"spool_bytes"`
	// Seconds is the time from the first MPI_Init to the last record.
	Seconds float64 `json:"seconds"`
	// SpoolBytesPerSecond is SpoolBytes / Seconds.
	SpoolBytesPerSecond float64 `json:"spool_bytes_per_s"`
	// RunBytes is the predicted size of the run: Calls times RunBytesPerEvent, which was measured on other programs.
	RunBytes         uint64  `json:"run_bytes"`
	RunBytesPerEvent float64 `json:"run_bytes_per_event"`
	// Complete says that every rank reached MPI_Finalize. Of others the last second may be missing.
	Complete bool `json:"complete"`
}

// readVolume adds up the headers in a spool folder that were written by a capture that kept nothing.
func readVolume(dir string) (*volume, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+spool.Suffix))
	if err != nil {
		return nil, err
	}
	v := &volume{Complete: true, RunBytesPerEvent: runBytesPerEvent}
	ranks := map[int32]*rankSize{}
	for _, path := range paths {
		f, err := spool.Open(path)
		if err != nil {
			return nil, err
		}
		h := f.Header
		if err := f.Close(); err != nil {
			return nil, err
		}
		r := ranks[h.Rank]
		if r == nil {
			r = &rankSize{Rank: h.Rank}
			ranks[h.Rank] = r
		}
		r.Threads++
		r.Calls += h.Calls
		r.SpoolBytes += spool.HeaderBytes + h.Slots*spool.SlotBytes
		v.Seconds = max(v.Seconds, float64(h.Clock1Ns-h.Clock0Ns)/1e9)
		v.Complete = v.Complete && h.Ended == spool.EndedFinalized
	}
	for _, r := range ranks {
		v.Ranks = append(v.Ranks, *r)
		v.Calls += r.Calls
		v.SpoolBytes += r.SpoolBytes
	}
	if len(v.Ranks) == 0 {
		return nil, errNothing
	}
	slices.SortFunc(v.Ranks, func(a, b rankSize) int { return cmp.Compare(a.Rank, b.Rank) })
	if v.Seconds > 0 {
		v.SpoolBytesPerSecond = float64(v.SpoolBytes) / v.Seconds
	}
	v.RunBytes = uint64(float64(v.Calls) * runBytesPerEvent)
	return v, nil
}

// print writes the volume as text, or as JSON.
func (v *volume) print(w io.Writer, format string) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "rank\tthreads\tcalls\tspool bytes\t\n")
	for _, r := range v.Ranks {
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t\n", r.Rank, r.Threads, grouped(int64(r.Calls)), grouped(int64(r.SpoolBytes)))
	}
	t.Flush()
	fmt.Fprintf(w, "spool: %s in all, %s per second over %.3f s\n", bytesText(int64(v.SpoolBytes)), bytesText(int64(v.SpoolBytesPerSecond)), v.Seconds)
	fmt.Fprintf(w, "run: about %s, by %.0f bytes per call (13 to 18 in the NPB runs of testdata, without payload hashes)\n", bytesText(int64(v.RunBytes)), v.RunBytesPerEvent)
	if !v.Complete {
		fmt.Fprintln(w, "Not every rank reached MPI_Finalize: what it did in its last second may be missing.")
	}
	return nil
}

// finishDryRun reports what the job would have written, and removes what it left.
func (o *captureOptions) finishDryRun(a *app, spoolDir string, status int) error {
	defer os.RemoveAll(spoolDir)
	v, err := readVolume(spoolDir)
	if err == nil {
		err = v.print(a.stdout, o.format)
	}
	if err != nil && status != 0 && errors.Is(err, errNothing) {
		fmt.Fprintf(a.stderr, "commq: %v\n", err)
		return exitError(status)
	}
	if err == nil && status != 0 {
		return exitError(status)
	}
	return err
}

// leastSpool is the least bound of a file that the shim accepts.
const leastSpool = 65536

// spoolBound is the bound of each rank's file by --max-spool, which is for the whole job; 0: there is none.
func (o *captureOptions) spoolBound() (int64, error) {
	if o.maxSpool == "" {
		return 0, nil
	}
	n, err := humanize.ParseBytes(o.maxSpool)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--max-spool %s: not a size; say for example 500MB or 10GiB", o.maxSpool)
	case o.ranks < 1:
		return 0, errors.New("--max-spool: the bound is for the whole job and divided by the ranks: say how many with -n")
	case n/uint64(o.ranks) < leastSpool:
		return 0, fmt.Errorf("--max-spool %s: %d bytes for each of %d ranks; %d are the least", o.maxSpool, n/uint64(o.ranks), o.ranks, leastSpool)
	}
	return int64(n / uint64(o.ranks)), nil
}
