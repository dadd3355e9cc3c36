// Package snapshot writes the state of a computation to a stream of bytes and reads it back into the same types, so
// that a killed program can continue. It follows all pointers and includes unexported fields: no second description
// of the types is needed, and a new field cannot be forgotten. Values are written as they are in memory, for the same
// program on a machine of the same kind. A description of all types comes first, and Read refuses other types.
//
// A field with the tag `snapshot:"-"` is left out: Read does not change it. Functions, interfaces and channels must
// be left out in this way. An object that several pointers lead to is written once. A pointer to a field or an
// element of another written object becomes a pointer to a copy.
package snapshot

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"unsafe"
)

// errForeign reports input that Write did not produce.
var errForeign = errors.New("not what this program has written")

// Write writes everything reachable from root, a pointer. Errors come from w. A type that cannot be written panics:
// it is a bug.
func Write(w io.Writer, root any) error {
	v := reflect.ValueOf(root)
	e := &encoder{out: bufio.NewWriterSize(w, 1<<16), ids: map[object]uint64{}}
	sum := fingerprint(v.Type())
	e.bytes(sum[:])
	e.pointer(v)
	for k := 0; k < len(e.todo); k++ { // not by recursion: a list may be long
		e.value(e.todo[k].Elem())
		e.todo[k] = reflect.Value{}
	}
	if e.err != nil {
		return e.err
	}
	return e.out.Flush()
}

// Read restores the output of Write into root, a pointer of the type given to Write. Errors come from r or report
// foreign bytes; after an error root is unusable.
func Read(r io.Reader, root any) (err error) {
	v := reflect.ValueOf(root)
	in, ok := r.(*bufio.Reader)
	if !ok {
		in = bufio.NewReaderSize(r, 1<<16)
	}
	d := &decoder{in: in}
	want := fingerprint(v.Type())
	var sum [sha256.Size]byte
	d.fill(sum[:])
	if d.err == nil && sum != want {
		return errors.New("it is of another version of the program")
	}
	if d.number() != 1 {
		d.fail(errForeign)
	}
	d.objects = append(d.objects, v)
	for k := 0; k < len(d.objects) && d.err == nil; k++ {
		d.value(d.objects[k].Elem())
	}
	if errors.Is(d.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return d.err
}

// Guard is deferred by what continues from a state: a panic becomes an error. Read accepts every state of the right
// types, also one that no computation leaves behind, of a damaged memory or a changed file with the right checksum.
func Guard(err *error) {
	if p := recover(); p != nil {
		what, _, _ := strings.Cut(fmt.Sprint(p), "\n") // without the stack
		*err = fmt.Errorf("the saved state makes no sense: %s", what)
	}
}

// fingerprint hashes everything that the encoding of a type depends on.
func fingerprint(t reflect.Type) [sha256.Size]byte {
	var text strings.Builder
	fmt.Fprintln(&text, "snapshot 1", runtime.GOARCH)
	describe(&text, t, map[reflect.Type]bool{})
	return sha256.Sum256([]byte(text.String()))
}

// describe writes a type and the types it consists of.
func describe(w *strings.Builder, t reflect.Type, seen map[reflect.Type]bool) {
	fmt.Fprintln(w, t.PkgPath(), t, t.Kind(), t.Size())
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(w, t.Elem(), seen)
	case reflect.Map:
		describe(w, t.Key(), seen)
		describe(w, t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintln(w, f.Name, f.Offset, f.Tag)
			if !leftOut(&f) {
				describe(w, f.Type, seen)
			}
		}
	case reflect.Func, reflect.Interface, reflect.Chan, reflect.UnsafePointer:
		panic(fmt.Sprintf("snapshot: %v cannot be written; leave it out by a tag", t))
	}
}

func leftOut(f *reflect.StructField) bool { return f.Tag.Get("snapshot") == "-" }

// kinds caches which types are plain bytes.
type kinds map[reflect.Type]bool

// plain reports whether values of a type contain no pointers and have no skipped fields: they are copied as they are
// in memory.
func (k *kinds) plain(t reflect.Type) bool {
	if p, known := (*k)[t]; known {
		return p
	}
	p := false
	switch kind := t.Kind(); kind {
	case reflect.Array:
		p = k.plain(t.Elem())
	case reflect.Struct:
		p = true
		for i := range t.NumField() {
			f := t.Field(i)
			p = p && !leftOut(&f) && k.plain(f.Type)
		}
	default:
		p = kind >= reflect.Bool && kind <= reflect.Complex128
	}
	if *k == nil {
		*k = kinds{}
	}
	(*k)[t] = p
	return p
}

// memory returns the bytes of n values of a type.
func memory(at unsafe.Pointer, t reflect.Type, n int) []byte {
	size := int(t.Size()) * n
	if size == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(at), size)
}

// field returns a field that can be read and set, exported or not.
func field(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
}

// object identifies what a pointer leads to: a struct and its first field share an address.
type object struct {
	at unsafe.Pointer
	of reflect.Type
}

type encoder struct {
	kinds
	out  *bufio.Writer
	ids  map[object]uint64
	todo []reflect.Value // pointers to what is still to be written
	err  error
}

func (e *encoder) bytes(b []byte) {
	if e.err == nil {
		_, e.err = e.out.Write(b)
	}
}

func (e *encoder) number(n uint64) {
	var b [binary.MaxVarintLen64]byte
	e.bytes(b[:binary.PutUvarint(b[:], n)])
}

// count writes a length and whether the value is nil.
func (e *encoder) count(n int, none bool) {
	if none {
		e.number(0)
		return
	}
	e.number(uint64(n) + 1)
}

// pointer writes the number of the object that a pointer leads to, counted from 1; 0 for nil.
func (e *encoder) pointer(v reflect.Value) {
	if v.IsNil() {
		e.number(0)
		return
	}
	o := object{v.UnsafePointer(), v.Type()}
	id, known := e.ids[o]
	if !known {
		id = uint64(len(e.ids)) + 1
		e.ids[o] = id
		// v itself may be a variable that is reused
		e.todo = append(e.todo, reflect.NewAt(v.Type().Elem(), v.UnsafePointer()))
	}
	e.number(id)
}

// value writes an addressable value.
func (e *encoder) value(v reflect.Value) {
	t := v.Type()
	if e.plain(t) {
		e.bytes(memory(v.Addr().UnsafePointer(), t, 1))
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		e.pointer(v)
	case reflect.String:
		e.number(uint64(v.Len()))
		e.bytes([]byte(v.String()))
	case reflect.Slice:
		e.count(v.Len(), v.IsNil())
		if e.plain(t.Elem()) {
			e.bytes(memory(v.UnsafePointer(), t.Elem(), v.Len()))
			return
		}
		e.elements(v)
	case reflect.Array:
		e.elements(v)
	case reflect.Map:
		e.count(v.Len(), v.IsNil())
		key, elem := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		for i := v.MapRange(); i.Next() && e.err == nil; {
			key.SetIterKey(i)
			elem.SetIterValue(i)
			e.value(key)
			e.value(elem)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !leftOut(&f) {
				e.value(field(v, i))
			}
		}
	}
}

func (e *encoder) elements(v reflect.Value) {
	for i := 0; i < v.Len() && e.err == nil; i++ {
		e.value(v.Index(i))
	}
}

type decoder struct {
	kinds
	in      *bufio.Reader
	objects []reflect.Value // pointers, by their numbers less 1
	err     error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *decoder) fill(b []byte) {
	if d.err == nil {
		_, err := io.ReadFull(d.in, b)
		d.fail(err)
	}
}

func (d *decoder) number() uint64 {
	if d.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(d.in)
	d.fail(err)
	return n
}

// count reads what encoder.count wrote.
func (d *decoder) count() (n int, none bool) {
	x := d.number()
	if x > math.MaxInt32<<8 {
		d.fail(errForeign)
		return 0, true
	}
	return int(x) - 1, x == 0
}

// growth limits the memory reserved before the bytes for it were read, so that a wrong length costs no more.
const growth = 1 << 20

// pointer reads a pointer: to an object already read, or to the next one.
func (d *decoder) pointer(t reflect.Type) reflect.Value {
	id := d.number()
	switch n := uint64(len(d.objects)); {
	case d.err != nil || id == 0:
		return reflect.Zero(t)
	case id == n+1:
		d.objects = append(d.objects, reflect.New(t.Elem()))
	case id > n || d.objects[id-1].Type() != t:
		d.fail(errForeign)
		return reflect.Zero(t)
	}
	return d.objects[id-1].Convert(t)
}

// value reads into an addressable value.
func (d *decoder) value(v reflect.Value) {
	t := v.Type()
	if d.plain(t) {
		d.fill(memory(v.Addr().UnsafePointer(), t, 1))
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		v.Set(d.pointer(t))
	case reflect.String:
		n := d.length()
		var b []byte
		for len(b) < n && d.err == nil {
			more := make([]byte, min(n-len(b), growth))
			d.fill(more)
			b = append(b, more...)
		}
		v.SetString(string(b))
	case reflect.Slice:
		d.slice(v, t)
	case reflect.Array:
		for i := 0; i < v.Len() && d.err == nil; i++ {
			d.value(v.Index(i))
		}
	case reflect.Map:
		d.entries(v, t)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !leftOut(&f) {
				d.value(field(v, i))
			}
		}
	}
}

// length reads the length of a value that is never nil.
func (d *decoder) length() int {
	x := d.number()
	if x > math.MaxInt32 {
		d.fail(errForeign)
		return 0
	}
	return int(x)
}

func (d *decoder) slice(v reflect.Value, t reflect.Type) {
	n, none := d.count()
	if none {
		v.SetZero()
		return
	}
	elem := t.Elem()
	step := max(1, growth/max(1, int(elem.Size())))
	out := reflect.MakeSlice(t, 0, min(n, step))
	for out.Len() < n && d.err == nil {
		from := out.Len()
		to := min(n, max(from+step, 2*from))
		more := reflect.MakeSlice(t, to, to)
		reflect.Copy(more, out)
		out = more
		if d.plain(elem) {
			d.fill(memory(out.Index(from).Addr().UnsafePointer(), elem, to-from))
			continue
		}
		for i := from; i < to && d.err == nil; i++ {
			d.value(out.Index(i))
		}
	}
	v.Set(out)
}

func (d *decoder) entries(v reflect.Value, t reflect.Type) {
	n, none := d.count()
	if none {
		v.SetZero()
		return
	}
	v.Set(reflect.MakeMapWithSize(t, min(n, 1<<16)))
	key, elem := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
	for i := 0; i < n && d.err == nil; i++ {
		key.SetZero()
		elem.SetZero()
		d.value(key)
		d.value(elem)
		v.SetMapIndex(key, elem)
	}
}
