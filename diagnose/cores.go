package diagnose

import (
	"fmt"
	"slices"

	"github.com/commq/commq/internal/cores"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// coresOf is what is known of the cores of a run: whether its ranks waited for them. Runs whose times are not measured
// have a core for each rank.
func coresOf(r *run.Run, computed *computing) cores.Use {
	m := r.Manifest
	u := cores.Use{Known: len(m.Origin.Cores) > 0, CPUShare: 1,
		Threads: slices.Max(append([]int32{0}, r.Ranks.Threads...))}
	if m.TimeOrigin != "measured" {
		return u
	}
	if m.ComputeClock == "cpu" { // the wall clock goes on while a rank has no CPU; a device that waits has no need of one
		u.CPUShare = computed.cpuShare()
	}
	for _, h := range m.SharedCores() {
		u.Shared = append(u.Shared, cores.Host{Name: m.Origin.HostName(h.Host), Ranks: h.SharingRanks,
			Cores: h.SharedCores})
	}
	return u
}

// simulatedInstead reports whether the run's own times are replaced by simulated ones: its ranks waited for cores, and
// compute times are on a clock that stops meanwhile.
func simulatedInstead(m *schema.Manifest, u cores.Use) bool {
	return u.Waited() && m.ComputeClock == "cpu"
}

// variesByCores reports whether ranks may compute longer in turn because they shared cores: other ranks then use the
// caches, and a rank goes on at another core. Virtual times without a clock have only what the program says.
func variesByCores(m *schema.Manifest, u cores.Use) bool {
	if m.TimeOrigin == "measured" {
		return u.Waited()
	}
	return m.ComputeClock != "none" && len(m.SharedCores()) > 0
}

// byTimesOfCores is said of what a file found in the run's own times.
const byTimesOfCores = ", by times in which ranks waited for cores"

// lack is how ranks had too few cores, in words: what is said of it, and how to capture without it.
type lack struct{ of, advice string }

// lackOf is how the ranks of a run had too few cores: more ranks than cores, or something else had them too.
func lackOf(m *schema.Manifest, u cores.Use) lack {
	if len(m.SharedCores()) > 0 || !u.Known {
		return lack{"these ranks shared cores",
			"Capture with a core for each rank first: only what is left then is the program's."}
	}
	return lack{"these ranks waited for a CPU",
		"Capture first where nothing else runs on these cores: only what is left then is the program's."}
}

// doubt is what is said of a finding that the cores may have made.
func (l lack) doubt() string { return "; " + l.of + ", which does this to a program without fault" }

// leastBesideCores is by which part ranks compute longer than others at least that share cores, for it to be the
// program's: mean computing times differ by 5 % from run to run on shared cores, those of some lines by twice as much.
const leastBesideCores = 0.15

// leastVariation is the part of the time that variation gains at least on shared cores for it to be the program's:
// programs without a fault gain up to 23 % there, with 16 ranks on 2 cores.
const leastVariation = 0.35

// doubtByCores marks what shared cores may have made: variation and imbalances that are small, and what files say of
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

// sharedCores warns that the run's times are not those of a core per rank. recordedNs is its measured time, 0 if that
// is not known, and simulatedNs the one that is shown instead.
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

// mostlyComputing is the part of a run's time that computing, with its waits, takes at least where no doubt is in
// place.
const mostlyComputing = 0.5

// maybeSharedCores warns of a run that spends most of its time in MPI, which may be for want of cores.
func maybeSharedCores(d *Diagnosis) string {
	return fmt.Sprintf("without messages the run would take %s; the rest is communication, or ranks that waited in "+
		"MPI for a core: on fewer cores than ranks use --machine NAME, whose times are those of a core each",
		units.Duration(d.SimulatedNs))
}
