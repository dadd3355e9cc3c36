package derive

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// message has what channels reads.
func message(src, dst, tag int32, bytes, count int64) schema.Message {
	m := schema.NullMessage
	m.Src, m.Dst, m.Tag, m.Bytes, m.SendCount, m.SendDatatype = src, dst, tag, bytes, count, 3
	return m
}

func TestChannels(t *testing.T) {
	m := &schema.Messages{}
	for _, row := range []schema.Message{
		message(1, 0, 7, 800, 100), message(0, 1, 7, 0, 0), message(1, 0, 7, 1024, 128), message(0, 1, 7, 1, schema.NullInt64),
		message(1, 0, 7, 1025, 128), message(1, 0, 7, 513, 65), message(0, 1, 8, 2, 2),
	} {
		m.Append(&row)
	}
	s := NewChannelSums()
	s.Add(m)
	rows := s.Rows()
	var got [][10]int64
	for i := range rows.Src {
		got = append(got, [10]int64{int64(rows.Src[i]), rows.Nth[i], int64(rows.Tag[i]), int64(rows.BytesPower[i]), int64(rows.CountPower[i]),
			rows.Messages[i], rows.Bytes[i], rows.MinBytes[i], rows.MaxBytes[i], rows.Count[i]})
	}
	want := [][10]int64{
		{0, 0, 7, -1, -1, 1, 0, 0, 0, 0},
		{0, 1, 7, 0, int64(schema.NullInt32), 1, 1, 1, 1, schema.NullInt64},
		{0, 2, 8, 1, 1, 1, 2, 2, 2, 2},
		{1, 0, 7, 10, 7, 3, 2337, 513, 1024, 293},
		{1, 1, 7, 11, 7, 1, 1025, 1025, 1025, 128},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Sums of many rows, among which the hash table grows, are those of a map; too many rows give none.
func TestChannelsAreTheSumsOfAMap(t *testing.T) {
	type key struct{ src, dst, tag int32 }
	random := rand.New(rand.NewPCG(1, 2))
	want, s := map[key]int64{}, NewChannelSums()
	for range 40 {
		m := &schema.Messages{}
		for range 1000 {
			k := key{random.Int32N(20), random.Int32N(20), random.Int32N(50)}
			row := message(k.src, k.dst, k.tag, 64, 8)
			m.Append(&row)
			want[k]++
		}
		s.Add(m)
	}
	rows := s.Rows()
	if len(want) < 10000 || rows.Len() != len(want) {
		t.Fatalf("%d rows, want %d", rows.Len(), len(want))
	}
	for i := range rows.Src {
		if k := (key{rows.Src[i], rows.Dst[i], rows.Tag[i]}); rows.Messages[i] != want[k] || rows.Bytes[i] != 64*want[k] {
			t.Fatalf("%v: %d messages, want %d", k, rows.Messages[i], want[k])
		}
	}
	m := &schema.Messages{}
	for tag := range int32(1 << 10) {
		row := message(0, 0, tag, 64, 8)
		m.Append(&row)
	}
	for src := range int32(channelRows>>10 + 1) {
		for i := range m.Src {
			m.Src[i] = src
		}
		s.Add(m)
	}
	if s.Rows() != nil {
		t.Errorf("rows of more than %d channels", channelRows)
	}
}
