package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/commq/commq/capture/shim/abi"
	"github.com/commq/commq/internal/testenv"
)

// bringing lets commq bring a library for each ABI, as a release does: one with wrappers of some functions, and the
// ABI's name at its end.
func bringing(t *testing.T) {
	t.Helper()
	t.Setenv("COMMQ_CACHE", t.TempDir())
	key, err := sourceKey()
	if err != nil {
		t.Fatal(err)
	}
	_, library := loading(t, "libcommq.so", "MPI_Init", "MPI_Session_init")
	data, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, a := range abi.All {
		files[prebuiltFolder+"/"+a.Name+"-"+key+".so"] = &fstest.MapFile{Data: append(slices.Clone(data), " "+a.Name...)}
	}
	before := prebuilt
	prebuilt = files
	t.Cleanup(func() { prebuilt = before })
}

// checkBrought checks that a file is the library that commq brings for an ABI.
func checkBrought(t *testing.T, path, abi string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(data), " "+abi) {
		t.Errorf("%s is not the library that commq brings for %s (%v)", path, abi, err)
	}
}

// wrapper writes a compiler wrapper of a version of Open MPI that compiles nothing but its mpi.h: its library is an
// empty file.
func wrapper(t *testing.T, path string, major int) {
	t.Helper()
	text := fmt.Sprintf(`#!/bin/sh
case "$1" in
--version) echo gcc 12; exit;;
--showme:version) echo "mpicc: Open MPI %[1]d.0.1"; exit;;
-E) printf '#define OPEN_MPI 1\n#define OMPI_MAJOR_VERSION %[1]d\n#define OMPI_MINOR_VERSION 0\n#define OMPI_RELEASE_VERSION 1\n'; exit;;
esac
exit 1
`, major)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// loading makes a program that loads an MPI library with some functions.
func loading(t *testing.T, soname string, functions ...string) (program, library string) {
	t.Helper()
	folder := t.TempDir()
	text := ""
	for _, f := range functions {
		text += "int " + f + "(void) { return 0; }\n"
	}
	main := "int MPI_Init(void); int main(void) { return MPI_Init(); }\n"
	for name, text := range map[string]string{"lib.c": text, "main.c": main} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, library = filepath.Join(folder, "main"), filepath.Join(folder, soname)
	for _, args := range [][]string{
		{"gcc", "-shared", "-fPIC", "-Wl,-soname," + soname, "-o", library, filepath.Join(folder, "lib.c")},
		{"gcc", "-o", program, filepath.Join(folder, "main.c"), library, "-Wl,-rpath," + folder},
	} {
		if o := run(t, nil, args...); o.status != 0 {
			t.Fatalf("%v: %s", args, o.stderr)
		}
	}
	return program, library
}

// A compiler that fails does not end a capture for which commq brings a library. One line says so and where the
// compiler's messages are.
func TestBroughtWhereCompilingFails(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "mpicc")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho 'mpi.h: No such file' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ mpicc, why, log string }{
		"error": {badCompiler(t, "echo 'spool.c:7: error: odd'; exit 1"),
			"failed (exit status 1) on the capture library for Open MPI 4.1.4", "spool.c:7: error: odd"},
		"killed": {badCompiler(t, "echo working; kill -9 $$"), "was stopped by a signal (killed) while it worked on " +
			"the capture library for Open MPI 4.1.4", "working"},
		"no mpi.h": {broken, "cannot compile a file with mpi.h: exit status 1", "mpi.h: No such file"},
	} {
		t.Run(name, func(t *testing.T) {
			cache, notes := t.TempDir(), []string{}
			t.Setenv("PATH", "/bin:/usr/bin")
			o := BuildOptions{Library: OpenMPI, Mpicc: c.mpicc, Cache: cache, Program: "./script",
				Note: func(text string) { notes = append(notes, text) }}
			if _, err := Build(t.Context(), o); err == nil || len(notes) > 0 {
				t.Fatalf("error %v, notes %q of a commq that brings nothing", err, notes)
			}
			bringing(t)
			path, err := Build(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			checkBrought(t, path, "openmpi-4")
			log := filepath.Join(cache, "shim", "compiler-openmpi.log")
			want := c.mpicc + " " + c.why + " (" + log + "); taking the capture library that commq brings for Open MPI 4"
			if len(notes) != 1 || notes[0] != want {
				t.Errorf("notes\n%q\nwant\n%q", notes, want)
			}
			if text, err := os.ReadFile(log); string(text) != c.log+"\n" {
				t.Errorf("the log has %q, %v; want %q", text, err, c.log)
			}
			o.Form = Simulated
			if _, err := Build(t.Context(), o); err == nil {
				t.Error("a library with simulator ranks, which no release brings")
			}
		})
	}
}

// A power failure may leave a file of the cache empty or changed: it is written again.
func TestDamagedLibraryIsReplaced(t *testing.T) {
	bringing(t)
	o := BuildOptions{Library: OpenMPI, Mpicc: NoMpicc, Cache: t.TempDir(), Program: "./script"}
	for _, damage := range []string{"", "\x7fELF", "xxxxx"} {
		path, err := Build(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(damage), 0o755); err != nil {
			t.Fatal(err)
		}
		again, err := Build(t.Context(), o)
		if err != nil || again != path {
			t.Fatal(again, err)
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), " openmpi-") {
			t.Errorf("%q: %d bytes, %v", damage, len(data), err)
		}
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "shim", "x", "libcommq.so")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o700)); err != nil {
		t.Fatal(err)
	}
	if there, err := cached(filepath.Dir(file), file); there || err != nil {
		t.Errorf("an empty one that was compiled: %v, %v", there, err)
	}
}

func TestCancelledCompileBringsNothing(t *testing.T) {
	bringing(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	mpicc := badCompiler(t, "exec sleep 600")
	_, err := Build(ctx, BuildOptions{Library: OpenMPI, Mpicc: mpicc, Cache: t.TempDir(),
		Compiling: func(string) { cancel(errors.New("interrupted")) }})
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("error %v", err)
	}
}

// A wrapper that is killed because the capture was cancelled is not one that does not work.
func TestCancelledWrapperBringsNothing(t *testing.T) {
	bringing(t)
	mpicc := filepath.Join(t.TempDir(), "mpicc")
	if err := os.WriteFile(mpicc, []byte("#!/bin/sh\nexec sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { cancel(errors.New("interrupted")) })
	path, err := Build(ctx, BuildOptions{Library: OpenMPI, Mpicc: mpicc, Cache: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%q, error %v", path, err)
	}
}

// A wrapper in $PATH that fails in any way does not end a capture for which commq brings a library; a script that the
// user starts the program with is not run to ask its version.
func TestBrokenWrapperInPath(t *testing.T) {
	bringing(t)
	folder := t.TempDir()
	ran := filepath.Join(folder, "ran")
	for name, text := range map[string]string{"mpicc.openmpi": "echo no licence >&2; exit 3", "mpicc": "exit 1",
		"launch": "touch " + ran, "mpirun.openmpi": "echo 'mpirun.openmpi (OpenRTE) 4.1.4'",
		"mpirun": "echo 'mpirun (Open MPI) 5.0.7'"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":/usr/bin:/bin")
	c, err := Choose(t.Context(), BuildOptions{Library: OpenMPI, Program: "./script", Launcher: filepath.Join(folder, "launch")})
	if err != nil || c.Target != nil || c.ABI.Name != "openmpi-4" || !strings.Contains(c.Note, "exit status 3") ||
		strings.Contains(c.Note, "\n") {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the launcher was run")
	}
}

// The program's own MPI library decides, not the compiler wrapper in $PATH, nor its launcher.
func TestTheProgramTellsTheABI(t *testing.T) {
	testenv.Need(t, "gcc", "ldd")
	four, lib4 := loading(t, "libmpi.so.40", "MPI_Init")
	five, lib5 := loading(t, "libmpi.so.40", "MPI_Init", "MPI_Session_init")
	mpich3, _ := loading(t, "libmpi_cray.so.12", "MPI_Init")
	folder := t.TempDir()
	t.Setenv("PATH", folder+":/usr/bin:/bin")
	wrapper4 := filepath.Join(folder, "mpicc.openmpi")
	wrapper5 := filepath.Join(folder, "mpicc")
	wrapper(t, wrapper4, 4)
	mpirun5 := filepath.Join(t.TempDir(), "mpirun")
	if err := os.WriteFile(mpirun5, []byte("#!/bin/sh\necho 'mpirun (Open MPI) 5.0.7'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	check := func(name string, o BuildOptions, target, abi, note, fails string) {
		t.Helper()
		o.Library = map[bool]string{true: OpenMPI, false: MPICH}[o.Library == ""]
		c, err := Choose(t.Context(), o)
		if fails != "" {
			if err == nil || err.Error() != fails {
				t.Errorf("%s: error\n%v\nwant\n%s", name, err, fails)
			}
			return
		}
		got := ""
		if c.Target != nil {
			got = c.Target.Mpicc
		}
		if err != nil || got != target || c.ABI.Name != abi || c.Note != note {
			t.Errorf("%s: wrapper %q, %+v, note\n%q, %v; want %q, %s, note\n%q", name, got, c.ABI, c.Note, err, target, abi,
				note)
		}
	}
	differ := wrapper4 + " is of Open MPI 4.0.1, but the program loads " + lib5 + " of Open MPI 5"
	check("same", BuildOptions{Program: four}, wrapper4, "openmpi-4", "", "")
	check("newer program, nothing brought", BuildOptions{Program: five}, wrapper4, "openmpi-5",
		differ+", so calls that only the latter has are not recorded; --mpicc names another wrapper", "")
	check("named", BuildOptions{Program: five, Mpicc: wrapper4}, wrapper4, "openmpi-5", "", "")
	bringing(t)
	check("brought for the same", BuildOptions{Program: four}, "", "openmpi-4", "", "")
	check("brought for a newer program", BuildOptions{Program: five}, "", "openmpi-5", "", "")
	check("named, though one is brought", BuildOptions{Program: four, Mpicc: wrapper4}, wrapper4, "openmpi-4", "", "")
	check("a form that is not brought", BuildOptions{Program: four, Form: Simulated}, wrapper4, "openmpi-4", "", "")
	check("a script, whatever its launcher is", BuildOptions{Program: "./script", Launcher: mpirun5}, "", "openmpi-4", "", "")
	check("the program before the launcher", BuildOptions{Program: four, Launcher: mpirun5}, "", "openmpi-4", "", "")
	check("older MPICH of Cray", BuildOptions{Library: MPICH, Program: mpich3, Mpicc: NoMpicc}, "", "mpich-3", "", "")
	wrapper(t, wrapper4, 5)
	check("brought for an older program", BuildOptions{Program: four}, "", "openmpi-4", "", "")
	prebuilt = released
	wrapper(t, wrapper4, 4)
	wrapper(t, wrapper5, 5)
	check("the wrapper that fits", BuildOptions{Program: five}, wrapper5, "openmpi-5", "", "")
	wrapper(t, wrapper4, 5)
	differ = wrapper4 + " is of Open MPI 5.0.1, but the program loads " + lib4 + " of Open MPI 4"
	check("older program, nothing brought", BuildOptions{Program: four}, "", "", "", "build the shim: "+differ+
		": it would end the program; name the wrapper of its MPI library with --mpicc, or take a release of commq, which "+
		"brings that library")
	if err := os.WriteFile(wrapper4, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	wrapper(t, wrapper5, 4)
	check("the first wrapper is broken, nothing brought", BuildOptions{Program: five}, wrapper5, "openmpi-5", wrapper5+
		" is of Open MPI 4.0.1, but the program loads "+lib5+" of Open MPI 5, so calls that only the latter has are not "+
		"recorded; --mpicc names another wrapper", "")
}

// A program for the ABI of MPI 5 gets a library for that alone.
func TestProgramForTheABIOfMPI5(t *testing.T) {
	testenv.Need(t, "gcc", "ldd")
	program, library := loading(t, "libmpi_abi.so.1", "MPI_Init", "MPI_Type_size_c")
	ordinary, _ := loading(t, "libmpi.so.12", "MPI_Init", "MPI_Type_size_c")
	if got, err := Detect(program); got != MPICH || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	folder := t.TempDir()
	t.Setenv("PATH", folder+":/usr/bin:/bin")
	own, standard := filepath.Join(folder, "mpicc.mpich"), filepath.Join(folder, standardMpicc)
	for path, macros := range map[string]string{own: `MPICH_VERSION "4.0.2"`,
		standard: `MPI_ABI_VERSION 1\n#define MPI_ABI_SUBVERSION 0`} {
		text := "#!/bin/sh\ncase $1 in --version) echo gcc 12; exit;; -E) printf '#define " + macros + "\\n'; exit;; esac\nexit 1\n"
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	choose := func(name string, o BuildOptions, target, abi, fails string) {
		t.Helper()
		o.Library, o.Cache = MPICH, t.TempDir()
		c, err := Choose(t.Context(), o)
		if fails != "" {
			if err == nil || !strings.Contains(err.Error(), fails) {
				t.Errorf("%s: error %v, want one with %q", name, err, fails)
			}
			return
		}
		if err != nil || c.ABI.Name != abi || c.Note != "" || (c.Target == nil) != (target == "") ||
			target != "" && (c.Target.Mpicc != target || c.Target.abi().Name != abi) {
			t.Errorf("%s: %+v, %v; want %q, %s", name, c, err, target, abi)
		}
	}
	choose("mpicc_abi is found", BuildOptions{Program: program}, standard, "mpiabi-1", "")
	choose("another wrapper is named", BuildOptions{Program: program, Mpicc: own}, "", "",
		own+" is of the ABI of MPICH 4, but the program needs the ABI of MPI 5; name its own wrapper")
	choose("mpicc_abi for another program", BuildOptions{Program: ordinary, Mpicc: standard}, "", "",
		standard+" is of the ABI of MPI 5, but the program needs the ABI of MPICH 4")
	choose("simulator ranks", BuildOptions{Program: program, Mpicc: standard, Form: Simulated}, "", "",
		"simulator ranks are not made for the ABI of MPI 5")
	if err := os.Remove(standard); err != nil {
		t.Fatal(err)
	}
	choose("no mpicc_abi", BuildOptions{Program: program}, "", "", own+" is of MPICH 4.0.2, but the program loads "+library+
		" of the ABI of MPI 5: it would end the program")
	bringing(t)
	choose("brought", BuildOptions{Program: program}, "", "mpiabi-1", "")
}

// A script does not tell the ABI of the program that it starts: the launcher does, before a wrapper of another version.
func TestLauncherOfAScriptTellsTheABI(t *testing.T) {
	testenv.Need(t, "gcc")
	folder := t.TempDir()
	t.Setenv("PATH", folder+":/usr/bin:/bin")
	mpirun := launcher(t, folder, "5.0.7")
	four, five := filepath.Join(folder, "mpicc.openmpi"), filepath.Join(folder, "mpicc")
	wrapper(t, four, 4)
	check := func(name, target, beside, abi, note string) {
		t.Helper()
		c, err := Choose(t.Context(), BuildOptions{Library: OpenMPI, Program: "./script"})
		if err != nil || path(c.Target) != target || path(c.Wrapper) != beside || c.ABI.Name != abi || c.Note != note {
			t.Errorf("%s: %+v, %v; want wrapper %q, or %q not used, of %s, note\n%q", name, c, err, target, beside, abi, note)
		}
	}
	check("nothing brought", four, "", "openmpi-4", "")
	bringing(t)
	check("wrapper of another version", "", four, "openmpi-5", four+" is of Open MPI 4.0.1, but mpirun.openmpi of Open MPI 5; "+
		"taking the capture library that commq brings for Open MPI 5")
	wrapper(t, five, 5)
	check("one of the same version too", "", five, "openmpi-5", "")
	rewrite(t, mpirun, "5.0.7", "4.1.4")
	check("the first is of the same version", "", four, "openmpi-4", "")
}

// launcher writes a launcher of a version of Open MPI that does nothing but print it.
func launcher(t *testing.T, folder, version string) (path string) {
	t.Helper()
	path = filepath.Join(folder, "mpirun.openmpi")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho 'mpirun (Open MPI) "+version+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// path is the compiler wrapper of a target; empty if that is nil.
func path(t *Target) string {
	if t == nil {
		return ""
	}
	return t.Mpicc
}

// What the brought library does not record of the program's MPI library is compiled, or told.
func TestBroughtLibraryThatRecordsLess(t *testing.T) {
	testenv.Need(t, "gcc", "ldd")
	bringing(t)
	folder := t.TempDir()
	t.Setenv("PATH", folder+":/usr/bin:/bin")
	four := filepath.Join(folder, "mpicc.openmpi")
	mpicc := filepath.Join(folder, "mpicc")
	program, library := loading(t, "libmpi.so.40", "MPI_Init", "MPI_Session_init", "MPI_Abi_version", "MPI_Send_c",
		"MPI_Recv_c")
	less := "the capture library that commq brings for Open MPI 5"
	names := " does not record MPI_Recv_c and 1 other function of " + library
	advice := "; --mpicc names a compiler wrapper, which compiles one that does"
	choose := func(name string, o BuildOptions, target, note string) {
		t.Helper()
		o.Library, o.Cache = OpenMPI, t.TempDir()
		c, err := Choose(t.Context(), o)
		got := ""
		if c.Target != nil {
			got = c.Target.Mpicc
		}
		if err != nil || got != target || c.Note != note || c.ABI.Name != "openmpi-5" {
			t.Errorf("%s: %q, %+v, %v; want %q, note\n%s", name, got, c, err, target, note)
		}
	}
	wrapper(t, mpicc, 5)
	choose("a wrapper that fits", BuildOptions{Program: program}, mpicc, "")
	choose("--mpicc none", BuildOptions{Program: program, Mpicc: NoMpicc}, "", less+names+advice)
	broken := filepath.Join(t.TempDir(), "mpicc")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	choose("a named wrapper that is broken", BuildOptions{Program: program, Mpicc: broken}, "", broken+
		" cannot compile a file with mpi.h: exit status 1; taking "+less+", which"+names)
	wrapper(t, four, 4)
	if err := os.Remove(mpicc); err != nil {
		t.Fatal(err)
	}
	choose("a wrapper that does not fit", BuildOptions{Program: program}, "", four+" is of Open MPI 4.0.1, but the program loads "+
		library+" of Open MPI 5; taking "+less+", which"+names)
	var notes []string
	wrapper(t, four, 5)
	path, err := Build(t.Context(), BuildOptions{Library: OpenMPI, Program: program, Cache: t.TempDir(),
		Note: func(text string) { notes = append(notes, text) }})
	if err != nil || len(notes) != 1 || !strings.HasSuffix(notes[0], "; taking "+less+", which"+names) {
		t.Errorf("%v, notes %q", err, notes)
	}
	checkBrought(t, path, "openmpi-5")
	rewrite(t, four, "-E) ", "-E) echo '#define MPI_VERSION 4'; ")
	launcher(t, folder, "5.0.7")
	choose("a script, with mpi.h of MPI 4", BuildOptions{Program: "./script"}, four, "")
	rewrite(t, four, "MPI_VERSION 4", "MPI_VERSION 3")
	choose("a script, with mpi.h of MPI 3", BuildOptions{Program: "./script"}, "", "")
}

// rewrite replaces a text in a file.
func rewrite(t *testing.T, path, old, new string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q, %v", path, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A brought library that the dynamic linker refuses is not taken where one can be compiled.
func TestBroughtLibraryThatDoesNotLoad(t *testing.T) {
	testenv.Need(t, "gcc", "ldd")
	bringing(t)
	for name := range prebuilt.(fstest.MapFS) {
		data := prebuilt.(fstest.MapFS)[name].Data
		data[18], data[19] = 0xf3, 0 // the machine of an ELF file: RISC-V
	}
	folder := t.TempDir()
	t.Setenv("PATH", folder+":/usr/bin:/bin")
	mpicc := filepath.Join(folder, "mpicc.openmpi")
	wrapper(t, mpicc, 4)
	program, _ := loading(t, "libmpi.so.40", "MPI_Init")
	for _, p := range []string{program, "./script"} {
		c, err := Choose(t.Context(), BuildOptions{Library: OpenMPI, Program: p, Cache: t.TempDir()})
		if err != nil || c.Target == nil || c.Target.Mpicc != mpicc || c.Note != "" {
			t.Errorf("%s: %+v, %v", p, c, err)
		}
	}
	refused := "nothing will be recorded: the capture library that commq brings for Open MPI 4 cannot be preloaded (ERROR: ld.so"
	for _, named := range []string{NoMpicc, badCompiler(t, "exit 1")} {
		var notes []string
		_, err := Build(t.Context(), BuildOptions{Library: OpenMPI, Program: program, Mpicc: named, Cache: t.TempDir(),
			Note: func(text string) { notes = append(notes, text) }})
		if err != nil || len(notes) == 0 || !strings.HasPrefix(notes[len(notes)-1], refused) {
			t.Errorf("%s: notes %q, %v", named, notes, err)
		}
	}
}

// What the dynamic linker says of other libraries is not a failure of this one.
func TestPreloadFailsForThisLibraryAlone(t *testing.T) {
	testenv.Need(t, "gcc")
	_, library := loading(t, "libcommq.so", "MPI_Init")
	t.Setenv("LD_DEBUG", "files")
	if text := PreloadFails(t.Context(), library); text != "" {
		t.Errorf("%q with LD_DEBUG set", text)
	}
	t.Setenv("PATH", t.TempDir())
	if text := PreloadFails(t.Context(), library); text != "" {
		t.Errorf("%q without true in $PATH", text)
	}
	if text := PreloadFails(t.Context(), library+"x"); !strings.Contains(text, library+"x") {
		t.Errorf("%q of a library that is not there", text)
	}
}
