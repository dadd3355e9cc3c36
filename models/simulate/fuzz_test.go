package simulate

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/internal/snapshot"
	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// savedState is the state in the middle of a simulation.
type savedState struct {
	machine *models.Machine
	program *Program
	rows    []schema.Event // after the state
	bytes   []byte
}

// savedStates returns the states of some simulations.
func savedStates(t testing.TB) (states []savedState) {
	g := rand.New(rand.NewPCG(7, 7))
	for len(states) < 40 {
		p := randomProgram(g)
		m, _ := randomMachine(t, g, len(p.ranks))
		program, rows := p.rows()
		half := len(rows) / 2
		border := func(epochs int, save func(io.Writer) error) error {
			var b bytes.Buffer
			err := save(&b)
			if epochs == 1 {
				states = append(states, savedState{m, program, rows[half:], b.Bytes()})
			}
			return err
		}
		_, _ = Simulate(m, program, &Options{Border: border}, windowed(rows[:half], rows[half:])) // some hang
	}
	return states
}

// resumeEdited continues from the state, its values changed.
func (s *savedState) resumeEdited(t *testing.T, edits []byte) error {
	e := &engine{}
	if err := snapshot.Read(bytes.NewReader(s.bytes), e); err != nil {
		t.Fatal(err)
	}
	mutate.Value(e, edits)
	var b bytes.Buffer
	if err := snapshot.Write(&b, e); err != nil {
		t.Fatal(err)
	}
	_, err := Simulate(s.machine, s.program, &Options{State: &b}, windowed(s.rows))
	return err
}

func TestStatesThatMakeNoSense(t *testing.T) {
	refused := 0
	for _, s := range savedStates(t) {
		for at := range byte(20) {
			if err := s.resumeEdited(t, []byte{0, 10 * at, 2, 13}); err != nil &&
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

// FuzzStateEdited continues simulations from states whose values are changed: an error, or a result.
func FuzzStateEdited(f *testing.F) {
	states := savedStates(f)
	for i := range states {
		f.Add(uint8(i), []byte{0, 9, 1, 8, 1, 0, 4, 7})
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		_ = states[int(which)%len(states)].resumeEdited(t, edits)
	})
}

// windowed returns a source of windows of rows.
func windowed(windows ...[]schema.Event) func(add func(*schema.Events) error) error {
	return func(add func(*schema.Events) error) error {
		if len(windows) == 0 {
			return io.EOF
		}
		w := windows[0]
		windows = windows[1:]
		return add(eventsOf(w))
	}
}
