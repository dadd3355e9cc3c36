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
	// Wrapper is a compiler wrapper of the ABI where commq brings the library all the same; nil if there is none, or
	// none was looked for because the program told the ABI.
	Wrapper *Target
	// ABI is the one that the program needs; where the program does not tell, that of the launcher if commq brings
	// libraries, else that of the compiler wrapper, else the oldest of its library.
	ABI abi.ABI
	// Note is what the user should know of the choice, on one line: that a compiler wrapper is there and not used, or
	// used although it does not fit, or that calls are not recorded. It is empty if there is nothing to say.
	Note string
	// lacks are the functions that the brought library does not record, for notes; empty if it records all.
	lacks string
}

// Choose decides whether the capture library is one that commq brings or compiled. The brought one is taken if it
// serves the MPI library that the program loads (see serves), or if the program does not tell (a script), that of the
// launcher and the compiler wrapper; else it is compiled if there is a compiler wrapper, unless that belongs to a
// version of the library with another ABI than the program loads. It compiles nothing but a file with mpi.h, and
// writes a brought library into the cache, to see whether that can be preloaded.
func Choose(ctx context.Context, o BuildOptions) (Choice, error) {
	if _, err := known(o.Library); err != nil {
		return Choice{}, err
	}
	needed := o.needed()
	if o.Mpicc == NoMpicc {
		return o.brought(o.withoutWrapper(ctx, needed), needed), nil
	}
	if o.Mpicc != "" {
		return o.chooseNamed(ctx, needed)
	}
	if needed.major != 0 && o.serves(ctx, needed.ABI, needed.file) {
		return Choice{ABI: needed.ABI}, nil
	}
	return o.chooseInPath(ctx, needed)
}

// standardMpicc is the wrapper beside MPICH's own that compiles programs for the ABI of MPI 5.
const standardMpicc = "mpicc_abi"

// chooseInPath is Choose among the compiler wrappers in $PATH.
func (o *BuildOptions) chooseInPath(ctx context.Context, needed version) (Choice, error) {
	wrappers, err := wrappersOf(o.Library)
	if err != nil {
		is := o.withoutWrapper(ctx, needed)
		if without := o.brings(is); without != nil {
			return Choice{}, withoutCompiler(err, without)
		}
		return o.brought(is, needed), nil
	}
	if needed.major == 0 && o.Form == Recording && len(Prebuilt()) > 0 {
		needed.launcher, needed.launched = o.launcherABI(ctx)
	}
	first, err := o.try(ctx, wrappers[0], needed)
	if err == nil && first.Note == "" {
		return first, nil
	}
	others := append(wrappers[1:], plainMpicc(o.Library)...)
	if path, err := exec.LookPath(standardMpicc); err == nil && needed.Standard {
		others = append(others, path)
	}
	for _, path := range others {
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

// brought is the choice of the library that commq brings for an ABI, with a note of what it does not record.
func (o *BuildOptions) brought(a abi.ABI, needed version) Choice {
	c := Choice{ABI: a, lacks: lacking(a, needed.file)}
	if c.lacks != "" {
		c.Note = "the capture library that commq brings for " + a.Title + " does not record " + c.lacks +
			"; --mpicc names a compiler wrapper, which compiles one that does"
	}
	return c
}

// chooseNamed is Choose for the wrapper that the user named, whose version is not compared.
func (o *BuildOptions) chooseNamed(ctx context.Context, needed version) (Choice, error) {
	path, err := FindMpicc(o.Library, o.Mpicc)
	if err != nil {
		return Choice{}, err
	}
	needed.named = true
	return o.try(ctx, path, needed)
}

// try is the choice with a compiler wrapper: it, or the library that commq brings if the wrapper does not work or has
// another ABI than is needed.
func (o *BuildOptions) try(ctx context.Context, mpicc string, needed version) (Choice, error) {
	target, err := readTarget(ctx, o.Library, mpicc)
	if err != nil {
		return o.without(ctx, needed, err)
	}
	c := Choice{Target: &target, ABI: needed.abiOr(target.abi()), lacks: lacking(needed.ABI, needed.file)}
	has := target.abi()
	if err := o.checkStandard(has, c.ABI, mpicc); err != nil {
		return Choice{}, err
	}
	switch {
	case needed.launcher != "" && !has.Standard && has != needed.launched && o.loads(ctx, needed.launched):
		c.Target, c.Wrapper, c.ABI = nil, &target, needed.launched
		c.Note = c.instead(fmt.Sprintf("%s is of %s, but %s of %s", mpicc, target.Title(), needed.launcher, c.ABI.Title))
		return c, nil
	case o.Mpicc == "" && needed.major == 0 && o.servesHeader(ctx, c.ABI, &target):
		c.Target, c.Wrapper = nil, &target
		return c, nil
	case needed.named || needed.file == "" || has == c.ABI:
		return c, nil
	}
	differ := fmt.Sprintf("%s is of %s, but the program loads %s of %s", mpicc, target.Title(), needed.file, c.ABI.Title)
	switch {
	case o.loads(ctx, c.ABI):
		c.Target, c.Note = nil, c.instead(differ)
	case has.Standard != c.ABI.Standard || has.Since() > c.ABI.Since():
		return Choice{}, fmt.Errorf("build the shim: %s: it would end the program; name the wrapper of its MPI library "+
			"with --mpicc, or take a release of commq, which brings that library", differ)
	default:
		c.Note = differ + ", so calls that only the latter has are not recorded; --mpicc names another wrapper"
	}
	return c, nil
}

// checkStandard checks that a wrapper that the user named is of the ABI of MPI 5 if the program is, and that the ABI
// has the form of the shim that is wanted.
func (o *BuildOptions) checkStandard(has, needed abi.ABI, mpicc string) error {
	switch {
	case has.Standard != needed.Standard && o.Mpicc != "":
		return fmt.Errorf("build the shim: %s is of %s, but the program needs %s; name its own wrapper with --mpicc", mpicc,
			has.Title, needed.Title)
	case needed.Standard && o.Form != Recording:
		return fmt.Errorf("build the shim: simulator ranks are not made for %s; compile the program with the library's own "+
			"mpicc", needed.Title)
	}
	return nil
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
	c := o.brought(o.withoutWrapper(ctx, needed), needed)
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
	note := why + "; taking the capture library that commq brings for " + c.ABI.Title
	if c.lacks != "" {
		note += ", which does not record " + c.lacks
	}
	return note
}

// version is the major version of the MPI library that a program loads.
type version struct {
	abi.ABI
	// major is 0 if it is not known.
	major int
	// file is the library; empty if it is not known.
	file string
	// named means that the user named the compiler wrapper, whose version is not compared.
	named bool
	// launcher is the launcher whose version is the ABI launched; empty if no launcher prints a version, or if none is
	// asked because the program shows the ABI.
	launcher string
	launched abi.ABI
}

// abiOr returns the ABI of the version if it is known, otherwise another.
func (v version) abiOr(otherwise abi.ABI) abi.ABI {
	if v.major != 0 {
		return v.ABI
	}
	return otherwise
}

// needed finds the version of the MPI library that the program loads.
func (o *BuildOptions) needed() version {
	major, file := majorOf(o.Library, o.Program)
	if major == 0 {
		return version{}
	}
	return version{ABI: abi.ForFile(o.Library, file, major), major: major, file: file}
}

// withoutWrapper returns the ABI that is needed if no compiler wrapper shows it: that of the program, or of its
// launcher. A launcher is less certain: a script may start programs of any version.
func (o *BuildOptions) withoutWrapper(ctx context.Context, needed version) abi.ABI {
	if needed.major != 0 {
		return needed.ABI
	}
	_, a := o.launcherABI(ctx)
	return a
}

// launcherABI returns the launcher that prints its version, and the ABI of that; if there is none, no launcher and the
// library's oldest ABI.
func (o *BuildOptions) launcherABI(ctx context.Context) (launcher string, a abi.ABI) {
	launcher, major := o.majorOfLauncher(ctx)
	return launcher, abi.ForVersion(o.Library, major)
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
	has, err := functionsOf(file)
	switch {
	case err != nil:
		return 0
	case has[newest[library].function]:
		return newest[library].with
	case has["MPI_Init"]:
		return newest[library].without
	}
	return 0
}

// launchers are those of a library, whose --version prints its version.
var launchers = map[string]struct {
	names   []string
	release *regexp.Regexp
}{
	OpenMPI: {[]string{"mpirun.openmpi", "mpirun"}, regexp.MustCompile(`(?:Open ?MPI|OpenRTE)\)? v?([0-9]+)\.`)},
	MPICH:   {[]string{"mpiexec.mpich", "mpiexec.hydra", "mpiexec"}, regexp.MustCompile(`HYDRA[^:]*:\s+Version: +([0-9]+)\.`)},
}

// launcherPatience limits the time in which a launcher prints its version.
const launcherPatience = 30 * time.Second

// majorOfLauncher returns the launcher that tells its version, and the major version of its library: o.Launcher, or if
// that does not tell it (srun), the library's launcher in $PATH. The version is 0 if none tells it. The user's own
// script is not asked: it may do anything when it is called with --version.
func (o *BuildOptions) majorOfLauncher(ctx context.Context) (launcher string, major int) {
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
			return name, major
		}
	}
	return "", 0
}

// withoutCompiler explains why there is no shim: neither a compiler wrapper nor one that commq brings.
func withoutCompiler(mpicc, prebuilt error) error {
	if errors.Is(prebuilt, errNoPrebuilt) {
		return mpicc
	}
	return fmt.Errorf("%w (%s)", mpicc, strings.TrimPrefix(prebuilt.Error(), "build the shim: "))
}
