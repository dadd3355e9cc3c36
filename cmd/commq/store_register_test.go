package main

import "testing"

// The place of a run on the server is that of the catalog in docs/method/trino.md, and has no escapes.
func TestPlacesOfRegisteredRuns(t *testing.T) {
	for _, c := range []struct{ location, store, dir, want string }{
		{"", "/my runs/jürgen", "/my runs/jürgen/ü.4", "local:///my runs/jürgen/ü.4"},
		{"", "/scratch/runs", "/elsewhere/r.4", "local:///elsewhere/r.4"},
		{"file:///scratch/runs/", "/mnt/runs", "/mnt/runs/ü.4", "file:///scratch/runs/ü.4"},
	} {
		o := registerOptions{location: c.location}
		if got, err := o.locationOf(c.store, c.dir); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.dir, got, err, c.want)
		}
	}
}
