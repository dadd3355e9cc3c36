package digest

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
)

// slowDigest computes the definition of Sum, a row at a time.
func slowDigest(b schema.Batch) Sum {
	t := b.Table()
	seed := xxh3.HashString(fmt.Sprintf("commq %d %s", schema.Version, t.Name))
	var sum Sum
	for row := range b.Len() {
		var mask uint64
		var words []uint64
		for i, c := range t.Columns {
			switch v := b.Data(i).(type) {
			case []int32:
				if v[row] != schema.NullInt32 {
					mask, words = mask|1<<i, append(words, uint64(int64(v[row])))
				}
			case []int64:
				if v[row] != schema.NullInt64 {
					mask, words = mask|1<<i, append(words, uint64(v[row]))
				}
			case []int16:
				if v[row] != schema.NullEnum {
					mask, words = mask|1<<i, append(words, xxh3.HashString(c.Names[v[row]]))
				}
			case []string:
				if v[row] != schema.NullText {
					mask, words = mask|1<<i, append(words, xxh3.HashString(v[row]))
				}
			}
		}
		text := binary.LittleEndian.AppendUint64(nil, mask)
		for _, w := range words {
			text = binary.LittleEndian.AppendUint64(text, w)
		}
		h := xxh3.Hash128Seed(text, seed)
		var carry uint64
		sum.Lo, carry = bits.Add64(sum.Lo, h.Lo, 0)
		sum.Hi += h.Hi + carry
	}
	return sum
}

func digestOf(batches ...schema.Batch) Sum {
	d := New(batches[0].Table())
	for _, b := range batches {
		d.Add(b)
	}
	return d.Sum()
}

func TestDigestIsItsDefinition(t *testing.T) {
	for _, b := range schematest.ParseRows(t, schematest.TinyRun) {
		if got, want := digestOf(b), slowDigest(b); got != want {
			t.Errorf("%s: digest %s, by the definition %s", b.Table().Name, got, want)
		}
	}
}

// Rows have nulls in different columns, in whole blocks and in the last one.
func TestDigestOfRowsWithNulls(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, digestBlock, 5*digestBlock + 7} {
		for _, of := range []int{2, 3, 100} {
			var b schema.Events
			for i := range n {
				row := schema.NullEvent
				row.Rank, row.Seq, row.Label = 3, int64(i), "text"
				for _, x := range []*int32{&row.SendPeer, &row.SendTag, &row.RecvPeer, &row.Comm} {
					if rng.IntN(of) != 0 {
						*x = rng.Int32()
					}
				}
				for _, x := range []*int64{&row.StartNs, &row.EndNs, &row.SendBytes, &row.Request} {
					if rng.IntN(of) == 0 {
						*x = rng.Int64()
					}
				}
				if rng.IntN(of) == 0 {
					row.Call, row.Label = 2, schema.NullText
				}
				b.Append(&row)
			}
			if got, want := digestOf(&b), slowDigest(&b); got != want {
				t.Errorf("%d rows, nulls in one of %d: digest %s, by the definition %s", n, of, got, want)
			}
		}
	}
}

// Every run on disk has a digest: when this test fails, Version must change.
func TestDigestStaysTheSame(t *testing.T) {
	const rows = "datatypes id=5 name=MPI_BYTE combiner=named bytes=1 extent_bytes=1\ndatatypes id=6 bytes=24 extent_bytes=40"
	if got := digestOf(schematest.ParseRows(t, rows)[2]).String(); got != "233528373658515d24490d7642598019" {
		t.Errorf("the digest of two datatypes is %s", got)
	}
}

// The digest is the same for rows in another order and in other batches, larger than a block.
func TestDigestIsIndependentOfOrder(t *testing.T) {
	e, back := &schema.Events{}, &schema.Events{}
	for i := range 1000 {
		x := schema.NullEvent
		x.Rank, x.Seq, x.Call, x.StartNs, x.SendTag = int32(i%3), int64(i), int16(i%7+1), int64(i*i), int32(i%5)
		if i%2 == 0 {
			x.SendTag, x.ReduceOp = schema.NullInt32, int16(schema.OpSum)
		}
		e.Append(&x)
	}
	for i := range 1000 {
		var x schema.Event
		e.Row(999-i, &x)
		back.Append(&x)
	}
	want := digestOf(e)
	if got := digestOf(back); got != want {
		t.Errorf("backward: %s, want %s", got, want)
	}
	if got := digestOf(e.Slice(700, 1000), e.Slice(0, 1), e.Slice(1, 700)); got != want {
		t.Errorf("in batches: %s, want %s", got, want)
	}
	if got := digestOf(e.Slice(0, 400)).Add(digestOf(e.Slice(400, 1000))); got != want {
		t.Errorf("added: %s, want %s", got, want)
	}
}

// Any cell that changes, changes the digest: every cell of every row of the tiny run, to null and to another value.
func TestDigestSeesEveryCell(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(schematest.TinyRun), "\n")
	seen := map[string]string{}
	add := func(text, what string) {
		id := ""
		for _, b := range schematest.ParseRows(t, text) {
			id += digestOf(b).String()
		}
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s have the same digests", what, other)
		}
		seen[id] = what
	}
	add(schematest.TinyRun, "the run")
	for l, line := range lines {
		cells := strings.Fields(line)
		for c := 1; c < len(cells); c++ {
			name, value, _ := strings.Cut(cells[c], "=")
			if strings.Contains("call class kind ended name", name) {
				continue
			}
			for _, other := range []string{"null", "77" + value} {
				changed := append([]string(nil), cells...)
				changed[c] = name + "=" + other
				text := append([]string(nil), lines...)
				text[l] = strings.Join(changed, " ")
				add(strings.Join(text, "\n"), text[l])
			}
		}
	}
}

func TestDigestOfRun(t *testing.T) {
	m := schematest.TinyManifest()
	m.Tables = []schema.TableInfo{{Name: "events", Rows: 3, Digest: "aa",
		Files: []schema.FileInfo{{Path: "events/0000.parquet", Rows: 3, Bytes: 97}}}}
	want := OfRun(m)
	m.Origin.Command, m.Digest, m.Tables[0].Files[0].Bytes = []string{"./a.out"}, "ff", 98
	if got := OfRun(m); got != want {
		t.Errorf("origin, digest or files change the digest: %s, want %s", got, want)
	}
	if len(m.Tables[0].Files) != 1 {
		t.Error("OfRun changed the manifest")
	}
	m.Tables[0].Digest = "ab"
	if OfRun(m) == want {
		t.Error("a table's digest does not change the run's")
	}
}

func TestUniform(t *testing.T) {
	b := &schema.Events{}
	for i := range 5 {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Label = 3, int64(i), int16(i%2), "a"
		b.Append(&e)
	}
	b.Label[4] = schema.NullText
	for i, same := range Uniform(b) {
		name := b.Table().Columns[i].Name
		if want := name != "seq" && name != "call" && name != "label"; same != want {
			t.Errorf("%s: %v", name, same)
		}
	}
}
