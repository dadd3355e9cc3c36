package phases_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/predict"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/schema"
)

func TestFind(t *testing.T) {
	// The template is i(ac(b))dz. Rank 0 is at the border: it lacks c. The last iteration of the outer loop ends with
	// d.
	s, _, err := predict.Sign(testruns.Scripts("iabbabbabbabbdz", "iacbbacbbacbbacbbdz"))
	if err != nil {
		t.Fatal(err)
	}
	type phase struct {
		Weight, EventsMin, EventsMax int64
		Ranks                        int32
		Forms                        int
		Calls                        int64
	}
	var got []phase
	for _, p := range s.Phases {
		got = append(got, phase{p.Weight, p.EventsMin, p.EventsMax, p.Ranks, p.Forms, p.Calls})
		if !p.Agrees(2) {
			t.Errorf("ranks do not agree on %+v", p)
		}
	}
	if d := cmp.Diff([]phase{{4, 3, 4, 2, 2, 28}}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// The share of a phase is of the time between MPI_Init and MPI_Finalize.
func TestTimeShareWithoutStartup(t *testing.T) {
	run := testruns.Scripts("iabababz", "iabababz")
	events := run.Events
	run.Manifest.TimeOrigin = "measured"
	run.Events = func(add func(*schema.Events) error) error {
		return events(func(b *schema.Events) error {
			for i, seq := range b.Seq {
				b.StartNs[i], b.EndNs[i] = 1000+10*seq, 1000+10*seq+10
				switch seq {
				case 0:
					b.Call[i], b.StartNs[i] = int16(schema.CallInit), 0
				case 7:
					b.Call[i], b.EndNs[i] = int16(schema.CallFinalize), 5000
				}
			}
			return add(b)
		})
	}
	s, _, err := predict.Sign(run)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Phases) != 1 || s.Phases[0].TimeShare == nil || *s.Phases[0].TimeShare != 1 || *s.Phases[0].TimeNs != 20 {
		t.Errorf("%+v; want a phase of 20 ns with all of the time", s.Phases)
	}
}
