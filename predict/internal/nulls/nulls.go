// Package nulls converts between the null values of the tables and Go's nil pointers and empty strings.
package nulls

import "github.com/commq/commq/schema"

// Pointer returns nil for null, else a pointer to a copy of x.
func Pointer[T comparable](x, null T) *T {
	if x == null {
		return nil
	}
	return &x
}

// Value returns what p points to, null for nil.
func Value[T any](p *T, null T) T {
	if p == nil {
		return null
	}
	return *p
}

// Empty returns "" for the null text, else the text.
func Empty(text string) string {
	if text == schema.NullText {
		return ""
	}
	return text
}

// Text returns the null text for "", else the text.
func Text(text string) string {
	if text == "" {
		return schema.NullText
	}
	return text
}
