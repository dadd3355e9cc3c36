package simrank

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// One ends well soon, one has been killed, one goes on.
func TestWait(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool[1]") // a name with the characters of patterns
	ctx := context.Background()
	hold := func() func() {
		done, err := Hold(dir)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	time.AfterFunc(5*waitStep, hold())
	if died, err := Wait(ctx, dir, time.Minute); died != 0 || err != nil {
		t.Errorf("%d died, %v", died, err)
	}
	// what a process that was killed leaves
	if err := os.WriteFile(filepath.Join(dir, "simulator-9.lock"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if died, err := Wait(ctx, dir, time.Minute); died != 1 || err != nil {
		t.Errorf("%d died, %v; want 1", died, err)
	}
	if died, err := Wait(ctx, dir, time.Minute); died != 0 || err != nil {
		t.Errorf("%d died, %v; it was reported before", died, err)
	}
	done := hold()
	if died, err := Wait(ctx, dir, 3*waitStep); died != 0 || err == nil ||
		!strings.Contains(err.Error(), "still writes") {
		t.Errorf("%d died, %v", died, err)
	}
	interrupted, interrupt := context.WithCancel(ctx)
	interrupt()
	if _, err := Wait(interrupted, dir, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	done()
}
