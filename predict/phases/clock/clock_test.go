package clock_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/phases/clock"
	"github.com/commq/commq/predict/signature/sign"
)

// ticks runs the clock over an exchange of two ranks.
func ticks(t *testing.T, scripts [2]string) (all [2][]int32, err error) {
	t.Helper()
	s, err := sign.FromRows(testruns.Exchange(scripts))
	if err != nil {
		t.Fatal(err)
	}
	_, err = clock.Run(s, func(rank int32, _ int64, tick int32) { all[rank] = append(all[rank], tick) })
	return all, err
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name    string
		scripts [2]string
		want    [2][]int32
	}{
		// Rank 0 sends at 1 and 2; rank 1 receives at 2 and 3, sends at 4; rank 0 receives at 5.
		{"sends and receives", [2]string{"ssr", "rrs"}, [2][]int32{{1, 2, 5}, {2, 3, 4}}},
		// MPI_Sendrecv sends before it waits: both ranks send at 1 and end at 2. Then rank 0 sends at 3 what rank 1
		// receives at 4, by a call that itself sends at 3.
		{"sendrecv", [2]string{"xsr", "xx"}, [2][]int32{{2, 3, 4}, {2, 4}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ticks(t, c.scripts)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestRunNamesRanksInDeadlock(t *testing.T) {
	_, err := ticks(t, [2]string{"srrs", "rsrs"})
	want := "2 ranks wait forever: rank 0 at seq 2, MPI_Recv, for message 1 from rank 1 with tag 9 on communicator 0, of which 1 are sent; " +
		"rank 1 at seq 2, MPI_Recv, for message 1 from rank 0 with tag 9 on communicator 0, of which 1 are sent"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
