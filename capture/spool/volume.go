package spool

import (
	"cmp"
	"path/filepath"
	"slices"
)

// RunBytesPerEvent is the predicted size of a call in a run on disk, over all tables: 13.0 to 17.8 bytes in the runs
// cg.A, mg.W and sp.W of testdata, without payload hashes.
const RunBytesPerEvent = 16.0

// RunBytesFixed is the size of a run with hardly any call: 16 files of tables with their schemas, and the manifest.
// Runs of 2 to 64 ranks with up to 400 calls in testdata have 125 to 149 kB.
const RunBytesFixed = 140_000

// RankVolume is what one rank would write.
type RankVolume struct {
	// Rank is its rank in MPI_COMM_WORLD.
	Rank int32 `json:"rank"`
	// Threads is the number of its threads that made calls.
	Threads int `json:"threads"`
	// Calls is the number of calls that it recorded.
	Calls uint64 `json:"calls"`
	// SpoolBytes is the size of its files, in which the records are packed.
	SpoolBytes uint64 `json:"spool_bytes"`
}

// Volume is what a job would write, measured by a capture that keeps nothing.
type Volume struct {
	// Ranks are the ranks that recorded, ascending.
	Ranks []RankVolume `json:"ranks"`
	// Calls and SpoolBytes are sums over ranks.
	Calls      uint64 `json:"calls"`
	SpoolBytes uint64 `json:"spool_bytes"`
	// DurationNs is the time from the first MPI_Init to the last record.
	DurationNs int64 `json:"duration_ns"`
	// SpoolBytesPerSecond is SpoolBytes by that time; 0 if it is 0.
	SpoolBytesPerSecond float64 `json:"spool_bytes_per_s"`
	// RunBytes is the predicted size of the run: RunBytesFixed and Calls times RunBytesPerEvent.
	RunBytes         uint64  `json:"run_bytes"`
	RunBytesFixed    uint64  `json:"run_bytes_fixed"`
	RunBytesPerEvent float64 `json:"run_bytes_per_event"`
	// Complete tells that every rank reached MPI_Finalize. Of others the last second may be missing.
	Complete bool `json:"complete"`
}

// ReadVolume adds up the headers in a spool folder that a capture has written which kept nothing. The volume has no
// ranks if none recorded.
func ReadVolume(dir string) (*Volume, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+Suffix))
	if err != nil {
		return nil, err
	}
	v := &Volume{Complete: true, RunBytesFixed: RunBytesFixed, RunBytesPerEvent: RunBytesPerEvent}
	ranks := map[int32]*RankVolume{}
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			return nil, err
		}
		h := f.Header
		if err := f.Close(); err != nil {
			return nil, err
		}
		r := ranks[h.Rank]
		if r == nil {
			r = &RankVolume{Rank: h.Rank}
			ranks[h.Rank] = r
		}
		r.Threads++
		r.Calls += h.Calls
		r.SpoolBytes += HeaderBytes + h.Blocks
		v.DurationNs = max(v.DurationNs, int64(h.Clock1Ns-h.Clock0Ns))
		v.Complete = v.Complete && h.Ended == EndedFinalized
	}
	for _, r := range ranks {
		v.Ranks = append(v.Ranks, *r)
		v.Calls += r.Calls
		v.SpoolBytes += r.SpoolBytes
	}
	slices.SortFunc(v.Ranks, func(a, b RankVolume) int { return cmp.Compare(a.Rank, b.Rank) })
	if v.DurationNs > 0 {
		v.SpoolBytesPerSecond = float64(v.SpoolBytes) / (float64(v.DurationNs) / 1e9)
	}
	v.RunBytes = RunBytesFixed + uint64(float64(v.Calls)*RunBytesPerEvent)
	return v, nil
}
