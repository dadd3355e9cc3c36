package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Find returns the runs that names and patterns match, each once. A name or a pattern that matches nothing is an
// error; unreadable runs that a pattern matches are passed to leftOut.
func (s *Store) Find(ctx context.Context, namesOrPatterns []string, leftOut func(error)) (runs []Info, err error) {
	found := map[string]bool{}
	var all []Info // listed at the first pattern
	for _, name := range namesOrPatterns {
		var matching []Info
		if writer.CheckName(name) == nil {
			info, err := s.named(ctx, name)
			if err != nil {
				return nil, err
			}
			matching = []Info{info}
		} else {
			if all == nil {
				if all, err = s.List(ctx); err != nil {
					return nil, err
				}
			}
			if matching, err = s.matching(all, name, leftOut); err != nil {
				return nil, err
			}
		}
		for _, info := range matching {
			if !found[info.Name] {
				runs = append(runs, info)
			}
			found[info.Name] = true
		}
	}
	return runs, nil
}

// named returns the run with a name.
func (s *Store) named(ctx context.Context, name string) (Info, error) {
	m, err := s.Manifest(ctx, name)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("no run %q in %s; commq runs list --store %[2]s lists the runs", name, s.URL)
	}
	return Info{Name: name, Manifest: m}, err
}

// matching returns the runs in all whose names match a pattern.
func (s *Store) matching(all []Info, pattern string, leftOut func(error)) (runs []Info, err error) {
	if !strings.ContainsAny(pattern, "*?[") {
		return nil, fmt.Errorf("no run %q in %s: a run cannot have this name", pattern, s.URL)
	}
	for _, info := range all {
		matches, err := path.Match(pattern, info.Name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("runs %q: %w; want * ? or [a-z]", pattern, err)
		case !matches:
		case info.Err != nil:
			leftOut(info.Err)
		default:
			runs = append(runs, info)
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no run matches %q in %s; commq runs list --store %[2]s lists the runs", pattern, s.URL)
	}
	return runs, nil
}

// PushAll pushes runs, given their Name and Dir. It returns the number of runs that the store already had.
func (s *Store) PushAll(ctx context.Context, runs []writer.Info, replace bool) (before int, err error) {
	for _, r := range runs {
		pushed, err := s.Push(ctx, r.Dir, r.Name, replace)
		if err != nil {
			return before, err
		}
		if !pushed {
			before++
		}
	}
	return before, nil
}

// Copied is the result of PullNamed: the number of runs, and how many of them were there before.
type Copied struct{ Runs, Before int }

// PullNamed pulls the runs that names and patterns match, all if there are none, into the folder local. Runs that a
// pattern matches and that cannot be read are given to leftOut.
func (s *Store) PullNamed(ctx context.Context, namesOrPatterns []string, local string, replace bool,
	leftOut func(error)) (Copied, error) {
	if len(namesOrPatterns) == 0 {
		namesOrPatterns = []string{"*"}
	}
	runs, err := s.Find(ctx, namesOrPatterns, leftOut)
	if err != nil {
		return Copied{}, err
	}
	before, err := s.PullAll(ctx, runs, local, replace)
	return Copied{Runs: len(runs), Before: before}, err
}

// PullAll pulls runs into the folder local. It returns the number of runs that were already there, by name, digest and
// sizes of files. With replace it pulls all of them: files of the right size may be damaged.
func (s *Store) PullAll(ctx context.Context, runs []Info, local string, replace bool) (before int, err error) {
	for _, r := range runs {
		if !replace && hasRun(local, r.Name, r.Manifest) {
			before++
			continue
		}
		if err := s.Pull(ctx, r.Name, local, replace); err != nil {
			return before, err
		}
	}
	return before, nil
}

// hasRun reports whether a store on a file system has a run of this name with the same rows and no file missing.
func hasRun(store, name string, m *schema.Manifest) bool {
	dir := filepath.Join(store, name)
	there, err := writer.ReadManifest(dir)
	if err != nil || there.Digest != m.Digest {
		return false
	}
	_, wrong := writer.OnDisk(dir, there)
	return wrong == 0
}
