package ingest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// TestRequestTable does the same at random to a table and to a map.
func TestRequestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var table requestTable
	table.remove(1) // the first call of a damaged file may complete a request
	want := map[uint32]int32{}
	for i := range 20000 {
		serial := uint32(random.IntN(3000)) + 1
		if random.IntN(3) == 0 {
			table.remove(0)      // no request
			table.remove(serial) // there or not
			delete(want, serial)
			continue
		}
		table.put(pending{serial: serial, row: int32(i)})
		want[serial] = int32(i)
	}
	got := map[uint32]int32{}
	for serial := range uint32(3002) {
		if p := table.get(serial); p != nil {
			got[serial] = p.row
		}
	}
	if !maps.Equal(got, want) || table.used != len(want) {
		t.Errorf("%d requests, %d used; want %d", len(got), table.used, len(want))
	}
}

// TestPendingRequestsAreNoChain puts 10^5 requests into the table, as before one MPI_Waitall: each is found and removed
// in a few steps.
func TestPendingRequestsAreNoChain(t *testing.T) {
	for _, step := range []uint32{1, 2, 3, 8, 1000} { // of programs whose other requests end at once
		var table requestTable
		for i := range uint32(100_000) {
			table.put(pending{serial: 7 + i*step})
		}
		longest, now := 0, 0
		for _, p := range table.slots {
			if now++; p.serial == 0 {
				now = 0
			}
			longest = max(longest, now)
		}
		if longest > 16 {
			t.Errorf("every %d-th serial: %d requests without a gap", step, longest)
		}
	}
}

// TestReceivedHashes compares the hashes of a call's requests with those found one by one.
func TestReceivedHashes(t *testing.T) {
	for _, n := range []int{1, 3, 40} {
		g := group{slots: make([]spool.Call, 1, n+1)}
		for i := range n {
			h := spool.Hashes{Kind: spool.KindHash, What: spool.HashReceived, Req: uint32(i % 30), Flags: spool.HasHash, Hash: uint64(100 + i)}
			switch i % 5 {
			case 3:
				h.What = spool.HashSent
			case 4:
				h.Flags = spool.HasSum
			}
			var c spool.Call
			*c.AsHashes() = h
			g.slots = append(g.slots, c)
		}
		received := g.receivedHashes()
		var found []int64
		for req := range uint32(n + 2) {
			got := received.get(req)
			if want := g.receivedHash(req); got != want {
				t.Errorf("of %d: the hash of request %d is %d, want %d", n, req, got, want)
			}
			found = append(found, got)
		}
		if !slices.Contains(found, 100) || !slices.Contains(found, schema.NullInt64) {
			t.Errorf("of %d: hashes %d, want one that is there and one that is not", n, found)
		}
	}
}
