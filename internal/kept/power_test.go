package kept

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/commq/commq/internal/disk/diskfail"
)

// TestPowerAndDisksFail: whatever fails while a result is kept, what is read later is that result, the one before, or
// none.
func TestPowerAndDisksFail(t *testing.T) {
	save := func(dir string, n int64) { Save(&Results{filepath.Join(dir, "cache", "run.")}, "sums", &n) }
	diskfail.Try(t, diskfail.Story{
		Before: func(dir string) error { save(dir, 3); return nil },
		Do: func(dir string) error {
			save(dir, 5)
			var n int64
			if !Load(&Results{filepath.Join(dir, "cache", "run.")}, "sums", &n) || n != 5 {
				return fmt.Errorf("kept %d", n)
			}
			return nil
		},
		After: func(dir string, _ bool) error {
			var n int64
			if Load(&Results{filepath.Join(dir, "cache", "run.")}, "sums", &n) && n != 3 && n != 5 {
				return fmt.Errorf("kept %d", n)
			}
			return nil
		},
	}, diskfail.Trials())
}
