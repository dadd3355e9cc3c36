package spool

import (
	"cmp"
	"io/fs"
	"os"
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
	// DurationNs is the time from the first MPI_Init to the last record; of the host where that is longest.
	DurationNs int64 `json:"duration_ns"`
	// SpoolBytesPerSecond is SpoolBytes by that time; 0 if it is 0.
	SpoolBytesPerSecond float64 `json:"spool_bytes_per_s"`
	// RunBytes is the predicted size of the run: RunBytesFixed and Calls times RunBytesPerEvent.
	RunBytes         uint64  `json:"run_bytes"`
	RunBytesFixed    uint64  `json:"run_bytes_fixed"`
	RunBytesPerEvent float64 `json:"run_bytes_per_event"`
	// Complete tells that every rank of the job recorded, here or on a node whose records were gathered, and reached
	// MPI_Finalize. Of a rank that did not the last second may be missing.
	Complete bool `json:"complete"`
	// Missing is the number of ranks of the job without records.
	Missing int `json:"-"`
}

// hostSpans are the times that files cover, from and to, by host: each has a clock of its own.
type hostSpans map[string][2]int64

// add adds a file and returns how long those of its host cover together.
func (s hostSpans) add(h *Header) int64 {
	if h.Clock1Ns < h.Clock0Ns { // killed in its first second
		return 0
	}
	host := Text(h.Host[:]) + "\x00" + Text(h.BootID[:])
	at, known := s[host]
	if !known {
		at = [2]int64{h.Clock0Ns, h.Clock1Ns}
	}
	at = [2]int64{min(at[0], h.Clock0Ns), max(at[1], h.Clock1Ns)}
	s[host] = at
	return at[1] - at[0]
}

// ReadVolume adds up the headers in a spool folder that a capture has written which kept nothing. The volume has no
// ranks if none recorded.
func ReadVolume(dir string) (*Volume, error) {
	names, err := fs.Glob(os.DirFS(dir), "*"+Suffix)
	if err != nil {
		return nil, err
	}
	v := &Volume{Complete: true, RunBytesFixed: RunBytesFixed, RunBytesPerEvent: RunBytesPerEvent}
	ranks := map[int32]*RankVolume{}
	spans := hostSpans{}
	size := 0 // of the largest job
	for _, name := range names {
		f, err := Open(filepath.Join(dir, name))
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
		size = max(size, int(h.Size))
		r.Threads++
		r.Calls += h.Calls
		r.SpoolBytes += HeaderBytes + h.Blocks
		v.DurationNs = max(v.DurationNs, spans.add(&h))
		v.Complete = v.Complete && h.Ended == EndedFinalized
	}
	v.Missing = max(0, size-len(ranks))
	v.Complete = v.Complete && v.Missing == 0
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
