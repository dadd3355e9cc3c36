package replay

import (
	"math"

	"github.com/commq/commq/schema"
)

// typeWords is a datatype in the schedule: a predefined one by the offset of its name, else bytes resized to an extent
// (name is -1 then).
type typeWords struct{ name, bytes, extent int64 }

// typeOfBytes is the index of MPI_BYTE.
const typeOfBytes = 0

// typeTable has the datatypes of the schedule.
type typeTable struct {
	words  []typeWords
	names  []byte          // of predefined types, each with a 0 behind it
	byID   map[int32]int64 // index
	byName map[string]int64
}

func readTypes(rows []schema.Datatype) *typeTable {
	t := &typeTable{byID: map[int32]int64{}, byName: map[string]int64{}}
	t.named("MPI_BYTE", 1, 1)
	for i := range rows {
		r := &rows[i]
		if r.Bytes < 0 || r.Bytes > math.MaxInt32 || r.ExtentBytes > math.MaxInt32 {
			continue // played as bytes
		}
		if r.Combiner == "named" && r.Name != schema.NullText && r.Name != "" {
			t.byID[r.ID] = t.named(r.Name, r.Bytes, max(r.ExtentBytes, r.Bytes))
			continue
		}
		t.byID[r.ID] = int64(len(t.words))
		t.words = append(t.words, typeWords{-1, r.Bytes, max(r.ExtentBytes, r.Bytes)})
	}
	return t
}

// named returns the index of a predefined datatype.
func (t *typeTable) named(name string, bytes, extent int64) int64 {
	k, ok := t.byName[name]
	if !ok {
		k = int64(len(t.words))
		t.byName[name] = k
		t.words = append(t.words, typeWords{int64(len(t.names)), bytes, extent})
		t.names = append(append(t.names, name...), 0)
	}
	return k
}

// data is an argument: count elements of the type with index kind.
type data struct{ count, kind int64 }

// elements expresses bytes as elements of a type, or as bytes where they are no whole number of elements.
func (t *typeTable) elements(bytes int64, id int32) data {
	bytes = max(bytes, 0)
	k, ok := t.byID[id]
	if !ok {
		return data{bytes, typeOfBytes}
	}
	switch size := t.words[k].bytes; {
	case size == 0 && bytes == 0:
		return data{0, k}
	case size == 0 || bytes%size != 0:
		return data{bytes, typeOfBytes}
	default:
		return data{bytes / size, k}
	}
}

// counted returns count elements of a type, or the bytes when the count or the type is not known.
func (t *typeTable) counted(count int64, id int32, bytes int64) data {
	k, ok := t.byID[id]
	if !ok || count == schema.NullInt64 || count < 0 ||
		bytes != schema.NullInt64 && count*t.words[k].bytes < bytes {
		return t.elements(bytes, id)
	}
	return data{count, k}
}

// span returns the memory that data takes, in bytes.
func (t *typeTable) span(d data) int64 { return d.count * t.words[d.kind].extent }

// reduction returns data that the reduction operation op can be applied to, and the operation's number in
// schema.OpNames: a predefined operation needs a predefined type.
func (t *typeTable) reduction(d data, op int16) (data, int64) {
	switch predefined := t.words[d.kind].name >= 0; {
	case op == int16(schema.OpUser):
		return d, int64(op)
	case op <= 0 || int(op) >= len(schema.OpNames) || !predefined || d.kind == typeOfBytes:
		return data{d.count * t.words[d.kind].bytes, typeOfBytes}, int64(schema.OpBor)
	}
	return d, int64(op)
}

// counts expresses the bytes for each peer as counts of one type: the type with that id, or MPI_BYTE where the bytes
// are no whole numbers of its elements.
func (t *typeTable) counts(bytes []int64, id int32) (counts []int64, kind int64) {
	kind = typeOfBytes
	if k, ok := t.byID[id]; ok && t.words[k].bytes > 0 {
		kind = k
	}
	size := t.words[kind].bytes
	for _, n := range bytes {
		if n%size != 0 {
			kind, size = typeOfBytes, 1
		}
	}
	for _, n := range bytes {
		counts = append(counts, n/size)
	}
	return counts, kind
}
