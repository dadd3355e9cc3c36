package predict

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Item is a part of a sequence of numbers: a number, or a part that is repeated. In JSON it is a number, or a list of the times and the items.
type Item struct {
	// Value is the number, where Times is 0.
	Value int32
	// Times says how often Items come, one after another; at least 2.
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
		return fmt.Errorf("a repeated sequence of %d numbers: want how often, and what", len(list))
	}
	if err := json.Unmarshal(list[0], &i.Times); err != nil {
		return err
	}
	if i.Times < 2 {
		return fmt.Errorf("a sequence repeated %d times: want 2 or more", i.Times)
	}
	i.Items = make([]Item, len(list)-1)
	for k, x := range list[1:] {
		if err := json.Unmarshal(x, &i.Items[k]); err != nil {
			return err
		}
	}
	return nil
}

func (i *Item) equal(j *Item) bool {
	return i.Value == j.Value && i.Times == j.Times && slices.EqualFunc(i.Items, j.Items, func(a, b Item) bool { return a.equal(&b) })
}

// count is how many numbers an item stands for.
func (i *Item) count() int64 {
	if i.Times == 0 {
		return 1
	}
	return i.Times * countItems(i.Items)
}

func countItems(items []Item) (n int64) {
	for i := range items {
		n += items[i].count()
	}
	return n
}

// folder writes a sequence of numbers, as it comes, as a nested one of what is repeated, like the (power) regular section descriptors of Noeth et
// al., "ScalaTrace" (JPDC 2009).
type folder struct{ items []Item }

// foldWindow is the longest part that is looked for, in items.
const foldWindow = 1 << 10

func (f *folder) add(value int32) {
	f.items = append(f.items, Item{Value: value})
	for f.fold() {
	}
}

// repeat adds a number several times.
func (f *folder) repeat(value int32, times int64) {
	for ; times > 0; times-- {
		if n := len(f.items); n > 0 {
			if last := &f.items[n-1]; last.Times > 0 && len(last.Items) == 1 && last.Items[0].Times == 0 && last.Items[0].Value == value {
				last.Times += times
				return
			}
		}
		f.add(value)
	}
}

// fold puts the last items together with what is the same before them; it says whether it did.
func (f *folder) fold() bool {
	n := len(f.items)
	last := &f.items[n-1]
	for w := 1; w <= foldWindow && w < n; w++ {
		before := &f.items[n-1-w]
		if before.Times > 0 && len(before.Items) == w && sameItems(before.Items, f.items[n-w:]) {
			before.Times++
			f.items = f.items[:n-w]
			return true
		}
		if 2*w <= n && before.equal(last) && sameItems(f.items[n-2*w:n-w], f.items[n-w:]) {
			f.items = append(f.items[:n-2*w], Item{Times: 2, Items: slices.Clone(f.items[n-w:])})
			return true
		}
	}
	return false
}

func sameItems(a, b []Item) bool {
	return slices.EqualFunc(a, b, func(x, y Item) bool { return x.equal(&y) })
}

// each calls visit with the numbers that items stand for, in order, until it returns false.
func each(items []Item, visit func(int32) bool) bool {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			if !visit(x.Value) {
				return false
			}
			continue
		}
		for range x.Times {
			if !each(x.Items, visit) {
				return false
			}
		}
	}
	return true
}
