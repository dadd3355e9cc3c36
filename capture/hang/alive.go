package hang

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/bounded"
)

// aliveStep is the time between two looks at processes that have not ended.
const aliveStep = 20 * time.Millisecond

// WaitForRanks waits until no process on this machine records into the spool folder any more. A launcher that is
// interrupted twice ends before the ranks that it ends, and what they record meanwhile belongs to the run. It returns
// the ranks that still live when patience is at an end.
func WaitForRanks(ctx context.Context, dir string, patience time.Duration) (living []int32) {
	end := time.Now().Add(patience)
	names, _ := fs.Glob(os.DirFS(dir), "*"+spool.Suffix)
	for {
		living = nil
		names = slices.DeleteFunc(names, func(name string) bool {
			rank, alive := writes(filepath.Join(dir, name))
			if alive {
				living = append(living, rank)
			}
			return !alive
		})
		if len(living) == 0 || ctx.Err() != nil || time.Now().After(end) {
			slices.Sort(living)
			return slices.Compact(living)
		}
		select {
		case <-ctx.Done():
		case <-time.After(aliveStep):
		}
	}
}

// writes reports whether the process of a file is alive. Files that cannot be read are not alive here; ingest reports
// them.
func writes(path string) (rank int32, alive bool) {
	f, _, err := bounded.OpenRegular(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	h, alive, err := readLiveHeader(f)
	if err != nil {
		return 0, false
	}
	return h.Rank, alive
}
