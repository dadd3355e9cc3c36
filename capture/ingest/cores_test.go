package ingest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// set has the cores from first to last.
func set(first, last int) (s coreSet) {
	for i := first; i <= last; i++ {
		s[i/8] |= 1 << (i % 8)
	}
	return s
}

func TestHostCores(t *testing.T) {
	for name, c := range map[string]struct {
		sets map[coreSet]int32
		want schema.HostCores
	}{
		"more ranks than cores": {map[coreSet]int32{set(0, 1): 16},
			schema.HostCores{Ranks: 16, Cores: 2, Least: 2, Most: 2, SharingRanks: 16, SharedCores: 2}},
		"as many":     {map[coreSet]int32{set(0, 3): 4}, schema.HostCores{Ranks: 4, Cores: 4, Least: 4, Most: 4}},
		"bound":       {map[coreSet]int32{set(9, 9): 1, set(4095, 4095): 1}, schema.HostCores{Ranks: 2, Cores: 2, Least: 1, Most: 1}},
		"two on each": {map[coreSet]int32{set(0, 0): 2, set(1, 1): 2}, schema.HostCores{Ranks: 4, Cores: 2, Least: 1, Most: 1, SharingRanks: 4, SharedCores: 2}},
		// Three ranks are bound to cores 0 and 1, one may use all of eight.
		"a part of the host": {map[coreSet]int32{set(0, 1): 2, set(1, 1): 1, set(0, 7): 1},
			schema.HostCores{Ranks: 4, Cores: 8, Least: 1, Most: 8, SharingRanks: 3, SharedCores: 2}},
		"the worst part": {map[coreSet]int32{set(0, 3): 5, set(4, 4): 3},
			schema.HostCores{Ranks: 8, Cores: 5, Least: 1, Most: 4, SharingRanks: 3, SharedCores: 1}},
	} {
		c.want.Host = 7
		if diff := cmp.Diff(c.want, hostCores(7, c.sets)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// Of two hosts only that is in the manifest whose ranks all tell.
func TestManifestHasCores(t *testing.T) {
	p := program{ranks: 6, body: func(int, *script) {}, header: func(h *spool.Header) {
		if h.Rank >= 4 {
			copy(h.Host[:], "node1")
		}
		if h.Rank != 4 {
			h.Cores = set(62, 64)
		}
	}}
	r := ingested(t, p.write(t), Options{})
	want := []schema.HostCores{{Ranks: 4, Cores: 3, Least: 3, Most: 3, SharingRanks: 4, SharedCores: 3}}
	if diff := cmp.Diff(want, r.Origin.Cores); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
