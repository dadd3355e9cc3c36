package shim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/capture/shim/abi"
	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/internal/private"
)

// BuildOptions select the shim to build.
type BuildOptions struct {
	// Library is OpenMPI or MPICH, as Detect returns it.
	Library string
	// Mpicc is the compiler wrapper that compiles the shim; empty takes one that commq brings, or searches for a
	// wrapper, see Choose; NoMpicc takes a shim that commq brings in any case.
	Mpicc string
	// Program is what will be captured: the MPI library that it loads tells the ABI. Empty is a program not known yet.
	Program string
	// Launcher starts the program; its version tells the ABI where the program does not. Empty is one that is not
	// known.
	Launcher string
	// Cache is the folder of built shims; empty: $COMMQ_CACHE, else commq in the user's cache folder.
	Cache string
	// Form is the artifact to build; the zero value is the library for an ordinary capture.
	Form Form
	// Ranks means that the other ranks of a job build the same: a compiler that has just failed for one of them is not
	// called again, unless a signal stopped it or its disk was full, which may be so on one host alone.
	Ranks bool
	// Compiling is called before the compiler is, which takes ten seconds or so, with what it compiles; nil means no
	// callback. It is not called when the cache has the shim.
	Compiling func(what string)
	// Note is called with a line for the user where the shim is not the usual one: compiling failed, or the compiler
	// wrapper belongs to another version of the library than the program loads; and once where Build waits for another
	// process that builds the same. nil means no callback.
	Note func(text string)
	// Waiting is called with a line for the user while another process builds the shim; nil means Note.
	Waiting func(text string)
}

// Form is one of the artifacts that are built from the shim's sources.
type Form int

const (
	// Recording is the library that is preloaded for an ordinary capture.
	Recording Form = iota
	// Simulated is the library that is preloaded for a capture with simulator ranks.
	Simulated
	// Bridge is the program that a simulator rank runs.
	Bridge
)

// file is the name of the artifact.
func (f Form) file() string {
	return [...]string{"libcommq.so", "libcommq-sim.so", "commq-bridge"}[f]
}

// title is the name of the artifact in messages.
func (f Form) title() string {
	return [...]string{"the capture library", "the capture library with simulator ranks",
		"the program of simulator ranks"}[f]
}

// flags are the compiler's flags for each source.
func (f Form) flags() []string {
	flags := []string{"-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden"}
	if f != Recording {
		flags = append(flags, "-DCQ_SIM=1", "-Wno-deprecated-declarations")
	}
	if f == Bridge {
		flags = append(flags, "-DCQ_BRIDGE=1")
	}
	return flags
}

// linkFlags are its flags for the objects. The library refers to no MPI function, so --as-needed leaves the MPI library
// out; the program keeps it.
func (f Form) linkFlags() []string {
	if f == Bridge {
		return []string{"-Wl,--no-as-needed"}
	}
	return []string{"-shared", "-Wl,--as-needed", "-Wl,-soname," + f.file()}
}

// bridgeSources are the sources that the program of simulator ranks compiles in another way than the library does.
var bridgeSources = []string{"bridge.c", "ranks.c"}

// bridgeEnding is the ending of their objects.
const bridgeEnding = ".bridge.o"

// together are the artifacts that are built at once: those with simulator ranks have nearly all objects in common.
func (f Form) together() []Form {
	if f == Recording {
		return []Form{Recording}
	}
	return []Form{Simulated, Bridge}
}

// Target is an MPI library as seen through a compiler wrapper.
type Target struct {
	// Library is OpenMPI or MPICH.
	Library string
	// Mpicc is the path of the compiler wrapper.
	Mpicc string
	// Version is the version of the library's mpi.h, for example 4.1.4.
	Version string
	// Compiler is the first line that the compiler prints about itself.
	Compiler string
	// standard is the major version of MPI in that mpi.h; 0 if it is not a number.
	standard int
}

// Build returns the path of the shim for an MPI library. It takes the one that commq brings if Choose does, or where
// compiling fails; else it compiles the shim if the cache has none for this library, version, compiler and these
// sources. Of several processes that build at once one compiles and the others wait.
func Build(ctx context.Context, o BuildOptions) (string, error) {
	c, err := Choose(ctx, o)
	if err != nil {
		return "", err
	}
	if c.Target == nil {
		path, err := o.takeBrought(ctx, c.ABI, c.Note)
		if err != nil && o.Mpicc == NoMpicc {
			err = fmt.Errorf("--mpicc %s: %w", NoMpicc, err)
		}
		return path, err
	}
	path, err := c.Target.cachedBuild(ctx, &o)
	if err == nil {
		o.note(c.Note)
		return path, nil
	}
	if ctx.Err() != nil {
		return "", err
	}
	if brought, without := o.takeBrought(ctx, c.ABI, c.instead(o.summary(err))); without == nil {
		return brought, nil
	}
	return "", err
}

// takeBrought is bring, and tells the user a note, and what the dynamic linker says if it refuses the library.
func (o *BuildOptions) takeBrought(ctx context.Context, a abi.ABI, note string) (string, error) {
	path, err := o.bring(a)
	if err != nil {
		return "", err
	}
	o.note(note)
	if text := PreloadFails(ctx, path); text != "" {
		o.note(fmt.Sprintf("nothing will be recorded: the capture library that commq brings for %s cannot be preloaded (%s); "+
			"name a folder that can hold programs in $COMMQ_CACHE, or a compiler wrapper that works with --mpicc", a.Title, text))
	}
	return path, nil
}

// note tells the user a text that is not empty.
func (o *BuildOptions) note(text string) {
	if text != "" && o.Note != nil {
		o.Note(text)
	}
}

func (o *BuildOptions) waiting(text string) {
	if o.Waiting == nil {
		o.note(text)
		return
	}
	o.Waiting(text)
}

// cachedBuild returns the path of the shim in the cache, and compiles it if it is not there.
func (t Target) cachedBuild(ctx context.Context, o *BuildOptions) (string, error) {
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return "", err
	}
	names, files, err := sourceFiles()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "shim", t.key(o.Form, names, files))
	path := filepath.Join(folder, o.Form.file())
	if there, err := cached(folder, path); there || err != nil {
		return path, err
	}
	silent := silentWait
	if o.Ranks {
		silent = silentRanks
	}
	release, err := lockFolder(ctx, folder, silent, func() {
		o.waiting("waiting for another process that builds " + o.Form.title() + " in " + folder)
	})
	if err != nil {
		return "", err
	}
	defer release()
	if there, err := cached(folder, path); there || err != nil { // another process has built it
		return path, err
	}
	if o.Ranks {
		if err := failed(folder); err != nil {
			return "", err
		}
	}
	err = t.build(ctx, o, folder, names, files)
	if err != nil && ctx.Err() == nil && o.Ranks {
		o.remember(folder, err)
	}
	return path, err
}

// BuildProgram returns the path of one of commq's own programs, a single C source, compiled and cached like Build
// does. It ignores o.Form.
func BuildProgram(ctx context.Context, o BuildOptions, name string, source []byte) (string, error) {
	target, err := FindTarget(ctx, o.Library, o.Mpicc)
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return "", err
	}
	file := name + ".c"
	folder := filepath.Join(cache, name, target.key(Bridge, []string{file}, map[string][]byte{file: source}))
	path := filepath.Join(folder, name)
	if there, err := cached(folder, path); there || err != nil {
		return path, err
	}
	work, err := os.MkdirTemp(folder, ".build-")
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	defer os.RemoveAll(work)
	from, to := filepath.Join(work, file), filepath.Join(work, name)
	if err := os.WriteFile(from, source, 0o644); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	err = target.compile(ctx, name+" for "+target.Title(), work,
		[]string{"-std=gnu11", "-Wall", "-Wextra", "-O2", "-o", to,
			from})
	if err != nil {
		return "", err
	}
	return path, renameSynced(to, path)
}

// renameSynced renames a file that the compiler wrote, once it is on the disk: after a crash an empty one would be taken
// for it.
func renameSynced(from, to string) error {
	if err := disk.SyncFile(from); err != nil {
		return err
	}
	return disk.Rename(from, to)
}

// cached reports whether a folder of the cache has a file that is not empty, and makes the folder if not. A crash may
// have left an empty one. It is an error if another user made or can change one of them: what is in the cache runs in the
// user's programs.
func cached(folder, path string) (there bool, err error) {
	list := []string{filepath.Dir(filepath.Dir(folder)), filepath.Dir(folder), folder}
	if _, err = private.Folder(folder); err == nil {
		if info, err := os.Lstat(path); err == nil {
			list, there = append(list, path), info.Size() > 0
		}
		for _, p := range list {
			err = errors.Join(err, private.Check(p))
		}
	}
	if err != nil {
		return false, fmt.Errorf("cache folder: %w; name another one in $COMMQ_CACHE", err)
	}
	return there, nil
}

func cacheFolder(named string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	dir, err := kept.CacheFolder()
	if err != nil {
		return "", fmt.Errorf("build the shim: %w", err)
	}
	return dir, nil
}

// FindTarget finds the compiler wrapper of an MPI library (mpicc names one; see FindMpicc) and reads its versions.
func FindTarget(ctx context.Context, name, mpicc string) (Target, error) {
	path, err := FindMpicc(name, mpicc)
	if err != nil {
		return Target{}, err
	}
	return readTarget(ctx, name, path)
}

// readTarget reads the versions of a compiler wrapper and its library.
func readTarget(ctx context.Context, name, path string) (t Target, err error) {
	t = Target{Library: name, Mpicc: path}
	macros, err := headerMacros(ctx, path)
	if err != nil {
		return Target{}, err
	}
	if t.Version, err = versionOf(macros, path, name); err != nil {
		return Target{}, err
	}
	t.standard, _ = strconv.Atoi(macros["MPI_VERSION"])
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return Target{}, fmt.Errorf("build the shim: %s --version: %w: %s", path, err, firstLine(out))
	}
	t.Compiler = firstLine(out)
	return t, nil
}

// major is the major version of the library; 0 if it is not a number.
func (t Target) major() int {
	text, _, _ := strings.Cut(t.Version, ".")
	major, _ := strconv.Atoi(text)
	return major
}

// abi is the one of programs that the wrapper compiles.
func (t Target) abi() abi.ABI {
	if strings.HasPrefix(t.Version, standardVersion) {
		return abi.Standard
	}
	return abi.ForVersion(t.Library, t.major())
}

// standardVersion begins the version of a wrapper whose mpi.h is that of the ABI of MPI 5, which names no library.
const standardVersion = "abi-"

// key names a build in the cache.
func (t Target) key(form Form, names []string, files map[string][]byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00", t.Library, t.Version, t.Mpicc, t.Compiler)
	for _, f := range form.together() {
		fmt.Fprintf(h, "%q\x00", slices.Concat(f.flags(), f.linkFlags()))
	}
	for _, n := range names {
		fmt.Fprintf(h, "%s\x00%d\x00", n, len(files[n]))
		h.Write(files[n])
	}
	return fmt.Sprintf("%s-%s-%s", t.Library, t.Version, hex.EncodeToString(h.Sum(nil))[:16])
}

// build compiles the shim, and what is built together with it, and puts them into the folder.
func (t Target) build(ctx context.Context, o *BuildOptions, folder string, names []string,
	files map[string][]byte) error {
	form := o.Form
	work, err := os.MkdirTemp(folder, ".build-")
	if err != nil {
		return fmt.Errorf("build the shim: %w", err)
	}
	defer os.RemoveAll(work)
	var sources []string
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(work, n), files[n], 0o644); err != nil {
			return fmt.Errorf("build the shim: %w", err)
		}
		if strings.HasSuffix(n, ".c") {
			sources = append(sources, n)
		}
	}
	slices.SortFunc(sources, func(a, b string) int { return len(files[b]) - len(files[a]) })
	what := form.title() + " for " + t.Title()
	if o.Compiling != nil {
		o.Compiling(what)
	}
	forms := form.together()
	objects, err := t.compileEach(ctx, what, work, forms[0].flags(), sources, ".o")
	if err != nil {
		return err
	}
	for _, form := range forms {
		if form == Bridge {
			own, err := t.compileEach(ctx, what, work, form.flags(), bridgeSources, bridgeEnding)
			if err != nil {
				return err
			}
			objects = append(slices.DeleteFunc(objects, func(o string) bool {
				return slices.Contains(bridgeSources, strings.TrimSuffix(filepath.Base(o), ".o"))
			}), own...)
		}
		if err := t.link(ctx, form, what, work, objects); err != nil {
			return err
		}
	}
	for _, form := range forms {
		if err := renameSynced(filepath.Join(work, form.file()), filepath.Join(folder, form.file())); err != nil {
			return err
		}
	}
	return nil
}

// link makes an artifact of its objects. A library must not ask for MPI.
func (t Target) link(ctx context.Context, form Form, what, work string, objects []string) error {
	out := filepath.Join(work, form.file())
	err := t.compile(ctx, what, work, slices.Concat(form.linkFlags(), []string{"-o", out}, objects))
	if err != nil || form == Bridge {
		return err
	}
	if bad, err := needsMPI(out); err != nil || bad {
		return fmt.Errorf("build the shim for %s %s: the library asks for MPI itself (%v), so it could not be preloaded into every process; does the linker know --as-needed?", t.Library, t.Version, err)
	}
	return nil
}

// versionOf returns the version of the library in the macros of a wrapper's mpi.h, and an error if that belongs to
// another library.
func versionOf(macros map[string]string, mpicc, name string) (string, error) {
	lib, err := known(name)
	if err != nil {
		return "", err
	}
	if _, ok := macros[lib.macro]; !ok {
		if v := macros["MPI_ABI_VERSION"]; v != "" && name == abi.Standard.Library {
			return standardVersion + v + "." + macros["MPI_ABI_SUBVERSION"], nil
		}
		return "", fmt.Errorf("build the shim: %s is not a compiler of %s; name one with --mpicc", mpicc, lib.title)
	}
	if name == MPICH {
		return strings.Trim(macros["MPICH_VERSION"], `"`), nil
	}
	return macros["OMPI_MAJOR_VERSION"] + "." + macros["OMPI_MINOR_VERSION"] + "." + macros["OMPI_RELEASE_VERSION"], nil
}

// headerMacros are the macros that mpi.h defines for the wrapper's compiler.
func headerMacros(ctx context.Context, mpicc string) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, mpicc, "-E", "-dM", "-x", "c", "-")
	cmd.Stdin = strings.NewReader("#include <mpi.h>\n")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, &HeaderError{Compiler: mpicc, Err: err, Output: strings.TrimSpace(errs.String())}
	}
	return parseMacros(out), nil
}

// parseMacros reads lines as gcc -dM prints them.
func parseMacros(text []byte) map[string]string {
	macros := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "#define "); ok {
			name, value, _ := strings.Cut(rest, " ")
			macros[name] = strings.TrimSpace(value)
		}
	}
	return macros
}

// FindMpicc returns the path of a compiler wrapper for an MPI library: named if it is not empty, else the first that
// wrappersOf finds. The error names the Debian package that provides it.
func FindMpicc(name, named string) (string, error) {
	if named != "" {
		if _, err := known(name); err != nil {
			return "", fmt.Errorf("find mpicc: %w", err)
		}
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("find mpicc: %s: %w", named, reason(err))
		}
		return path, nil
	}
	paths, err := wrappersOf(name)
	if err != nil {
		return "", err
	}
	return paths[0], nil
}

// plainMpicc is the mpicc in $PATH if it belongs to an MPI library, else nothing.
func plainMpicc(name string) (paths []string) {
	if path, err := exec.LookPath("mpicc"); err == nil && belongsTo(path, name) {
		paths = append(paths, path)
	}
	return paths
}

// wrappersOf finds the compiler wrappers of an MPI library: mpicc.openmpi or mpicc.mpich, else mpicc if it belongs to
// that library. It is an error if there is none.
func wrappersOf(name string) (paths []string, err error) {
	lib, err := known(name)
	if err != nil {
		return nil, fmt.Errorf("find mpicc: %w", err)
	}
	for _, w := range lib.wrapper {
		if path, err := exec.LookPath(w); err == nil {
			paths = append(paths, path)
		}
	}
	if paths == nil {
		paths = plainMpicc(name)
	}
	if paths == nil {
		return nil, fmt.Errorf("find mpicc: no compiler wrapper of %s in $PATH (%s, or an mpicc that belongs to it); install it (Debian: apt-get install %s) or name one with --mpicc",
			lib.title, strings.Join(lib.wrapper, ", "), lib.pkg)
	}
	return paths, nil
}

// reason strips what os/exec adds to the cause.
func reason(err error) error {
	var e *exec.Error
	if errors.As(err, &e) && errors.Is(e.Err, exec.ErrNotFound) {
		return fs.ErrNotExist
	}
	return err
}

// belongsTo reports whether a wrapper belongs to an MPI library. Open MPI's wrappers know --showme, MPICH's -show;
// both print the library they link.
func belongsTo(path, name string) bool {
	if name == OpenMPI {
		out, err := exec.Command(path, "--showme:version").CombinedOutput()
		return err == nil && bytes.Contains(out, []byte("Open MPI"))
	}
	out, err := exec.Command(path, "-show").CombinedOutput()
	return err == nil && (bytes.Contains(out, []byte("-lmpich")) || bytes.Contains(out, []byte("mpich")) &&
		bytes.Contains(out, []byte("-lmpi")))
}
