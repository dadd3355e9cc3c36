package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDistribution(t *testing.T) {
	file := filepath.Join(t.TempDir(), "os-release")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"ID=rocky\nPRETTY_NAME=\"Rocky Linux 8.9 (Green Obsidian)\"\n": "Rocky Linux 8.9 (Green Obsidian)",
		"PRETTY_NAME='SLES 15'": "SLES 15",
		"ID=x\n":                "unknown: no PRETTY_NAME in " + file,
	} {
		write(text)
		if got := distribution(file); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
