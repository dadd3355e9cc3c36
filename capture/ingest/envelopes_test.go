package ingest

import (
	"maps"
	"testing"
)

// TestUnmatchedAreListedOnDemand: the rows without a partner are counted, and listed only for --record messages.
func TestUnmatchedAreListedOnDemand(t *testing.T) {
	for _, record := range []string{RecordAll, RecordCollectives, RecordMessages} {
		o := Options{Record: record}
		if err := o.withDefaults(); err != nil {
			t.Fatal(err)
		}
		j, err := openJob(program{ranks: 1, body: func(int, *script) {}}.write(t), "", allFiles)
		if err != nil {
			t.Fatal(err)
		}
		defer j.close()
		if err := scanRanks(t.Context(), j.ranks, &o); err != nil {
			t.Fatal(err)
		}
		p, err := newPlan(j, &o, nil, new(warnings))
		if err != nil {
			t.Fatal(err)
		}
		d := newDecoder(p, j.ranks[0])
		d.ends.addAlien(3)
		d.ends.addLost(5)
		want := map[int64]bool{}
		if record == RecordMessages {
			want = map[int64]bool{3: true, 5: true}
		}
		if !maps.Equal(d.ends.unmatched, want) || d.ends.alien != 1 || d.ends.lostRecvs != 1 {
			t.Errorf("record %s: lists %v, counts %d and %d", record, d.ends.unmatched, d.ends.alien, d.ends.lostRecvs)
		}
	}
}
