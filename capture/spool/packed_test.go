package spool

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
)

// packer compiles the shim's packer into a program that packs the slots of its standard input.
func packer(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "cc")
	src, err := filepath.Abs("../shim/src")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.c"), filepath.Join(dir, "pack")
	if err := os.WriteFile(source, []byte(`#include "pack.h"
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	static uint8_t slots[1 << 20], packed[1 << 21];
	static cq_packer p;
	size_t n = 0;
	for (ssize_t got; (got = read(0, slots + n, sizeof slots - n)) > 0;)
		n += (size_t)got;
	size_t bytes = cq_pack(&p, slots, n / CQ_SLOT_BYTES, SCALE, packed);
	return write(1, packed, bytes) != (ssize_t)bytes;
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-DSCALE=123456", "-I"+src, "-o", program,
		source, filepath.Join(src, "pack.c")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// pack packs slots as the shim does.
func pack(t *testing.T, program string, slots []words) []byte {
	t.Helper()
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = binary.Write(in, binary.LittleEndian, slots)
		_ = in.Close()
	}()
	packed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// someSlots are slots as recorders write them, and as they never do: all kinds, numbers of all sizes.
func someSlots(rng *rand.Rand, n int) []words {
	slots := make([]words, n)
	tick := uint64(1) << 50
	for i := range slots {
		s := &slots[i]
		if i > 0 && rng.IntN(3) > 0 {
			*s = slots[rng.IntN(i)]
		}
		for range rng.IntN(8) {
			s[rng.IntN(len(s))] += rng.Uint64() >> rng.IntN(64) * (1 - 2*uint64(rng.IntN(2)))
		}
		s[0] = s[0]&^(0xff<<16) | uint64(1+rng.IntN(16))<<16
		if Kind(s[0]>>16) == KindCall {
			tick += rng.Uint64() >> (30 + rng.IntN(34))
			s[1], s[2] = tick, tick+rng.Uint64()>>(30+rng.IntN(34))
			if rng.IntN(20) == 0 {
				s[2] = 0
			}
		}
	}
	return slots
}

func TestPackedSlotsAreTheSame(t *testing.T) {
	program, rng := packer(t), rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		slots := someSlots(rng, n*n)
		packed := pack(t, program, slots)
		for ; len(packed)%4 != 0; packed = append(packed, 0) {
		}
		got := make([]words, len(slots))
		if err := unpack(got, packed, 123456); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slots, got); diff != "" {
			t.Fatalf("%d slots (-packed +unpacked):\n%s", n*n, diff)
		}
	}
}

// FuzzUnpack unpacks any bytes: an error or slots.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte{0x80, 0xff, 1, 3, 5, 7, 9, 11, 13, 15, 17}, uint16(1))
	f.Add([]byte{0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8}, uint16(2))
	f.Fuzz(func(t *testing.T, packed []byte, n uint16) {
		slots := make([]words, int(n)%mostSlots)
		if err := unpack(slots, packed, 1<<20); err == nil && len(packed) < leastPacked*len(slots) {
			t.Fatalf("%d slots of %d bytes", len(slots), len(packed))
		}
	})
}
