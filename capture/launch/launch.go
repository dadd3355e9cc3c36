// Package launch starts MPI programs under the shim. It finds the launcher of an MPI library, sets the preload in the
// environment of the ranks, and passes the streams, signals and exit status of the program through unchanged.
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

	"golang.org/x/sys/unix"

	"github.com/commq/commq/schema"
)

// Preload describes the environment that makes ranks record their calls.
type Preload struct {
	// First are libraries that must come before the shim: those of sanitizers, which the program needs anyway.
	First []string
	// Shim is the path of the shim's shared library.
	Shim string
	// Spool is the folder the ranks write their spool files to.
	Spool string
	// Clock is the compute clock: cpu, wall or none.
	Clock string
	// Hash is the payload hash: crc64, crc32 or none; empty is the shim's default, crc64.
	Hash string
	// Verify hashes receives too.
	Verify bool
	// Stack is the number of frames of a call site. nil is the shim's default, 1: the return address. 0 captures none.
	Stack *int
	// Counters is the source of instructions and cycles: empty (they are not counted), perf, or fake in tests.
	Counters string
	// MaxSpool is how many bytes of records each thread of a rank may write; 0: no limit.
	MaxSpool int64
	// Sink is how records are written: empty (packed, or with write(2) on file systems without mapped files), mmap
	// (as they are, to mapped files), write, or null, which only counts them.
	Sink string
	// Simulation is set when there are simulator ranks.
	Simulation *Simulation
	// Job is a text that no other launch has. Programs that use sessions cannot agree on anything when they start, so
	// they derive the id of their job from it. When it is empty, the environment has to distinguish launches.
	Job string
}

// Simulation is what the ranks of a job with simulator ranks need to know. Preload.Shim must then be the library for
// simulations.
type Simulation struct {
	// Ranks is the number of simulator ranks, 1 or more.
	Ranks int
	// Bridge is the path of the program that the simulator ranks run. When it is empty, the last Ranks processes of the
	// job are simulator ranks, whatever program they were started with.
	Bridge string
	// Command is the path of commq, which a simulator rank starts to simulate the network.
	Command string
	// Machine is the path of the file that describes the machine, or the name of one that commq knows.
	Machine string
	// Description is the text of that file, for the manifest of the run.
	Description string
	// CPURatio divides compute times for the virtual clock; 0 is 1.
	CPURatio float64
	// CPUs is the number of CPUs of this machine. If there are more ranks, they share these equally. 0 is as many as
	// there are ranks.
	CPUs int
}

// variables are the environment variables of the ranks. The number of simulator ranks is one of them only when these
// were started with the program.
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

// Variables are the environment variables of the preload as name=value, in a fixed order. A preload that is already in
// the environment stays, after ours.
func (p Preload) Variables(environ []string) []string {
	ours := append(slices.Clone(p.First), p.Shim)
	preload := strings.Join(ours, ":")
	for _, kv := range environ {
		if old, ok := strings.CutPrefix(kv, "LD_PRELOAD="); ok && old != "" {
			preload = withOursFirst(ours, old)
		}
	}
	return append([]string{"LD_PRELOAD=" + preload, "COMMQ_SPOOL=" + p.Spool, "COMMQ_CLOCK=" + p.Clock},
		p.optional()...)
}

// optional are the variables of settings that are not the shim's defaults.
func (p Preload) optional() []string {
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

// Environ is environ with the variables of the preload set.
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

// withOursFirst puts our libraries, the shim last, before an existing preload list. It removes other shims: a process
// can have only one.
func withOursFirst(ours []string, old string) string {
	list := slices.Clone(ours)
	for _, f := range strings.FieldsFunc(old, func(r rune) bool { return r == ':' || r == ' ' }) {
		if !slices.Contains(ours, f) && !slices.Contains(shims[:], filepath.Base(f)) {
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
	// Ranks is the number of processes of the program; 0 leaves it to the launcher. It is passed as -n, plus the
	// simulator ranks that are started with the program.
	Ranks int
	// Program is the program and its arguments.
	Program []string
	// Preload is set in the environment of the ranks. The launcher itself runs without it.
	Preload Preload
	// Export passes the preload with Open MPI's option -x too (see TakesExports): processes that the ranks spawn get
	// the environment that the launcher knows, not that of the ranks.
	Export bool
	// Stdin, Stdout and Stderr are the program's.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Line is the complete command line of the job. It sets the environment of the ranks with env(1), which works with
// every launcher, and not with the launcher's own option. Simulator ranks that run their own program come last.
func (j Job) Line() []string {
	vars := j.Preload.Variables(os.Environ())
	line := []string{j.Launcher[0]}
	if j.Export {
		// first, because the launcher's line may end in a program (numactl), and so that the user's own -x wins
		for _, v := range vars {
			line = append(line, "-x", v)
		}
	}
	line = append(line, j.Launcher[1:]...)
	line = append(line, j.count()...)
	line = append(line, "env")
	line = append(line, vars...)
	line = append(line, afterEnv(j.Program)...)
	if s := j.Preload.Simulation; s != nil && s.Bridge != "" {
		line = append(line, ":", "-n", strconv.Itoa(s.Ranks), "env", "-u", "LD_PRELOAD")
		line = append(line, vars[1:]...)
		line = append(line, afterEnv([]string{s.Bridge})...)
	}
	return line
}

// afterEnv returns what follows the variables on env's command line to start a program. env would take a program with
// = in its path for one more variable, so a shell starts that one and becomes it.
func afterEnv(program []string) []string {
	if len(program) > 0 && strings.Contains(program[0], "=") {
		return append([]string{"sh", "-c", `exec "$0" "$@"`}, program...)
	}
	return program
}

// count is the launcher's option for the number of processes that run the program.
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

// Words is the launcher line as a person would write it: without the program and the environment, and with the
// program of the simulator ranks after a colon.
func (j Job) Words() []string {
	line := append(slices.Clone(j.Launcher), j.count()...)
	if s := j.Preload.Simulation; s != nil && s.Bridge != "" {
		line = append(line, ":", "-n", strconv.Itoa(s.Ranks), filepath.Base(s.Bridge))
	}
	return line
}

// Origin is the origin of a run captured from the job, which ended with this exit status.
func (j Job) Origin(status int) schema.Origin {
	o := schema.Origin{Command: j.Program, Launcher: j.Words(), ExitStatus: &status}
	if s := j.Preload.Simulation; s != nil {
		o.Simulation = &schema.Simulation{Ranks: int32(s.Ranks), Machine: s.Machine, Description: s.Description}
	}
	return o
}

// EachAlone reports whether every process of the program was a job of one rank by itself, given the number of jobs that
// were captured and the ranks of the largest. The launcher is then perhaps of another MPI library than the program.
func (j Job) EachAlone(jobs int, largest int32) bool {
	return jobs > 1 && jobs == j.Ranks && largest == 1
}

// Run launches the job, waits for it and returns the exit status of the launcher, or 128 plus the number of the
// signal that ended it. It passes on the signals that this process receives meanwhile. It returns an error only when
// the launcher could not be started or waited for.
func (j Job) Run(ctx context.Context) (status int, err error) {
	line := j.Line()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = j.Stdin, j.Stdout, j.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2)
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

// forward passes signals on to the launcher, except those of keys (Ctrl-C, Ctrl-\): the terminal sends them to the
// launcher too, and a second one would make it kill the job at once. While this process is in the foreground of a
// terminal, those that kill sends are taken for keys: SIGTERM ends the job there.
func forward(signals <-chan os.Signal, p *os.Process, done <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			fromKeyboard := s == syscall.SIGINT || s == syscall.SIGQUIT
			if !(fromKeyboard && inForeground()) {
				_ = p.Signal(s)
			}
		case <-done:
			return
		}
	}
}

// inForeground reports whether keys of the controlling terminal send signals to this process and to what it started,
// wherever their input comes from.
func inForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// exitStatus turns the result of a wait into the exit status of a shell.
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

// libraries are the MPI libraries whose launchers are known. Package shim uses the same names.
var libraries = map[string]struct {
	candidates []string
	versions   []string // one of these is in the output of the launcher's --version
	pkg        string   // Debian's package
}{
	"openmpi": {[]string{"mpirun.openmpi", "mpirun", "mpiexec"}, []string{"Open MPI", "OpenRTE"}, "openmpi-bin"},
	"mpich": {[]string{"mpirun.mpich", "mpiexec.hydra", "mpirun", "mpiexec"},
		[]string{"HYDRA", "Intel(R) MPI Library"}, "mpich"},
}

// Find returns the launcher of an MPI library (openmpi or mpich): the first of its usual names in $PATH whose --version
// names the library. A program that is linked to another library than its launcher runs as many jobs of a single rank.
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
		if belongsTo(ctx, library, path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("find a launcher: none of %s in $PATH belongs to %s; install it (Debian: apt-get install %s) or name one with --launcher",
		strings.Join(lib.candidates, ", "), library, lib.pkg)
}

// TakesExports reports whether the launcher takes -x NAME=VALUE: it must be Open MPI's, and its parameter
// mca_base_env_list must not be set, which Open MPI refuses together with -x.
func TakesExports(ctx context.Context, launcher, environ []string) bool {
	path, err := exec.LookPath(launcher[0])
	if err != nil || !isBinary(path) || !belongsTo(ctx, "openmpi", path) {
		return false
	}
	for _, arg := range launcher[1:] {
		// files of parameters, which may set it
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

// isBinary reports whether the file is a binary. A script may do anything when called with --version.
func isBinary(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && string(magic[:]) == "\x7fELF"
}

// belongsTo reports whether the --version of a launcher names the MPI library.
func belongsTo(ctx context.Context, library, path string) bool {
	out, _ := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	return slices.ContainsFunc(libraries[library].versions,
		func(v string) bool { return bytes.Contains(out, []byte(v)) })
}

// TakesPrograms reports whether the launcher's line may have several programs with a colon between them: Open MPI and
// hydra can do that.
func TakesPrograms(ctx context.Context, launcher []string) bool {
	path, err := exec.LookPath(launcher[0])
	return err == nil && isBinary(path) && (belongsTo(ctx, "openmpi", path) || belongsTo(ctx, "mpich", path))
}

// parameterFiles are the files from which Open MPI reads parameters: of the user, of the installation and of Debian.
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

// mentionsEnvList reports whether a file of parameters mentions mca_base_env_list. Comments count too: at worst,
// spawned processes are not recorded.
func mentionsEnvList(file string) bool {
	data, err := os.ReadFile(file)
	return err == nil && bytes.Contains(data, []byte(envList))
}

// launchers are the names of programs that start MPI programs. Debian and others add the library after a dot.
var launchers = []string{"mpirun", "mpiexec", "orterun", "prterun", "prun", "srun", "jsrun", "aprun", "ibrun"}

// IsLauncher reports whether a program has the name of a launcher, such as mpirun or mpiexec.hydra.
func IsLauncher(program string) bool {
	name, _, _ := strings.Cut(filepath.Base(program), ".")
	return slices.Contains(launchers, name)
}
