package hang

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/commq/commq/capture/spool"
)

// TestWaitForRanks: a launcher that was interrupted twice ends before its ranks, which record on.
func TestWaitForRanks(t *testing.T) {
	rank := exec.Command("sleep", "60")
	if err := rank.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = rank.Process.Kill(); <-ended })
	go func() { _ = rank.Wait(); close(ended) }()
	dir := write(t, 3, func(h *spool.Header) {
		h.Ended = spool.EndedFinalized
		if h.Rank == 1 {
			h.Ended, h.Pid, h.Program = spool.EndedNot, int64(rank.Process.Pid), [len(h.Program)]byte{}
			copy(h.BootID[:], bootID())
			copy(h.Program[:], "/bin/sleep")
		}
	}, func(int, *script) {})
	named := filepath.Join(t.TempDir(), "a[1]") // a name with the characters of patterns
	if err := os.Rename(dir, named); err != nil {
		t.Fatal(err)
	}
	dir = named
	if living := WaitForRanks(context.Background(), dir, 50*time.Millisecond); !slices.Equal(living, []int32{1}) {
		t.Errorf("while rank 1 lives: %v", living)
	}
	go func() {
		time.Sleep(200 * time.Millisecond)
		_ = rank.Process.Kill()
	}()
	if living := WaitForRanks(context.Background(), dir, time.Minute); len(living) > 0 {
		t.Errorf("when rank 1 has ended: %v", living)
	}
}
