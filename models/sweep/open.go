package sweep

import (
	"context"
	"errors"
	"path/filepath"

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
	dirs := map[string]string{} // of the runs, by name
	for _, pattern := range patterns {
		matched, err := run.Match(store, pattern)
		if err != nil {
			return nil, err
		}
		for _, dir := range matched {
			s, err := stored.Open(ctx, dir, target)
			if err != nil {
				return nil, err
			}
			if dir, err = filepath.Abs(dir); err != nil {
				return nil, err
			}
			switch other, alike := dirs[s.Run.Name]; {
			case alike && other == dir:
				return nil, schema.GivenTwice(s.Run.Name)
			case alike:
				return nil, schema.CalledAlike(s.Run.Name)
			}
			dirs[s.Run.Name] = dir
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no run given; name one with --run")
	}
	return all, nil
}
