package shim

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

func TestDetect(t *testing.T) {
	testenv.Need(t, "cc")
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	build := func(name, text string, flags ...string) string {
		exe := filepath.Join(dir, name)
		args := append([]string{"cc", "-o", exe, file(name+".c", text, 0o644)}, flags...)
		if o := run(t, nil, args...); o.status != 0 {
			t.Fatalf("%v: %s", args, o.stderr)
		}
		return exe
	}
	fake := build("libmpi.so.12.1", "int MPI_Init(void) { return 0; }", "-shared", "-Wl,-soname,libmpi.so.20", "-fPIC")
	for _, c := range []struct{ name, program, want string }{
		{"absent", filepath.Join(dir, "nothing"), "no such program"},
		{"not executable", file("data", "\x7fELF", 0o644), "not executable"},
		{"script", file("script", "#!/bin/sh\nexec true\n", 0o755), "not an ELF executable"},
		{"empty", file("empty", "", 0o755), "not an ELF executable"},
		{"cut short", file("short", "\x7fELF\x02\x01\x01", 0o755), "detect the MPI library of "},
		{"no MPI", build("plain", "int main(void) { return 0; }"), "not an MPI program"},
		{"static", build("static", "int main(void) { return 0; }", "-static"), "statically linked"},
		{"MPI inside", build("inside", "int MPI_Init(void) { return 0; } int main(void) { return MPI_Init(); }"),
			"linked into it statically"},
		{"another MPI", build("another", "int MPI_Init(void); int main(void) { return MPI_Init(); }", fake),
			"linked to libmpi.so.20"},
	} {
		if got, err := Detect(c.program); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want an error with %q", c.name, got, err, c.want)
		}
	}
}

func TestDetectLibrary(t *testing.T) {
	for _, library := range libraries {
		testenv.MPI(t, library)
		dir := t.TempDir()
		source := filepath.Join(dir, "lib.c")
		if err := os.WriteFile(source, []byte("#include <mpi.h>\nint start(void) { return MPI_Init(0, 0); }\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
		main := filepath.Join(dir, "main.c")
		if err := os.WriteFile(main, []byte("int start(void);\nint main(void) { return start(); }\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
		lib, through := filepath.Join(dir, "libours.so"), filepath.Join(dir, "through")
		for _, args := range [][]string{{"mpicc." + library, "-w", "-shared", "-fPIC", "-o", lib, source},
			{"cc", "-o", through, main, lib}} {
			if o := run(t, nil, args...); o.status != 0 {
				t.Fatalf("%v: %s", args, o.stderr)
			}
		}
		for _, exe := range []string{compile(t, "mpicc."+library, filepath.Join(programs, "types.c"), "-w"), through} {
			if got, err := Detect(exe); got != library || err != nil {
				t.Errorf("%s: %q, %v, want %s", exe, got, err, library)
			}
		}
	}
}

func FuzzDetect(f *testing.F) {
	exe, err := os.ReadFile("/bin/true")
	if err != nil {
		testenv.Skip(f, err.Error())
	}
	f.Add(exe)
	f.Add([]byte("#!/bin/sh\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			return
		}
		// No file causes a panic, and a library is only found in a file that names it.
		got, err := detectELF("program", x, func() ([]string, error) { return nil, nil })
		if err == nil && !bytes.Contains(data, []byte("libmpi")) {
			t.Errorf("%q for a file that names no MPI library", got)
		}
	})
}

func TestBuildErrors(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	ctx := context.Background()
	for _, c := range []struct {
		o    BuildOptions
		want string
	}{
		{BuildOptions{Library: "lam"}, `unknown MPI library "lam"`},
		{BuildOptions{Library: OpenMPI}, "apt-get install libopenmpi-dev"},
		{BuildOptions{Library: MPICH}, "apt-get install libmpich-dev"},
		{BuildOptions{Library: MPICH, Mpicc: filepath.Join(dir, "nothing")}, "nothing"},
	} {
		c.o.Cache = dir
		if _, err := Build(ctx, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want an error with %q", c.o, err, c.want)
		}
	}
}

// TestBuildTargets checks that Build rejects a wrapper of another library, and that a second build comes from the
// cache.
func TestBuildTargets(t *testing.T) {
	for _, library := range libraries {
		testenv.MPI(t, library)
	}
	_, err := Build(context.Background(), BuildOptions{Library: OpenMPI, Mpicc: "mpicc.mpich", Cache: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "is not a compiler of Open MPI") {
		t.Errorf("MPICH's wrapper for Open MPI: %v", err)
	}
	path := shimFor(t, OpenMPI)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Build(context.Background(), BuildOptions{Library: OpenMPI, Cache: built.cache})
	if err != nil || again != path {
		t.Fatalf("second build: %q, %v, want %q", again, err, path)
	}
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the shim was built anew (%v)", err)
	}
	if bad, err := needsMPI(path); bad || err != nil {
		t.Errorf("the shim asks for an MPI library (%v)", err)
	}
}

// TestGenerated checks that the generated sources are up to date.
func TestGenerated(t *testing.T) {
	testenv.Need(t, "go")
	dir := filepath.Join(t.TempDir(), "capture", "shim")
	if err := os.MkdirAll(filepath.Join(dir, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	schema := filepath.Join(dir, "..", "..", "schema")
	if err := os.MkdirAll(schema, 0o755); err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile("../../schema/calls.csv")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(schema, "calls.csv"), calls, 0o644); err != nil {
		t.Fatal(err)
	}
	if o := run(t, nil, "go", "run", "./internal/gen", dir); o.status != 0 {
		t.Fatal(o.stderr)
	}
	for _, name := range []string{"fns_gen.h", "wrap_gen.c"} {
		want, err := os.ReadFile(filepath.Join(dir, "src", name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join("src", name)); err != nil || string(got) != string(want) {
			t.Errorf("src/%s is not what the generator makes; run go generate ./capture/shim (%v)", name, err)
		}
	}
}
