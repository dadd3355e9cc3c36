package printable

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"":                          "",
		"bt.C.64\n\tünï 漢字":         "bt.C.64\n\tünï 漢字",
		"a\x1b[31mb\x1b]0;t\x07":    `a\x1b[31mb\x1b]0;t\a`,
		"\u009b2J\x7f\r\x00":        `\u009b2J\x7f\r\x00`,
		"\u202egnp.exe\u2066":       `\u202egnp.exe\u2066`,
		"\xff\xfeok\xe2\x80":        `\xff\xfeok\xe2\x80`,
		"the sign \ufffd may stand": "the sign \ufffd may stand",
	} {
		if got := Text(s); got != want {
			t.Errorf("Text(%q) is %q; want %q", s, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	if got, want := Line("a\nb\tc\x1b"), `a\nb\tc\x1b`; got != want {
		t.Errorf("Line is %q; want %q", got, want)
	}
}

// TestWriter writes a text cut at every place.
func TestWriter(t *testing.T) {
	const s, want = "a\x1b[1m漢\u202e\n字\xffz", `a\x1b[1m漢\u202e` + "\n字" + `\xffz`
	for cut := range len(s) {
		var b strings.Builder
		w := Writer(&b)
		for _, part := range []string{s[:cut], s[cut:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("cut at %d: %d bytes written of %d, %v", cut, n, len(part), err)
			}
		}
		if b.String() != want {
			t.Errorf("cut at %d: %q; want %q", cut, b.String(), want)
		}
	}
}

func TestWrap(t *testing.T) {
	if got, want := Wrap("three and äöüß and five averyveryverylongwordthatstaysalone end", "   ", 23),
		"three and äöüß and\n   five\n   averyveryverylongwordthatstaysalone\n   end"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
