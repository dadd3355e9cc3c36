// Package packaging has what releases are made with (scripts/release), and the tests of a release.
package packaging

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/capture/shim/abi"
	"github.com/commq/commq/internal/about"
	"github.com/commq/commq/internal/testenv"
)

const scripts = "../scripts"

// The newest glibc that a release may need: of RHEL 8 and Debian 10.
const glibcMajor, glibcMinor = 2, 28

// provided are the shared libraries that a release may need: glibc's.
var provided = []string{"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libresolv.so.2",
	"ld-linux-x86-64.so.2"}

// release is a commq as scripts/release builds it.
type release struct {
	// folder has the files of the release, path is the program that its install.sh has installed.
	folder, path string
	// without is the environment of a machine without compilers.
	without []string
}

// TestRelease builds a release and uses it as its users do.
func TestRelease(t *testing.T) {
	testenv.OnAMD64(t, "what builds releases")
	testenv.Need(t, "g++", "mpicc.openmpi", "mpicc.mpich", "mpirun.openmpi", "mpirun.mpich")
	testenv.Venv(t, scripts, "zig.txt", "compiler of releases")
	versions := tried(t)
	r := build(t)

	t.Run("needs", func(t *testing.T) {
		r.needs(t)
		for _, lib := range r.shims(t) {
			checkNeeds(t, lib)
		}
	})
	t.Run("version", r.version)
	t.Run("files", r.files)
	t.Run("modules", r.modules)
	t.Run("objects", r.objects)
	for _, v := range versions {
		name := v.of.Library + " " + v.of.Version + " " + v.of.ABI
		for program, ranks := range map[string]string{"p2p": "3", "collectives -DF08": "3", "comms -DMPIFH": "5"} {
			if v.of.Compiled == abi.CI && (program == "p2p" || v.of.Requirements == "") {
				t.Run("equal/"+name+"/"+program, func(t *testing.T) { r.equal(t, v.mpicc, v.launcher, program, ranks) })
			}
		}
		if v.of.Family().Standard {
			for program, ranks := range map[string]string{"p2p": "3", "collectives": "3", "comms": "5"} {
				t.Run("equal/"+name+"/"+program, func(t *testing.T) { r.equalABI(t, v, program, ranks) })
			}
		}
		t.Run("at once/"+name, func(t *testing.T) { r.atOnce(t, v) })
	}
	t.Run("no compiler", func(t *testing.T) { r.withoutCompiler(t, versions[0]) })
	t.Run("compiler fails", r.compilerFails)
}

// installed is a version of an MPI library on this machine.
type installed struct {
	of              abi.Version
	mpicc, launcher string
}

// tried are the versions with which releases are tested: Debian's, and those of PyPI in environments of their own.
func tried(t *testing.T) (list []installed) {
	t.Helper()
	for _, v := range abi.Versions {
		if v.Brought != abi.CI {
			continue
		}
		here := installed{v, "mpicc." + v.Family().Library, "mpirun." + v.Family().Library}
		if v.Requirements != "" {
			folder := testenv.Venv(t, scripts, v.Requirements, v.Library+" "+v.Version) + "/bin/"
			here.mpicc, here.launcher = folder+"mpicc", folder+"mpirun"
			if v.Family().Standard {
				here.mpicc += "_abi"
			}
		}
		if v.Family().Library == abi.OpenMPI {
			here.launcher += " --oversubscribe"
		}
		list = append(list, here)
	}
	return list
}

func build(t *testing.T) *release {
	t.Helper()
	testenv.Venv(t, scripts, "nfpm.txt", "maker of packages")
	r := &release{folder: t.TempDir()}
	cmd := exec.Command(filepath.Join(scripts, "release"), "archive", "amd64", r.folder)
	cmd.Env = append(os.Environ(), "COMMQ_COMPRESS=little")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("scripts/release: %v\n%s", err, out)
	}
	home := t.TempDir()
	if out := install(home, "--from", r.folder); !strings.Contains(out, about.Version()) || !strings.Contains(out, " is in "+home) {
		t.Fatalf("install.sh: %s", out)
	}
	r.path = filepath.Join(home, ".local/bin/commq")
	cache, remove, err := testenv.Cache()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	t.Setenv("COMMQ_CACHE", cache)
	t.Setenv("LD_PRELOAD", testenv.Yielding(t))
	for _, name := range []string{"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"} {
		t.Setenv(name, "1")
	}
	r.without = []string{"PATH=" + withoutCompilers(t)}
	return r
}

var compilers = regexp.MustCompile(`^(mpi(cc|cxx|CC|c\+\+|f)|(.*-)?(g?cc|[cg]\+\+|clang)(-[0-9.]+)?$|c[89]9)`)

// withoutCompilers makes a folder with the commands of this machine without compilers.
func withoutCompilers(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/sbin", "/sbin"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if compilers.MatchString(e.Name()) {
				continue
			}
			err := os.Symlink(filepath.Join(dir, e.Name()), filepath.Join(folder, e.Name()))
			if err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// commq runs the release and returns what it prints.
func (r *release) commq(t *testing.T, environ []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), r.path, args...)
	cmd.Env = append(os.Environ(), environ...)
	out, err := cmd.Output()
	if err != nil {
		var said []byte
		if exit, ok := err.(*exec.ExitError); ok {
			said = exit.Stderr
		}
		t.Fatalf("commq %q: %v\n%s%s", args, err, out, said)
	}
	return string(out)
}

// needs checks what the program needs of a machine, and that it is stripped.
func (r *release) needs(t *testing.T) {
	t.Helper()
	checkNeeds(t, r.path)
	x, err := elf.Open(r.path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for _, s := range x.Sections {
		if s.Name == ".symtab" || strings.HasPrefix(s.Name, ".debug") {
			t.Errorf("it has a section %s of %d bytes; want it stripped", s.Name, s.Size)
		}
	}
}

// checkNeeds checks that a program or library needs nothing but glibc, and no newer one than promised.
func checkNeeds(t *testing.T, path string) {
	t.Helper()
	x, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	libs, err := x.ImportedLibraries()
	if err != nil || len(libs) == 0 {
		t.Fatalf("%s: libraries %q, %v", path, libs, err)
	}
	for _, lib := range libs {
		if !slices.Contains(provided, lib) {
			t.Errorf("%s needs %s", path, lib)
		}
	}
	symbols, err := x.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if newerGlibc(t, s.Version) {
			t.Errorf("%s needs %s of %s; want %d.%d or older", path, s.Name, s.Version, glibcMajor, glibcMinor)
		}
	}
}

func newerGlibc(t *testing.T, version string) bool {
	t.Helper()
	text, ok := strings.CutPrefix(version, "GLIBC_")
	if !ok {
		return false
	}
	numbers := strings.Split(text, ".")
	major, err := strconv.Atoi(numbers[0])
	if err != nil || len(numbers) < 2 {
		t.Fatalf("a symbol of version %q", version)
	}
	minor, err := strconv.Atoi(numbers[1])
	if err != nil {
		t.Fatalf("a symbol of version %q", version)
	}
	return major > glibcMajor || major == glibcMajor && minor > glibcMinor
}

// shims are the capture libraries that the release brings.
func (r *release) shims(t *testing.T) (paths []string) {
	t.Helper()
	for _, library := range []string{"openmpi", "mpich"} {
		out := r.commq(t, nil, "capture", "build", "--mpi", library, "--mpicc", "none")
		paths = append(paths, strings.TrimSpace(out))
	}
	return paths
}

func (r *release) version(t *testing.T) {
	commit, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := r.commq(t, nil, "--version", "--verbose")
	for _, want := range []string{", commit " + strings.TrimSpace(string(commit)),
		"capture libraries for Open MPI 4, Open MPI 5, the ABI of MPICH 3, the ABI of MPICH 4, " +
			"the ABI of MPI 5\n", "this commq needs 2."} {
		if !strings.Contains(text, want) {
			t.Errorf("--version --verbose does not say %q:\n%s", want, text)
		}
	}
}

// files checks the checksums of the release's files, and that the packages have those of the archive, all but the module.
func (r *release) files(t *testing.T) {
	testenv.Need(t, "dpkg-deb", "rpm", "rpm2cpio", "cpio")
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = r.folder
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 5 {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
	deb, rpm := r.file(t, "deb"), r.file(t, "rpm")
	installed := filepath.Dir(filepath.Dir(r.path))
	for _, unpack := range []string{`dpkg-deb --extract "$0" .`,
		`rpm2cpio "$0" | cpio --extract --make-directories --quiet`} {
		name := map[bool]string{true: deb, false: rpm}[strings.HasPrefix(unpack, "dpkg")]
		cmd := exec.Command("sh", "-c", unpack, name)
		cmd.Dir = t.TempDir()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", unpack, err, out)
		}
		diff := exec.Command("diff", "-r", "-x", "vendor-completions", "-x", "modulefiles", installed, filepath.Join(cmd.Dir, "usr"))
		if out, err := diff.CombinedOutput(); err != nil {
			t.Errorf("%s differs from the archive: %v\n%s", name, err, out)
		}
		if _, err := os.Stat(filepath.Join(cmd.Dir, "usr/share/modulefiles")); !os.IsNotExist(err) {
			t.Errorf("%s has a module, which puts /usr/bin before other modules (%v)", name, err)
		}
		if name == deb {
			debianZsh(t, cmd.Dir)
		}
	}
	list := files(t, installed)
	for _, want := range []string{"share/man/man1/commq-capture.1.gz", "share/bash-completion/completions/commq",
		"share/commq/shim/spool.h", "share/doc/commq/LICENSE", "share/modulefiles/commq/" + about.Version() + ".lua"} {
		if !slices.Contains(list, want) {
			t.Errorf("the release has no %s, but\n%s", want, strings.Join(list, "\n"))
		}
	}
	want := strings.Replace(about.Version(), "-", "~", 1) // as packages write what comes before a version
	for _, ask := range [][]string{{"dpkg-deb", "--field", deb, "Version"},
		{"rpm", "--dbpath", t.TempDir(), "--query", "--package", "--queryformat", "%{VERSION}", rpm}} {
		version, err := exec.Command(ask[0], ask[1:]...).Output()
		if err != nil || strings.TrimSpace(string(version)) != want {
			t.Errorf("%q: version %s, want %s, %v", ask, version, want, err)
		}
	}
	requires, err := exec.Command("rpm", "--dbpath", t.TempDir(), "--query", "--package", "--requires", rpm).Output()
	if err != nil || !strings.Contains(string(requires), "glibc >= 2.28\n") {
		t.Errorf("%s requires %s, %v", rpm, requires, err)
	}
}

// debianZsh checks that Debian's zsh finds the completion of an unpacked package: it looks in vendor-completions, but not
// in /usr/share/zsh/site-functions.
func debianZsh(t *testing.T, root string) {
	t.Helper()
	testenv.Need(t, "zsh")
	out, err := exec.Command("zsh", "-f", "-c", `fpath=("$0" $fpath); autoload -Uz compinit && compinit -D -u && print $_comps[commq]`,
		filepath.Join(root, "usr/share/zsh/vendor-completions")).CombinedOutput()
	if err != nil || string(out) != "_commq\n" {
		t.Errorf("zsh completes commq with %q, %v", out, err)
	}
}

// file is the release's only file for amd64 with an extension.
func (r *release) file(t *testing.T, extension string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.folder, "commq-*-linux-amd64."+extension))
	if err != nil || len(found) != 1 {
		t.Fatalf("files %q, %v", found, err)
	}
	return found[0]
}

// modules checks that the SBOM lists each Go module that is linked.
func (r *release) modules(t *testing.T) {
	text, err := os.ReadFile(r.file(t, "cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &bom); err != nil || bom.BOMFormat != "CycloneDX" {
		t.Fatalf("format %q, %v", bom.BOMFormat, err)
	}
	listed := map[string]bool{}
	for _, c := range bom.Components {
		listed[c.Name+"@"+c.Version] = strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@")
	}
	info, err := buildinfo.ReadFile(r.path)
	if err != nil || len(info.Deps) < 20 {
		t.Fatalf("modules %v, %v", info, err)
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if !listed[m.Path+"@"+m.Version] {
			t.Errorf("the SBOM does not list %s %s", m.Path, m.Version)
		}
	}
}

// objects loads DuckDB's extension, which was linked with another copy of the C++ library, and catches what it throws.
func (r *release) objects(t *testing.T) {
	s3 := testenv.StartObjectStorage(t)
	for name, value := range s3.Environment() {
		t.Setenv(name, value)
	}
	t.Setenv("COMMQ_DUCKDB_EXTENSIONS", testenv.DuckDBExtensions(t, scripts))
	there := "s3://jobs/release"
	r.commq(t, nil, "store", "push", there, "--store", "../testdata/runs", "uneven.4")
	local := r.commq(t, nil, "query", "density", "uneven.4", "--store", "../testdata/runs", "--exact")
	if got := r.commq(t, nil, "query", "density", "uneven.4", "--store", there, "--exact"); got != local {
		t.Errorf("in object storage:\n%s\nwant\n%s", got, local)
	}
	bad := exec.Command(r.path, "sql", "SELECT error('thrown') FROM messages", "--run", "uneven.4", "--store", there)
	if out, err := bad.CombinedOutput(); err == nil || !strings.Contains(string(out), "thrown") {
		t.Errorf("an error in SQL: %v\n%s", err, out)
	}
}

// messages has the hashes of payloads, rows the columns of events that two captures of a program agree in: all but
// times, addresses and counters.
const messages = "SELECT src, dst, tag, bytes, payload_hash, payload_sum, payload_head FROM messages ORDER BY ALL"
const rows = "SELECT * EXCLUDE (run, start_ns, end_ns, compute_ns, polls, poll_ns, send_buffer, recv_buffer, " +
	"instructions, cycles) FROM events ORDER BY rank, seq"

// equal captures a program with a compiled shim and with the one that the release brings, and compares the rows.
func (r *release) equal(t *testing.T, compiler, launcher, program, ranks string) {
	exe := compile(t, compiler, program)
	store := t.TempDir()
	var answers []string
	for name, mpicc := range map[string]string{"compiled": compiler, "brought": "none"} {
		r.commq(t, nil, "capture", "--store", store, "--name", name, "--mpicc", mpicc, "-n", ranks, "--launcher",
			launcher, "--", exe)
		answer := r.wrappers(t, mpicc, exe)
		for _, sql := range []string{rows, messages} {
			answer += r.commq(t, nil, "sql", "--store", store, "--run", name, "--format", "csv", sql)
		}
		answers = append(answers, answer)
	}
	if lines := strings.Count(answers[0], "\n"); lines < 20 {
		t.Fatalf("%d lines", lines)
	}
	if answers[0] != answers[1] { // the functions with wrappers, then the rows
		t.Errorf("by one library:\n%s\nby the other, compiled or brought by the release:\n%s", answers[0], answers[1])
	}
}

// equalABI captures a program that was compiled for the ABI of MPI 5 and one for the library's own, with what the
// release brings for each, and compares the rows, all but the numbers of call sites: they are in the order of
// addresses, and the code differs.
func (r *release) equalABI(t *testing.T, v installed, program, ranks string) {
	store := t.TempDir()
	var answers []string
	for _, compiler := range []string{strings.TrimSuffix(v.mpicc, "_abi"), v.mpicc} {
		name := filepath.Base(compiler)
		r.commq(t, nil, "capture", "--store", store, "--name", name, "-n", ranks, "--launcher", v.launcher, "--",
			compile(t, compiler, program))
		answer := ""
		for _, sql := range []string{strings.Replace(rows, "(run,", "(run, callsite,", 1), messages} {
			answer += r.commq(t, nil, "sql", "--store", store, "--run", name, "--format", "csv", sql)
		}
		answers = append(answers, answer)
	}
	if lines := strings.Count(answers[0], "\n"); lines < 20 || answers[0] != answers[1] {
		t.Errorf("%d lines by the library's own ABI:\n%s\nby that of MPI 5:\n%s", lines, answers[0], answers[1])
	}
}

// wrappers lists the functions that a capture library has wrappers for: what a library has none for is not recorded.
func (r *release) wrappers(t *testing.T, mpicc, exe string) string {
	t.Helper()
	x, err := elf.Open(strings.TrimSpace(r.commq(t, nil, "capture", "build", "--mpicc", mpicc, exe)))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	symbols, err := x.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	if !slices.Contains(names, "MPI_Send") {
		t.Fatalf("%d symbols, without MPI_Send", len(names))
	}
	return strings.Join(names, "\n")
}

// command is the path of a command of this machine.
func command(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// compile compiles one of the programs, in Fortran if a binding follows its name.
func compile(t *testing.T, mpicc, program string) string {
	t.Helper()
	name, binding, fortran := strings.Cut(program, " ")
	exe := filepath.Join(t.TempDir(), name)
	cmd := exec.Command(mpicc, "-g", "-O1", "-o", exe, "../testdata/programs/"+name+".c")
	if fortran {
		cmd = exec.Command(strings.Replace(mpicc, "mpicc.", "mpif90.", 1), "-g", "-O1", "-w", "-fallow-argument-mismatch", binding, "-o",
			exe, "../testdata/programs/"+name+".F90")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", mpicc, err, out)
	}
	return exe
}

// withoutCompiler captures a program where there is no compiler, with the shim for an ABI.
func (r *release) withoutCompiler(t *testing.T, v installed) {
	exe := compile(t, v.mpicc, "p2p")
	doctor := r.commq(t, r.without, "doctor", exe)
	if want := "captures take the library that commq brings for " + v.of.Family().Title + ", which loads"; !strings.Contains(
		strings.Join(strings.Fields(doctor), " "), want) {
		t.Errorf("doctor does not say %q:\n%s", want, doctor)
	}
	store := t.TempDir()
	r.commq(t, r.without, "capture", "--store", store, "--name", "p2p.3", "-n", "3", "--launcher", v.launcher, "--", exe)
	got := r.commq(t, r.without, "sql", "--store", store, "--run", "p2p.3", "--format", "csv",
		"SELECT count(*), sum(bytes) FROM messages")
	r.commq(t, nil, "runs", "check", "p2p.3", "--store", store)
	if want := "19,156"; !strings.Contains(got, want) { // as many as ../testdata/programs/p2p.want has
		t.Errorf("messages and bytes: %s, want %s", got, want)
	}
}

// atOnce captures a program where compilers would fail, its own as well as another version's: the release brings a
// library for the one that the program loads, so none is called. Doctor captures with it too.
func (r *release) atOnce(t *testing.T, v installed) {
	library := v.of.Family().Library
	called := filepath.Join(t.TempDir(), "called")
	environ := r.failing(t, library, "echo \"$0 $*\" >>"+called+"; exit 1")
	exe := compile(t, v.mpicc, "p2p")
	store := t.TempDir()
	cmd := exec.Command(r.path, "capture", "--store", store, "--name", "p2p.3", "-n", "3", "--launcher", v.launcher, "--", exe)
	cmd.Env = append(os.Environ(), environ...)
	out, err := cmd.CombinedOutput()
	// As many messages and bytes as ../testdata/programs/p2p.want has.
	if err != nil || !strings.Contains(string(out), "19 with 156 B") || strings.Contains(string(out), "taking the capture library") {
		t.Errorf("%v\n%s", err, out)
	}
	r.commq(t, nil, "runs", "check", "p2p.3", "--store", store)
	doctor := strings.Join(strings.Fields(r.commq(t, environ, "doctor", exe)), " ")
	if want := "captures take the library that commq brings for " + v.of.Family().Title; !strings.Contains(doctor, want) {
		t.Errorf("doctor does not say %q:\n%s", want, doctor)
	}
	if text, err := os.ReadFile(called); !os.IsNotExist(err) {
		t.Errorf("called (%v):\n%s", err, text)
	}
}

// failing is an environment whose compiler wrapper of an MPI library runs some lines of a shell; its cache is empty.
func (r *release) failing(t *testing.T, library, lines string) []string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"mpicc", "mpicc." + library} {
		write(t, filepath.Join(folder, name), "#!/bin/sh\n"+lines+"\n", 0o755)
	}
	return []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "COMMQ_CACHE=" + t.TempDir()}
}

// compilerFails captures with a compiler that the user names and that compiles programs, but nothing for a library: the
// release's own is taken. Without its name doctor captures with the release's own at once.
func (r *release) compilerFails(t *testing.T) {
	environ := r.failing(t, "openmpi", "case \"$*\" in *-fPIC*) echo no room >&2; exit 1; esac\n"+
		"exec "+command(t, "mpicc.openmpi")+" \"$@\"")
	mpicc := filepath.Join(strings.TrimPrefix(strings.Split(environ[0], ":")[0], "PATH="), "mpicc.openmpi")
	cmd := exec.Command(r.path, "capture", "--store", t.TempDir(), "--name", "p2p.3", "-n", "3", "--mpicc", mpicc, "--launcher",
		"mpirun.openmpi --oversubscribe", "--", compile(t, "mpicc.openmpi", "p2p"))
	cmd.Env = append(os.Environ(), environ...)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"mpicc.openmpi failed (exit status 1) on the capture library for Open MPI ",
		"; taking the capture library that commq brings for Open MPI 4\n", "19 with 156 B"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v; want %q:\n%s", err, want, out)
		}
	}
	doctor := strings.Join(strings.Fields(r.commq(t, environ, "doctor", "--mpi", "openmpi")), " ")
	for _, want := range []string{"captures take the library that commq brings for Open MPI 4, which loads",
		"openmpi compiler " + mpicc + ", version 4.", "a program of 2 ranks was recorded correctly"} {
		if !strings.Contains(doctor, want) {
			t.Errorf("doctor does not say %q:\n%s", want, doctor)
		}
	}
}
