package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// slowMachine is a network where nothing comes out even: 3 us and 700 MB/s.
const slowMachine = `
network:
  latency_ns: 3000
  bandwidth_bytes_per_s: 700000000
`

// virtual captures a program of testdata/programs with simulator ranks, and returns what it prints and the store with the run.
func virtual(t *testing.T, library, source string, ranks, simRanks int, machine string, args ...string) (out, store string) {
	t.Helper()
	exe := compileMPI(t, library, source)
	yaml := filepath.Join(t.TempDir(), "machine.yaml")
	if err := os.WriteFile(yaml, []byte(machine), 0o644); err != nil {
		t.Fatal(err)
	}
	store = t.TempDir()
	line := []string{"capture", "--store", store, "--run", "v", "-q", "-n", fmt.Sprint(ranks), "--sim-ranks", fmt.Sprint(simRanks), "--machine", yaml, "--clock", "none"}
	out = commq(t, append(append(line, args...), "--", exe)...)
	commq(t, "runs", "check", "--store", store, "v")
	return out, store
}

// compileMPI compiles a program so that the shim sees what it defines.
func compileMPI(t *testing.T, library, source string) string {
	t.Helper()
	compiler := "mpicc." + library
	if strings.HasSuffix(source, ".f90") {
		compiler = "mpif90." + library
	}
	exe := filepath.Join(t.TempDir(), strings.TrimSuffix(source, filepath.Ext(source)))
	if out, err := exec.Command(compiler, "-O2", "-rdynamic", "-o", exe, filepath.Join(programsDir, source)).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", source, err, out)
	}
	return exe
}

func TestVirtualTimes(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		for _, c := range []struct {
			source string
			ranks  int
			want   string
		}{
			// 2 (L + s/B), B = 0.7 bytes/ns: 6000; 6000 + 2/0.7; 6000 + 18/0.7; 6000 + 8194/0.7 = 17705.71; 6000 + 131072/0.7
			// = 193245.71; 6000 + 2097152/0.7 = 3001931.43.
			{"virtual_pingpong.c", 2, "0 6000\n1 6003\n9 6026\n4097 17706\n65536 193246\n1048576 3001931\n"},
			{"virtual_pingpong.f90", 2, "4097 17706\n"},
			// (1 + 2 + 3 + 4 + 5) us of computing and 5 (3000 + 4097/0.7 = 5852.857) ns of messages: 15000 + 44264.29.
			{"virtual_ring.c", 5, "59264\n"},
			// Rank 1 comes at 50000, and the message at 8852.86: late, nothing changes. The second is sent at 90000 and comes at
			// 98852.86, the third at 108852.86: rank 1 has computed until 128852.86 by then. The last, of 9 bytes, is sent at
			// 200000 and comes at 203012.86.
			{"virtual_late.c", 2, "50000\n98853\n128853\n203013\n"},
			// From when the last came. 5 ranks: LOG is 3 steps, LIN 5. Barrier 2 x 5 L = 30000. Bcast of 4000 bytes: the root
			// sends 4000 and receives 0, MAX 4000: 3 (3000 + 5714.29). Reduce of 36 bytes: 2 MAX = 72, 3 (3000 + 102.86).
			// Allreduce: the same and 3 (3000 + 51.43). Alltoall of 400 bytes to each, 2000 in all: MEAN 2000, MAX 2000:
			// 6 (3000 + 2857.14).
			{"virtual_collectives.c", 5, "Barrier 30000\nBcast 26143\nReduce 9309\nAllreduce 18463\nAlltoall 35143\nIbcast 26143\n"},
		} {
			for _, m := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s/%s/%d", library, c.source, m), func(t *testing.T) {
					if out, _ := virtual(t, library, c.source, c.ranks, m, slowMachine); out != c.want {
						t.Errorf("the program prints\n%swant\n%s", out, c.want)
					}
				})
			}
		}
	}
}
