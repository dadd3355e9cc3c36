package detect

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A detection resumed from the state saved between two passes finds the same as an uninterrupted one.
func TestDetectionResumesFromSavedState(t *testing.T) {
	borders := 0
	for seed := range uint64(6) {
		run, kinds := RandomSpreading(t, seed)
		if seed%3 == 2 {
			run, kinds = RandomCombining(seed)
		}
		for _, part := range []int64{0, 12} {
			o := Options{part: part}
			run.Border, run.State = nil, nil
			want := detected(t, run, o)
			var kept [][]byte
			run.Border = func(save func(io.Writer) error) error {
				var b bytes.Buffer
				err := save(&b)
				kept = append(kept, b.Bytes())
				return err
			}
			detected(t, run, o)
			run.Border = nil
			for k := 0; k < len(kept); k += 1 + len(kept)/12 {
				state := kept[k]
				run.State = bytes.NewReader(state)
				if d := cmp.Diff(want, detected(t, run, o), cmpopts.IgnoreUnexported(Finding{})); d != "" {
					t.Fatalf("seed %d (%v), %d messages in a pass, from border %d of %d: uninterrupted, resumed:\n%s",
						seed, kinds, part, k, len(kept), d)
				}
			}
			borders += len(kept)
		}
	}
	if borders < 6*2*6 {
		t.Errorf("%d borders; want more", borders)
	}
}

// Detection returns an error when its state cannot be saved, or when the state given to it is invalid.
func TestErrorsOfSavedStateAreReturned(t *testing.T) {
	run, _ := RandomSpreading(t, 3)
	full := errors.New("full")
	run.Border = func(func(io.Writer) error) error { return full }
	if _, err := Detect(run, Options{}); !errors.Is(err, full) {
		t.Errorf("%v, want %v", err, full)
	}
	run.Border, run.State = nil, bytes.NewReader([]byte("no state"))
	if _, err := Detect(run, Options{}); err == nil {
		t.Error("no error for an invalid state")
	}
}
