package bounded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadAll(t *testing.T) {
	if text, err := ReadAll(strings.NewReader("seven b"), 7); err != nil || string(text) != "seven b" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := ReadAll(strings.NewReader("eight by"), 7); err == nil || text != nil ||
		err.Error() != "more than 7 B of text; at most that is read" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestReadFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if _, err := ReadFile(file, 3); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
	text := strings.Repeat("7", 16*3)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(file, 3); err != nil || string(got) != text {
		t.Errorf("16 times as long: %q, %v", got, err)
	}
	if err := os.WriteFile(file, []byte(text+"7"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(file, 3); err == nil || !strings.HasPrefix(err.Error(), file+": more than 48 B") {
		t.Errorf("longer: %v", err)
	}
}
