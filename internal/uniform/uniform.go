// Package uniform finds slices whose values are all equal, at the speed of memory: most columns of a run are so, and
// need not be looked at row by row.
package uniform

import (
	"bytes"
	"unsafe"
)

// Ints reports whether all values are equal; true of none.
func Ints[T int16 | int32 | int64](v []T) bool {
	if len(v) < 2 || v[0] != v[len(v)-1] {
		return len(v) < 2
	}
	// Each value equals the next one if the memory equals itself, shifted by a value.
	size := int(unsafe.Sizeof(v[0]))
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*size)
	return bytes.Equal(memory[size:], memory[:len(memory)-size])
}

// Texts reports whether all texts are equal; true of none.
func Texts(v []string) bool {
	for _, s := range v {
		if s != v[0] {
			return false
		}
	}
	return true
}
