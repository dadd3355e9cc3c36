package shim

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// NoMpicc as the name of a compiler wrapper stands for no compiling: the shim is one that commq brings.
const NoMpicc = "none"

// ABI is a set of MPI libraries that one shim serves: they agree on handles, constants and statuses.
type ABI struct {
	// Name is that of the files in a release, the library and the major version from which on it serves: openmpi-5.
	Name string
	// Library is OpenMPI or MPICH.
	Library string
	// Title is for people.
	Title string
}

// ABIs are those that releases bring a shim for, of each library the oldest first. Versions of a library agree on
// most, but the later ones have functions that the earlier lack: a shim that is too new would end a program.
var ABIs = []ABI{
	{"openmpi-4", OpenMPI, "Open MPI 4"},
	{"openmpi-5", OpenMPI, "Open MPI 5"},
	{"mpich-3", MPICH, "the ABI of MPICH 3"},
	{"mpich-4", MPICH, "the ABI of MPICH 4"},
}

// errNoPrebuilt means that this commq was built without shims.
var errNoPrebuilt = errors.New("this commq brings no capture library (releases do), so it has to compile one")

// Prebuilt lists the ABIs that this commq brings a shim for: ABIs in a release, else none.
func Prebuilt() []ABI {
	var there []ABI
	for _, abi := range ABIs {
		if _, err := prebuiltFile(abi); err == nil {
			there = append(there, abi)
		}
	}
	return there
}

// prebuiltFile returns the shim for an ABI. Its name has the key of the sources that it was compiled from.
func prebuiltFile(abi ABI) ([]byte, error) {
	key, err := sourceKey()
	if err != nil {
		return nil, err
	}
	data, err := prebuilt.ReadFile(prebuiltFolder + "/" + abi.Name + "-" + key + ".so")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoPrebuilt
	}
	return data, err
}

// sourceKey is the key of the embedded sources, as scripts/release makes it too.
func sourceKey() (string, error) {
	names, files, err := sourceFiles()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, n := range names {
		h.Write(files[n])
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// usePrebuilt returns the path of the shim that commq brings for a library and program. It is written to the cache,
// because the dynamic linker loads files.
func usePrebuilt(ctx context.Context, o *BuildOptions) (string, error) {
	if o.Form != Recording {
		return "", fmt.Errorf("%s has to be compiled, commq brings none", o.Form.title())
	}
	abi, err := FindABI(ctx, o.Library, o.Program)
	if err != nil {
		return "", err
	}
	data, err := prebuiltFile(abi)
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	folder := filepath.Join(cache, "shim", abi.Name+"-"+hex.EncodeToString(sum[:])[:16])
	path := filepath.Join(folder, o.Form.file())
	if there, err := cached(folder, path); there || err != nil {
		return path, err
	}
	f, err := os.CreateTemp(folder, ".shim-")
	if err != nil {
		return "", fmt.Errorf("write the shim: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return "", fmt.Errorf("write the shim: %w", err)
	}
	return path, os.Rename(f.Name(), path)
}

// FindABI returns the ABI of an MPI library: of the one that a program loads, if that can be found, else of the one
// whose launcher is in $PATH, else the oldest of that library.
func FindABI(ctx context.Context, library, program string) (ABI, error) {
	l, err := known(library)
	if err != nil {
		return ABI{}, err
	}
	major := majorOf(library, l.sonames, program)
	if major == 0 {
		major = majorInPath(ctx, library)
	}
	var best *ABI
	for i := range ABIs {
		abi := &ABIs[i]
		if abi.Library == library && (best == nil || major >= abi.since()) {
			best = abi
		}
	}
	return *best, nil
}

// since is the major version of the library from which on the ABI serves.
func (a *ABI) since() int {
	major, _ := strconv.Atoi(a.Name[strings.LastIndex(a.Name, "-")+1:])
	return major
}

// newest are functions that came with the later of the two versions of a library, and the versions without and with
// them.
var newest = map[string]struct {
	function      string
	without, with int
}{
	OpenMPI: {"MPI_Session_init", 4, 5},
	MPICH:   {"MPI_Type_size_c", 3, 4},
}

// majorOf returns the major version of the MPI library with one of the sonames that a program loads; 0 if that is not
// known, as for a script.
func majorOf(library string, sonames []string, program string) int {
	path, err := exec.LookPath(program)
	if err != nil {
		return 0
	}
	paths, _, err := loads(path)
	if err != nil {
		return 0
	}
	for _, p := range paths {
		if slices.Contains(sonames, filepath.Base(p)) {
			return majorOfFile(library, p)
		}
	}
	return 0
}

// majorOfFile returns the major version of the library in a file: all versions have the same soname.
func majorOfFile(library, file string) int {
	x, err := elf.Open(file)
	if err != nil {
		return 0
	}
	defer x.Close()
	symbols, err := x.DynamicSymbols()
	if err != nil {
		return 0
	}
	for _, s := range symbols {
		if s.Name == newest[library].function && s.Section != elf.SHN_UNDEF {
			return newest[library].with
		}
	}
	return newest[library].without
}

// launchers are those of a library, whose --version prints its version.
var launchers = map[string]struct {
	names   []string
	release *regexp.Regexp
}{
	OpenMPI: {[]string{"mpirun.openmpi", "mpirun"}, regexp.MustCompile(`Open ?MPI\)? v?([0-9]+)\.`)},
	MPICH:   {[]string{"mpiexec.mpich", "mpiexec.hydra", "mpiexec"}, regexp.MustCompile(`HYDRA[^:]*:\s+Version: +([0-9]+)\.`)},
}

// majorInPath returns the major version of the library whose launcher is in $PATH, or 0.
func majorInPath(ctx context.Context, library string) int {
	for _, name := range launchers[library].names {
		out, err := exec.CommandContext(ctx, name, "--version").Output()
		if m := launchers[library].release.FindSubmatch(out); err == nil && m != nil {
			major, _ := strconv.Atoi(string(m[1])) // digits; too many are 0
			return major
		}
	}
	return 0
}

// withoutCompiler explains why there is no shim: neither a compiler wrapper nor one that commq brings.
func withoutCompiler(mpicc, prebuilt error) error {
	if errors.Is(prebuilt, errNoPrebuilt) {
		return mpicc
	}
	return fmt.Errorf("%w (%s)", mpicc, strings.TrimPrefix(prebuilt.Error(), "build the shim: "))
}
