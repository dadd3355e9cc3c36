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
	"strings"
)

// NoMpicc as the name of a compiler wrapper stands for no compiling: the shim is one that commq brings.
const NoMpicc = "none"

// ABI is a set of MPI libraries that one shim serves: they agree on handles, constants and statuses.
type ABI struct {
	// Name is that of the files in a release, for example openmpi-5.
	Name string
	// Library is OpenMPI or MPICH.
	Library string
	// Title is for people.
	Title string
}

// ABIs are those that releases bring a shim for. Open MPI 4 and 5 agree as well, but have different functions.
var ABIs = []ABI{
	{"openmpi-4", OpenMPI, "Open MPI 4"},
	{"openmpi-5", OpenMPI, "Open MPI 5"},
	{"mpich", MPICH, "the ABI of MPICH"},
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
// whose launcher is in $PATH, else the oldest.
func FindABI(ctx context.Context, library, program string) (ABI, error) {
	if _, err := known(library); err != nil {
		return ABI{}, err
	}
	var of []ABI
	for _, abi := range ABIs {
		if abi.Library == library {
			of = append(of, abi)
		}
	}
	if len(of) == 1 {
		return of[0], nil
	}
	if major := openMPIOf(program); major != "" {
		return withName(of, "openmpi-"+major), nil
	}
	return withName(of, "openmpi-"+openMPIInPath(ctx)), nil
}

// withName returns the ABI with a name, else the first.
func withName(list []ABI, name string) ABI {
	for _, abi := range list {
		if abi.Name == name {
			return abi
		}
	}
	return list[0]
}

// openMPIOf returns the major version, 4 or 5, of the Open MPI that a program loads; empty if that is not known, as for
// a script. Both have the same soname; sessions came with 5.
func openMPIOf(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	paths, _, err := loads(path)
	if err != nil {
		return ""
	}
	for _, p := range paths {
		if filepath.Base(p) == "libmpi.so.40" {
			return openMPIVersion(p)
		}
	}
	return ""
}

// openMPIVersion returns the major version of the library in a file.
func openMPIVersion(file string) string {
	x, err := elf.Open(file)
	if err != nil {
		return ""
	}
	defer x.Close()
	symbols, err := x.DynamicSymbols()
	if err != nil {
		return ""
	}
	for _, s := range symbols {
		if s.Name == "MPI_Session_init" && s.Section != elf.SHN_UNDEF {
			return "5"
		}
	}
	return "4"
}

// openMPIInPath returns the major version of the Open MPI whose mpirun is in $PATH, or empty.
func openMPIInPath(ctx context.Context) string {
	for _, name := range []string{"mpirun.openmpi", "mpirun"} {
		out, err := exec.CommandContext(ctx, name, "--version").Output()
		if m := openMPIRelease.FindSubmatch(out); err == nil && m != nil {
			return string(m[1])
		}
	}
	return ""
}

var openMPIRelease = regexp.MustCompile(`Open ?MPI\)? v?([0-9]+)\.`)

// withoutCompiler explains why there is no shim: neither a compiler wrapper nor one that commq brings.
func withoutCompiler(mpicc, prebuilt error) error {
	if errors.Is(prebuilt, errNoPrebuilt) {
		return mpicc
	}
	return fmt.Errorf("%w (%s)", mpicc, strings.TrimPrefix(prebuilt.Error(), "build the shim: "))
}
