package predict

import (
	"slices"

	"github.com/commq/commq/schema"
)

// Band is when a rank was in a phase: all its repetitions.
type Band struct {
	Rank int32
	// Phase is the phase's index in the signature, or Whole.
	Phase int
	// FromNs is the end of the call before the first one, ToNs that of the last; both are schema.NullInt64 where the run has no times.
	FromNs, ToNs int64
	// FromTick and ToTick are the same on the logical clock; 0 is before a rank's first call.
	FromTick, ToTick int32
}

// Whole is the Phase of a band that is all that a rank did, from the start of its first call to the end of its last. Its phases lie over it.
const Whole = -1

// phaseTimer takes in when calls began and ended, and finds when ranks were in their phases.
type phaseTimer struct {
	f           *phased
	bands       [][]Band
	last, first []int64
	at          []int
	known       bool // all times were there
}

func newPhaseTimer(f *phased, ranks int32) *phaseTimer {
	return &phaseTimer{f: f, bands: make([][]Band, ranks), last: make([]int64, ranks), first: make([]int64, ranks), at: make([]int, ranks), known: true}
}

// row takes a call in, each rank's in the order of seq.
func (t *phaseTimer) row(rank int32, seq, start, end int64) {
	if start == schema.NullInt64 || end == schema.NullInt64 {
		t.known = false
		return
	}
	if seq == 0 {
		t.last[rank], t.first[rank] = start, start
	}
	list := t.f.stretches[rank]
	if k := t.at[rank]; k < len(list) && seq == list[k].first {
		t.bands[rank] = append(t.bands[rank], Band{Rank: rank, Phase: t.f.keys[[2]int32{list[k].node, list[k].place}], FromNs: t.last[rank]})
	}
	t.last[rank] = end
	if k := t.at[rank]; k < len(list) && seq == list[k].end-1 {
		t.bands[rank][k].ToNs = end
		t.at[rank]++
	}
}

// give gives the phases their times; it says whether all were known.
func (t *phaseTimer) give() bool {
	if !t.known {
		return false
	}
	total, f := int64(0), t.f
	for r := range t.bands {
		total += t.last[r] - t.first[r]
		for k, b := range t.bands[r] {
			f.time[b.Phase] += b.ToNs - b.FromNs
			f.share[b.Phase] += (b.ToNs - b.FromNs) / f.stretches[r][k].weight
		}
	}
	for i := range f.phases {
		q := &f.phases[i]
		ns, share := f.share[i]/int64(q.Ranks), float64(f.time[i])/float64(max(total, 1))
		q.TimeNs, q.TimeShare = &ns, &share
	}
	return true
}

// measure reads when ranks were in their phases, and gives the phases their times.
func (s *signer) measure(f *phased) error {
	t := newPhaseTimer(f, s.sig.Ranks)
	err := s.run.Events(func(b *schema.Events) error {
		for i, rank := range b.Rank {
			t.row(rank, b.Seq[i], b.StartNs[i], b.EndNs[i])
		}
		return nil
	})
	if err == nil && t.give() {
		s.sig.bands = t.timed()
	}
	return err
}

// timed are all bands with both clocks.
func (t *phaseTimer) timed() []Band {
	all := t.f.untimed()
	at := 0
	for r, list := range t.bands {
		all[at].FromNs, all[at].ToNs = t.first[r], t.last[r]
		at++
		for _, b := range list {
			all[at].FromNs, all[at].ToNs = b.FromNs, b.ToNs
			at++
		}
	}
	return all
}

// untimed are all bands, of each rank the whole and then its phases, with the logical clock alone.
func (f *phased) untimed() (all []Band) {
	null := schema.NullInt64
	for r, list := range f.stretches {
		all = append(all, Band{Rank: int32(r), Phase: Whole, FromNs: null, ToNs: null, ToTick: f.borders[r].last})
		for k := range list {
			from, to := f.borders[r].ticks[2*k], f.borders[r].ticks[2*k+1]
			all = append(all, Band{int32(r), f.keys[[2]int32{list[k].node, list[k].place}], null, null, from, to})
		}
	}
	return all
}

// TimedPhases are the phases with the times of a simulation of the run. rows gives add every call's start and end in ns, each rank's in the order of
// seq; its error is returned.
func (s *Signature) TimedPhases(rows func(add func(rank int32, seq, start, end int64)) error) ([]Phase, error) {
	f, err := s.phases()
	if err != nil {
		return nil, err
	}
	t := newPhaseTimer(f, s.Ranks)
	if err := rows(t.row); err != nil {
		return nil, err
	}
	t.give()
	return f.sorted(), nil
}

// findPhases finds the phases of the run that is signed.
func (s *signer) findPhases() error {
	f, err := s.sig.phases()
	if err != nil {
		return err
	}
	s.unmatched = f.unmatched
	if s.sig.TimeOrigin != "untimed" {
		if err := s.measure(f); err != nil {
			return err
		}
	}
	if s.sig.bands == nil {
		s.sig.bands = f.untimed()
	}
	found := slices.Clone(f.phases)
	s.sig.Phases = f.sorted()
	for i := range s.sig.bands {
		b := &s.sig.bands[i]
		if b.Phase == Whole {
			continue
		}
		was := &found[b.Phase]
		b.Phase = slices.IndexFunc(s.sig.Phases, func(p Phase) bool { return p.Node == was.Node && p.Place == was.Place })
	}
	return nil
}

// Bands are when ranks were in phases: of each rank the whole, then its phases in their order. Nil for a signature that was read.
func (s *Signature) Bands() []Band { return s.bands }
