package ingest

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// typeKey is equal for datatypes that are one row of datatypes.
type typeKey struct {
	name          string
	combiner      int32
	bytes, extent int64
}

// typeTable are the datatypes of a run by id.
type typeTable struct {
	keys []typeKey
}

// combiners are the constructors' names by the number in DEF TYPE.
var combiners = [...]string{"named", "dup", "contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block", "hindexed_block",
	"struct", "subarray", "darray", "resized", "f90"}

// unifyTypes numbers the datatypes that the ranks defined: named ones first, then by name, constructor, size and extent.
func unifyTypes(ranks []*rankSpool) *typeTable {
	ids := map[typeKey]int32{}
	t := &typeTable{}
	for _, r := range ranks {
		for i := range r.types {
			k := r.types[i].key()
			if _, ok := ids[k]; !ok {
				ids[k] = 0
				t.keys = append(t.keys, k)
			}
		}
	}
	slices.SortFunc(t.keys, func(a, b typeKey) int {
		return cmp.Or(boolFirst(a.combiner == 0, b.combiner == 0), boolFirst(a.name != "", b.name != ""), cmp.Compare(a.name, b.name),
			cmp.Compare(a.combiner, b.combiner), cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.extent, b.extent))
	})
	for i, k := range t.keys {
		ids[k] = int32(i)
	}
	for _, r := range ranks {
		for i := range r.types {
			r.types[i].global = ids[r.types[i].key()]
		}
	}
	return t
}

func (d *typeDef) key() typeKey {
	return typeKey{d.name, d.fixed.Combiner, d.fixed.Bytes, d.fixed.Extent}
}

// write puts the table datatypes into the run.
func (t *typeTable) write(out sink) error {
	b := &schema.Datatypes{}
	for id, k := range t.keys {
		row := schema.NullDatatype
		row.ID, row.Bytes, row.ExtentBytes = int32(id), k.bytes, k.extent
		if k.name != "" {
			row.Name = validText(k.name)
		}
		if k.combiner >= 0 && int(k.combiner) < len(combiners) {
			row.Combiner = combiners[k.combiner]
		}
		b.Append(&row)
	}
	return out.Write(0, b)
}
