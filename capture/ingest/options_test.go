package ingest

import (
	"strings"
	"testing"
)

func TestTheResolutionIsAPowerOfTwo(t *testing.T) {
	for ns, ok := range map[int64]bool{0: true, 1: true, 512: true, 1000: false, -8: false, 1 << 31: false} {
		o := Options{TimeResolutionNs: ns}
		if err := o.withDefaults(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "power of two") {
			t.Errorf("%d ns: error %v", ns, err)
		}
	}
}
