// Package launch starts MPI programs under the shim: it finds the launcher that belongs to an MPI library, puts the
// preload into the ranks' environment and passes the program's streams, signals and exit status through unchanged.
package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// Preload is what a rank's environment needs to be captured.
type Preload struct {
	// Shim is the path of the shim's shared library.
	Shim string
	// Spool is the folder the ranks write their spool files to.
	Spool string
	// Clock is the compute clock: cpu, wall or none.
	Clock string
	// Hash is the payload hash: crc64, crc32 or none; empty is the shim's default, crc64.
	Hash string
	// Verify lets receives be hashed too.
	Verify bool
	// Stack is the number of frames of a call site; nil is the shim's default, 1: the return address. 0 is none.
	Stack *int
	// Counters says where instructions and cycles come from: empty (they are not counted), perf, or fake in tests.
	Counters string
	// MaxSpool is how many bytes of records each thread of a rank may write; 0: no bound.
	MaxSpool int64
	// Sink is how records are written: empty (mapped files, or write(2) where the file system has none), write, or null,
	// which only counts them.
	Sink string
	// Simulation is what the ranks share with simulator ranks; nil: there are none.
	Simulation *Simulation
	// Job is a text that no other launch has. Programs that use sessions, and cannot agree on anything when they start, make
	// their job's id of it. Empty: the environment has to tell launches apart.
	Job string
}

// Simulation is what the ranks of a job with simulator ranks need to know beside what they are recorded with. Shim is then
// the library for it.
type Simulation struct {
	// Ranks is the number of simulator ranks, 1 or more.
	Ranks int
	// Bridge is the path of the program that the simulator ranks run. Empty: the last Ranks processes of the job are
	// simulator ranks, whatever program they were started with.
	Bridge string
	// Command is the path of commq, which a simulator rank starts to simulate the network.
	Command string
	// Machine is the path of the file that describes the machine, or the name of one that commq knows.
	Machine string
	// Description is what the file held, for the run.
	Description string
	// CPURatio is what compute times are divided by on their way to the virtual clock; 0 is 1.
	CPURatio float64
	// CPUs is how many CPUs the machine has, which more ranks share equally; 0 is as many as the ranks need.
	CPUs int
}

// variables are those of the ranks; the number of simulators is among them only where they were started with the program.
func (s *Simulation) variables() []string {
	vars := []string{"COMMQ_SIM_COMMAND=" + s.Command, "COMMQ_SIM_MACHINE=" + s.Machine}
	if s.CPURatio != 0 && s.CPURatio != 1 {
		vars = append(vars, "COMMQ_SIM_CPU_RATIO="+strconv.FormatFloat(s.CPURatio, 'f', -1, 64))
	}
	if s.CPUs != 0 {
		vars = append(vars, "COMMQ_SIM_CPUS="+strconv.Itoa(s.CPUs))
	}
	if s.Bridge == "" {
		vars = append(vars, "COMMQ_SIM_RANKS="+strconv.Itoa(s.Ranks))
	}
	return vars
}

// Variables are the environment variables of the preload as name=value, in a fixed order. A preload that is already
// in the environment stays, behind ours.
func (p Preload) Variables(environ []string) []string {
	preload := p.Shim
	for _, kv := range environ {
		if old, ok := strings.CutPrefix(kv, "LD_PRELOAD="); ok && old != "" {
			preload = withShimFirst(p.Shim, old)
		}
	}
	return append([]string{"LD_PRELOAD=" + preload, "COMMQ_SPOOL=" + p.Spool, "COMMQ_CLOCK=" + p.Clock}, p.more()...)
}

// more are the variables of what is not as the shim has it by default.
func (p Preload) more() []string {
	var vars []string
	set := func(name, value string) {
		if value != "" {
			vars = append(vars, name+"="+value)
		}
	}
	set("COMMQ_HASH", p.Hash)
	if p.Verify {
		set("COMMQ_HASH_VERIFY", "1")
	}
	if p.Stack != nil {
		set("COMMQ_STACK", strconv.Itoa(*p.Stack))
	}
	set("COMMQ_COUNTERS", p.Counters)
	if p.MaxSpool > 0 {
		set("COMMQ_MAX_SPOOL", strconv.FormatInt(p.MaxSpool, 10))
	}
	set("COMMQ_SINK", p.Sink)
	set("COMMQ_JOB", p.Job)
	if p.Simulation != nil {
		vars = append(vars, p.Simulation.variables()...)
	}
	return vars
}

// Environ is environ with the preload's variables set.
func (p Preload) Environ(environ []string) []string {
	ours := p.Variables(environ)
	var env []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(ours, func(o string) bool { return strings.HasPrefix(o, name+"=") }) {
			env = append(env, kv)
		}
	}
	return append(env, ours...)
}

// withShimFirst puts the shim before an existing preload list, and leaves out other shims: a process can have one.
func withShimFirst(shim, old string) string {
	list := []string{shim}
	for _, f := range strings.FieldsFunc(old, func(r rune) bool { return r == ':' || r == ' ' }) {
		if f != shim && !slices.Contains(shims[:], filepath.Base(f)) {
			list = append(list, f)
		}
	}
	return strings.Join(list, ":")
}

// shims are the names of the libraries that are built to be preloaded.
var shims = [...]string{"libcommq.so", "libcommq-sim.so"}

// Job is a program to launch.
type Job struct {
	// Launcher is the launcher's command line without the number of ranks and the program, for example
	// [mpirun --oversubscribe].
	Launcher []string
	// Ranks is the number of the program's processes, passed as -n, with the simulator ranks added that were started with
	// the program; 0 leaves it to the launcher.
	Ranks int
	// Program is the program and its arguments.
	Program []string
	// Preload is set in the ranks' environment, and only there: the launcher itself runs without it.
	Preload Preload
	// Export passes the preload by the launcher's option -x too, which is Open MPI's (see TakesExports): what its ranks spawn
	// gets the environment that the launcher knows of, not theirs.
	Export bool
	// Stdin, Stdout and Stderr are the program's.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Line is the whole command line of the job. The ranks' environment is set by env(1), which every launcher passes on
// alike, instead of each launcher's own option for it. Simulator ranks that run a program of their own come last.
func (j Job) Line() []string {
	vars := j.Preload.Variables(os.Environ())
	line := []string{j.Launcher[0]}
	if j.Export {
		for _, v := range vars { // in front: the launcher's line may end in a program (numactl), and a user's own -x wins
			line = append(line, "-x", v)
		}
	}
	line = append(line, j.Launcher[1:]...)
	line = append(line, j.count()...)
	line = append(line, "env")
	line = append(line, vars...)
	line = append(line, j.Program...)
	if s := j.Preload.Simulation; s != nil && s.Bridge != "" {
		line = append(line, ":", "-n", strconv.Itoa(s.Ranks), "env", "-u", "LD_PRELOAD")
		line = append(line, vars[1:]...)
		line = append(line, s.Bridge)
	}
	return line
}

// count is the launcher's option that says how many processes run the program.
func (j Job) count() []string {
	if j.Ranks == 0 {
		return nil
	}
	n := j.Ranks
	if s := j.Preload.Simulation; s != nil && s.Bridge == "" {
		n += s.Ranks
	}
	return []string{"-n", strconv.Itoa(n)}
}

// Words is the job's launcher line as a person would write it: without the program and the environment, and the simulator
// ranks' program behind its colon.
func (j Job) Words() []string {
	line := append(slices.Clone(j.Launcher), j.count()...)
	if s := j.Preload.Simulation; s != nil && s.Bridge != "" {
		line = append(line, ":", "-n", strconv.Itoa(s.Ranks), filepath.Base(s.Bridge))
	}
	return line
}

// Run launches the job, waits for it and returns its exit status: the launcher's own, or 128 plus the number of the
// signal that ended it. Signals that reach this process meanwhile are passed on. The error is not nil only when the
// launcher could not be started.
func (j Job) Run(ctx context.Context) (status int, err error) {
	line := j.Line()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = j.Stdin, j.Stdout, j.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start launcher %s: %w", line[0], err)
	}
	done := make(chan struct{})
	go forward(signals, cmd.Process, done)
	err = cmd.Wait()
	close(done)
	return exitStatus(err)
}

// forward passes signals on to the launcher. A terminal sends its own (Ctrl-C, Ctrl-\) to every process of the
// foreground group, the launcher included; a second one would make it kill the job at once.
func forward(signals <-chan os.Signal, p *os.Process, done <-chan struct{}) {
	terminal := term.IsTerminal(int(os.Stdin.Fd()))
	for {
		select {
		case s := <-signals:
			fromTerminal := s == syscall.SIGINT || s == syscall.SIGQUIT
			if !(terminal && fromTerminal) {
				_ = p.Signal(s)
			}
		case <-done:
			return
		}
	}
}

// exitStatus turns the result of a wait into a shell's exit status.
func exitStatus(err error) (int, error) {
	var exit *exec.ExitError
	if err == nil {
		return 0, nil
	}
	if !errors.As(err, &exit) {
		return 0, fmt.Errorf("wait for the launcher: %w", err)
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// libraries are the MPI libraries whose launchers are known, by the names that packages shim and launch share.
var libraries = map[string]struct {
	candidates []string
	versions   []string // what the launcher's --version output contains, one of
	pkg        string   // Debian's package
}{
	"openmpi": {[]string{"mpirun.openmpi", "mpirun", "mpiexec"}, []string{"Open MPI", "OpenRTE"}, "openmpi-bin"},
	"mpich":   {[]string{"mpirun.mpich", "mpiexec.hydra", "mpirun", "mpiexec"}, []string{"HYDRA"}, "mpich"},
}

// Find returns the launcher of an MPI library (openmpi or mpich): the first of its usual names in $PATH that says it
// belongs to it. A program under one library's launcher that is linked to another runs as so many single ranks.
func Find(ctx context.Context, library string) (string, error) {
	lib, ok := libraries[library]
	if !ok {
		return "", fmt.Errorf("find a launcher: unknown MPI library %q; openmpi and mpich are known", library)
	}
	for _, name := range lib.candidates {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if isOf(ctx, library, path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("find a launcher: none of %s in $PATH belongs to %s; install it (Debian: apt-get install %s) or name one with --launcher",
		strings.Join(lib.candidates, ", "), library, lib.pkg)
}

// TakesExports says whether the launcher's line may be given -x NAME=VALUE: it is Open MPI's, and the same is not asked of
// it by the parameter mca_base_env_list, which Open MPI refuses together with -x.
func TakesExports(ctx context.Context, launcher, environ []string) bool {
	path, err := exec.LookPath(launcher[0])
	if err != nil || !isExecutable(path) || !isOf(ctx, "openmpi", path) {
		return false
	}
	for _, arg := range launcher[1:] {
		// files of parameters, which may have it
		if slices.Contains([]string{"tune", "am", "gam", "gtune"}, strings.TrimLeft(arg, "-")) {
			return false
		}
	}
	for _, s := range slices.Concat(launcher[1:], environ) {
		if strings.Contains(s, envList) {
			return false
		}
	}
	return !slices.ContainsFunc(parameterFiles(path), mentionsEnvList)
}

const envList = "mca_base_env_list"

// isExecutable says whether the file is a binary: scripts may do anything when asked for their version.
func isExecutable(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && string(magic[:]) == "\x7fELF"
}

// isOf says whether a launcher says that it belongs to the MPI library.
func isOf(ctx context.Context, library, path string) bool {
	out, _ := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	return slices.ContainsFunc(libraries[library].versions, func(v string) bool { return bytes.Contains(out, []byte(v)) })
}

// TakesPrograms says whether the launcher's line may hold several programs with a colon between them: it is Open MPI's or
// hydra.
func TakesPrograms(ctx context.Context, launcher []string) bool {
	path, err := exec.LookPath(launcher[0])
	return err == nil && isExecutable(path) && (isOf(ctx, "openmpi", path) || isOf(ctx, "mpich", path))
}

// parameterFiles are where Open MPI reads parameters from: the user's file, the installation's, and Debian's.
func parameterFiles(launcher string) []string {
	files := []string{"/etc/openmpi/openmpi-mca-params.conf"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".openmpi", "mca-params.conf"))
	}
	if real, err := filepath.EvalSymlinks(launcher); err == nil {
		files = append(files, filepath.Join(filepath.Dir(real), "..", "etc", "openmpi-mca-params.conf"))
	}
	return files
}

// mentionsEnvList says whether a file of parameters sets mca_base_env_list. Comments count
// as well: at worst what is spawned is not recorded.
func mentionsEnvList(file string) bool {
	data, err := os.ReadFile(file)
	return err == nil && bytes.Contains(data, []byte(envList))
}
