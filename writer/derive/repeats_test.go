package derive

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// repeatsOf returns the rows of repeats of messages, which are given in batches; most limits the ways that are kept.
func repeatsOf(messages []schema.Message, most int) (rows []schema.Repeat, passes int) {
	s := NewRepeatSums()
	s.most = most
	batches := []*schema.Messages{}
	for part := range slices.Chunk(messages, 7) {
		b := &schema.Messages{}
		for i := range part {
			b.Append(&part[i])
		}
		batches = append(batches, b)
		s.Count(b)
	}
	for s.Again() {
		passes++
		for _, b := range batches {
			if err := s.Add(b, func(int, int, ...string) error { return nil }); err != nil {
				panic(err)
			}
		}
	}
	out := s.Rows()
	for i := range out.Len() {
		var r schema.Repeat
		out.Row(i, &r)
		rows = append(rows, r)
	}
	return rows, passes
}

func sentPayload(src, dst int32, seq, hash, head, bytes, count int64, site int32) schema.Message {
	m := schema.NullMessage
	m.Src, m.Dst, m.SendSeq, m.PayloadHash, m.PayloadHead, m.Bytes, m.SendCount, m.SendCallsite = src, dst, seq, hash,
		head, bytes, count, site
	return m
}

// Rank 3 sends a payload to rank 5, to rank 4 and to rank 5 again, and the rows are in another order. Payloads that
// differ in a single property are different payloads.
func TestRepeatSums(t *testing.T) {
	messages := []schema.Message{
		sentPayload(3, 5, 90, 77, 9, 4097, 4097, 2), // the third: again
		sentPayload(3, 5, 10, 77, 9, 4097, 4097, 1), // the first
		sentPayload(3, 4, 20, 77, 9, 4097, 4097, 1), // the second: copied
		sentPayload(5, 4, 7, 77, 9, 4097, 4097, 1),  // another source
		sentPayload(3, 5, 30, 77, 8, 4097, 4097, 1), // another head
		sentPayload(3, 5, 31, 77, 9, 4096, 4096, 1), // another length
		sentPayload(3, 5, 32, 77, 9, 4097, 1, 1),    // another datatype
		sentPayload(3, 5, 33, schema.NullInt64, 9, 4097, 4097, 1),
		sentPayload(3, 5, 34, 0, 0, 0, 0, 1), sentPayload(3, 5, 35, 0, 0, 0, 0, 1), // empty
		// blank
		sentPayload(4, 3, 50, 5, 0, 16, schema.NullInt64, schema.NullInt32),
		sentPayload(4, 3, 51, 5, 0, 16, schema.NullInt64, schema.NullInt32),
	}
	want := []schema.Repeat{
		{Src: 3, Nth: 0, Dst: 4, Callsite: 1, Bytes: 4097, Copied: 1},
		{Src: 3, Nth: 1, Dst: 5, Callsite: 2, Bytes: 4097, Again: 1},
		{Src: 4, Nth: 0, Dst: 3, Callsite: schema.NullInt32, Bytes: 16, Blank: 1, Again: 1},
	}
	got, _ := repeatsOf(messages, mostWays)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The rows are the same as with a simple method: in order of seq, with a set of what was sent. That holds however few
// ways are kept at a time.
func TestRepeatSumsAgainstTheSlowWay(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 5))
	var messages []schema.Message
	for seq := range int64(3000) {
		bytes := 9 + 4088*rng.Int64N(2)
		messages = append(messages, sentPayload(rng.Int32N(3), rng.Int32N(5), seq, rng.Int64N(700), rng.Int64N(2),
			bytes, bytes, rng.Int32N(3)))
	}
	type sent struct {
		src               int32
		hash, head, bytes int64
	}
	type way struct {
		sent
		dst int32
	}
	payloads, ways, sums := map[sent]bool{}, map[way]bool{}, map[repeatKey]*schema.Repeat{}
	for _, m := range messages {
		p := sent{m.Src, m.PayloadHash, m.PayloadHead, m.Bytes}
		w := way{p, m.Dst}
		key := repeatKey{src: m.Src, dst: m.Dst, callsite: m.SendCallsite, bytes: m.Bytes}
		if m.PayloadHead == 0 {
			key.blank = 1
		}
		if sums[key] == nil {
			sums[key] = &schema.Repeat{}
		}
		switch {
		case ways[w]:
			sums[key].Again++
		case payloads[p]:
			sums[key].Copied++
		}
		payloads[p], ways[w] = true, true
	}
	rng.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	for _, most := range []int{mostWays, 400, 50} {
		got, passes := repeatsOf(messages, most)
		if most < mostWays && passes < 3000/most/2 {
			t.Errorf("%d ways at a time: %d passes", most, passes)
		}
		rows := 0
		for _, r := range got {
			want := sums[repeatKey{r.Src, r.Dst, r.Callsite, r.Bytes, r.Blank}]
			if want == nil || want.Again != r.Again || want.Copied != r.Copied {
				t.Fatalf("%d ways at a time: %+v, want %+v", most, r, want)
			}
			rows++
		}
		for key, x := range sums {
			if x.Again+x.Copied > 0 {
				rows--
			} else if x.Again != 0 {
				t.Fatal(key)
			}
		}
		if rows != 0 {
			t.Errorf("%d ways at a time: %d rows too many", most, rows)
		}
	}
}
