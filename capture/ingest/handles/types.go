package handles

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// typeKey is the same for datatypes that share a row of the table datatypes.
type typeKey struct {
	name          string
	combiner      int32
	bytes, extent int64
}

func (d *Type) key() typeKey {
	return typeKey{d.Name, d.Fixed.Combiner, d.Fixed.Bytes, d.Fixed.Extent}
}

// combiners are the names of the constructors by the number in DEF TYPE.
var combiners = [...]string{"named", "dup", "contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block",
	"hindexed_block",
	"struct", "subarray", "darray", "resized", "f90"}

// UnifyTypes numbers the datatypes that the ranks defined and returns the rows of the table datatypes. The order is:
// predefined types, then named ones, then by name, constructor, size and extent.
func UnifyTypes(ranks []*Definitions) *schema.Datatypes {
	ids := map[typeKey]int32{}
	var keys []typeKey
	for _, r := range ranks {
		for i := range r.Types {
			k := r.Types[i].key()
			if _, ok := ids[k]; !ok {
				ids[k] = 0
				keys = append(keys, k)
			}
		}
	}
	slices.SortFunc(keys, func(a, b typeKey) int {
		return cmp.Or(TrueFirst(a.combiner == 0, b.combiner == 0), TrueFirst(a.name != "", b.name != ""),
			cmp.Compare(a.name, b.name),
			cmp.Compare(a.combiner, b.combiner), cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.extent, b.extent))
	})
	for i, k := range keys {
		ids[k] = int32(i)
	}
	for _, r := range ranks {
		for i := range r.Types {
			r.Types[i].global = ids[r.Types[i].key()]
		}
	}
	return typeRows(keys)
}

func typeRows(keys []typeKey) *schema.Datatypes {
	b := &schema.Datatypes{}
	for id, k := range keys {
		row := schema.NullDatatype
		row.ID, row.Bytes, row.ExtentBytes = int32(id), k.bytes, k.extent
		if k.name != "" {
			row.Name = ValidText(k.name)
		}
		if k.combiner >= 0 && int(k.combiner) < len(combiners) {
			row.Combiner = combiners[k.combiner]
		}
		b.Append(&row)
	}
	return b
}
