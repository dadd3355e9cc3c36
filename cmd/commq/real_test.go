package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/writer"
)

// The tests in this file run third-party programs on small problems, with and without capture: they must give the
// same answers.

// realAnswers runs a program on 4 ranks in a new folder with the given files: without capture, and under capture with
// hashes of sent and received payloads, which must agree. It returns the lines of both outputs that match the
// expression.
func realAnswers(t *testing.T, files map[string]string, lines *regexp.Regexp, program ...string) (native,
	captured []string, store string) {
	t.Helper()
	for _, kv := range testenv.Environ("OMP_NUM_THREADS=1") {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	store = t.TempDir()
	var out [2][]string
	for i := range out {
		dir := t.TempDir()
		for name, text := range files {
			putFile(t, filepath.Join(dir, name), text, 0o644)
		}
		t.Chdir(dir)
		var text string
		if i == 0 {
			b, err := exec.Command("mpirun.openmpi", append([]string{"-n", "4"}, program...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%s itself: %v\n%s", program[0], err, tail(string(b)))
			}
			text = string(b)
		} else {
			text = commq(t, append([]string{"capture", "--store", store, "--name", "real.4", "-n", "4", "-q",
				"--hash-verify", "--"}, program...)...)
		}
		out[i] = lines.FindAllString(text, -1)
	}
	commq(t, "runs", "check", "--store", store, "real.4")
	m, err := writer.ReadManifest(filepath.Join(store, "real.4"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Counts.HashesVerified < 100 || m.Counts.HashMismatches != 0 || len(m.Warnings) > 0 {
		t.Errorf("%d messages were hashed at both ends, %d differ; warnings: %v", m.Counts.HashesVerified,
			m.Counts.HashMismatches, m.Warnings)
	}
	return out[0], out[1], store
}

// melt is a Lennard-Jones crystal of 4000 atoms that melts.
const melt = `units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 4097 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 20
run 100
`

func TestLAMMPSRunsUnchanged(t *testing.T) {
	testenv.MPI(t, "openmpi")
	testenv.Need(t, "lmp")
	// The table of temperature, energy and pressure, and the distribution of atoms over the ranks.
	lines := regexp.MustCompile(`(?m)^ +\d+ +[\d.]+ +-[\d.]+ .*$|^(Nlocal|Nghost|Neighs|Histogram|Total #).*$`)
	want, got, store := realAnswers(t, map[string]string{"in.melt": melt}, lines, "lmp", "-in", "in.melt")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("LAMMPS without (-) and with (+) capture:\n%s", diff)
	}
	if len(got) != 6+7 || !strings.HasPrefix(strings.TrimSpace(got[0]), "0         1.44 ") {
		t.Errorf("LAMMPS printed %d lines of results:\n%s", len(got), strings.Join(got, "\n"))
	}
	sends := commq(t, "sql", "--store", store, "--run", "real.4", "--format", "csv",
		"SELECT count(DISTINCT src) AS ranks, count(*) > 2000 AS many FROM messages")
	if sends != "ranks,many\n4,true\n" {
		t.Error(sends)
	}
}

// hydrogen makes a pseudopotential of the hydrogen atom (ld1.x), molecule computes H2 with it.
const (
	hydrogen = `&input
 title='H', zed=1.0, rel=0, config='1s1', iswitch=3, dft='PZ'
/
&inputp
 pseudotype=1, nlcc=.false., lloc=0, file_pseudopw='H.UPF', tm=.true.
/
1
1S 1 0 1.00 0.00 0.80 0.80 0.0
`
	molecule = `&control
 calculation='scf', prefix='h2', pseudo_dir='.', outdir='out'
/
&system
 ibrav=1, celldm(1)=10.0, nat=2, ntyp=1, ecutwfc=20.0, nbnd=4
/
&electrons
 conv_thr=1e-8
/
ATOMIC_SPECIES
 H 1.008 H.UPF
ATOMIC_POSITIONS bohr
 H 0.0 0.0 -0.7
 H 0.0 0.0 0.7
K_POINTS gamma
`
)

func TestQuantumESPRESSORunsUnchanged(t *testing.T) {
	testenv.MPI(t, "openmpi")
	testenv.Need(t, "pw.x", "ld1.x")
	dir := t.TempDir()
	atom := exec.Command("ld1.x")
	atom.Dir, atom.Stdin = dir, strings.NewReader(hydrogen)
	if out, err := atom.CombinedOutput(); err != nil {
		t.Fatalf("ld1.x: %v\n%s", err, tail(string(out)))
	}
	potential, err := os.ReadFile(filepath.Join(dir, "H.UPF"))
	if err != nil {
		t.Fatal(err)
	}
	// Energies of every iteration and their parts.
	lines := regexp.MustCompile(`(?m)^.*(energy|contribution|highest|convergence has been).*$`)
	want, got, _ := realAnswers(t, map[string]string{"h2.in": molecule, "H.UPF": string(potential)}, lines, "pw.x",
		"-in", "h2.in")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Quantum ESPRESSO without (-) and with (+) capture:\n%s", diff)
	}
	if text := strings.Join(got, "\n"); !strings.Contains(text, "!    total energy              =      -2.2") ||
		!strings.Contains(text, "convergence has been achieved") {
		t.Error(text)
	}
}
