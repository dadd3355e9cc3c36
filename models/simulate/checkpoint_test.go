package simulate

import (
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// A simulation that continues from any checkpoint gives the same times of every row, and the same sums, as one
// without interruption.
func TestContinuingChangesNothing(t *testing.T) {
	checkpoints, ended := 0, 0
	eachProgram(t, func(seed int, g *rand.Rand, p *slowProgram) {
		m, _ := randomMachine(t, g, len(p.ranks))
		if seed%2 == 0 {
			contended(g, m)
		}
		program, rows := p.rows()
		var windows [][]schema.Event // by seq, like epochs
		for i := range rows {
			w := int(rows[i].Seq / 3)
			for len(windows) <= w {
				windows = append(windows, nil)
			}
			windows[w] = append(windows[w], rows[i])
		}
		for _, d := range []Dialect{Paper, Dimemas5} {
			type state struct {
				epochs int
				bytes  []byte
				times  rowTimes // up to the checkpoint
			}
			var states []state
			simulate := func(from *state) (*Result, rowTimes, error) {
				o, times, left := &Options{Dialect: d}, rowTimes{}, windows
				if from != nil {
					o.State = bytes.NewReader(from.bytes)
					times, left = maps.Clone(from.times), windows[from.epochs:]
				} else {
					o.Border = func(epochs int, save func(io.Writer) error) error {
						var b bytes.Buffer
						err := save(&b)
						states = append(states, state{epochs, b.Bytes(), maps.Clone(times)})
						return err
					}
				}
				o.Done = func(rank int32, seq int64, start, end Picoseconds) {
					times[[2]int64{int64(rank), seq}] = [2]Picoseconds{start, end}
				}
				r, err := Simulate(m, program, o, func(add func(*schema.Events) error) error {
					if len(left) == 0 {
						return io.EOF
					}
					w := left[0]
					left = left[1:]
					return add(eventsOf(w))
				})
				return r, times, err
			}
			want, wantTimes, wantErr := simulate(nil)
			if wantErr == nil {
				ended++
			}
			for _, s := range states {
				checkpoints++
				got, times, err := simulate(&s)
				if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
					t.Fatalf("seed %d, %v, from epoch %d: %v, want %v", seed, d, s.epochs, err, wantErr)
				}
				if !reflect.DeepEqual(got, want) || wantErr == nil && !maps.Equal(times, wantTimes) {
					t.Fatalf("seed %d, %v, from epoch %d: %+v, want %+v\n%v", seed, d, s.epochs, got, want, p)
				}
			}
		}
	})
	if checkpoints < 4*lawPrograms || ended < lawPrograms {
		t.Errorf("there were %d checkpoints and %d simulations that end; want more", checkpoints, ended)
	}
}

// delayedProgram returns a program whose rank 3 sends to rank 0 in the last epoch, while 40,000 sends of rank 0 wait
// behind the receive.
func delayedProgram() (*Program, [][]schema.Event) {
	late := []call{{schema.CallRecv, 0, from(3, 9)}}
	for range 40_000 {
		late = append(late, call{schema.CallSend, 0, to(1, 4097)})
	}
	p, rows := rowsOf([]int32{1, 1, 1, 1}, nil, late, nil, nil, []call{{schema.CallSend, 0, to(0, 9)}})
	last := len(rows) - 1
	return p, [][]schema.Event{rows[:last/2], rows[last/2 : last], rows[last:]}
}

func TestMemoryLimit(t *testing.T) {
	m, err := models.Named("flat")
	if err != nil {
		t.Fatal(err)
	}
	p, windows := delayedProgram()
	_, err = Simulate(m, p, &Options{MemoryBytes: 64 << 10}, func(add func(*schema.Events) error) error {
		w := windows[0]
		windows = windows[1:]
		return add(eventsOf(w))
	})
	if err == nil || !strings.Contains(err.Error(), "the rows that were read and not yet simulated take") ||
		!strings.Contains(err.Error(), "rank 0, which is at row 0, has rows up to") {
		t.Errorf("%v", err)
	}
}

func TestStateOfAnotherRun(t *testing.T) {
	m, err := models.Named("flat")
	if err != nil {
		t.Fatal(err)
	}
	p, windows := delayedProgram()
	var b bytes.Buffer
	o := &Options{Border: func(_ int, save func(io.Writer) error) error {
		b.Reset()
		return save(&b)
	}}
	source := func(add func(*schema.Events) error) error {
		if len(windows) == 0 {
			return io.EOF
		}
		w := windows[0]
		windows = windows[1:]
		return add(eventsOf(w))
	}
	_, _ = Simulate(m, p, o, source) // its messages to rank 1 have no receive
	small := &Program{Threads: []int32{1, 1, 1}}
	if _, err := Simulate(m, small, &Options{State: &b}, source); err == nil ||
		!strings.Contains(err.Error(), "the state is of 4 threads") {
		t.Errorf("%v", err)
	}
}
