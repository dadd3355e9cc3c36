package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/testenv"
)

// cProgram prints, at each call of probe, its return address and the line the call is in.
const cProgram = `#include <stdio.h>
__attribute__((noinline)) void probe(int line) { printf("%p %d\n", __builtin_return_address(0), line); }
static volatile int x;
static inline __attribute__((always_inline)) void innermost(void) {
	probe(__LINE__); x++;
}
static inline __attribute__((always_inline)) void inner(void) {
	x++;
	innermost(); x++;
}
__attribute__((noinline)) static void outer(void) {
	inner(); x++;
	probe(__LINE__); x++;
}
int main(void) {
	outer();
	probe(__LINE__);
	return 0;
}
`

// build compiles a source with fixed addresses. flags come before the source on the command line.
func build(t *testing.T, compiler, name, source string, flags ...string) string {
	t.Helper()
	testenv.Need(t, compiler)
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "program")
	tool(t, compiler, append(flags, "-no-pie", "-o", exe, path)...)
	return exe
}

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	testenv.Need(t, name)
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// probed runs a program and returns the addresses and lines that it prints.
func probed(t *testing.T, exe string) (addresses []uint64, lines []int32) {
	t.Helper()
	for _, l := range strings.Split(strings.TrimSpace(tool(t, exe)), "\n") {
		var a uint64
		var n int32
		if _, err := fmt.Sscanf(strings.TrimSpace(l), "%v %d", &a, &n); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		addresses, lines = append(addresses, a), append(lines, n)
	}
	return addresses, lines
}

// moduleOf returns the module of an executable as the shim would define it.
func moduleOf(t *testing.T, exe string) *Module {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return &Module{Low: 0x400000, High: 0x500000, Path: exe, BuildID: buildID(f)}
}

// texts returns the frames at addresses as function:line, the innermost first. It checks the names of source files.
func texts(t *testing.T, r *Resolver, m *Module, source string, addresses []uint64) []string {
	t.Helper()
	var list []string
	for _, a := range addresses {
		var frames []string
		for _, f := range r.Frames(Address{m, a}) {
			if f.Line != 0 && (filepath.Base(f.File) != source || !filepath.IsAbs(f.File)) {
				t.Errorf("%#x is in the file %s, want %s", a, f.File, source)
			}
			frames = append(frames, fmt.Sprintf("%s:%d", f.Function, f.Line))
		}
		list = append(list, strings.Join(frames, " < "))
	}
	return list
}

// All common forms of debug information give the same frames, including those of functions nested in each other.
func TestFrames(t *testing.T) {
	want := []string{"innermost:5 < inner:9 < outer:12", "outer:13", "main:17"}
	for _, flags := range [][]string{
		{"-g", "-O2"}, {"-g", "-O2", "-gdwarf-4"}, {"-g", "-O2", "-gdwarf-3"}, {"-g", "-O2", "-gz"},
		{"-g", "-O2", "-flto"}, {"-g3", "-O1", "-ffunction-sections", "-Wl,--gc-sections"},
	} {
		t.Run(strings.Join(flags, ""), func(t *testing.T) {
			exe := build(t, "gcc", "p.c", cProgram, flags...)
			addresses, lines := probed(t, exe)
			var r Resolver
			if diff := cmp.Diff(want, texts(t, &r, moduleOf(t, exe), "p.c", addresses)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]int32{5, 13, 17}, lines); diff != "" {
				t.Errorf("the compiler's lines:\n%s", diff)
			}
			if w := r.Warnings(); w != nil {
				t.Error(w)
			}
		})
	}
}

// Without debug information there are function names; in a stripped program, nothing.
func TestStripped(t *testing.T) {
	exe := build(t, "gcc", "p.c", cProgram, "-g", "-O2")
	addresses, _ := probed(t, exe)
	var r Resolver
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-g"}, []string{"outer:0", "outer:0", "main:0"}},
		{nil, []string{"", "", ""}},
	} {
		bare := filepath.Join(t.TempDir(), "bare")
		tool(t, "strip", append(c.args, "-o", bare, exe)...)
		if diff := cmp.Diff(c.want, texts(t, &r, moduleOf(t, bare), "p.c", addresses)); diff != "" {
			t.Errorf("strip %v (-want +got):\n%s", c.args, diff)
		}
	}
}

// A stripped program has its lines from a debug file, found by build id or by its link.
func TestDebugFiles(t *testing.T) {
	exe := build(t, "gcc", "p.c", cProgram, "-g", "-O2")
	other := build(t, "gcc", "p.c", "\n"+cProgram, "-g", "-O2")
	plain := build(t, "gcc", "p.c", cProgram, "-g", "-O2", "-Wl,--build-id=none")
	addresses, _ := probed(t, exe)
	want := []string{"innermost:5 < inner:9 < outer:12", "outer:13", "main:17"}
	lost := []string{"", "", ""}

	split := func(exe string) (bare, debug string) {
		dir := t.TempDir()
		bare, debug = filepath.Join(dir, "bare"), filepath.Join(dir, "bare.debug")
		tool(t, "objcopy", "--only-keep-debug", exe, debug)
		tool(t, "strip", "-o", bare, exe)
		tool(t, "objcopy", "--add-gnu-debuglink="+debug, bare)
		return bare, debug
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name, bare string, r *Resolver, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, texts(t, r, moduleOf(t, bare), "p.c", addresses)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	bare, debug := split(exe)
	check("beside it", bare, &Resolver{}, want)
	move(debug, filepath.Join(filepath.Dir(bare), ".debug", "bare.debug"))
	check("in .debug", bare, &Resolver{}, want)

	bare, debug = split(exe)
	id := moduleOf(t, bare).BuildID
	dir := t.TempDir()
	move(debug, filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug"))
	check("by build id", bare, &Resolver{DebugDirs: []string{dir}}, want)
	gone := moduleOf(t, bare)
	gone.Path = filepath.Join(dir, "nowhere")
	r := Resolver{DebugDirs: []string{dir}}
	if diff := cmp.Diff(want, texts(t, &r, gone, "p.c", addresses)); diff != "" || r.Warnings() != nil {
		t.Errorf("by build id alone: %v, (-want +got):\n%s", r.Warnings(), diff)
	}

	bare, debug = split(exe)
	_, wrong := split(other)
	move(wrong, debug)
	check("the debug file of another program", bare, &Resolver{}, lost)

	bare, debug = split(plain)
	plainAddresses, _ := probed(t, plain)
	if diff := cmp.Diff(want, texts(t, &Resolver{}, moduleOf(t, bare), "p.c", plainAddresses)); diff != "" {
		t.Errorf("by checksum (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(debug, append(readFile(t, debug), 9), 0o644); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lost, texts(t, &Resolver{}, moduleOf(t, bare), "p.c", plainAddresses)); diff != "" {
		t.Errorf("with another checksum (-want +got):\n%s", diff)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestOtherLanguages(t *testing.T) {
	cpp := `#include <cstdio>
extern "C" __attribute__((noinline)) void probe(int line) { printf("%p %d\n", __builtin_return_address(0), line); }
namespace solver { namespace { volatile int x; }
template <class T> struct Halo {
	__attribute__((noinline)) void exchange(T, int);
	struct { __attribute__((noinline)) void run() { probe(__LINE__); x++; } } part;
};
template <class T> void Halo<T>::exchange(T, int) {
	probe(__LINE__); x++;
	part.run(); x++;
	auto f = [](int n) __attribute__((noinline)) { probe(n); x++; };
	f(11);
}}
int main() { solver::Halo<double> h; h.exchange(1.5, 9); }
`
	fortran := `module grid
contains
  subroutine update()
    interface
      subroutine probe(line) bind(c)
        use iso_c_binding
        integer(c_int), value :: line
      end subroutine
    end interface
    call probe(10)
    call contained()
    x = 1
  contains
    subroutine contained()
      call probe(15)
      x = 2
    end subroutine
  end subroutine
end module
subroutine alone()
  interface
    subroutine probe(line) bind(c)
      use iso_c_binding
      integer(c_int), value :: line
    end subroutine
  end interface
  call probe(27)
  x = 3
end subroutine
program p
  use grid
  call update()
  call alone()
end program
`
	probe := filepath.Join(t.TempDir(), "probe.c")
	if err := os.WriteFile(probe, []byte("#include <stdio.h>\nvoid probe(int line) { printf(\"%p %d\\n\", __builtin_return_address(0), line); fflush(stdout); }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		compiler, name, source string
		flags, lines, symbols  []string
	}{
		{"g++", "p.cc", cpp, nil,
			[]string{"solver::Halo<double>::exchange:9", "solver::Halo<double>::{unnamed type#1}::run:6",
				"solver::Halo<double>::exchange(double, int)::{lambda(int)#1}::operator():11"},
			[]string{"solver::Halo<double>::exchange:0", "solver::Halo<double>::{unnamed type#1}::run:0",
				"solver::Halo<double>::exchange(double, int)::{lambda(int)#1}::operator():0"}},
		{"gfortran", "p.f90", fortran, []string{probe},
			[]string{"grid::update:10", "contained:15", "alone:27"},
			[]string{"grid::update:0", "contained:0", "alone_:0"}},
	} {
		t.Run(c.compiler, func(t *testing.T) {
			flags := append([]string{"-g", "-O1", "-fno-inline"}, c.flags...)
			if c.compiler == "gfortran" {
				flags = append(flags, "-J"+t.TempDir()) // where modules go
			}
			exe := build(t, c.compiler, c.name, c.source, flags...)
			addresses, lines := probed(t, exe)
			var r Resolver
			got := texts(t, &r, moduleOf(t, exe), c.name, addresses)
			if diff := cmp.Diff(c.lines, got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", lines, diff)
			}
			bare := exe + ".bare"
			tool(t, "strip", "-g", "-o", bare, exe)
			if diff := cmp.Diff(c.symbols, texts(t, &r, moduleOf(t, bare), c.name, addresses)); diff != "" {
				t.Errorf("without debug information (-want +got):\n%s", diff)
			}
		})
	}
}

// For a program that was built again, no lines are given: they may have changed.
func TestAnotherFile(t *testing.T) {
	exe := build(t, "gcc", "p.c", cProgram, "-g", "-O2")
	addresses, _ := probed(t, exe)
	m := moduleOf(t, exe)
	lost := []string{"", "", ""}
	again := build(t, "gcc", "p.c", "\n\n"+cProgram, "-g", "-O2")
	plain := build(t, "gcc", "p.c", cProgram, "-g", "-O2", "-Wl,--build-id=none")
	info, err := os.Stat(plain)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(damaged, readFile(t, exe)[:4097], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, id string
		started  time.Time
		warning  string
	}{
		{again, m.BuildID, time.Time{}, "program are not known: its file is not the one that the program ran with (the build ids differ): was it built again since?."},
		{plain, "", info.ModTime().Add(-time.Second),
			"program are not known: its file was changed since the program started, and has no build id."},
		{exe + ".gone", m.BuildID, time.Time{},
			"program.gone are not known: its file cannot be read here (no such file or directory)."},
		{filepath.Dir(exe), m.BuildID, time.Time{},
			filepath.Base(filepath.Dir(exe)) + " are not known: it is not a regular file."},
		{damaged, m.BuildID, time.Time{}, "damaged are not known: damaged file ("},
	} {
		r := Resolver{Started: c.started}
		if diff := cmp.Diff(lost, texts(t, &r, &Module{Path: c.path, BuildID: c.id}, "p.c", addresses)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, diff)
		}
		if w := r.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0], "Functions and lines in "+c.warning) {
			t.Errorf("%s: %q", c.path, w)
		}
	}
}

func payload(t *testing.T, fixed any, rest string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, fixed); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), rest...)
}

// Definitions come in any order, from the files of several threads. A later module with the same range applies to
// later sites.
func TestSites(t *testing.T) {
	var s Sites
	define := func(what uint16, number int64, data []byte) {
		t.Helper()
		if err := s.Define(what, number, data); err != nil {
			t.Fatal(err)
		}
	}
	define(spool.DefSite, 9, payload(t, []uint64{0x7000, 0x400100, 0x123}, ""))
	define(spool.DefModule, 7, payload(t, spool.ModuleDef{Low: 0x6000, High: 0x7000, Bias: 0x5000}, "/lib/late.so"))
	define(spool.DefModule, 3, payload(t, spool.ModuleDef{Low: 0x400000, High: 0x401000, IDBytes: 3},
		"\x01\xab\xff/bin/prog"))
	define(spool.DefModule, 2, payload(t, spool.ModuleDef{Low: 0x5000, High: 0x8000, Bias: 0x5000, Skip: 1},
		"/lib/early.so"))
	define(spool.DefSite, 5, payload(t, []uint64{0x7000}, ""))
	define(spool.DefClock, 4, nil)
	prog := &Module{Low: 0x400000, High: 0x401000, BuildID: "01abff", Path: "/bin/prog"}
	early := &Module{Low: 0x5000, High: 0x8000, Bias: 0x5000, Path: "/lib/early.so", Skip: true}
	late := &Module{Low: 0x6000, High: 0x7000, Bias: 0x5000, Path: "/lib/late.so"}
	for number, want := range map[uint32][]Address{
		5: {{early, 0x2000}},
		// a call at the very end returns to the address after the module
		9: {{late, 0x2000}, {prog, 0x400100}, {nil, 0x123}},
		7: nil,
	} {
		if diff := cmp.Diff(want, s.Path(number)); diff != "" {
			t.Errorf("site %d (-want +got):\n%s", number, diff)
		}
	}
	if diff := cmp.Diff([]uint32{5, 9}, s.Numbers()); diff != "" {
		t.Error(diff)
	}
	if got := new(Resolver).Describe(s.Path(9)); got != "late.so+0x2000" {
		t.Error(got)
	}
	for what, bad := range map[uint16][]byte{
		spool.DefModule: payload(t, spool.ModuleDef{Low: 5, High: 9, IDBytes: 20}, "short"),
		spool.DefSite:   {1, 2, 3},
	} {
		if err := s.Define(what, 5, bad); err == nil {
			t.Errorf("no error for a definition %d of %d bytes", what, len(bad))
		}
	}
}

func TestDescribe(t *testing.T) {
	exe := build(t, "gcc", "p.c", cProgram, "-g", "-O2")
	addresses, _ := probed(t, exe)
	m := moduleOf(t, exe)
	var r Resolver
	for want, path := range map[string][]Address{
		"innermost (p.c:5)": {{m, addresses[0]}, {m, addresses[2]}},
		"?":                 nil,
		"0x99":              {{nil, 0x99}},
	} {
		if got := r.Describe(path); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Whatever a file contains, there is an answer or an error, and no crash.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	source := filepath.Join(dir, "p.c")
	if err := os.WriteFile(source, []byte(cProgram), 0o644); err != nil {
		f.Fatal(err)
	}
	for i, flags := range [][]string{{"-g", "-O2"}, {"-g", "-O2", "-gdwarf-4"}, {"-O1"}} {
		exe := filepath.Join(dir, fmt.Sprint(i))
		if err := exec.Command("gcc", append(flags, "-c", "-o", exe, source)...).Run(); err != nil {
			testenv.Skip(f, "no gcc: "+err.Error())
		}
		data, err := os.ReadFile(exe)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint64(0x20), uint64(0x4011d0))
	}
	f.Fuzz(func(t *testing.T, data []byte, a, b uint64) {
		e, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			return
		}
		_ = buildID(e)
		_, _ = debugLink(e)
		defer passLibraryPanic()
		var own file
		if err := own.parse(e); err != nil {
			return
		}
		for _, pc := range []uint64{0, a, b} {
			if frames := own.frames(pc); len(frames) > maxNesting+1 {
				t.Errorf("%d frames", len(frames))
			}
		}
	})
}

// passLibraryPanic recovers from a panic in the standard library's readers, which a Resolver makes an error, and lets
// others pass.
func passLibraryPanic() {
	p := recover()
	if p == nil {
		return
	}
	_, stack, _ := strings.Cut(string(debug.Stack()), "\npanic(")
	lines := strings.Split(stack, "\n") // the rest of the line, where panic is, and where it was called
	if len(lines) < 3 || !strings.HasPrefix(lines[2], "debug/") {
		panic(p)
	}
}
