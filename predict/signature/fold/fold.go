// Package fold compresses a sequence of numbers by writing what repeats once, with its count: 7 1 1 2 1 1 2 9 becomes
// 7 [2 [2 1] 2] 9. Signatures store the iterations of a loop this way, so that a million equal iterations take no more
// room than two. The nesting is that of the (power) regular section descriptors of Noeth et al., "ScalaTrace" (JPDC
// 2009).
package fold

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
)

// Item is one element of a folded sequence: a number, or a subsequence with a repeat count. In JSON a number is
// itself and a repetition is a list: the count, then the items.
type Item struct {
	// Value is the number if Times is 0.
	Value int32
	// Times is how often Items are repeated: 0 for a number, else at least 2.
	Times int64
	Items []Item
}

// MarshalJSON writes an item.
func (i Item) MarshalJSON() ([]byte, error) {
	if i.Times == 0 {
		return json.Marshal(i.Value)
	}
	list := []any{i.Times}
	for _, x := range i.Items {
		list = append(list, x)
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (i *Item) UnmarshalJSON(text []byte) error {
	*i = Item{}
	if len(text) > 0 && text[0] != '[' {
		return json.Unmarshal(text, &i.Value)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if len(list) < 2 {
		return fmt.Errorf("a repetition with %d entries: want a count and at least one item", len(list))
	}
	if err := json.Unmarshal(list[0], &i.Times); err != nil {
		return err
	}
	if i.Times < 2 {
		return fmt.Errorf("a repetition with count %d: want 2 or more", i.Times)
	}
	i.Items = make([]Item, len(list)-1)
	for k, x := range list[1:] {
		if err := json.Unmarshal(x, &i.Items[k]); err != nil {
			return err
		}
	}
	return nil
}

// Equal reports whether two items fold the same sequence in the same way.
func (i *Item) Equal(j *Item) bool {
	return i.Value == j.Value && i.Times == j.Times && EqualItems(i.Items, j.Items)
}

// Len returns the number of unfolded numbers in an item.
func (i *Item) Len() int64 {
	if i.Times == 0 {
		return 1
	}
	return i.Times * Len(i.Items)
}

// Len returns the number of unfolded numbers in items.
func Len(items []Item) (n int64) {
	for i := range items {
		n += items[i].Len()
	}
	return n
}

// EqualItems reports whether two lists of items are equal.
func EqualItems(a, b []Item) bool {
	return slices.EqualFunc(a, b, func(x, y Item) bool { return x.Equal(&y) })
}

// Each unfolds items and calls visit with each number until it returns false; then Each returns false too.
func Each(items []Item, visit func(int32) bool) bool {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			if !visit(x.Value) {
				return false
			}
			continue
		}
		for range x.Times {
			if !Each(x.Items, visit) {
				return false
			}
		}
	}
	return true
}

// Count adds to counts how often each number appears in items, multiplied by times, without unfolding them.
func Count(items []Item, times int64, counts []int64) {
	for i := range items {
		if x := &items[i]; x.Times > 0 {
			Count(x.Items, times*x.Times, counts)
		} else {
			counts[x.Value] += times
		}
	}
}

// AppendKey appends bytes to key that are equal only for equal items, for use as a map key.
func AppendKey(key []byte, items []Item) []byte {
	key = binary.AppendUvarint(key, uint64(len(items)))
	for i := range items {
		key = binary.AppendUvarint(key, uint64(items[i].Times))
		if items[i].Times > 0 {
			key = AppendKey(key, items[i].Items)
		} else {
			key = binary.AppendUvarint(key, uint64(items[i].Value))
		}
	}
	return key
}

// Sequence folds numbers as they are added. The zero value is empty.
type Sequence struct{ Items []Item }

// window is the length, in items, of the longest repetition that is found.
const window = 1 << 10

// Add appends a number.
func (s *Sequence) Add(value int32) {
	s.Items = append(s.Items, Item{Value: value})
	for s.foldTail() {
	}
}

// Repeat appends a number several times.
func (s *Sequence) Repeat(value int32, times int64) {
	for ; times > 0; times-- {
		if n := len(s.Items); n > 0 {
			if last := &s.Items[n-1]; last.Times > 0 && len(last.Items) == 1 && last.Items[0].Times == 0 &&
				last.Items[0].Value == value {
				last.Times += times
				return
			}
		}
		s.Add(value)
	}
}

// foldTail merges the last items with equal ones right before them. It reports whether it found any.
func (s *Sequence) foldTail() bool {
	n := len(s.Items)
	last := &s.Items[n-1]
	for w := 1; w <= window && w < n; w++ {
		before := &s.Items[n-1-w]
		if before.Times > 0 && len(before.Items) == w && EqualItems(before.Items, s.Items[n-w:]) {
			before.Times++
			s.Items = s.Items[:n-w]
			return true
		}
		if 2*w <= n && before.Equal(last) && EqualItems(s.Items[n-2*w:n-w], s.Items[n-w:]) {
			s.Items = append(s.Items[:n-2*w], Item{Times: 2, Items: slices.Clone(s.Items[n-w:])})
			return true
		}
	}
	return false
}

// EachTimes calls visit with each number in items, without unfolding them, and how often it is repeated there,
// multiplied by times. A number may come more than once.
func EachTimes(items []Item, times int64, visit func(value int32, times int64)) {
	for i := range items {
		if x := &items[i]; x.Times > 0 {
			EachTimes(x.Items, times*x.Times, visit)
		} else {
			visit(x.Value, times)
		}
	}
}

// EachOnce calls visit with each number in items, without unfolding them. A number may come more than once.
func EachOnce(items []Item, visit func(int32)) {
	for i := range items {
		if x := &items[i]; x.Times > 0 {
			EachOnce(x.Items, visit)
		} else {
			visit(x.Value)
		}
	}
}
