// Package dense has a map for keys that are mostly small: the numbers that a process gives its handles count up from 0.
package dense

// Map maps numbers to values. Small numbers are indexes of a slice, all others keys of a map. The zero value is empty.
type Map[T any] struct {
	small []entry[T]
	large map[int64]T
}

type entry[T any] struct {
	value T
	ok    bool
}

// maxSmall bounds the slice, whatever numbers a damaged file holds.
const maxSmall = 1 << 12

// Set stores the value of n.
func (m *Map[T]) Set(n int64, v T) {
	if n < 0 || n >= maxSmall {
		if m.large == nil {
			m.large = map[int64]T{}
		}
		m.large[n] = v
		return
	}
	for int64(len(m.small)) <= n {
		m.small = append(m.small, entry[T]{})
	}
	m.small[n] = entry[T]{v, true}
}

// Get returns the value of n; ok is false when it has none.
func (m *Map[T]) Get(n int32) (v T, ok bool) {
	if n >= 0 && int(n) < len(m.small) {
		e := &m.small[n]
		return e.value, e.ok
	}
	v, ok = m.large[int64(n)]
	return v, ok
}
