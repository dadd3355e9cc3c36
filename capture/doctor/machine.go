package doctor

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/capture/launch"
	"github.com/commq/commq/capture/shim"
)

// MachineOptions say which parts of a machine to check.
type MachineOptions struct {
	// MPI is the only library to check, openmpi or mpich; empty checks all that are installed.
	MPI string
	// Spool is the folder for records; empty is the folder for temporary files. Store is the folder for runs.
	Spool, Store string
	// Quick compiles and runs nothing.
	Quick bool
	// Version is the version of commq, for the run of the self-check.
	Version string
	// Compiling is called before the capture library is compiled, with what is compiled; nil means no callback.
	Compiling func(what string)
	// Step is called before each check that takes long, with what is checked; nil means no callback.
	Step func(what string)
}

// Machine checks whether programs can be captured on this machine.
func Machine(ctx context.Context, o MachineOptions) []Finding {
	list := []Finding{system(), compiler(ctx)}
	list = append(list, mpiLibraries(ctx, o)...)
	list = append(list,
		optionalLibrary("libisal.so.2", "payload hashes at the speed of memory",
			"Debian: apt-get install libisal2; without it hashes are the same and slower"),
		optionalLibrary("libunwind.so.8", "call sites of several frames (--stack 2 and more)",
			"Debian: apt-get install libunwind8; without it a call site is the return address"),
		counters(),
		spoolFolder(o.Spool),
		privateFolder("cache", cacheFolder(), "name another folder in $COMMQ_CACHE"),
		writableFolder("store", o.Store, "name another with --store or $COMMQ_STORE"))
	return append(list, preloaded()...)
}

// system names the platform and the C library, and the version of it that this commq needs.
func system() Finding {
	out, _ := exec.Command("getconf", "GNU_LIBC_VERSION").Output()
	libc := strings.TrimSpace(string(out))
	if libc == "" {
		return warning("system", "commq's query engine needs glibc; musl is not enough", "%s/%s, no glibc found",
			runtime.GOOS, runtime.GOARCH)
	}
	needs := ""
	if exe, err := os.Executable(); err == nil {
		needs = neededGlibc(exe)
	}
	if needs == "" {
		return ok("system", "%s/%s, %s", runtime.GOOS, runtime.GOARCH, libc)
	}
	return ok("system", "%s/%s, %s; this commq needs glibc %s or later", runtime.GOOS, runtime.GOARCH, libc, needs)
}

// neededGlibc is the highest version of glibc among an executable's imported symbols; empty if there is none.
func neededGlibc(path string) string {
	x, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer x.Close()
	symbols, _ := x.ImportedSymbols()
	highest, text := 0, ""
	for _, s := range symbols {
		v, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok {
			continue
		}
		major, minor, _ := strings.Cut(v, ".")
		minor, _, _ = strings.Cut(minor, ".")
		m, _ := strconv.Atoi(major)
		n, _ := strconv.Atoi(minor)
		if number := m*1000 + n; number > highest {
			highest, text = number, v
		}
	}
	return text
}

func compiler(ctx context.Context) Finding {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			out, _ := exec.CommandContext(ctx, path, "--version").Output()
			line, _, _ := strings.Cut(string(out), "\n")
			return ok("C compiler", "%s: %s", path, line)
		}
	}
	if len(shim.Prebuilt()) > 0 {
		return ok("C compiler", "no cc, gcc or clang in $PATH: captures take the libraries that commq brings; "+
			"simulator ranks, replay and calibrate need one")
	}
	return failure("C compiler",
		"install one (Debian: apt-get install gcc); the capture library is compiled once per MPI library",
		"no cc, gcc or clang in $PATH")
}

// mpiLibraries checks each MPI library with its launcher; at least one must work.
func mpiLibraries(ctx context.Context, o MachineOptions) []Finding {
	libraries := []string{shim.OpenMPI, shim.MPICH}
	if o.MPI != "" {
		libraries = []string{o.MPI}
	}
	var list []Finding
	installed := false
	for _, library := range libraries {
		findings, there := mpiLibrary(ctx, o, library)
		list, installed = append(list, findings...), installed || there
	}
	if !installed {
		list = append(list, failure("MPI", "install Open MPI or MPICH with its mpicc (Debian: libopenmpi-dev "+
			"openmpi-bin, or libmpich-dev mpich), or load their module", "no MPI library found"))
	}
	if path, err := exec.LookPath("srun"); err == nil {
		list = append(list, ok("srun", "%s: put commq exec -- before the program", path))
	}
	return list
}

// mpiLibrary checks one library. installed is false only where neither its compiler wrapper nor its launcher is there
// and the user did not name it.
func mpiLibrary(ctx context.Context, o MachineOptions, library string) (list []Finding, installed bool) {
	launcher, launchErr := launch.Find(ctx, library)
	choice, err := shim.Choose(ctx, shim.BuildOptions{Library: library, Launcher: launcher})
	target, wrapper := choice.Target, library
	switch {
	case target == nil && choice.Wrapper == nil && choice.Note == "" && launchErr != nil && o.MPI == "":
		return []Finding{ok(library, "not installed")}, false
	case err != nil:
		return []Finding{failure(library, "mend its compiler wrapper, or name another with --mpicc", "%v", err)}, true
	case target == nil:
		list = append(list, broughtLibrary(ctx, library, "", choice))
		if target = choice.Wrapper; target != nil {
			wrapper += " compiler"
			break
		}
		if launchErr == nil {
			list = append(list, launcherAsRoot(ctx, library, launcher, os.Environ(), os.Getuid()))
		}
		return list, true
	}
	list = append(list, ok(wrapper, "%s, version %s, %s", target.Mpicc, target.Version, target.Compiler))
	if launchErr != nil {
		return append(list, warning(library+" launcher",
			"commq capture needs it; with srun or another launcher use commq exec", "%v", launchErr)), true
	}
	list = append(list, launcherAsRoot(ctx, library, launcher, os.Environ(), os.Getuid()))
	if !o.Quick {
		if o.Step != nil {
			o.Step("capturing a tiny program with " + target.Title())
		}
		list = append(list, selfCheck(ctx, o, *target, choice.Target == nil, launcher))
	}
	return list, true
}

// launcherAsRoot reports the launcher, and whether it refuses to start programs for this user because that is root.
func launcherAsRoot(ctx context.Context, library, launcher string, environ []string, user int) Finding {
	if launch.RefusesRoot(ctx, []string{launcher}, environ, user) {
		return warning(library+" launcher", fmt.Sprintf("export %s=1 %s=1, or capture with --launcher \"mpirun "+
			"--allow-run-as-root\"", launch.RootVariables[0], launch.RootVariables[1]),
			"%s: it refuses to start programs as root", launcher)
	}
	return ok(library+" launcher", "%s", launcher)
}

// optionalLibrary checks a shared library that commq can do without.
func optionalLibrary(soname, gives, without string) Finding {
	for _, dir := range libraryFolders() {
		if path := filepath.Join(dir, soname); exists(path) {
			return ok(soname, "%s: %s", path, gives)
		}
	}
	return warning(soname, without, "not found")
}

// libraryFolders are the folders that the dynamic linker searches.
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
func counters() Finding {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_INSTRUCTIONS,
		Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		unix.Close(fd)
		return ok("counters", "instructions can be counted (--counters)")
	}
	do := "--counters does not work on this machine; everything else does"
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		paranoid, _ := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
		do = fmt.Sprintf("sysctl kernel.perf_event_paranoid is %s; 2 or less is needed, and in a container the "+
			"right to perf_event_open", strings.TrimSpace(string(paranoid)))
	} else if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		do = "a virtual machine without performance counters? " + do
	}
	return warning("counters", do, "instructions cannot be counted: %v", err)
}
