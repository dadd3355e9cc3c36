package phases

import "github.com/commq/commq/schema"

// Band is the time that a rank spent in all repetitions of a phase.
type Band struct {
	Rank int32
	// Phase is the index of the phase, or WholeRank.
	Phase int
	// FromNs is the end of the call before the first one, ToNs the end of the last. Both are schema.NullInt64 in a run
	// without times.
	FromNs, ToNs int64
	// FromTick and ToTick are the same on the logical clock; 0 is before a rank's first call.
	FromTick, ToTick int32
}

// WholeRank is the Phase of a band from the start of a rank's first call to the end of its last. The bands of its
// phases lie within.
const WholeRank = -1

// timer finds when ranks were in their phases from the times of their calls.
type timer struct {
	c           *collection
	bands       [][]Band // of phases, by rank
	first, last []int64  // start of the first call and end of the last, by rank
	next        []int    // next stretch, by rank
	startup     int64    // ns in MPI_Init and MPI_Finalize, all ranks
	complete    bool     // no call lacked a time
}

func newTimer(c *collection) *timer {
	ranks := len(c.stretches)
	return &timer{c: c, bands: make([][]Band, ranks), first: make([]int64, ranks), last: make([]int64, ranks),
		next: make([]int, ranks), complete: true}
}

// add takes the times of a call, each rank's calls ordered by seq.
func (t *timer) add(rank int32, seq, start, end int64) {
	if start == schema.NullInt64 || end == schema.NullInt64 {
		t.complete = false
		return
	}
	if seq == 0 {
		t.last[rank], t.first[rank] = start, start
	}
	list := t.c.stretches[rank]
	if k := t.next[rank]; k < len(list) && seq == list[k].first {
		t.bands[rank] = append(t.bands[rank], Band{Rank: rank, Phase: t.c.phaseOf(&list[k]), FromNs: t.last[rank]})
	}
	t.last[rank] = end
	if k := t.next[rank]; k < len(list) && seq == list[k].end-1 {
		t.bands[rank][k].ToNs = end
		t.next[rank]++
	}
}

// leaveOutStartup takes note of a call that add has taken: MPI_Init and MPI_Finalize do not count as time of the ranks.
func (t *timer) leaveOutStartup(call schema.CallID, start, end int64) {
	if start != schema.NullInt64 && end != schema.NullInt64 && call.IsAny(schema.FactInitializes|schema.FactFinalizes) {
		t.startup += end - start
	}
}

// setTimes sets TimeNs and TimeShare of the phases if all calls had times, and reports whether they had.
func (t *timer) setTimes() bool {
	if !t.complete {
		return false
	}
	total := -t.startup
	all := make([]int64, len(t.c.phases)) // ns of all repetitions and ranks
	one := make([]int64, len(t.c.phases)) // ns of one repetition, summed over ranks
	for r := range t.bands {
		total += t.last[r] - t.first[r]
		for k, b := range t.bands[r] {
			all[b.Phase] += b.ToNs - b.FromNs
			one[b.Phase] += (b.ToNs - b.FromNs) / t.c.stretches[r][k].weight
		}
	}
	for i := range t.c.phases {
		p := &t.c.phases[i]
		ns, share := one[i]/int64(p.Ranks), float64(all[i])/float64(max(total, 1))
		p.TimeNs, p.TimeShare = &ns, &share
	}
	return true
}

// timedBands returns the bands with both clocks.
func (t *timer) timedBands() []Band {
	all := t.c.untimedBands()
	i := 0
	for r, list := range t.bands {
		all[i].FromNs, all[i].ToNs = t.first[r], t.last[r]
		i++
		for _, b := range list {
			all[i].FromNs, all[i].ToNs = b.FromNs, b.ToNs
			i++
		}
	}
	return all
}

// untimedBands returns the bands with the logical clock only: for each rank all of it, then its phases.
func (c *collection) untimedBands() (all []Band) {
	null := schema.NullInt64
	for r, list := range c.stretches {
		all = append(all, Band{Rank: int32(r), Phase: WholeRank, FromNs: null, ToNs: null, ToTick: c.ranks[r].last})
		for k := range list {
			from, to := c.borders(r, k)
			all = append(all, Band{int32(r), c.phaseOf(&list[k]), null, null, from, to})
		}
	}
	return all
}
