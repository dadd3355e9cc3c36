package formatstest

import (
	"bytes"
	"compress/gzip"
	"testing"
)

// Gzip returns a text compressed with gzip.
func Gzip(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
