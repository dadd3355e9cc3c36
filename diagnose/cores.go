package diagnose

import (
	"fmt"
	"slices"

	"github.com/commq/commq/internal/cores"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// coresOf returns what is known of the cores of a run, and whether its ranks waited for them. Runs whose times are not
// measured have a core for each rank.
func coresOf(r *run.Run, computed *computing) cores.Use {
	m := r.Manifest
	u := cores.Use{Known: len(m.Origin.Cores) > 0, CPUShare: 1,
		Threads: slices.Max(append([]int32{0}, r.Ranks.Threads...))}
	if m.TimeOrigin != "measured" {
		return u
	}
	if m.ComputeClock == "cpu" { // a wall clock runs on without a CPU; a waiting device needs none
		u.CPUShare = computed.cpuShare()
	}
	for _, h := range m.SharedCores() {
		u.Shared = append(u.Shared, cores.Host{Name: m.Origin.HostName(h.Host), Ranks: h.SharingRanks,
			Cores: h.SharedCores})
	}
	return u
}

// simulatedInstead reports whether simulated times replace the run's own: its ranks waited for cores, and the clock of
// its compute times stops while they wait.
func simulatedInstead(m *schema.Manifest, u cores.Use) bool {
	return u.Waited() && m.ComputeClock == "cpu"
}

// variesByCores reports whether shared cores may make ranks compute longer in turn: other ranks use the caches, and
// ranks move to other cores. Virtual times without a clock have only the computing that the program states.
func variesByCores(m *schema.Manifest, u cores.Use) bool {
	if m.TimeOrigin == "measured" {
		return u.Waited()
	}
	return m.ComputeClock != "none" && len(m.SharedCores()) > 0
}

// byTimesOfCores is added to a file's finding in the run's own times.
const byTimesOfCores = ", by times in which ranks waited for cores"

// lack says in words that ranks had too few cores (of), and how to capture without that (advice).
type lack struct{ of, advice string }

// lackOf returns the words for the ranks of a run: more ranks than cores, or something else ran on the cores.
func lackOf(m *schema.Manifest, u cores.Use) lack {
	if len(m.SharedCores()) > 0 || !u.Known {
		return lack{"these ranks shared cores",
			"Capture with a core for each rank first: only what is left then is the program's."}
	}
	return lack{"these ranks waited for a CPU",
		"Capture first where nothing else runs on these cores: only what is left then is the program's."}
}

// doubt is added to the title of a finding that the cores may have caused.
func (l lack) doubt() string { return "; " + l.of + ", which does this to a program without fault" }

// On shared cores an imbalance counts as the program's only if its ranks compute at least leastBesideCores longer than
// the others: mean computing times differ by 5 % from run to run there, those of some lines by twice as much.
const leastBesideCores = 0.15

// On shared cores variation counts as the program's only if it gains at least leastVariation of the time: programs
// without a fault gain up to 23 % there, with 16 ranks on 2 cores.
const leastVariation = 0.35

// doubtByCores marks findings that shared cores may have caused: small variation and imbalances, and what files find in
// measured times.
func (q *search) doubtByCores(l lack, measured bool) {
	for i := range q.d.Findings {
		f := &q.d.Findings[i]
		switch {
		case f.Rule == Variation && q.d.Share(f) < leastVariation,
			f.Rule == Imbalance && f.timesMore < leastBesideCores:
			f.Title, f.Advice, f.doubtful = f.Title+l.doubt(), l.advice, true
		case measured && f.Bound && !slices.Contains(Rules, f.Rule):
			f.Title, f.doubtful = f.Title+byTimesOfCores, true
		}
	}
}

// sharedCores warns that the ranks had no core each. recordedNs is the measured time, 0 if unknown, and simulatedNs the
// one shown instead.
func sharedCores(m *schema.Manifest, u cores.Use, machine string, recordedNs, simulatedNs int64) string {
	if !simulatedInstead(m, u) {
		return u.Text("") + "; these times include waiting for a core: capture with --clock cpu, or on more cores"
	}
	text := fmt.Sprintf("%s; these times are simulated on %s instead, from the CPU time that the ranks computed",
		u.Text(""), machine)
	if machine != idealNetwork {
		return text
	}
	text += ": messages take no time there, so that rules about messages need --machine NAME"
	if float64(simulatedNs) < mostlyComputing*float64(recordedNs) {
		text += fmt.Sprintf(". The measured time was %s: the rest is communication, or ranks that waited in MPI for a "+
			"core", units.Duration(recordedNs))
	}
	return text
}

// A run is doubtful if its computing, with the waits for it, takes less than mostlyComputing of its time.
const mostlyComputing = 0.5

// maybeSharedCores warns of a run that spends most of its time in MPI: it may lack cores.
func maybeSharedCores(d *Diagnosis) string {
	return fmt.Sprintf("without messages the run would take %s; the rest is communication, or ranks that waited in "+
		"MPI for a core: on fewer cores than ranks use --machine NAME, whose times are those of a core each",
		units.Duration(d.SimulatedNs))
}
