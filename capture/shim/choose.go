package shim

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/commq/commq/capture/shim/abi"
)

// Choice is where the capture library for a program comes from.
type Choice struct {
	// Target is the compiler wrapper that compiles it; nil means that commq brings it.
	Target *Target
	// ABI is the one that the program needs; where nothing tells, that of Target, else the oldest of its library.
	ABI abi.ABI
	// Note is what the user should know of the choice, on one line: that a compiler wrapper is there and not used, or
	// used although it does not fit. It is empty if there is nothing to say.
	Note string
}

// Choose decides whether the capture library is compiled or one that commq brings: it is compiled if there is a
// compiler wrapper, unless that belongs to a version of the library with another ABI than the program loads. It
// compiles nothing but a file with mpi.h.
func Choose(ctx context.Context, o BuildOptions) (Choice, error) {
	if _, err := known(o.Library); err != nil {
		return Choice{}, err
	}
	needed := o.needed()
	if o.Mpicc == NoMpicc {
		return Choice{ABI: o.withoutWrapper(ctx, needed)}, nil
	}
	if o.Mpicc != "" {
		return o.chooseNamed(ctx, needed)
	}
	wrappers, err := wrappersOf(o.Library)
	if err != nil {
		is := o.withoutWrapper(ctx, needed)
		if without := o.brings(is); without != nil {
			return Choice{}, withoutCompiler(err, without)
		}
		return Choice{ABI: is}, nil
	}
	first, err := o.try(ctx, wrappers[0], needed)
	if err == nil && first.Note == "" {
		return first, nil
	}
	for _, path := range append(wrappers[1:], plainMpicc(o.Library)...) {
		c, failure := o.try(ctx, path, needed)
		switch {
		case failure != nil:
		case c.Note == "":
			return c, nil
		case err != nil: // the first wrapper failed; this one works, with a note
			first, err = c, nil
		}
	}
	return first, err
}

// chooseNamed is Choose for the wrapper that the user named, whose version is not compared.
func (o *BuildOptions) chooseNamed(ctx context.Context, needed version) (Choice, error) {
	path, err := FindMpicc(o.Library, o.Mpicc)
	if err != nil {
		return Choice{}, err
	}
	return o.try(ctx, path, version{ABI: needed.ABI, major: needed.major})
}

// try is the choice with a compiler wrapper: it, or the library that commq brings if the wrapper does not work or has
// another ABI than is needed.
func (o *BuildOptions) try(ctx context.Context, mpicc string, needed version) (Choice, error) {
	target, err := readTarget(ctx, o.Library, mpicc)
	if err != nil {
		return o.without(ctx, needed, err)
	}
	c := Choice{Target: &target, ABI: needed.abiOr(o.Library, target.major())}
	has := abi.ForVersion(o.Library, target.major())
	if needed.file == "" || has == c.ABI {
		return c, nil
	}
	differ := fmt.Sprintf("%s is of %s, but the program loads %s of %s", mpicc, target.Title(), needed.file, c.ABI.Title)
	switch {
	case o.brings(c.ABI) == nil:
		c.Target, c.Note = nil, c.instead(differ)
	case has.Since() > c.ABI.Since():
		return Choice{}, fmt.Errorf("build the shim: %s: it would end the program; name the wrapper of its MPI library "+
			"with --mpicc, or take a release of commq, which brings that library", differ)
	default:
		c.Note = differ + ", so calls that only the latter has are not recorded; --mpicc names another wrapper"
	}
	return c, nil
}

// without is the choice where a compiler wrapper does not work: the library that commq brings, or the error. A
// wrapper that the user named must be one of this library.
func (o *BuildOptions) without(ctx context.Context, needed version, broken error) (Choice, error) {
	if ctx.Err() != nil {
		return Choice{}, context.Cause(ctx)
	}
	var header *HeaderError
	isHeader := errors.As(broken, &header)
	if o.Mpicc != "" && !isHeader {
		return Choice{}, broken
	}
	c := Choice{ABI: o.withoutWrapper(ctx, needed)}
	switch {
	case o.brings(c.ABI) != nil:
		return Choice{}, broken
	case isHeader:
		c.Note = c.instead(header.summary() + o.keepLog(header.Output))
	default:
		c.Note = c.instead(strings.TrimRight(strings.Join(strings.Fields(broken.Error()), " "), ": "))
	}
	return c, nil
}

// instead is the note that the library that commq brings is taken although there is a compiler wrapper.
func (c *Choice) instead(why string) string {
	return why + "; taking the capture library that commq brings for " + c.ABI.Title
}

// version is the major version of the MPI library that a program loads.
type version struct {
	abi.ABI
	// major is 0 if it is not known.
	major int
	// file is the library; empty if the version must not be compared.
	file string
}

// abiOr is the ABI that is needed: of the version if it is known, else of another version.
func (v version) abiOr(library string, otherwise int) abi.ABI {
	if v.major != 0 {
		return v.ABI
	}
	return abi.ForVersion(library, otherwise)
}

// needed finds the version of the MPI library that the program loads.
func (o *BuildOptions) needed() version {
	major, file := majorOf(o.Library, o.Program)
	if major == 0 {
		return version{}
	}
	return version{ABI: abi.ForVersion(o.Library, major), major: major, file: file}
}

// withoutWrapper is the ABI that is needed where no compiler wrapper tells it: that of the program, or of its
// launcher. A launcher says less: a script may start programs of any version.
func (o *BuildOptions) withoutWrapper(ctx context.Context, needed version) abi.ABI {
	if needed.major != 0 {
		return needed.ABI
	}
	return abi.ForVersion(o.Library, o.majorOfLauncher(ctx))
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

// majorOf returns the major version of the MPI library that a program loads, and its file; 0 if that is not known, as
// for a script.
func majorOf(library, program string) (major int, file string) {
	path, err := exec.LookPath(program)
	if err != nil {
		return 0, ""
	}
	paths, _, err := loads(path)
	if err != nil {
		return 0, ""
	}
	for _, p := range paths {
		if abi.HasC(library, filepath.Base(p)) {
			return majorOfFile(library, p), p
		}
	}
	return 0, ""
}

// majorOfFile returns the major version of the library in a file: all versions have the same soname. It is 0 if the
// file has no functions of MPI.
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
	major := 0
	for _, s := range symbols {
		switch {
		case s.Section == elf.SHN_UNDEF:
		case s.Name == newest[library].function:
			return newest[library].with
		case s.Name == "MPI_Init":
			major = newest[library].without
		}
	}
	return major
}

// launchers are those of a library, whose --version prints its version.
var launchers = map[string]struct {
	names   []string
	release *regexp.Regexp
}{
	OpenMPI: {[]string{"mpirun.openmpi", "mpirun"}, regexp.MustCompile(`(?:Open ?MPI|OpenRTE)\)? v?([0-9]+)\.`)},
	MPICH:   {[]string{"mpiexec.mpich", "mpiexec.hydra", "mpiexec"}, regexp.MustCompile(`HYDRA[^:]*:\s+Version: +([0-9]+)\.`)},
}

// launcherPatience is how long a launcher may take to print its version.
const launcherPatience = 30 * time.Second

// majorOfLauncher returns the major version of the library of the launcher, or if that does not tell it (srun), of the
// library's launcher in $PATH; 0 if none tells it. The user's own script is not asked: it may do anything when it is
// called with --version.
func (o *BuildOptions) majorOfLauncher(ctx context.Context) int {
	names := launchers[o.Library].names
	if path, err := exec.LookPath(o.Launcher); err == nil {
		if x, err := elf.Open(path); err == nil {
			names = append([]string{path}, names...)
			_ = x.Close() // it was only read
		}
	}
	ctx, cancel := context.WithTimeout(ctx, launcherPatience)
	defer cancel()
	for _, name := range names {
		out, err := exec.CommandContext(ctx, name, "--version").Output()
		if m := launchers[o.Library].release.FindSubmatch(out); err == nil && m != nil {
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
