package detect

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/scan"
	"github.com/commq/commq/schema"
)

// sharing lets a run report its stretches with frequent payloads and read only the requested columns: all others have
// wrong values. It cuts the run into epochs and delivers small batches.
type sharing struct {
	rows   *schema.Messages
	hashes []int64
	looked int // hashes that were read for counting or for a search
}

const epochRows, batchRows = 16, 5

func newSharing(t *testing.T, run *Run) *sharing {
	t.Helper()
	s := &sharing{rows: schema.NewBatch(&schema.MessagesTable).(*schema.Messages)}
	err := run.Messages(scan.Columns, func(b *schema.Messages, _ schema.Rest) error {
		var m schema.Message
		for i := range b.Src {
			b.Row(i, &m)
			m.Epoch = int32(s.rows.Len() / epochRows)
			s.rows.Append(&m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.hashes = slices.Clone(s.rows.PayloadHash)
	run.Messages, run.Shared = s.read, s.shared
	return s
}

// shared counts by brute force.
func (s *sharing) shared(least int) (map[scan.Stretch]bool, error) {
	count, out := map[ledger.Payload]int{}, map[scan.Stretch]bool{}
	of := func(i int) ledger.Payload {
		if s.rows.Bytes[i] == 0 {
			return ledger.Payload{}
		}
		return ledger.Payload{Hash: s.hashes[i], Bytes: s.rows.Bytes[i]}
	}
	for i, src := range s.rows.Src {
		if src != s.rows.Dst[i] {
			count[of(i)]++
		}
	}
	for i, src := range s.rows.Src {
		unknown := s.hashes[i] == schema.NullInt64 && s.rows.Bytes[i] > 0
		if unknown || src != s.rows.Dst[i] && count[of(i)] >= least {
			out[scan.Stretch{Epoch: s.rows.Epoch[i], Src: src}] = true
		}
	}
	return out, nil
}

func (s *sharing) read(columns []string, add func(*schema.Messages, schema.Rest) error) error {
	early := slices.Contains(columns, scan.HashColumn)
	for first := 0; first < s.rows.Len(); first += batchRows {
		b := schema.NewBatch(&schema.MessagesTable).(*schema.Messages)
		var m schema.Message
		n := min(batchRows, s.rows.Len()-first)
		for i := range n {
			s.rows.Row(first+i, &m)
			if !early {
				m.PayloadHash = 4711
			}
			b.Append(&m)
		}
		err := add(b, func(from, end int, names ...string) error {
			if !early && (len(names) == 0 || slices.Contains(names, scan.HashColumn)) {
				copy(b.PayloadHash[from:end], s.hashes[first+from:first+end])
				if len(names) > 0 {
					s.looked += end - from
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Findings stay the same when the run counts payloads itself, also with messages without a hash, and fewer hashes are
// read.
func TestFindingsDoNotDependOnShared(t *testing.T) {
	read, all := 0, 0
	for seed := range uint64(60) {
		make := func() *Run {
			run, _ := RandomSpreading(t, seed/2)
			if seed%2 == 1 {
				run, _ = RandomCombining(seed)
			}
			s := newSharing(t, run)
			if seed%4 > 1 {
				rnd := rand.New(rand.NewPCG(seed, 3))
				for i := range s.hashes {
					if rnd.IntN(30) == 0 {
						s.hashes[i] = schema.NullInt64
					}
				}
				copy(s.rows.PayloadHash, s.hashes)
			}
			return run
		}
		o := Options{MinRanks: 2 + int(seed%4)}
		plain := make()
		plain.Shared = nil
		want, err := Detect(plain, o)
		if err != nil {
			t.Fatal(err)
		}
		run := make()
		s := newSharing(t, run)
		got, err := Detect(run, o)
		if err != nil {
			t.Fatal(err)
		}
		passes := o
		passes.part = 5
		parts, err := Detect(make(), passes)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Result{want, got, parts} {
			for i := range r.Findings {
				r.Findings[i].instances = nil
			}
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Finding{})); d != "" {
			t.Errorf("seed %d: counted here, there:\n%s", seed, d)
		}
		if d := cmp.Diff(want, parts, cmp.AllowUnexported(Finding{})); d != "" {
			t.Errorf("seed %d: counted here, there and in passes:\n%s", seed, d)
		}
		read, all = read+s.looked, all+2*len(s.hashes)
	}
	t.Logf("%d hashes of %d were looked at", read, all)
	if read == 0 || read >= all {
		t.Errorf("%d hashes of %d were looked at; want some and not all", read, all)
	}
}

func TestErrorOfSharedIsReturned(t *testing.T) {
	run := script(3, "0>1 a").run(t, rand.New(rand.NewPCG(3, 5)), nil)
	broken := errors.New("the server is gone")
	run.Shared = func(int) (map[scan.Stretch]bool, error) { return nil, broken }
	if _, err := Detect(run, Options{}); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
