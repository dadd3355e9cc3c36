package calibrate

import (
	"context"
	"path/filepath"
	"testing"

	sqlrows "github.com/commq/commq/internal/rows"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Three ranks on two hosts. Messages between the hosts take 1000 ns and 1 ns per byte. Rank 0 computes 300, 1 and
// 200 ns before messages with tag 14: 100 additions take 200 ns at the median, so a cycle takes 2 ns.
func TestLearnFromARun(t *testing.T) {
	store := t.TempDir()
	out, err := writer.Create(store, "three", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	ranks, events := &schema.RankInfos{}, &schema.Events{}
	for rank := range int32(3) {
		row := schema.NullRankInfo
		row.Rank, row.Host, row.Threads, row.Ended = rank, rank/2, 1, schema.EndedFinalized
		ranks.Append(&row)
	}
	for seq, ns := range []int64{300, 1, 200} {
		row := schema.NullEvent
		row.Seq, row.Call, row.Class, row.SendTag, row.ComputeNs = int64(seq), int16(schema.CallSend),
			int16(schema.ClassSend), 14, ns
		events.Append(&row)
	}
	for _, b := range []schema.Batch{ranks, events} {
		if err := out.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Commit(t.Context(), &schema.Manifest{Ranks: 3, TimeOrigin: "measured", ComputeClock: "cpu",
		Record: "all",
		Hash:   "none", Ended: "finalized", Epochs: 1}); err != nil {
		t.Fatal(err)
	}
	r, err := run.Open(t.Context(), filepath.Join(store, "three"), run.Need{})
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	ask := func(_ context.Context, query string, args map[string]string, each func(sqlrows.Row) error) error {
		asked = append(asked, query+args["where"])
		if query != "message-times" {
			return nil
		}
		header := sqlrows.NewHeader("bytes", "messages", "min_ns", "q25_ns", "median_ns", "same_host")
		for _, bytes := range []int64{0, 1000, 4000} {
			if err := each(sqlrows.Row{Header: header,
				Values: []any{bytes, int64(97), 990 + bytes, 1000 + bytes, 1020 + bytes, false}}); err != nil {
				return err
			}
		}
		return nil
	}
	o := LearnOptions{Through: "quartile", Where: "tag = 9", Eager: true,
		Launched: &Launched{CycleTag: 14, CycleAdds: 100, ClockTag: 15, TopClockTag: 16, RoundTag: 1000}}
	c, err := Learn(t.Context(), r, ask, o)
	if err != nil {
		t.Fatal(err)
	}
	if c.CycleNs != 2 || c.Inside != nil || c.Between == nil || c.Machine.CPUsPerNode != 2 ||
		c.Machine.Network.BytesPerSecond != 1_000_000_000 || c.Machine.Network.Latency != 1_000_000 {
		t.Errorf("%+v, machine %+v", c, c.Machine)
	}
	if len(asked) != 2 || asked[0] != "message-timestag = 9" || asked[1] != "eager" {
		t.Errorf("asked %q", asked)
	}
}
