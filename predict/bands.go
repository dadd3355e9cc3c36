package predict

import (
	"slices"

	"github.com/commq/commq/schema"
)

// Band is when a rank was in a phase: all its repetitions.
type Band struct {
	Rank int32
	// Phase is the phase's index in the signature.
	Phase int
	// FromNs is the end of the call before the first one, ToNs that of the last.
	FromNs, ToNs int64
}

// measure reads when ranks were in their phases, and gives the phases their times.
func (s *signer) measure(f *phased) error {
	sig := s.sig
	total := int64(0)
	bands := make([][]Band, sig.Ranks)
	last, first := make([]int64, sig.Ranks), make([]int64, sig.Ranks)
	at := make([]int, sig.Ranks)
	known := true
	err := s.run.Events(func(b *schema.Events) error {
		for i, rank := range b.Rank {
			if b.StartNs[i] == schema.NullInt64 || b.EndNs[i] == schema.NullInt64 {
				known = false
				continue
			}
			seq := b.Seq[i]
			if seq == 0 {
				last[rank], first[rank] = b.StartNs[i], b.StartNs[i]
			}
			list := f.stretches[rank]
			if k := at[rank]; k < len(list) && seq == list[k].first {
				bands[rank] = append(bands[rank], Band{Rank: rank, Phase: f.keys[[2]int32{list[k].node, list[k].place}], FromNs: last[rank]})
			}
			last[rank] = b.EndNs[i]
			if k := at[rank]; k < len(list) && seq == list[k].end-1 {
				bands[rank][k].ToNs = last[rank]
				at[rank]++
			}
		}
		return nil
	})
	if err != nil || !known {
		return err
	}
	for r := range bands {
		total += last[r] - first[r]
		for k, b := range bands[r] {
			f.time[b.Phase] += b.ToNs - b.FromNs
			f.share[b.Phase] += (b.ToNs - b.FromNs) / f.stretches[r][k].weight
		}
		sig.bands = append(sig.bands, bands[r]...)
	}
	for i := range f.phases {
		q := &f.phases[i]
		ns, share := f.share[i]/int64(q.Ranks), float64(f.time[i])/float64(max(total, 1))
		q.TimeNs, q.TimeShare = &ns, &share
	}
	return nil
}

// findPhases finds the phases of the run that is signed.
func (s *signer) findPhases() error {
	f, err := s.sig.phases()
	if err != nil {
		return err
	}
	if s.sig.TimeOrigin != "untimed" {
		if err := s.measure(f); err != nil {
			return err
		}
	}
	found := slices.Clone(f.phases)
	s.sig.Phases = f.sorted()
	for i := range s.sig.bands {
		b := &s.sig.bands[i]
		was := &found[b.Phase]
		b.Phase = slices.IndexFunc(s.sig.Phases, func(p Phase) bool { return p.Node == was.Node && p.Place == was.Place })
	}
	return nil
}

// Bands are when ranks were in phases; nil for a signature that was read, and of an untimed run.
func (s *Signature) Bands() []Band { return s.bands }
