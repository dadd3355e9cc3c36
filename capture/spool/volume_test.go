package spool_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
)

// TestVolumeOfAPart: headers of some ranks alone are not the whole job, although these ranks came to their end.
func TestVolumeOfAPart(t *testing.T) {
	dir := t.TempDir()
	for rank := range int32(3) {
		v, err := spool.ReadVolume(dir)
		if want := 3 - int(rank); err != nil || rank > 0 && (v.Missing != want || v.Complete) {
			t.Errorf("%d of 3 ranks: %+v, %v; want %d missing", rank, v, err, want)
		}
		putHeader(t, dir, &spool.Header{Rank: rank, Size: 3, Ended: spool.EndedFinalized, Calls: 10})
	}
	if v, err := spool.ReadVolume(dir); err != nil || v.Missing != 0 || !v.Complete {
		t.Errorf("all ranks: %+v, %v", v, err)
	}
}

// putHeader writes a spool file that has nothing but its header.
func putHeader(t *testing.T, dir string, h *spool.Header) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, spoolgen.FileName(h)))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(spoolgen.NewWriter(f, *h).Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Ranks of a host that begin one after the other take the time from the first to the last, in a folder whose name has
// the characters of patterns. The clock of another host has nothing to do with that.
func TestVolumeOfRanksThatBeginApart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[1]")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for rank, at := range []struct {
		host     string
		from, to int64
	}{{"one", 5e9, 6e9}, {"one", 7e9, 9e9}, {"two", 100e9, 101e9}, {"two", 102e9, 0}} {
		h := spool.Header{Rank: int32(rank), Size: 4, Clock0Ns: at.from, Clock1Ns: at.to, Calls: 10}
		copy(h.Host[:], at.host)
		putHeader(t, dir, &h)
	}
	v, err := spool.ReadVolume(dir)
	if err != nil || len(v.Ranks) != 4 || v.Calls != 40 || v.DurationNs != 4e9 {
		t.Errorf("%+v, %v", v, err)
	}
}
