package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/capture/launch"
	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// Fact is one line of a description.
type Fact struct {
	Name, Value string // for people
}

// Describe returns the facts about this commq and its machine that belong in a bug report. It checks nothing: Machine
// does. engine is the version of DuckDB.
func Describe(ctx context.Context, engine string) []Fact {
	facts := []Fact{
		{"built", fmt.Sprintf("%s for %s/%s, with DuckDB %s", builder(), runtime.GOOS, runtime.GOARCH, engine)},
		{"formats", fmt.Sprintf("schema of runs %d, records of the capture library %d", schema.Version, spool.Version)},
		{"system", distribution("/etc/os-release")},
		{"kernel", kernel()},
		{"glibc", glibc()},
		{"compiler", compiler(ctx).Found},
	}
	for _, library := range []string{shim.OpenMPI, shim.MPICH} {
		facts = append(facts, Fact{library, describeLibrary(ctx, library)})
	}
	return append(facts, Fact{"brings", brought()})
}

// brought names the MPI libraries that commq brings a capture library for.
func brought() string {
	var titles []string
	for _, abi := range shim.Prebuilt() {
		titles = append(titles, abi.Title)
	}
	if titles == nil {
		return "no capture library: it compiles one"
	}
	return "capture libraries for " + strings.Join(titles, ", ")
}

// builder is the version of Go that compiled commq, with the settings of the processor that differ from Go's own.
func builder() string {
	text := runtime.Version()
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return text
	}
	for _, s := range info.Settings {
		if s.Key == "GOAMD64" && s.Value != "v1" || s.Key == "GOARM64" && s.Value != "v8.0" || s.Key == "-race" {
			text += " " + s.Key + "=" + s.Value
		}
	}
	return text
}

// distribution is the name of the system in a file like /etc/os-release.
func distribution(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown: " + err.Error()
	}
	for _, line := range strings.Split(string(text), "\n") {
		if name, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return "unknown: no PRETTY_NAME in " + file
}

// kernel is the kernel's name, release and machine.
func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown: " + err.Error()
	}
	return strings.Join([]string{unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]),
		unix.ByteSliceToString(u.Machine[:])}, " ")
}

// glibc is the machine's glibc, and the one that this commq needs.
func glibc() string {
	out, err := exec.Command("getconf", "GNU_LIBC_VERSION").Output()
	text := strings.TrimPrefix(strings.TrimSpace(string(out)), "glibc ")
	if err != nil || text == "" {
		text = "none found"
	}
	if needs := neededGlibc("/proc/self/exe"); needs != "" {
		text += "; this commq needs " + needs + " or newer"
	}
	return text
}

// describeLibrary names the compiler wrapper and the launcher of an MPI library.
func describeLibrary(ctx context.Context, library string) string {
	var parts []string
	if target, err := shim.FindTarget(ctx, library, ""); err == nil {
		parts = append(parts, fmt.Sprintf("%s, %s, %s", target.Version, target.Mpicc, target.Compiler))
	} else {
		parts = append(parts, "no compiler wrapper")
	}
	if path, err := launch.Find(ctx, library); err == nil {
		parts = append(parts, "launcher "+path)
	} else {
		parts = append(parts, "no launcher")
	}
	return strings.Join(parts, "; ")
}
