package times

import (
	"context"
	"fmt"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/predict/training"
)

// LeftOut describes captures that were left out of the training: the runs of Store that Patterns (names or patterns)
// match, on this number of ranks.
type LeftOut struct {
	Store    string
	Patterns []string
	Ranks    int32
}

// simulate simulates the captures and returns their times in ns. Signature files have no rows to simulate.
func (l *LeftOut) simulate(ctx context.Context, target *simulate.Target) (captures []int64, err error) {
	for _, pattern := range l.Patterns {
		if files, err := training.FindFiles(pattern); err != nil || files != nil {
			continue
		}
		found, _, err := training.FindRuns(l.Store, pattern, func(string) {}) // SignAll has told of those
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if f.Manifest.Ranks != l.Ranks {
				continue
			}
			ns, err := simulateCapture(ctx, f.Dir, target)
			if err != nil {
				return nil, err
			}
			captures = append(captures, ns)
		}
	}
	if len(captures) == 0 {
		return nil, fmt.Errorf("predict: no folder of a run on %d ranks; its rows are needed to simulate it", l.Ranks)
	}
	return captures, nil
}

func simulateCapture(ctx context.Context, dir string, target *simulate.Target) (int64, error) {
	s, err := stored.Open(ctx, dir, target)
	if err != nil {
		return 0, err
	}
	r, err := s.Simulate(ctx)
	if err != nil {
		return 0, fmt.Errorf("simulate %s on %s: %w", s.Run.Name, target.Machine.Name, err)
	}
	return simulate.Nanoseconds(r.Time), nil
}
