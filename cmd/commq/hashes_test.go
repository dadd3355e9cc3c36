package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/writer"
)

// base is the base of payload_sum; see docs/method/payload-hashes.md.
const base = 0x9e3779b97f4a7c15

// payload returns the row of a payload as the queries below return it, computed independently of the shim.
func payload(sum string, content any) string {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, content); err != nil {
		panic(err)
	}
	var head [8]byte
	copy(head[:], b.Bytes())
	return fmt.Sprintf("%d,%016x,%s,%016x", b.Len(), crc64.Checksum(b.Bytes(), crc64.MakeTable(crc64.ECMA)), sum,
		binary.LittleEndian.Uint64(head[:]))
}

// integers returns the payload of integers: their Horner value.
func integers[T int16 | int32](values ...T) string {
	s := uint64(0)
	for _, v := range values {
		s = s*base + uint64(int64(v))
	}
	return payload(fmt.Sprint(int64(s)), values)
}

func ints(values ...int32) string { return integers(values...) }

// hashedMessages and hashedCollectives are the messages and collectives of hashes.c and hashes.F90: source,
// destination, tag or rank, call; then bytes, hash, sum, head. A message that differs from another only by its
// datatype has the same line.
func hashedMessages() []string {
	return []string{
		"1,2,1," + payload("", []byte("123456789")),
		"1,2,2," + ints(1, 4, 7, 10),
		"1,2,3," + ints(1, 4, 7, 10), // a vector
		"1,2,4," + ints(2, 1),        // a struct whose second member comes first
		"1,2,5," + ints(2, 1),
		"1,2,6," + ints(6, 7, 10, 11), // rows 1 and 2, columns 1 and 2 of 3 x 4
		"1,2,7," + ints(6, 7, 10, 11),
		"1,2,8," + ints(1, 3, 5), // every second one
		"1,2,9," + ints(1, 3, 5),
		"1,2,10," + ints(),
		"1,2,11," + ints(2, 3), // an absolute address
		"1,2,17," + ints(2, 5), // the same with a gap
		"1,2,12," + integers[int16](-1, 2),
		"1,2,13," + ints(1, 4, 7, 10), // in mpi_f08 a section of an array
		"1,2,14," + ints(2, 3, 5),     // two starts of a persistent send
		"1,2,14," + ints(7, 3, 5),
		"1,2,15," + payload("", 1.5),
		"1,2,16," + ints(3),
		"2,1,16," + ints(6),
	}
}

func hashedCollectives() []string {
	return []string{
		"0,MPI_Allreduce," + ints(3),
		"0,MPI_Scatterv," + ints(1, 5, 6),
		"0,MPI_Gather," + ints(0),
		"0,MPI_Alltoallv," + ints(3, 1, 2),
		"1,MPI_Allreduce," + ints(4),
		"1,MPI_Gather," + ints(10),
		"1,MPI_Alltoallv," + ints(3, 1, 2),
		"2,MPI_Bcast," + ints(5, 9),
		"2,MPI_Allreduce," + ints(5),
		"2,MPI_Gather," + ints(20),
		"2,MPI_Alltoallv," + ints(3, 1, 2),
	}
}

const (
	messageHashes = `SELECT src, dst, tag, bytes, printf('%016x', payload_hash), payload_sum, printf('%016x', payload_head) FROM messages ORDER BY src, send_seq`
	eventHashes   = `SELECT rank, call, send_bytes, printf('%016x', payload_hash), payload_sum, printf('%016x', payload_head) FROM events
		WHERE payload_hash IS NOT NULL ORDER BY rank, seq`
)

// asked returns the rows of a query.
func asked(t *testing.T, store, run, query string) []string {
	t.Helper()
	rows := strings.Split(strings.TrimSpace(commq(t, "sql", "--store", store, "--run", run, "--format", "csv",
		query)), "\n")
	return rows[1:]
}

func TestPayloadHashes(t *testing.T) {
	if got := payload("", []byte("123456789")); !strings.HasPrefix(got, "9,995dc9bbdf1939fa,") {
		t.Fatalf("the check value of CRC-64/XZ: %s", got)
	}
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		commq(t, "capture", "build", "--mpi", library)
		for _, f := range flavours() {
			t.Run(library+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				store, exe := t.TempDir(), program{name: "hashes"}.build(t, library, f)
				commq(t, "capture", "--store", store, "--name", "hashes", "-q", "-n", "3", "--", exe)
				commq(t, "runs", "check", "--store", store, "hashes")
				if diff := gocmp.Diff(hashedMessages(), asked(t, store, "hashes", messageHashes)); diff != "" {
					t.Errorf("messages (-want +got):\n%s", diff)
				}
				if diff := gocmp.Diff(hashedCollectives(), asked(t, store, "hashes", eventHashes)); diff != "" {
					t.Errorf("collectives (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// startedHashes returns the contributions to the persistent collectives of persistent.c, of rank 1, and of rank 2
// where it is the root: to each of the first 18 alone, to 16 of them together, to the allreduce once more after a
// number has changed, to the neighbours.
func startedHashes() []string {
	world := []string{
		"Reduce_init," + ints(10, 11, 12), "Allreduce_init," + ints(10, 11), "Scan_init," + ints(10), "Exscan_init," +
			ints(10),
		"Reduce_scatter_init," + ints(10, 11, 12, 13, 14, 15), "Reduce_scatter_block_init," +
			ints(10, 11, 12, 13, 14, 15),
		"Gatherv_init," + ints(10, 11), "Allgather_init," + ints(10), "Allgatherv_init," + ints(10, 11),
		"Alltoall_init," + ints(10, 11, 12),
		"Alltoallv_init," + ints(10, 11, 12), "Alltoallw_init," + ints(10, 11, 12), "Allreduce_init," + ints(2),
	}
	root := []string{"Bcast_init," + ints(20, 21, 22, 23), "Scatterv_init," + ints(20, 21, 22, 23, 24, 25)}
	lines := slices.Concat(world, []string{"Gather_init," + ints(10, 11), "Scatter_init," +
		ints(10, 11, 12, 13, 14, 15, 16, 17, 18)}, world, []string{
		"Allreduce_init," + ints(10, 16),
		// the same to both
		"Neighbor_allgather_init,24" + ints(10, 11, 12)[2:], "Neighbor_allgatherv_init,16" + ints(10, 11)[1:],
		"Neighbor_alltoall_init," + ints(10, 12, 14, 16, 17, 19, 21, 23), // every second one, twice
		"Neighbor_alltoallv_init," + ints(10, 11, 12, 13),
		"Neighbor_alltoallw_init," + payload("", []int32{10, 11, 18, 19}), // two as a double
	}, root, root)
	for i := range lines {
		lines[i] = map[bool]string{true: "1,", false: "2,"}[i < len(lines)-4] + lines[i]
	}
	return lines
}

// Each start of a persistent collective is hashed like the plain collective; the call that makes it has no payload.
func TestStartedCollectivesAreHashed(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		commq(t, "capture", "build", "--mpi", library)
		store, exe := t.TempDir(), program{name: "persistent"}.build(t, library, flavours()[0])
		commq(t, "capture", "--store", store, "--name", "persistent", "-q", "-n", "3", "--", exe)
		got := asked(t, store, "persistent", `SELECT e.rank, regexp_replace(i.call, '^MPIX?_', '') AS call, e.send_bytes,
			printf('%016x', e.payload_hash), e.payload_sum, printf('%016x', e.payload_head)
			FROM events AS e JOIN events AS i ON i.rank = e.rank AND i.seq = e.init_seq WHERE e.class = 'collective' AND e.payload_hash IS NOT NULL
			AND (e.rank = 1 OR e.rank = 2 AND e.root_world = 2 AND e.send_bytes > 8) ORDER BY e.rank, e.seq`)
		if diff := gocmp.Diff(startedHashes(), got); diff != "" {
			t.Errorf("%s: starts (-want +got):\n%s", library, diff)
		}
		if n := asked(t, store, "persistent",
			`SELECT count(*) FROM events WHERE payload_hash IS NOT NULL AND call NOT LIKE 'MPI_Start%'`); n[0] != "0" {
			t.Errorf("%s: %s rows that start nothing have hashes", library, n[0])
		}
	}
}

// Every message of programs with all kinds of receives arrives with the hash with which it was sent.
func TestHashVerifyComparesEveryMessage(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		commq(t, "capture", "build", "--mpi", library)
		for _, name := range []string{"p2p", "requests", "probes", "hashes"} {
			for _, f := range flavours()[:1] {
				t.Run(library+"/"+name+"/"+f.name, func(t *testing.T) {
					t.Parallel()
					store, exe := t.TempDir(), program{name: name}.build(t, library, f)
					commq(t, "capture", "--store", store, "--name", name, "-q", "-n", "3", "--hash", "crc32",
						"--hash-verify", "--", exe)
					commq(t, "runs", "check", "--store", store, name)
					got := asked(t, store, name,
						`SELECT count(*), count(payload_hash), count(recv_hash), sum(CAST(payload_hash <> recv_hash AS INTEGER)) FROM messages`)[0]
					var n, sent, arrived, other int
					if _, err := fmt.Sscanf(got, "%d,%d,%d,%d", &n, &sent, &arrived, &other); err != nil || n == 0 ||
						sent != n || arrived != n || other != 0 {
						t.Errorf("messages, hashed at the send, at the receive, different: %s", got)
					}
				})
			}
		}
	}
}

// The algorithms give their check values, in every implementation.
func TestHashAlgorithms(t *testing.T) {
	captureEnvironment(t)
	exe := program{name: "hashes"}.build(t, "openmpi", flavours()[0])
	for _, test := range []struct{ algorithm, isal string }{{"crc32", "1"}, {"crc32", "0"}, {"crc64", "0"},
		{"none", "1"}} {
		t.Setenv("COMMQ_ISAL", test.isal)
		store := t.TempDir()
		commq(t, "capture", "--store", store, "--name", "hashes", "-q", "-n", "3", "--hash", test.algorithm, "--", exe)
		commq(t, "runs", "check", "--store", store, "hashes")
		want := map[string]string{"crc32": fmt.Sprintf("%016x", crc32.ChecksumIEEE([]byte("123456789"))),
			"crc64": "995dc9bbdf1939fa", "none": "none"}[test.algorithm]
		got := asked(t, store, "hashes", `SELECT DISTINCT coalesce(printf('%016x', payload_hash), 'none') FROM messages WHERE tag = 1`)[0]
		if got != want {
			t.Errorf("%s, ISA-L %s: %s, want %s", test.algorithm, test.isal, got, want)
		}
	}
}

// The files of capture api work with and without the capture library, in C, C++ and Fortran.
func TestCaptureAPI(t *testing.T) {
	captureEnvironment(t)
	dir := t.TempDir()
	commq(t, "capture", "api", "--dir", dir)
	if text := commq(t, "capture", "api", "commq.h"); !strings.Contains(text, "commq_send_to_self") {
		t.Errorf("commq.h is %q", text)
	}
	want := []string{"commq_mark,solve,,", "commq_send_to_self,,12," + strings.Split(ints(3, 5, 9), ",")[2]}
	for _, library := range []string{"openmpi", "mpich"} {
		for name, compile := range map[string][]string{
			"c":      {"mpicc." + library, "-I" + dir, filepath.Join(programsDir, "marks.c")},
			"no-pie": {"mpicc." + library, "-no-pie", "-fno-pic", "-I" + dir, filepath.Join(programsDir, "marks.c")},
			"c++":    {"mpicxx." + library, "-x", "c++", "-I" + dir, filepath.Join(programsDir, "marks.c")},
			"f08": {"mpif90." + library, "-J" + t.TempDir(), filepath.Join(dir, "commq.f90"), "-DF08",
				filepath.Join(programsDir, "marks.F90")},
		} {
			exe := filepath.Join(t.TempDir(), "marks")
			if o := command(t, append(compile, "-o", exe)...); o != "" {
				t.Fatalf("%s, %s: %s", library, name, o)
			}
			if o := command(t, exe); o != "ok\n" {
				t.Errorf("%s, %s: without the library: %q", library, name, o)
			}
			store := t.TempDir()
			if o := commq(t, "capture", "--store", store, "--name", "marks", "-q", "-n", "1", "--", exe); o != "ok\n" {
				t.Errorf("%s, %s: %q", library, name, o)
			}
			got := asked(t, store, "marks", `SELECT call, label, send_bytes, payload_sum FROM events WHERE class = 'mark' ORDER BY seq`)
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", library, name, diff)
			}
		}
	}
}

// command returns the output of a command, including its errors.
func command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// A library below the shim changes a message: --hash-verify finds it, whether a blocking receive (tag 7) or a
// nonblocking one (tag 5) got it; the run has a warning and commq doctor fails.
func TestHashVerifyFindsADamagedMessage(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		source, dir := filepath.Join(programsDir, "damage.c"), t.TempDir()
		exe, damage := filepath.Join(dir, "damage"), filepath.Join(dir, "libdamage.so")
		command(t, "mpicc."+library, "-D_GNU_SOURCE", source, "-o", exe)
		command(t, "mpicc."+library, "-D_GNU_SOURCE", "-DLIBRARY", "-fPIC", "-shared", "-Wl,--as-needed", source,
			"-o", damage)
		commq(t, "capture", "build", "--mpi", library)
		for _, tag := range []int{7, 5} {
			store := t.TempDir()
			t.Setenv("DAMAGE", fmt.Sprint(tag))
			t.Setenv("LD_PRELOAD", damage)
			out := commq(t, "capture", "--store", store, "--name", "damage", "-q", "-n", "3", "--hash-verify", "--", exe)
			t.Setenv("LD_PRELOAD", "")
			if out != "ok\n" {
				t.Errorf("%s: %q", library, out)
			}
			commq(t, "runs", "check", "--store", store, "damage")
			want := []string{"1,2,5,4097,true", "1,2,6,4097,true", "1,2,7,4097,true", "1,2,8,4097,true",
				"1,2,9,4097,true"}
			want[tag-5] = fmt.Sprintf("1,2,%d,4097,false", tag)
			got := asked(t, store, "damage", `SELECT src, dst, tag, bytes, payload_hash = recv_hash FROM messages ORDER BY tag`)
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s, tag %d (-want +got):\n%s", library, tag, diff)
			}
			m, err := writer.ReadManifest(filepath.Join(store, "damage"))
			if err != nil {
				t.Fatal(err)
			}
			if m.Counts.HashesVerified != 5 || m.Counts.HashMismatches != 1 ||
				!strings.HasPrefix(strings.Join(m.Warnings, "\n"), "1 of 5 messages ") {
				t.Errorf("%s, tag %d: %d verified, %d differ, warnings: %q", library, tag, m.Counts.HashesVerified,
					m.Counts.HashMismatches, m.Warnings)
			}
			doctor := runLine("--store", store, "doctor", "damage")
			if doctor.status != 1 || !strings.Contains(doctor.stdout, "1 message of 5 arrived with another hash") {
				t.Errorf("%s, tag %d: commq doctor: exit status %d\n%s", library, tag, doctor.status, doctor.stdout)
			}
		}
	}
}
