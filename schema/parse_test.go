package schema

import (
	"strings"
	"testing"
)

func TestCheckDigest(t *testing.T) {
	if err := checkDigest("0123456789abcdef0000000000000007"); err != nil {
		t.Error(err)
	}
	for _, s := range []string{"", "12", strings.Repeat("g", 32), strings.Repeat("0", 34)} {
		if checkDigest(s) == nil {
			t.Errorf("%q is a digest", s)
		}
	}
}
