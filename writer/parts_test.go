package writer

import (
	"os"
	"syscall"
	"testing"
)

// The files that the processes of an ingestion share are as private as the umask says.
func TestModeOfPartFiles(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	p, err := OpenParts(t.TempDir(), "run", "job", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, put := range []func(string, []byte) error{p.Put, p.PutFirst} {
		if err := put("file", nil); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(p.Path("file"))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		os.Remove(p.Path("file"))
	}
}
