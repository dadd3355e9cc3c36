package printable

import (
	"io"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"":                           "",
		"bt.C.64\n\tünï 漢字":          "bt.C.64\n\tünï 漢字",
		"a\x1b[31mb\x1b]0;t\x07":     `a\x1b[31mb\x1b]0;t\a`,
		"\u009b2J\x7f\r\x00":         `\u009b2J\x7f\r\x00`,
		"\u202egnp.exe\u2066":        `\u202egnp.exe\u2066`,
		"\xff\xfeok\xe2\x80":         `\xff\xfeok\xe2\x80`,
		"the sign \ufffd may stand":  "the sign \ufffd may stand",
		"a\n ::add-mask::x\nstd::f":  "a\n \\x3a:add-mask::x\nstd::f",
		"x ##[group]y ##vso[z] ## [": `x \x23#[group]y \x23#vso[z] ## [`,
	} {
		if got := Text(s); got != want {
			t.Errorf("Text(%q) is %q; want %q", s, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	for s, want := range map[string]string{"a\nb\tc\x1b": `a\nb\tc\x1b`, "::error::x": `\x3a:error::x`,
		"a\n::error::x": `a\n::error::x`} {
		if got := Line(s); got != want {
			t.Errorf("Line(%q) is %q; want %q", s, got, want)
		}
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

// A command of a log of continuous integration may come in pieces.
func TestCommandsInPieces(t *testing.T) {
	const s = "\n::add-mask::x\n##[group]y\n  ::z a::b ###vso[t] # ##\n\t:: #a[ ##b c[\n:\n:: ##[##["
	plain := strings.NewReplacer(`\x3a`, ":", `\x23`, "#", `\x5b`, "[")
	var cuts [][]string
	for i := range len(s) {
		for k := i; k < len(s); k++ {
			cuts = append(cuts, []string{s[:i], s[i:k], s[k:]})
		}
	}
	for _, parts := range append(cuts, strings.Split(s, "")) {
		var b strings.Builder
		w := Writer(&b)
		for _, part := range parts {
			if _, err := io.WriteString(w, part); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.String(); Text(got) != got || plain.Replace(got) != s {
			t.Errorf("%q: %q", parts, got)
		}
	}
}

func TestWrap(t *testing.T) {
	if got, want := Wrap("three and äöüß and five averyveryverylongwordthatstaysalone end", "   ", 23),
		"three and äöüß and\n   five\n   averyveryverylongwordthatstaysalone\n   end"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestMarkdown(t *testing.T) {
	const s = "a|b_c *d* `e` <script>\\ ~f~ [g](http://h)\n# i www.j.k s3://l"
	const want = "a\\|b\\_c \\*d\\* \\`e\\` &lt;script>\\\\ \\~f\\~ [g]\\(http\\://h)\\\\n# i www\\.j.k s3\\://l"
	if got := Markdown(s); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestCSV(t *testing.T) {
	var b strings.Builder
	err := NewCSV(&b).WriteAll([][]string{{"=HYPERLINK(\"http://x\")", "-5", "-5e3", "-", "+1+cmd|'/c'!A0"},
		{"@SUM(A1)", "\t=1", "a=b", "", "-MPI_Wait"}, {"\n=1", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20A", "\uff0d"}})
	want := "\"'=HYPERLINK(\"\"http://x\"\")\",-5,-5e3,-,'+1+cmd|'/c'!A0\n'@SUM(A1),'\t=1,a=b,,'-MPI_Wait\n" +
		"\"'\n=1\",'\uff1d1+1,'\uff0b1,'\uff0d1,'\uff20A,\uff0d\n"
	if err != nil || b.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
	}
}

func TestCommand(t *testing.T) {
	if got, want := Command("50%\n::error::x")+"|"+CommandProperty("a,b:c\r"),
		"50%25%0A::error::x|a%2Cb%3Ac%0D"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
