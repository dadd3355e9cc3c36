package detect

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/internal/snapshot"
)

// savedState is the state at one border of a detection.
type savedState struct {
	run   *Run
	part  int64
	bytes []byte
}

// savedStates returns the states of some detections.
func savedStates(t testing.TB) (states []savedState) {
	for seed := range uint64(6) {
		for _, part := range []int64{0, 12} {
			run, _ := RandomSpreading(t, seed)
			if seed%3 == 2 {
				run, _ = RandomCombining(seed)
			}
			run.Border = func(save func(io.Writer) error) error {
				var b bytes.Buffer
				err := save(&b)
				states = append(states, savedState{run, part, b.Bytes()})
				return err
			}
			if _, err := Detect(run, Options{part: part}); err != nil {
				t.Fatal(err)
			}
			run.Border = nil
		}
	}
	return states
}

// resumeEdited continues from the state, its values changed.
func (s *savedState) resumeEdited(t *testing.T, edits []byte) error {
	d := &detector{}
	if err := snapshot.Read(bytes.NewReader(s.bytes), d); err != nil {
		t.Fatal(err)
	}
	mutate.Value(d, edits)
	var b bytes.Buffer
	if err := snapshot.Write(&b, d); err != nil {
		t.Fatal(err)
	}
	run := *s.run
	run.State = &b
	_, err := Detect(&run, Options{part: s.part})
	return err
}

func TestStatesThatMakeNoSense(t *testing.T) {
	states, refused := savedStates(t)[:6], 0
	for i := range states {
		for at := range byte(40) {
			if err := states[i].resumeEdited(t, []byte{0, at, 2, 2}); err != nil &&
				strings.Contains(err.Error(), "the saved state makes no sense: ") {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("no state was refused")
	}
	t.Logf("%d states were refused", refused)
}

// FuzzStateEdited continues detections from states whose values are changed: an error, or a result.
func FuzzStateEdited(f *testing.F) {
	states := savedStates(f)
	for i := 0; i < len(states); i += 1 + len(states)/50 {
		f.Add(uint16(i), []byte{0, 9, 1, 8, 1, 0, 4, 7})
	}
	f.Fuzz(func(t *testing.T, which uint16, edits []byte) {
		_ = states[int(which)%len(states)].resumeEdited(t, edits)
	})
}
