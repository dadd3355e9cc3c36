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
	"strings"
)

// BuildOptions say what to build the shim for.
type BuildOptions struct {
	// Library is OpenMPI or MPICH, as Detect returns it.
	Library string
	// Mpicc is the compiler wrapper; empty: it is found, see FindMpicc.
	Mpicc string
	// Cache is the folder of built shims; empty: $COMMQ_CACHE, else commq in the user's cache folder.
	Cache string
}

// Target is what a shim is built for: an MPI library as a compiler wrapper knows it.
type Target struct {
	// Library is OpenMPI or MPICH.
	Library string
	// Mpicc is the path of the compiler wrapper.
	Mpicc string
	// Version is the version of the library's mpi.h, for example 4.1.4.
	Version string
	// Compiler is the compiler's own first line about itself.
	Compiler string
}

// soname is the file name of the built library.
const soname = "libcommq.so"

// Build returns the path of the shim for an MPI library, compiling it when the cache does not have it for this library,
// version, compiler and these sources. Several processes may build at once; each sees a whole file or none.
func Build(ctx context.Context, o BuildOptions) (string, error) {
	target, err := FindTarget(ctx, o.Library, o.Mpicc)
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return "", err
	}
	names, files, err := sourceFiles()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "shim", target.key(names, files))
	path := filepath.Join(folder, soname)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("build the shim: cache folder: %w; name another one in $COMMQ_CACHE", err)
	}
	if err := target.compile(ctx, folder, names, files); err != nil {
		return "", err
	}
	return path, nil
}

func cacheFolder(named string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	if env := os.Getenv("COMMQ_CACHE"); env != "" {
		return filepath.Abs(env)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("build the shim: %w; name a cache folder in $COMMQ_CACHE", err)
	}
	return filepath.Join(dir, "commq"), nil
}

// FindTarget finds the compiler wrapper of an MPI library (mpicc names one; see FindMpicc) and what it says of itself.
func FindTarget(ctx context.Context, name, mpicc string) (Target, error) {
	path, err := FindMpicc(name, mpicc)
	if err != nil {
		return Target{}, err
	}
	t := Target{Library: name, Mpicc: path}
	if t.Version, err = headerVersion(ctx, path, name); err != nil {
		return Target{}, err
	}
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return Target{}, fmt.Errorf("build the shim: %s --version: %w: %s", path, err, firstLine(out))
	}
	t.Compiler = firstLine(out)
	return t, nil
}

// key names a build in the cache.
func (t Target) key(names []string, files map[string][]byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00", t.Library, t.Version, t.Mpicc, t.Compiler)
	fmt.Fprintf(h, "%q\x00", compileFlags())
	for _, n := range names {
		fmt.Fprintf(h, "%s\x00%d\x00", n, len(files[n]))
		h.Write(files[n])
	}
	return fmt.Sprintf("%s-%s-%s", t.Library, t.Version, hex.EncodeToString(h.Sum(nil))[:16])
}

// compileFlags: the references to the MPI library are none, so --as-needed leaves it out.
func compileFlags() []string {
	return []string{"-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
		"-Wl,--as-needed", "-Wl,-soname," + soname}
}

func (t Target) compile(ctx context.Context, folder string, names []string, files map[string][]byte) error {
	work, err := os.MkdirTemp(folder, ".build-")
	if err != nil {
		return fmt.Errorf("build the shim: %w", err)
	}
	defer os.RemoveAll(work)
	args := compileFlags()
	out := filepath.Join(work, soname)
	args = append(args, "-o", out)
	for _, n := range names {
		path := filepath.Join(work, n)
		if err := os.WriteFile(path, files[n], 0o644); err != nil {
			return fmt.Errorf("build the shim: %w", err)
		}
		if strings.HasSuffix(n, ".c") {
			args = append(args, path)
		}
	}
	cmd := exec.CommandContext(ctx, t.Mpicc, args...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the shim for %s %s: %w\n%s\n%s", t.Library, t.Version, err, strings.Join(cmd.Args, " "), bytes.TrimSpace(text))
	}
	if bad, err := needsMPI(out); err != nil || bad {
		return fmt.Errorf("build the shim for %s %s: the library asks for MPI itself (%v), so it could not be preloaded into every process; does the linker know --as-needed?", t.Library, t.Version, err)
	}
	return os.Rename(out, filepath.Join(folder, soname))
}

// headerVersion returns the version that the wrapper's mpi.h has of itself, and an error when it is another library's.
func headerVersion(ctx context.Context, mpicc, name string) (string, error) {
	lib, err := known(name)
	if err != nil {
		return "", err
	}
	macros, err := headerMacros(ctx, mpicc)
	if err != nil {
		return "", err
	}
	if _, ok := macros[lib.macro]; !ok {
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
		said := bytes.TrimSpace(errs.Bytes())
		if len(said) > 0 {
			said = append([]byte{'\n'}, said...)
		}
		return nil, fmt.Errorf("build the shim: %s cannot compile a file with mpi.h: %w%s", mpicc, err, said)
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

// FindMpicc returns the path of a compiler wrapper for an MPI library: the named one when named is not empty, else
// mpicc.openmpi or mpicc.mpich, else mpicc when it says that it belongs to that library. The error names the Debian
// package that has it.
func FindMpicc(name, named string) (string, error) {
	lib, err := known(name)
	if err != nil {
		return "", fmt.Errorf("find mpicc: %w", err)
	}
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("find mpicc: %s: %w", named, reason(err))
		}
		return path, nil
	}
	for _, w := range lib.wrapper {
		if path, err := exec.LookPath(w); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath("mpicc"); err == nil && saysItIs(path, name) {
		return path, nil
	}
	return "", fmt.Errorf("find mpicc: no compiler wrapper of %s in $PATH (%s, or an mpicc that belongs to it); install it (Debian: apt-get install %s) or name one with --mpicc",
		lib.title, strings.Join(lib.wrapper, ", "), lib.pkg)
}

// reason leaves out what exec says around the cause.
func reason(err error) error {
	var e *exec.Error
	if errors.As(err, &e) && errors.Is(e.Err, exec.ErrNotFound) {
		return fs.ErrNotExist
	}
	return err
}

// saysItIs asks a wrapper what it runs: Open MPI's knows --showme, MPICH's -show; both print the library they link.
func saysItIs(path, name string) bool {
	if name == OpenMPI {
		out, err := exec.Command(path, "--showme:version").CombinedOutput()
		return err == nil && bytes.Contains(out, []byte("Open MPI"))
	}
	out, err := exec.Command(path, "-show").CombinedOutput()
	return err == nil && (bytes.Contains(out, []byte("-lmpich")) || bytes.Contains(out, []byte("mpich")) && bytes.Contains(out, []byte("-lmpi")))
}
