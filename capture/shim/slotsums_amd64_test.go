package shim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/testenv"
)

// TestSlotSums compares the checksums of slots with Go's, with carry-less multiplication, if this processor has it, and
// without.
func TestSlotSums(t *testing.T) {
	testenv.Need(t, "cc")
	const most = 200
	slots := make([]spool.Call, most)
	random := unsafe.Slice((*byte)(unsafe.Pointer(&slots[0])), most*spool.SlotBytes)
	rand.NewChaCha8([32]byte{7}).Read(random)
	for name, flags := range map[string][]string{"best": {"-O2"}, "plain": {"-O2", "-D__builtin_cpu_supports(x)=0"},
		"not optimized": {"-O0"}} {
		exe := filepath.Join(t.TempDir(), "slotsums")
		out, err := exec.Command("cc", append(flags, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Isrc",
			filepath.Join(programs, "slotsums.c"), "-o", exe)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		run := exec.Command(exe)
		run.Stdin = bytes.NewReader(random)
		if out, err = run.Output(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if len(lines) != most+1 {
			t.Fatalf("%s: %d lines, want %d", name, len(lines), most+1)
		}
		for n, got := range lines {
			want := spool.SumSlots(slots[:n])
			if got != fmt.Sprint(want[0], want[1], want[2]) {
				t.Fatalf("%s: %d slots: %s, want %v", name, n, got, want)
			}
		}
	}
}
