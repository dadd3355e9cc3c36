package writer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/commq/commq/schema"
)

// cleanBatch is a batch whose texts are all UTF-8.
type cleanBatch struct {
	schema.Batch
	texts map[int][]string
}

func (b *cleanBatch) Data(i int) any {
	if t, ok := b.texts[i]; ok {
		return t
	}
	return b.Batch.Data(i)
}

// cleaned checks that every cell of b is allowed in its column, and replaces invalid UTF-8 in texts. Programs may give
// communicators and datatypes any name, and readers of Parquet refuse invalid UTF-8.
func cleaned(b schema.Batch) (schema.Batch, error) {
	t := b.Table()
	clean := &cleanBatch{Batch: b, texts: map[int][]string{}}
	for i := range t.Columns {
		c := &t.Columns[i]
		row := -1
		switch v := b.Data(i).(type) {
		case []int32:
			row = badInt(c, v, schema.NullInt32)
		case []int64:
			row = badInt(c, v, schema.NullInt64)
		case []int16:
			row = badEnum(c, v)
		case []string:
			row = badInt(c, v, schema.NullText)
			if slices.ContainsFunc(v, notUTF8) {
				clean.texts[i] = validTexts(v)
			}
		}
		if row >= 0 {
			return nil, fmt.Errorf("column %s, row %d of the batch: null or out of range", c.Name, row)
		}
	}
	if len(clean.texts) == 0 {
		return b, nil
	}
	return clean, nil
}

// badInt returns the first row that is null although the column is not nullable, or -1.
func badInt[T comparable](c *schema.Column, v []T, null T) int {
	if c.Nullable {
		return -1
	}
	return slices.Index(v, null)
}

// badEnum returns the first row whose index is out of range or null where it must not be, or -1.
func badEnum(c *schema.Column, v []int16) int {
	lowest := int16(0)
	if c.Nullable {
		lowest = schema.NullEnum
	}
	n := int16(len(c.Names))
	for i, x := range v {
		if x < lowest || x >= n {
			return i
		}
	}
	return -1
}

func notUTF8(s string) bool { return s != schema.NullText && !utf8.ValidString(s) }

func validTexts(v []string) []string {
	out := slices.Clone(v)
	for i, s := range out {
		if notUTF8(s) {
			out[i] = strings.ToValidUTF8(s, "\uFFFD")
		}
	}
	return out
}
