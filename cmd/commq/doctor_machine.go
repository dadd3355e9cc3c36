package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/launch"
	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// machine checks whether programs can be captured on this machine.
func (c *checkup) machine(ctx context.Context, a *app, o *doctorOptions) {
	c.system()
	c.compiler(ctx)
	libraries := []string{"openmpi", "mpich"}
	if o.mpi != "" {
		libraries = []string{o.mpi}
	}
	c.mpi(ctx, o, libraries)
	c.optional("libisal.so.2", "payload hashes at the speed of memory", "Debian: apt-get install libisal2; without it hashes are the same and slower")
	c.optional("libunwind.so.8", "call sites of several frames (--stack 2 and more)", "Debian: apt-get install libunwind8; without it a call site is the return address")
	c.counters()
	c.spoolFolder(o.spool)
	c.folder("cache", cacheFolder(), "name another folder in $COMMQ_CACHE")
	c.folder("store", a.storeDir(), "name another with --store or $COMMQ_STORE")
	c.preloaded()
}

// system says what the machine runs and what this commq needs of it.
func (c *checkup) system() {
	out, _ := exec.Command("getconf", "GNU_LIBC_VERSION").Output()
	libc := strings.TrimSpace(string(out))
	if libc == "" {
		c.warn("system", "commq's query engine needs glibc; musl is not enough", "%s/%s, no glibc found", runtime.GOOS, runtime.GOARCH)
		return
	}
	needs := ""
	if exe, err := os.Executable(); err == nil {
		needs = neededGlibc(exe)
	}
	if needs == "" {
		c.ok("system", "%s/%s, %s", runtime.GOOS, runtime.GOARCH, libc)
		return
	}
	c.ok("system", "%s/%s, %s; this commq runs with glibc %s and later", runtime.GOOS, runtime.GOARCH, libc, needs)
}

// neededGlibc is the highest version of glibc that an executable asks for; empty where it asks for none.
func neededGlibc(path string) string {
	x, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer x.Close()
	symbols, _ := x.ImportedSymbols()
	best, text := 0, ""
	for _, s := range symbols {
		v, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok {
			continue
		}
		major, minor, _ := strings.Cut(v, ".")
		minor, _, _ = strings.Cut(minor, ".")
		m, _ := strconv.Atoi(major)
		n, _ := strconv.Atoi(minor)
		if rank := m*1000 + n; rank > best {
			best, text = rank, v
		}
	}
	return text
}

func (c *checkup) compiler(ctx context.Context) {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			out, _ := exec.CommandContext(ctx, path, "--version").Output()
			line, _, _ := strings.Cut(string(out), "\n")
			c.ok("C compiler", "%s: %s", path, line)
			return
		}
	}
	c.fail("C compiler", "install one (Debian: apt-get install gcc); the capture library is compiled once per MPI library", "no cc, gcc or clang in $PATH")
}

// mpi checks the MPI libraries: one of them must work.
func (c *checkup) mpi(ctx context.Context, o *doctorOptions, libraries []string) {
	there := 0
	for _, library := range libraries {
		target, err := shim.FindTarget(ctx, library, "")
		launcher, launchErr := launch.Find(ctx, library)
		switch {
		case err != nil && launchErr != nil && o.mpi == "":
			c.ok(library, "not installed")
			continue
		case err != nil:
			there++
			c.fail(library, "", "%v", err)
			continue
		}
		there++
		c.ok(library, "%s, version %s, %s", target.Mpicc, target.Version, target.Compiler)
		if launchErr != nil {
			c.warn(library+" launcher", "needed by commq capture; with srun or another launcher use commq exec", "%v", launchErr)
			continue
		}
		c.ok(library+" launcher", "%s", launcher)
		if !o.quick {
			c.selfCheck(ctx, target, launcher)
		}
	}
	if there == 0 {
		c.fail("MPI", "install Open MPI or MPICH with its mpicc (Debian: libopenmpi-dev openmpi-bin, or libmpich-dev mpich), or load their module", "no MPI library found")
	}
	if path, err := exec.LookPath("srun"); err == nil {
		c.ok("srun", "%s: put commq exec -- before the program", path)
	}
}

// tiny is the program of the self-check: a message of 4097 bytes with tag 9, and a barrier.
const tiny = `#include <mpi.h>
static char b[4097];
int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1)
		MPI_Send(b, sizeof b, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
	else
		MPI_Recv(b, sizeof b, MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
`

// selfCheckTime bounds the self-check's program.
const selfCheckTime = time.Minute

// selfCheck builds the capture library and captures the tiny program.
func (c *checkup) selfCheck(ctx context.Context, target shim.Target, launcher string) {
	name := target.Library + " capture"
	work, err := os.MkdirTemp("", "commq-doctor-")
	if err != nil {
		c.fail(name, "", "%v", err)
		return
	}
	defer os.RemoveAll(work)
	m, err := captureTiny(ctx, work, target, launcher)
	const want = "1 message of 4,097 bytes and 1 barrier on 2 ranks"
	switch {
	case err != nil:
		c.fail(name, "commq capture build --mpi "+target.Library+" says more", "%v", err)
	case m.Ranks != 2 || m.Counts.Messages != 1 || m.Counts.MessageBytes != 4097 || m.Collectives["MPI_Barrier"] != 1:
		c.fail(name, "do not trust captures with this library; commq capture of your own small program may show why",
			"a program of 2 ranks was recorded as %s of %s on %s, want %s", counted(m.Counts.Messages, "message"), bytesText(m.Counts.MessageBytes), counted(int64(m.Ranks), "rank"), want)
	default:
		c.ok(name, "a program of 2 ranks was recorded right: %s", want)
	}
}

// captureTiny compiles, runs and ingests the tiny program.
func captureTiny(ctx context.Context, work string, target shim.Target, launcher string) (*schema.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, selfCheckTime)
	defer cancel()
	lib, err := shim.Build(ctx, shim.BuildOptions{Library: target.Library, Mpicc: target.Mpicc})
	if err != nil {
		return nil, err
	}
	source, program, spoolDir := filepath.Join(work, "tiny.c"), filepath.Join(work, "tiny"), filepath.Join(work, "spool")
	if err := os.WriteFile(source, []byte(tiny), 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, target.Mpicc, "-o", program, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s cannot compile a program: %w: %s", target.Mpicc, err, lastLine(out))
	}
	if err := os.Mkdir(spoolDir, 0o700); err != nil {
		return nil, err
	}
	job := launch.Job{Launcher: []string{launcher}, Ranks: 2, Program: []string{program}, Preload: launch.Preload{Shim: lib, Spool: spoolDir, Clock: "cpu"}}
	line := job.Line()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s cannot run a program of 2 ranks: %w: %s", launcher, errors.Join(err, ctx.Err()), lastLine(out))
	}
	out, err := writer.Create(filepath.Join(work, "runs"), "tiny", writer.Options{})
	if err != nil {
		return nil, err
	}
	return ingest.Ingest(ctx, spoolDir, out, ingest.Options{Origin: schema.Origin{Commq: version}})
}

// lastLine is the last line of a tool's output that is not empty or a ruler.
func lastLine(out []byte) string {
	last := ""
	for _, line := range bytes.Split(out, []byte("\n")) {
		if s := strings.TrimSpace(string(line)); strings.Trim(s, "-=*") != "" {
			last = s
		}
	}
	return last
}

// optional checks a shared library that makes something better.
func (c *checkup) optional(soname, gives, without string) {
	for _, dir := range libraryFolders() {
		if path := filepath.Join(dir, soname); exists(path) {
			c.ok(soname, "%s: %s", path, gives)
			return
		}
	}
	c.warn(soname, without, "not found")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// libraryFolders are the folders that the dynamic linker looks into.
func libraryFolders() []string {
	dirs := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	for _, ldconfig := range []string{"ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"} {
		out, err := exec.Command(ldconfig, "-p").Output()
		if err != nil {
			continue
		}
		seen := map[string]bool{}
		for _, line := range strings.Split(string(out), "\n") {
			if _, path, ok := strings.Cut(line, " => "); ok && !seen[filepath.Dir(path)] {
				seen[filepath.Dir(path)] = true
				dirs = append(dirs, filepath.Dir(path))
			}
		}
		break
	}
	return append(dirs, "/lib64", "/usr/lib64", "/usr/lib", "/usr/local/lib")
}

// counters tries to count instructions.
func (c *checkup) counters() {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_INSTRUCTIONS, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		unix.Close(fd)
		c.ok("counters", "instructions can be counted (--counters)")
		return
	}
	do := "--counters is not for this machine; everything else is"
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		paranoid, _ := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
		do = fmt.Sprintf("sysctl kernel.perf_event_paranoid is %s; 2 or less is needed, and in a container the right to perf_event_open", strings.TrimSpace(string(paranoid)))
	} else if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		do = "a virtual machine without performance counters? " + do
	}
	c.warn("counters", do, "instructions cannot be counted: %v", err)
}

// shared are file systems that several machines see, by their magic numbers, with what is known of them.
var shared = map[int64]string{0x6969: "NFS", 0x0BD00BD0: "Lustre", 0x47504653: "GPFS", 0x19830326: "BeeGFS", 0x00c36400: "CephFS", 0xFF534D42: "CIFS", 0xFE534D42: "SMB", 0x5346414F: "AFS", 0x65735546: "FUSE"}

// spoolFolder checks the folder that ranks write to.
func (c *checkup) spoolFolder(dir string) {
	if dir == "" {
		dir = os.TempDir()
	}
	f, err := os.CreateTemp(dir, ".commq-doctor-")
	if err != nil {
		c.fail("spool folder", "name a writable folder on a local disk with --spool", "%v", err)
		return
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		c.warn("spool folder", "", "%s: %v", dir, err)
		return
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	var slow []string
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 1<<16); err != nil {
		slow = append(slow, fmt.Sprintf("no fallocate (%v)", err))
	} else if data, err := unix.Mmap(int(f.Fd()), 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		slow = append(slow, fmt.Sprintf("no shared maps (%v)", err))
	} else {
		data[0] = 1
		_ = unix.Munmap(data)
	}
	name, remote := shared[int64(uint32(fs.Type))]
	switch {
	case free < 1<<30:
		c.warn("spool folder", "64 bytes and more per call are needed until the run is written; name another with --spool", "%s: %s free", dir, inBytes(free))
	case len(slow) > 0:
		c.warn("spool folder", "records go through a buffer and write(2) then: a killed rank loses what was in it; a local disk is better", "%s: %s", dir, strings.Join(slow, ", "))
	case remote:
		c.warn("spool folder", "a folder on each node's own disk is faster; name one with --spool, and bring the files together afterwards", "%s: %s, %s free", dir, name, inBytes(free))
	default:
		c.ok("spool folder", "%s: %s free, records are written through shared maps", dir, inBytes(free))
	}
}

// cacheFolder is where compiled capture libraries are kept; empty where there is none.
func cacheFolder() string {
	if env := os.Getenv("COMMQ_CACHE"); env != "" {
		return env
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "commq")
}

// folder checks that a folder, or the first of its parents that exists, can be written to.
func (c *checkup) folder(name, dir, do string) {
	if dir == "" {
		c.fail(name+" folder", do, "there is no home folder to keep it in")
		return
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		c.fail(name+" folder", do, "%v", err)
		return
	}
	at := abs
	for !exists(at) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
	}
	f, err := os.CreateTemp(at, ".commq-doctor-")
	if err != nil {
		c.fail(name+" folder", do, "%s: %v", abs, err)
		return
	}
	_, err = io.WriteString(f, "x")
	err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	if err != nil {
		c.fail(name+" folder", do, "%s: %v", abs, err)
		return
	}
	c.ok(name+" folder", "%s can be written to", abs)
}
