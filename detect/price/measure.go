package price

import (
	"context"
	"slices"

	"github.com/commq/commq/internal/stats"
)

// Measured is what replacing all findings saves where both runs were played by turns.
type Measured struct {
	// Repeat is how often each run was played.
	Repeat int `json:"repeat"`
	// OriginalNs and ReplacedNs are the medians of their times.
	OriginalNs int64 `json:"original_ns"`
	ReplacedNs int64 `json:"replaced_ns"`
	// SavedNs is the median of what each turn saved, negative if it took longer; SavedNsMin and SavedNsMax are the
	// least and the most. Saved is SavedNs as a fraction of OriginalNs.
	SavedNs    int64   `json:"saved_ns"`
	SavedNsMin int64   `json:"saved_min_ns"`
	SavedNsMax int64   `json:"saved_max_ns"`
	Saved      float64 `json:"saved_share"`
	// Collectives is how many collectives the replaced run has instead of messages; Left is how many instances were
	// not replaced.
	Collectives int64 `json:"collectives"`
	Left        int   `json:"left"`
	// Contradiction says how the saving differs from the simulated one, and why; "" if it does not, or none is known.
	Contradiction string `json:"contradiction,omitempty"`
}

// Play plays a run and returns its time in ns.
type Play func(context.Context) (ns int64, err error)

// Measure plays the original and the replaced run by turns; each is first in every other turn, so that neither always
// profits from warm caches.
func Measure(ctx context.Context, repeat int, original, replaced Play) (*Measured, error) {
	plays := [2]Play{original, replaced}
	var times [2][]int64
	var saved []int64
	for turn := range repeat {
		for i := range plays {
			k := (i + turn) % 2
			ns, err := plays[k](ctx)
			if err != nil {
				return nil, err
			}
			times[k] = append(times[k], ns)
		}
		saved = append(saved, times[0][turn]-times[1][turn])
	}
	m := &Measured{Repeat: repeat, OriginalNs: int64(stats.Median(times[0])),
		ReplacedNs: int64(stats.Median(times[1])), SavedNs: int64(stats.Median(saved)),
		SavedNsMin: slices.Min(saved), SavedNsMax: slices.Max(saved)}
	m.Saved = float64(m.SavedNs) / float64(max(m.OriginalNs, 1))
	return m, nil
}
