// Package mutate changes inputs beyond their syntax, for fuzz targets. A fuzzer that changes bytes spends nearly all of
// its time on inputs that no parser accepts; here its bytes are instructions of which value to change and how: a number
// becomes an extreme one, an element is repeated, left out or moved, a list becomes empty.
package mutate

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
)

// mostEdits bounds the changes of one input. An input of more than mostBytes or mostValues is not changed any more:
// repeating what was repeated would take all memory.
const (
	mostEdits  = 24
	mostBytes  = 1 << 16
	mostValues = 1 << 13
)

// numbers are those at which code goes wrong.
var numbers = []string{"0", "1", "-1", "2", "3", "7", "16", "255", "65536", "2147483647", "-2147483648", "4294967295",
	"9223372036854775807", "-9223372036854775808", "1e9", "1e-9", "0.5", "1e308", "-1e308", "1e999", "NaN", "007"}

// edit is one instruction.
type edit struct{ at, what, with int }

// editsOf reads instructions of four bytes.
func editsOf(b []byte) (edits []edit) {
	for ; len(b) >= 4 && len(edits) < mostEdits; b = b[4:] {
		edits = append(edits, edit{int(b[0])<<8 | int(b[1]), int(b[2]), int(b[3])})
	}
	return edits
}

// token is a number, a word, blanks, or one other character.
var token = regexp.MustCompile(`[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?|[A-Za-z_]+|[ \t]+|(?s:.)`)

// Text changes a text: its numbers, words and lines.
func Text(text string, edits []byte) string {
	for _, e := range editsOf(edits) {
		if len(text) > mostBytes {
			break
		}
		if e.what%2 == 0 {
			text = strings.Join(changed(strings.SplitAfter(text, "\n"), e), "")
			continue
		}
		parts := token.FindAllString(text, -1)
		var at []int // the tokens that say something
		for i, p := range parts {
			if strings.TrimSpace(p) != "" {
				at = append(at, i)
			}
		}
		if len(at) == 0 {
			continue
		}
		i := at[e.at%len(at)]
		switch first := parts[i][0]; {
		case first >= '0' && first <= '9' && e.what%4 == 1:
			parts[i] = numbers[e.with%len(numbers)]
		case e.what%4 == 1:
			parts[i] = parts[at[e.with%len(at)]]
		default:
			parts = changed(parts, edit{i, e.what / 4 * 2, e.with})
		}
		text = strings.Join(parts, "")
	}
	return text
}

// changed leaves out, repeats or moves an element.
func changed(list []string, e edit) []string {
	if len(list) == 0 {
		return list
	}
	i, k := e.at%len(list), e.with%len(list)
	switch e.what / 2 % 4 {
	case 0:
		return slices.Delete(list, i, i+1)
	case 1:
		return slices.Insert(list, k, list[i])
	case 2:
		list[i], list[k] = list[k], list[i]
	default:
		for range 1 + e.with%64 {
			list = slices.Insert(list, i, list[i])
		}
	}
	return list
}

// JSON changes the values of a JSON document. Another text is changed by Text.
func JSON(text string, edits []byte) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		return Text(text, edits)
	}
	rest := text[d.InputOffset():]
	for _, e := range editsOf(edits) {
		var all []place
		collect(&all, root, func(v any) { root = v }, nil)
		if len(all) > mostValues {
			break
		}
		p, other := all[e.at%len(all)], all[(e.at+e.with)%len(all)]
		p.change(e, other)
	}
	var out bytes.Buffer
	w := json.NewEncoder(&out)
	w.SetEscapeHTML(false)
	if err := w.Encode(root); err != nil { // a number that is none
		return Text(text, edits)
	}
	return out.String() + rest
}

// JSONFile changes the values of the JSON document in a file.
func JSONFile(path string, edits []byte) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(JSON(string(text), edits)), 0o644)
}

// place is a value of a document, and how to replace it or leave it out.
type place struct {
	value  any
	set    func(any)
	remove func()
}

// collect lists all values, parents before children, the keys of objects in order.
func collect(all *[]place, v any, set func(any), remove func()) {
	*all = append(*all, place{v, set, remove})
	switch x := v.(type) {
	case []any:
		for i := range x {
			collect(all, x[i], func(v any) { x[i] = v }, func() { set(slices.Delete(slices.Clone(x), i, i+1)) })
		}
	case map[string]any:
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			collect(all, x[k], func(v any) { x[k] = v }, func() { delete(x, k) })
		}
	}
}

// change changes a value.
func (p *place) change(e edit, other place) {
	switch e.what % 8 {
	case 0:
		p.set(json.Number(finite(numbers[e.with%len(numbers)])))
	case 1:
		if p.remove != nil {
			p.remove()
		}
	case 2:
		p.set(empty(p.value))
	case 3:
		p.set(copied(other.value))
	case 4:
		p.set(nil)
	case 5:
		p.set([]any{copied(p.value)})
	case 6:
		if list, ok := p.value.([]any); ok && len(list) > 0 && len(list) < 1<<10 {
			p.set(append(slices.Clone(list), copied(list[e.with%len(list)])))
		} else {
			p.set(json.Number("1"))
		}
	case 7:
		if s, ok := p.value.(string); ok && len(s) < mostBytes/256 {
			p.set(strings.Repeat(s, e.with))
		} else {
			p.set("text")
		}
	}
}

// finite replaces what JSON cannot write.
func finite(number string) string {
	if number == "NaN" || number == "007" {
		return "-0"
	}
	return number
}

func empty(v any) any {
	switch v.(type) {
	case []any:
		return []any{}
	case map[string]any:
		return map[string]any{}
	case string:
		return ""
	}
	return json.Number("0")
}

// copied copies a value, so that a later change of one does not change the other.
func copied(v any) any {
	switch x := v.(type) {
	case []any:
		list := make([]any, len(x))
		for i := range x {
			list[i] = copied(x[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(x))
		for k := range x {
			m[k] = copied(x[k])
		}
		return m
	}
	return v
}
