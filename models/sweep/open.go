package sweep

import (
	"context"
	"errors"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// OpenAll opens the runs of a store that names, paths and patterns match. There is at least one, and no two have the
// same name.
func OpenAll(ctx context.Context, store string, patterns []string, target *simulate.Target) ([]*stored.Simulation,
	error) {
	var all []*stored.Simulation
	names := map[string]bool{}
	for _, pattern := range patterns {
		dirs, err := run.Match(store, pattern)
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			s, err := stored.Open(ctx, dir, target)
			if err != nil {
				return nil, err
			}
			if names[s.Run.Name] {
				return nil, schema.CalledAlike(s.Run.Name)
			}
			names[s.Run.Name] = true
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no run given; name one with --run")
	}
	return all, nil
}
