package diagnose

import (
	"strings"
	"testing"

	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/schema"
)

// Findings that gain little beside long waits say what keeps the run as long; others do not.
func TestLittleGainBesideLongWaits(t *testing.T) {
	for run, want := range map[string]string{
		"is.W.16":  "; without it ranks wait 2.18 ms longer elsewhere, most for computing before MPI_Alltoall at /NPB3.4-MPI/IS/is.c:757",
		"uneven.4": "; without it the critical path is about as long, most of it before or in MPI_Irecv at /src/uneven.c:32",
	} {
		d, said := diagnosed(t, run, Options{}), 0
		for i := range d.Findings {
			f := &d.Findings[i]
			if !strings.Contains(f.Title, "; without it ") {
				continue
			}
			if said++; f.GainNs*smallGain*int64(d.Ranks) > f.WaitNs {
				t.Errorf("%s: %s gains %d ns beside waits of %d ns", run, f.Title, f.GainNs, f.WaitNs)
			}
			if !strings.HasSuffix(f.Title, want) {
				t.Errorf("%s: %s; want %q at its end", run, f.Title, want)
			}
		}
		if said != 1 {
			t.Errorf("%s: %d findings say why they gain little, want 1", run, said)
		}
	}
}

// What is waited for more is summed, and the largest part is named.
func TestInstead(t *testing.T) {
	at := func(place string) causeKey { return causeKey{place: place, call: schema.CallSend} }
	before := map[causeKey]int64{at("a.c:1"): 9000, at("b.c:2"): 2000}
	place := func(int32) string { return "" }
	for _, c := range []struct {
		after map[causeKey]int64
		want  string
	}{
		{map[causeKey]int64{at("b.c:2"): 6000, at("c.c:3"): 1000},
			"; without it ranks wait 5 us longer elsewhere, most for computing before MPI_Send at b.c:2"},
		{map[causeKey]int64{at("b.c:2"): 3000, {inCall, "c.c:3", schema.CallSend}: 1500},
			"; without it ranks wait 2.5 us longer elsewhere, most for time in MPI_Send at c.c:3"},
		{map[causeKey]int64{at("b.c:2"): 2100}, ""}, // hardly more, and a critical path without a part
	} {
		if got := instead(&Finding{WaitNs: 9000}, before, c.after, &critical.Path{}, place); got != c.want {
			t.Errorf("%v: %q, want %q", c.after, got, c.want)
		}
	}
}
