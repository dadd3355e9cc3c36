package replay

import (
	"math"

	"github.com/commq/commq/schema"
)

// typeWords is a datatype in the schedule: a predefined one by its name, else bytes resized to an extent.
type typeWords struct{ name, bytes, extent int64 }

// typeOfBytes is the index of MPI_BYTE.
const typeOfBytes = 0

func (b *builder) readTypes() {
	b.typeOf, b.byName = map[int32]int64{}, map[string]int64{}
	b.named("MPI_BYTE", 1, 1)
	for i := range b.src.Datatypes {
		t := &b.src.Datatypes[i]
		if t.Bytes < 0 || t.Bytes > math.MaxInt32 || t.ExtentBytes > math.MaxInt32 {
			continue // played as bytes
		}
		if t.Combiner == "named" && t.Name != schema.NullText && t.Name != "" {
			b.typeOf[t.ID] = b.named(t.Name, t.Bytes, max(t.ExtentBytes, t.Bytes))
			continue
		}
		b.typeOf[t.ID] = int64(len(b.out.types))
		b.out.types = append(b.out.types, typeWords{-1, t.Bytes, max(t.ExtentBytes, t.Bytes)})
	}
}

// named is the index of a predefined datatype.
func (b *builder) named(name string, bytes, extent int64) int64 {
	k, ok := b.byName[name]
	if !ok {
		k = int64(len(b.out.types))
		b.byName[name] = k
		b.out.types = append(b.out.types, typeWords{int64(len(b.out.names)), bytes, extent})
		b.out.names = append(append(b.out.names, name...), 0)
	}
	return k
}

// data is an argument: so many elements of a type.
type data struct{ count, kind int64 }

// elements are bytes as elements of a type, or as bytes where they are no whole number of them.
func (b *builder) elements(bytes int64, id int32) data {
	bytes = max(bytes, 0)
	k, ok := b.typeOf[id]
	if !ok {
		return data{bytes, typeOfBytes}
	}
	switch size := b.out.types[k].bytes; {
	case size == 0 && bytes == 0:
		return data{0, k}
	case size == 0 || bytes%size != 0:
		return data{bytes, typeOfBytes}
	default:
		return data{bytes / size, k}
	}
}

// counted is a count of elements of a type, or where either is not known the bytes.
func (b *builder) counted(count int64, id int32, bytes int64) data {
	k, ok := b.typeOf[id]
	if !ok || count == schema.NullInt64 || count < 0 || bytes != schema.NullInt64 && count*b.out.types[k].bytes < bytes {
		return b.elements(bytes, id)
	}
	return data{count, k}
}

// span is the memory of data.
func (b *builder) span(d data) int64 { return d.count * b.out.types[d.kind].extent }

// reduction is data that the reduction can be applied to, and the operation's number in schema.OpNames: a predefined one needs a predefined type.
func (b *builder) reduction(d data, op int16) (data, int64) {
	switch predefined := b.out.types[d.kind].name >= 0; {
	case op == int16(schema.OpUser):
		return d, int64(op)
	case op <= 0 || int(op) >= len(schema.OpNames) || !predefined || d.kind == typeOfBytes:
		return data{d.count * b.out.types[d.kind].bytes, typeOfBytes}, int64(schema.OpBor)
	}
	return d, int64(op)
}
