package dumpi

import (
	"fmt"
	"math"

	"github.com/commq/commq/schema"
)

// firstUser is the number of the first datatype that a program makes.
const firstUser = 28

// basicSizes are the sizes of the predefined datatypes where a file does not have them, on machines with longs of 8
// bytes.
var basicSizes = [firstUser]int64{0, 0, 1, 1, 1, 1, 4, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 8, 1, 0, 0, 8, 12, 12, 6, 8,
	20}

// types are the sizes of a rank's datatypes, which constructors change as numbers are used again.
type types struct {
	file *file
	made map[int64]int64
}

// size returns the size of a datatype in bytes.
func (t *types) size(number int64) (int64, error) {
	if size, ok := t.made[number]; ok {
		return size, nil
	}
	if number >= 0 && number < int64(len(t.file.sizes)) && (number >= firstUser || t.file.sizes[number] > 0) {
		return t.file.sizes[number], nil
	}
	if number >= 0 && number < firstUser {
		return basicSizes[number], nil
	}
	return 0, fmt.Errorf("datatype %d was made by a call that the trace does not have", number)
}

// scaled returns the bytes of count elements of a datatype.
func (t *types) scaled(count, datatype int64) (int64, error) {
	size, err := t.size(datatype)
	if err != nil {
		return 0, err
	}
	return times(count, size)
}

// times multiplies a count and a size.
func times(count, size int64) (int64, error) {
	if count < 0 || size < 0 || size > 0 && count > math.MaxInt64/4/size {
		return 0, fmt.Errorf("%d elements of %d bytes", count, size)
	}
	return count * size, nil
}

// all returns the bytes of counts of one datatype, or one each.
func (t *types) all(counts []int64, datatypes ...int64) ([]int64, error) {
	sizes := make([]int64, len(counts))
	total := int64(0)
	for i, n := range counts {
		var err error
		if sizes[i], err = t.scaled(n, datatypes[min(i, len(datatypes)-1)]); err != nil {
			return nil, err
		}
		if total += sizes[i]; total > math.MaxInt64/4 {
			return nil, fmt.Errorf("more than %d bytes", int64(math.MaxInt64/4))
		}
	}
	return sizes, nil
}

// define notes the size of a datatype that a record makes, or tells.
func (t *types) define(x *record) {
	elements, fits := int64(0), true
	add := func(count, each int64) {
		n, err := times(count, each)
		if err != nil || elements > math.MaxInt64/4-n {
			fits = false
			return
		}
		elements += n
	}
	v := &x.values
	switch functions[x.function].name {
	case "MPI_Type_size":
		t.made[v[fDatatype]] = v[fSize]
		return
	case "MPI_Type_match_size":
		t.made[v[fDatatype]] = v[fSize]
		return
	case "MPI_Type_free":
		delete(t.made, v[fDatatype])
		return
	case "MPI_Type_create_darray": // which of its elements are this rank's only the file's own sizes tell
		delete(t.made, v[fNewtype])
		return
	case "MPI_Type_contiguous":
		add(v[fCount], 1)
	case "MPI_Type_vector", "MPI_Type_hvector", "MPI_Type_create_hvector", "MPI_Type_create_indexed_block":
		add(v[fCount], v[fBlocklength])
	case "MPI_Type_indexed", "MPI_Type_hindexed", "MPI_Type_create_hindexed":
		for _, n := range x.arrays[fBlocklengths] {
			add(n, 1)
		}
	case "MPI_Type_dup", "MPI_Type_create_resized":
		add(1, 1)
	case "MPI_Type_create_subarray":
		elements = 1
		for _, n := range x.arrays[fSubsizes] {
			if n < 0 || n > 0 && elements > math.MaxInt64/4/n {
				fits = false
				break
			}
			elements *= n
		}
	case "MPI_Type_struct", "MPI_Type_create_struct":
		t.structure(x)
		return
	default:
		return
	}
	delete(t.made, v[fNewtype])
	if size, err := t.scaled(elements, v[fOldtype]); err == nil && fits {
		t.made[v[fNewtype]] = size
	}
}

// structure notes the size of a structure.
func (t *types) structure(x *record) {
	total, lengths := int64(0), x.arrays[fBlocklengths]
	delete(t.made, x.values[fNewtype])
	for i, old := range x.arrays[fOldtypes] {
		if i >= len(lengths) {
			return
		}
		n, err := t.scaled(lengths[i], old)
		if err != nil || total > math.MaxInt64/4-n {
			return
		}
		total += n
	}
	t.made[x.values[fNewtype]] = total
}

// ops are DUMPI's numbers of reduction operations, as reduce_op.
var ops = []schema.Op{schema.Op(schema.NullEnum), schema.OpMax, schema.OpMin, schema.OpSum, schema.OpProd,
	schema.OpLand, schema.OpBand, schema.OpLor, schema.OpBor, schema.OpLxor, schema.OpBxor, schema.OpMinloc,
	schema.OpMaxloc, schema.OpReplace, schema.Op(schema.NullEnum)}

// operation returns the reduction operation with a number.
func operation(number int64) int16 {
	if number >= 0 && number < int64(len(ops)) {
		return int16(ops[number])
	}
	return int16(schema.OpUser)
}
