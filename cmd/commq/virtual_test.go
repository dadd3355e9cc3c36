package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// slowMachine is a network with times that are not round: 3 us and 700 MB/s.
const slowMachine = `
network:
  latency_ns: 3000
  bandwidth_bytes_per_s: 700000000
`

// virtual captures a program with simulator ranks, and returns its output and the run's manifest.
func virtual(t *testing.T, library, exe string, ranks, simRanks int, machine string, args ...string) (out string,
	m schema.Manifest) {
	t.Helper()
	yaml := filepath.Join(t.TempDir(), "machine.yaml")
	if err := os.WriteFile(yaml, []byte(machine), 0o644); err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	line := []string{"capture", "--store", store, "--name", "v", "-q", "-n", fmt.Sprint(ranks), "--sim-ranks",
		fmt.Sprint(simRanks), "--machine", yaml, "--clock", "none", "--", exe}
	out = commq(t, append(line, args...)...)
	commq(t, "runs", "check", "--store", store, "v")
	if err := json.Unmarshal([]byte(commq(t, "runs", "show", "--store", store, "--format", "json", "v")),
		&m); err != nil {
		t.Fatal(err)
	}
	return out, m
}

// compileMPI compiles a program of testdata/programs such that the shim sees its symbols.
func compileMPI(t *testing.T, library, source string, flags ...string) string {
	t.Helper()
	compiler := "mpicc." + library
	if strings.HasSuffix(source, ".F90") {
		compiler = "mpif90." + library
	}
	exe := filepath.Join(t.TempDir(), strings.TrimSuffix(source, filepath.Ext(source)))
	flags = append(flags, "-O2", "-rdynamic", "-pthread", "-o", exe, filepath.Join(programsDir, source))
	if out, err := exec.Command(compiler, flags...).CombinedOutput(); err != nil {
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
			only   string // library
		}{
			// 2 (L + s/B), B = 0.7 bytes/ns: 6000; 6000 + 2/0.7; 6000 + 18/0.7; 6000 + 8194/0.7 = 17705.71; 6000 +
			// 131072/0.7 = 193245.71; 6000 + 2097152/0.7 = 3001931.43.
			{"virtual_pingpong.c", 2, "0 6000\n1 6003\n9 6026\n4097 17706\n65536 193246\n1048576 3001931\n", ""},
			// (1 + 2 + 3 + 4 + 5) us of computing and 5 (3000 + 4097/0.7 = 5852.857) ns of messages: 15000 + 44264.29.
			{"virtual_ring.c", 5, "59264\n", ""},
			// Rank 1 arrives at 50000, after the message at 8852.86: nothing changes. The second is sent at 90000 and
			// arrives at 98852.86, the third at 108852.86, while rank 1 computes until 128852.86. The last, of 9
			// bytes, is sent at 200000 and arrives at 203012.86.
			{"virtual_late.c", 2, "50000\n98853\n128853\n203013\n", ""},
			// From when the last came. 5 ranks: LOG is 3 steps, LIN 5. Barrier 2 x 5 L = 30000. Bcast of 4000 bytes:
			// the root sends 4000 and receives 0, MAX 4000: 3 (3000 + 5714.29). Reduce of 36 bytes: 2 MAX = 72, 3
			// (3000 + 102.86). Allreduce: the same and 3 (3000 + 51.43). Alltoall of 400 bytes to each, 2000 in all:
			// MEAN 2000, MAX 2000: 6 (3000 + 2857.14).
			{"virtual_collectives.c", 5, "Barrier 30000\nBcast 26143\nReduce 9309\nAllreduce 18463\nAlltoall 35143\nIbcast 26143\n", ""},
			// Iallreduce as Allreduce: 9308.57 + 9154.29. Ireduce 9308.57. Igather to 3, which has 400 and 2000
			// bytes, MEAN 1200: 3 (3000 + 1714.29) = 14142.86, and Iscatter; Iallgather has that twice.
			// Ireduce_scatter_block of 180 bytes, 36 of them for each: 2 MAX 360, 3 (3000 + 514.29), MIN 36, 3 (3000
			// + 51.43). Iscan 2 x 9154.29. The microsecond of computing ends before the last rank arrives. Rank 0
			// computes until 100000 and the last arrives at 40000: 60000. The Ibarrier that started first ends after
			// 30000, the Iallreduce after 18462.86. Persistent ones take as long.
			{"virtual_nonblocking.c", 5, "Ibarrier 30000\nIallreduce 18463\nIalltoall 35143\nIreduce 9309\nIgather 14143\nIscatter 14143\nIallgather 28286\n" +
				"Ireduce_scatter_block 19697\nIscan 18309\nhidden 60000\nthe second 18463\nthe first 30000\n" +
				"Barrier_init 30000\nBarrier_init 30000\nBcast_init 26143\nBcast_init 26143\nAllreduce_init 18463\nAllreduce_init 18463\n", ""},
			// 20485 bytes leave with the last partition, at 60000, and take 3000 + 29264.29; the 9 bytes leave at
			// 50000. The second time is 67000 later.
			{"virtual_partitioned.c", 2, "53013\n92264\n120013\n159264\n", "mpich"},
			// 300 x 17705.71 = 5311714.29 and 5 x 193245.71 = 966228.57, both from 0. The third thread begins at the
			// later of these, and takes 2 x 6025.71. The main thread's clock has not moved.
			{"virtual_threads.c", 2, "4097 0 5311714\n65536 0 966229\n9 5311714 5323766\nmain 0\n", ""},
		} {
			if c.only != "" && c.only != library {
				continue
			}
			exe := compileMPI(t, library, c.source)
			for _, m := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s/%s/%d", library, c.source, m), func(t *testing.T) {
					if out, _ := virtual(t, library, exe, c.ranks, m, slowMachine); out != c.want {
						t.Errorf("the program prints\n%swant\n%s", out, c.want)
					}
				})
			}
		}
	}
}

// MPI_Wtime and MPI_Wtick of Fortran, in each of its three forms: 2 (3000 + 4097/0.7) = 17705.71, and a picosecond.
func TestVirtualTimesInFortran(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		for _, f := range flavours()[1:] {
			t.Run(library+"/"+f.name, func(t *testing.T) {
				exe := compileMPI(t, library, "virtual_pingpong.F90", f.flags...)
				if out, _ := virtual(t, library, exe, 2, 1, slowMachine); out != "4097 17706 1.0E-12\n" {
					t.Errorf("the program prints %q", out)
				}
			})
		}
	}
}

// The ring again, with 4 ranks: 1 + 2 + 3 + 4 us of computing, and 4 messages, of 3000 + 4097/0.7 = 8852.857 ns
// between nodes and of 500 + 4097/4 = 1524.25 ns in one.
func TestVirtualTimesOnOtherCPUs(t *testing.T) {
	captureEnvironment(t)
	const near = "intra_node: {latency_ns: 500, bandwidth_bytes_per_s: 4000000000}\n"
	for _, library := range []string{"openmpi", "mpich"} {
		exe := compileMPI(t, library, "virtual_ring.c")
		for _, c := range []struct{ machine, want string }{
			{"cpu_ratio: 2.5\n", "39411\n"}, // 10000 / 2.5 + 35411.43
			// two on a CPU: 20000 + 4 x 1524.25
			{"nodes: 1\ncpus_per_node: 2\n" + near, "26097\n"},
			{"nodes: 1\ncpus_per_node: 2\ncpu_ratio: 2.5\n" + near, "14097\n"}, // 8000 + 6097
			// 20000 + 2 x 1524.25 + 2 x 8852.857
			{"nodes: 2\ncpus_per_node: 1\n" + near, "40754\n"},
			// no neighbours share a node: 20000 + 35411.43
			{"nodes: 2\ncpus_per_node: 1\nmapping: round-robin\n" + near, "55411\n"},
			{"nodes: 2\ncpus_per_node: 2\ncpu_ratio: 0.5\n" + near, "40754\n"}, // the same with slow CPUs
		} {
			for _, m := range []int{1, 2} {
				if out, _ := virtual(t, library, exe, 4, m, slowMachine+c.machine); out != c.want {
					t.Errorf("%s, %d simulator ranks,\n%sthe program prints %swant %s", library, m, c.machine, out,
						c.want)
				}
			}
		}
	}
}

// An Ibcast of 36 bytes takes 3000 + 51.43. Its root starts it at 20000; a test there finds it complete at 20000 +
// 3012.86, before the other rank has started it, which waits for a message that the root sends afterwards. The
// Barrier of both takes 2 x 2 x 3000, from 26064.29 on. For the Iallreduce rank 1 arrives last, at 48064.29: 3000 +
// 102.86 + 3000 + 51.43 more. For the Ibarrier rank 0 does, at 104218.57: 12000 more. No rank can find these two
// complete before all have started them.
func TestVirtualTimesOfTests(t *testing.T) {
	captureEnvironment(t)
	const want = "20000 26064\n38064 38064\n54219 54219\n116219 116219\n"
	for _, library := range []string{"openmpi", "mpich"} {
		exe := compileMPI(t, library, "virtual_early.c")
		for _, m := range []int{1, 2} {
			out, r := virtual(t, library, exe, 2, m, slowMachine)
			if out != want {
				t.Errorf("%s, %d simulator ranks: the program prints\n%swant\n%s", library, m, out, want)
			}
			if c := r.Counts; c.EarlyCollectives != 1 || c.Choices != 0 || len(r.Warnings) != 1 ||
				!strings.Contains(r.Warnings[0], "complete in a test before their virtual end was known") {
				t.Errorf("%s, %d simulator ranks: %+v, warnings %q", library, m, c, r.Warnings)
			}
		}
	}
}

// Rank 0 receives a message of 70000 bytes first, which arrives after 3000 + 100000, and then one of 9 bytes, which
// arrives after 3012.86, or, if it leaves at 200000, after 203012.86. Each of ten ways is two choices, the second out
// of order or not.
func TestVirtualChoices(t *testing.T) {
	captureEnvironment(t)
	ways := strings.Fields("source tag Irecv Probe Iprobe Mprobe Waitany Waitsome Testany Testsome")
	for _, library := range []string{"openmpi", "mpich"} {
		exe := compileMPI(t, library, "virtual_choices.c")
		for _, c := range []struct {
			how, times string
			outOfOrder int64
			warning    string
		}{
			{"early", " 103000 103000\n", 10, "In 10 of 20 choices"},
			{"late", " 103000 203013\n", 0, ""},
		} {
			for _, m := range []int{1, 2} {
				out, r := virtual(t, library, exe, 3, m, slowMachine, c.how)
				if want := strings.Join(ways, c.times) + c.times; out != want {
					t.Errorf("%s, %s, %d simulator ranks: the program prints\n%swant\n%s", library, c.how, m, out, want)
				}
				warned := slices.ContainsFunc(r.Warnings,
					func(w string) bool { return strings.HasPrefix(w, c.warning) })
				if n := r.Counts; n.Choices != 20 || n.OutOfOrder != c.outOfOrder || n.EarlyCollectives != 0 ||
					len(r.Warnings) > 1 || warned != (c.warning != "") {
					t.Errorf("%s, %s, %d simulator ranks: %+v, warnings %q", library, c.how, m, n, r.Warnings)
				}
			}
		}
	}
}
