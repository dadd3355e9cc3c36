package ingest

import (
	"strings"
	"testing"
)

// One tick is 2 ns: ticks 0, 511, 512 and 1300 are 0, 1022, 1024 and 2600 ns.
func TestTimesAreRoundedDownToTheResolution(t *testing.T) {
	c, _ := newClock([]clockPair{{0, 0}, {1000, 2000}})
	c.fine = 1024 - 1
	for tick, want := range map[uint64]int64{0: 0, 511: 0, 512: 1024, 1300: 2048} {
		if got := c.at(tick); got != want {
			t.Errorf("tick %d is %d ns, want %d", tick, got, want)
		}
	}
}

func TestTheResolutionIsAPowerOfTwo(t *testing.T) {
	for ns, ok := range map[int64]bool{0: true, 1: true, 512: true, 1000: false, -8: false, 1 << 31: false} {
		o := Options{TimeResolutionNs: ns}
		if err := o.withDefaults(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "power of two") {
			t.Errorf("%d ns: error %v", ns, err)
		}
	}
}
