package mutate

import (
	"math"
	"reflect"
	"unsafe"
)

// extremes are the numbers that fields get.
var extremes = []int64{0, 1, -1, 2, 3, 7, 16, 255, 1 << 16, math.MaxInt32, math.MinInt32, math.MaxUint32, 1 << 40,
	math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}

// Bounds of lists: no more of their elements are changed, and longer ones do not grow.
const (
	mostElements = 24
	mostLength   = 1 << 10
)

// Value changes the values that a pointer leads to: numbers, texts, lists, maps and pointers, those of unexported
// fields too, but not of fields with the tag `snapshot:"-"`.
func Value(root any, edits []byte) {
	for _, e := range editsOf(edits) {
		w := walk{seen: map[unsafe.Pointer]bool{}}
		w.visit(reflect.ValueOf(root).Elem())
		if len(w.places) == 0 {
			return
		}
		at := e.at % len(w.places)
		place := w.places[at]
		if e.what%4 == 0 {
			w.copyAlike(place, at+e.with)
		} else {
			changeValue(place, e)
		}
	}
}

// walk collects all values that can be changed.
type walk struct {
	places []reflect.Value
	seen   map[unsafe.Pointer]bool
}

func (w *walk) visit(v reflect.Value) {
	if len(w.places) >= mostValues {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("snapshot") != "-" {
				f := v.Field(i)
				w.visit(reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem())
			}
		}
		return
	case reflect.Array:
		for i := range min(v.Len(), mostElements) {
			w.visit(v.Index(i))
		}
		return
	}
	w.places = append(w.places, v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !w.seen[v.UnsafePointer()] {
			w.seen[v.UnsafePointer()] = true
			w.visit(v.Elem())
		}
	case reflect.Slice:
		for i := range min(v.Len(), mostElements) {
			w.visit(v.Index(i))
		}
	}
}

// copyAlike sets a value to the next one of its type, so that an index or a length becomes another valid one.
func (w *walk) copyAlike(place reflect.Value, from int) {
	for i := range w.places {
		if other := w.places[(from+i)%len(w.places)]; other.Type() == place.Type() && other != place {
			place.Set(other)
			return
		}
	}
}

func changeValue(v reflect.Value, e edit) {
	number := extremes[e.with%len(extremes)]
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if e.what%4 == 1 {
			number = v.Int() + int64(e.with%5) - 2
		}
		v.SetInt(number)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(number))
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{float64(number), math.NaN(), math.Inf(1), 5e-324}[e.what/4%4])
	case reflect.String:
		v.SetString([]string{"", "text", v.String() + v.String()[:min(v.Len(), mostElements)]}[e.what/4%3])
	case reflect.Slice:
		changeSlice(v, e)
	default: // a pointer or a map
		v.SetZero()
	}
}

// changeSlice empties a list, cuts it short, leaves an element out, or repeats one.
func changeSlice(v reflect.Value, e edit) {
	n := v.Len()
	if n == 0 {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return
	}
	k := e.with % n
	switch {
	case e.what%4 == 1:
		v.SetZero()
	case e.what%8 < 4:
		v.Set(v.Slice(0, k))
	case e.what%4 == 2:
		v.Set(reflect.AppendSlice(v.Slice3(0, k, k), v.Slice(k+1, n)))
	case n < mostLength:
		v.Set(reflect.Append(v.Slice3(0, n, n), v.Index(k)))
	}
}
