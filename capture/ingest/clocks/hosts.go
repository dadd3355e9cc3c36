package clocks

import (
	"fmt"
	"math"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// Rank is the input of Unify for one rank.
type Rank struct {
	Rank int32
	// Files are the names and headers of its spool files, by thread.
	Files []File
	// Pairs are the readings between those of the header, by thread.
	Pairs [][]Pair
	// FirstTick is the tick at which its first call was entered; HasCalls is false if it made none.
	FirstTick uint64
	HasCalls  bool
}

// File is the name of a spool file, for error messages, and its header.
type File struct {
	Name   string
	Header *spool.Header
}

func (r *Rank) header() *spool.Header { return r.Files[0].Header }

// Host is a machine. Ranks with the same host name and boot id run on the same one and share its clock.
type Host struct {
	Name    string
	Offsets Offsets

	timer uint32
	ranks []*Rank
}

// Offsets are the clock of a host minus that of rank 0's, in ns, at MPI_Init and MPI_Finalize, and the errors of these
// measurements. The times of measurement are on the clock of the host. All are null where nothing was measured.
type Offsets struct {
	InitNs, InitErrorNs, InitAtNs    int64
	FinalNs, FinalErrorNs, FinalAtNs int64
}

// unmeasured are the offsets of a host without measurements.
var unmeasured = Offsets{schema.NullInt64, schema.NullInt64, schema.NullInt64, schema.NullInt64, schema.NullInt64,
	schema.NullInt64}

// maxDrift is more than the rates of any two clocks differ: 1 in 1000. A larger drift is a wrong measurement.
const maxDrift = 1e-3

// Job is the time base of a job.
type Job struct {
	// Hosts are in the order of the lowest rank on them.
	Hosts []Host
	// HostOf is the index of each rank's host, ByRank its clock. The first call of the job is at 0 ns.
	HostOf []int32
	ByRank []Clock
	// Warnings say which times are not reliable.
	Warnings []string
}

// Unify finds the hosts of the ranks and puts all ranks on one clock, whose times are multiples of resolutionNs. Ranks
// are in ascending order. It is an error when ranks on one host used different timers.
func Unify(ranks []Rank, resolutionNs int64) (*Job, error) {
	j := &Job{HostOf: make([]int32, len(ranks)), ByRank: make([]Clock, len(ranks))}
	j.findHosts(ranks)
	if ranks[0].header().Timer == spool.TimerVirtual { // of all files, see checkHeader in package ingest
		for i := range ranks {
			j.ByRank[i] = Clock{virtual: true, fine: resolutionNs - 1}
		}
		return j, nil
	}
	clocks := map[*Rank]Clock{}
	for i := range j.Hosts {
		if err := j.setHostClocks(&j.Hosts[i], i == 0 && ranks[0].Rank == 0, clocks); err != nil {
			return nil, err
		}
	}
	start := int64(math.MaxInt64)
	for i := range ranks {
		j.ByRank[i] = clocks[&ranks[i]]
		if ranks[i].HasCalls {
			start = min(start, j.ByRank[i].Ns(ranks[i].FirstTick))
		}
	}
	if start == math.MaxInt64 {
		start = 0
	}
	for i := range ranks {
		j.ByRank[i] = j.ByRank[i].Shifted(start, 0, 0)
		j.ByRank[i].fine = resolutionNs - 1
	}
	return j, nil
}

func (j *Job) warn(format string, args ...any) {
	j.Warnings = append(j.Warnings, fmt.Sprintf(format, args...))
}

// findHosts numbers the machines in the order of the lowest rank on them.
func (j *Job) findHosts(ranks []Rank) {
	number := map[[2]string]int{}
	for i := range ranks {
		h := ranks[i].header()
		key := [2]string{spool.Text(h.Host[:]), spool.Text(h.BootID[:])}
		n, ok := number[key]
		if !ok {
			n = len(j.Hosts)
			number[key] = n
			j.Hosts = append(j.Hosts, Host{Name: key[0], timer: h.Timer, Offsets: unmeasured})
		}
		j.HostOf[i] = int32(n)
		j.Hosts[n].ranks = append(j.Hosts[n].ranks, &ranks[i])
	}
}

// setHostClocks gives all ranks of a machine the same clock, so that their calls are ordered by the machine's timer.
// isReference means that it is the machine of rank 0.
func (j *Job) setHostClocks(h *Host, isReference bool, clocks map[*Rank]Clock) error {
	base, known := h.reference()
	if !known && h.timer != spool.TimerMonotonic {
		j.warn("The timer of host %s was compared with a clock only once, so its rate is not known: its times are in ticks.",
			h.Name)
	}
	h.setOffsets(isReference)
	offset, drift, at := j.offset(h)
	clock := base.Shifted(offset, drift, at)
	for _, r := range h.ranks {
		header := r.header()
		if header.Timer != h.timer {
			return fmt.Errorf("%s: uses a timer of kind %d, but rank %d on the same host %s one of kind %d: capture all ranks alike",
				r.Files[0].Name, header.Timer, h.ranks[0].Rank, h.Name, h.timer)
		}
		clocks[r] = clock
		if known && distance(base.Ns(header.Clock0Tick), header.Clock0Ns) > maxSkewNs {
			j.warn("The timer of rank %d does not agree with that of its host %s: its times follow its own readings.",
				r.Rank, h.Name)
			own, _ := New(filePairs(header, r.Pairs[0]))
			clocks[r] = own.Shifted(offset, drift, at)
		}
	}
	return nil
}

// offset returns the host's offset at the time at, on its own clock, and its drift from there on.
func (j *Job) offset(h *Host) (offset int64, drift float64, at int64) {
	o := &h.Offsets
	switch {
	case o.InitNs != schema.NullInt64 && o.FinalNs != schema.NullInt64 && o.FinalAtNs != o.InitAtNs:
		drift = float64(o.FinalNs-o.InitNs) / float64(o.FinalAtNs-o.InitAtNs)
		if math.Abs(drift) > maxDrift {
			j.warn("The clock offsets of host %s at MPI_Init and MPI_Finalize, %d and %d ns, differ by more than clocks can drift: only the first is used.",
				h.Name, o.InitNs, o.FinalNs)
			drift = 0
		}
		return o.InitNs, drift, o.InitAtNs
	case o.InitNs != schema.NullInt64:
		return o.InitNs, 0, 0
	case o.FinalNs != schema.NullInt64:
		return o.FinalNs, 0, 0
	}
	j.warn("The clock offset of host %s was not measured: the times of its ranks cannot be compared with those of other hosts.",
		h.Name)
	return 0, 0, 0
}

// maxSkewNs is the largest difference between the readings of two ranks on one machine that use the same timer.
const maxSkewNs = 1e6

func distance(a, b int64) int64 { return max(a-b, b-a) }

// reference returns the host's clock, made from the readings of the file that cover the longest time. If no file has
// two, it takes the readings of all its files together. It returns false when the rate is not known.
func (h *Host) reference() (Clock, bool) {
	if h.timer == spool.TimerMonotonic { // ticks are ns
		first := h.ranks[0].header() // near the times, so that a double holds the difference exactly
		return unitRate(Pair{uint64(first.Clock0Ns), first.Clock0Ns}), true
	}
	var best, all []Pair
	var span uint64
	for _, r := range h.ranks {
		for t, f := range r.Files {
			pairs := filePairs(f.Header, r.Pairs[t])
			all = append(all, pairs...)
			lo, hi := pairs[0].Tick, pairs[0].Tick
			for _, p := range pairs {
				lo, hi = min(lo, p.Tick), max(hi, p.Tick)
			}
			if hi-lo > span {
				best, span = pairs, hi-lo
			}
		}
	}
	if best == nil {
		best = all
	}
	return New(best)
}

// filePairs returns all readings of a file: those of its header and those between.
func filePairs(h *spool.Header, between []Pair) []Pair {
	pairs := append([]Pair{{h.Clock0Tick, h.Clock0Ns}}, between...)
	if h.Clock1Tick != 0 {
		pairs = append(pairs, Pair{h.Clock1Tick, h.Clock1Ns})
	}
	return pairs
}

// setOffsets takes the offsets of the lowest rank that measured them. The machine of rank 0 is the reference, so its
// offsets are 0.
func (h *Host) setOffsets(isReference bool) {
	const null = int64(schema.NullInt64)
	o := &h.Offsets
	for _, r := range h.ranks {
		s := r.header()
		if o.InitNs == null && s.OffsetInitNs != null {
			o.InitNs, o.InitErrorNs, o.InitAtNs = s.OffsetInitNs, s.OffsetInitErrorNs, s.OffsetInitAtNs
		}
		if o.FinalNs == null && s.OffsetFinalNs != null {
			o.FinalNs, o.FinalErrorNs, o.FinalAtNs = s.OffsetFinalNs, s.OffsetFinalErrorNs, s.OffsetFinalAtNs
		}
	}
	if !isReference {
		return
	}
	o.InitNs, o.InitErrorNs = 0, 0
	if o.FinalNs != null {
		o.FinalNs, o.FinalErrorNs = 0, 0
	}
}
