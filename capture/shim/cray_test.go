package shim

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// renamed writes a copy of a shared library with another soname, which may be longer, and other names of libraries that
// it needs. The new names take the places of functions whose names contain unused, which nobody may call.
func renamed(t *testing.T, from, folder, soname, unused string, needs map[string]string) (path string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	x, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	names, dynamic := x.Section(".dynstr"), x.Section(".dynamic")
	text := data[names.Offset : names.Offset+names.Size]
	put := func(name string) uint64 {
		symbols, err := x.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range symbols {
			at := bytes.Index(text, []byte("\x00"+s.Name+"\x00"))
			if at >= 0 && strings.Contains(s.Name, unused) && len(s.Name) > len(name) {
				copy(text[at+1:], name+"\x00")
				return uint64(at + 1)
			}
		}
		t.Fatalf("%s has no room for %s", from, name)
		return 0
	}
	for at := dynamic.Offset; at < dynamic.Offset+dynamic.Size; at += 16 {
		value := data[at+8 : at+16]
		old, _, _ := strings.Cut(string(text[min(uint64(len(text)), binary.LittleEndian.Uint64(value)):]), "\x00")
		switch tag := elf.DynTag(binary.LittleEndian.Uint64(data[at:])); {
		case tag == elf.DT_SONAME:
			binary.LittleEndian.PutUint64(value, put(soname))
		case tag == elf.DT_NEEDED && needs[old] != "":
			binary.LittleEndian.PutUint64(value, put(needs[old]))
		}
	}
	path = filepath.Join(folder, soname)
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// crayLibraries makes libraries of MPICH for C and Fortran that have the names of Cray MPICH's for a compiler.
func crayLibraries(t *testing.T, compiler string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	c := libraryPath(t, MPICH)
	fortran := filepath.Join(filepath.Dir(c), "libmpichfort.so.12")
	soname := "libmpi_" + compiler + ".so.12"
	renamed(t, c, folder, soname, "MPI_T_category_get", nil)
	renamed(t, fortran, folder, "libmpifort_"+compiler+".so.12", "mpi_file_", map[string]string{"libmpich.so.12": soname})
	return folder
}

// mpichInclude is the compiler's flag with the folder of MPICH's mpi.h.
func mpichInclude(t *testing.T) string {
	t.Helper()
	for _, f := range strings.Fields(run(t, nil, "mpicc.mpich", "-show").stdout) {
		if strings.HasPrefix(f, "-I") {
			return f
		}
	}
	t.Fatal("mpicc.mpich -show names no folder")
	return ""
}

// Programs linked to libraries with the names of Cray MPICH, made of Debian's MPICH, are recorded as others are.
func TestNamesOfCrayMPICH(t *testing.T) {
	testenv.Need(t, "gcc", "gfortran")
	want, err := os.ReadFile(filepath.Join(programs, "p2p.want"))
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"-w", "-fallow-argument-mismatch", "-DMPIFH", mpichInclude(t)}
	for _, compiler := range []string{"cray", "gnu_123"} {
		folder := crayLibraries(t, compiler)
		c, fortran := folder+"/libmpi_"+compiler+".so.12", folder+"/libmpifort_"+compiler+".so.12"
		link := append(flags, "-Wl,--no-as-needed", "-Wl,-rpath,"+folder, "-Wl,--allow-shlib-undefined", "-Wl,-rpath-link,"+folder)
		for language, exe := range map[string]string{
			"C":       compile(t, "gcc", filepath.Join(programs, "p2p.c"), append(link, c)...),
			"Fortran": compile(t, "gfortran", filepath.Join(programs, "p2p.F90"), append(link, fortran, c)...),
		} {
			t.Run(compiler+"/"+language, func(t *testing.T) {
				if library, err := Detect(exe); library != MPICH || err != nil {
					t.Errorf("detected %q, %v", library, err)
				}
				if major, file := majorOf(MPICH, exe); major != 4 || file != c {
					t.Errorf("version %d of %s, want 4 of %s", major, file, c)
				}
				checkProgram(t, MPICH, shimFor(t, MPICH), exe, "mmap", launchBare(t, MPICH, 3, exe), wanted(string(want), 3), 3)
			})
		}
	}
}

// A library of Cray MPICH that one module has loaded for itself, as Python does, is found there.
func TestCrayMPICHLoadedByAModule(t *testing.T) {
	folder := crayLibraries(t, "nvidia")
	library := folder + "/libmpi_nvidia.so.12"
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	module := write("module.c", `#include <mpi.h>
int start(void) { return MPI_Init(0, 0) || MPI_Barrier(MPI_COMM_WORLD) || MPI_Finalize(); }
`)
	main := write("main.c", `#include <dlfcn.h>
int main(int argc, char **argv)
{
	void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	int (*start)(void) = module ? (int (*)(void))dlsym(module, "start") : 0;
	return argc == 2 && start ? start() : 3;
}
`)
	so := compile(t, "gcc", module, mpichInclude(t), "-shared", "-fPIC", "-Wl,--no-as-needed", library, "-Wl,-rpath,"+folder, "-Wl,--allow-shlib-undefined")
	exe := compile(t, "gcc", main)
	spool := filepath.Join(t.TempDir(), "spool")
	got := run(t, []string{"LD_PRELOAD=" + shimFor(t, MPICH), "COMMQ_SPOOL=" + spool}, exe, so) // a rank alone
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	if text := text(dumpFolder(t, spool)); strings.Count(text, "MPI_Barrier") != 1 {
		t.Errorf("recorded\n%s", text)
	}
}
