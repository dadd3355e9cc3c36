package run

import (
	"fmt"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// Fact is a property of a run in words.
type Fact struct{ Name, Value string }

// facts collects facts; add formats the value of one.
type facts []Fact

func (f *facts) add(name, format string, args ...any) {
	*f = append(*f, Fact{Name: name, Value: fmt.Sprintf(format, args...)})
}

// Facts describes the run: where it comes from, its ranks and times, how it ended, and its counts. exact writes times
// and sizes in full.
func (r Found) Facts(exact bool) []Fact {
	m := r.Manifest
	var f facts
	f.add("run", "%s", r.Name)
	f.addOrigin(&m.Origin, exact)
	f.add("ranks", "%s%s", units.Comma(int64(m.Ranks)), HostsText(&m.Origin))
	ended := m.Ended
	if status := m.Origin.ExitStatus; status != nil {
		ended += fmt.Sprintf(", exit status %d", *status)
	}
	f.add("ended", "%s", ended)
	f.add("time", "%s", timeText(m, exact))
	if sim := m.Origin.Simulation; sim != nil {
		f.add("machine", "%s", MachineText(sim))
	}
	f.addCounts(m, exact)
	f.add("hashes", "%s", m.Hash)
	f.add("digest", "%s", m.Digest)
	return f
}

// addOrigin adds the origin of the run: a command, a trace or other runs.
func (f *facts) addOrigin(o *schema.Origin, exact bool) {
	if len(o.Command) > 0 {
		f.add("command", "%s", shellquote.Join(o.Command...))
	}
	if o.Trace != nil {
		f.add("trace", "%s", TraceText(o.Trace))
	}
	if o.Prediction != nil {
		var names []string
		for _, training := range o.Prediction.Runs {
			names = append(names, training.Run)
		}
		f.add("extrapolated", "from %s", strings.Join(names, ", "))
	}
	if len(o.Launcher) > 0 {
		f.add("launcher", "%s", shellquote.Join(o.Launcher...))
	}
	if o.MPI != "" {
		first, _, _ := strings.Cut(o.MPI, "\n")
		if !exact { // Open MPI v4.1.4, package: ...
			first, _, _ = strings.Cut(first, ", package:")
		}
		f.add("mpi", "%s", strings.TrimSpace(first))
	}
	if o.Started != "" {
		f.add("started", "%s", o.Started)
	}
}

// addCounts adds the counts of the manifest; rare ones only if they are not 0.
func (f *facts) addCounts(m *schema.Manifest, exact bool) {
	c := m.Counts
	kept := ""
	if m.Record != "all" {
		kept = fmt.Sprintf(" (recorded: %s)", m.Record)
	}
	f.add("calls", "%s%s", units.Comma(c.Calls), kept)
	f.add("messages", "%s", units.Comma(c.Messages))
	if exact {
		f.add("message bytes", "%s", units.Comma(c.MessageBytes))
	} else {
		f.add("message bytes", "%s", units.Bytes(c.MessageBytes))
	}
	f.add("collectives", "%s", units.Comma(c.Collectives))
	for _, unusual := range []struct {
		name string
		n    int64
	}{
		{"failed polls", c.Polls}, {"unmatched sends", c.UnmatchedSends}, {"unmatched receives", c.UnmatchedReceives},
		{"wildcard receives", c.WildcardReceives}, {"calls dropped", c.Dropped}, {"calls in progress", c.InProgress},
		{"calls that overlap", c.OverlappingCalls},
		{"open choices", c.Choices}, {"out of order", c.OutOfOrder}, {"early collectives", c.EarlyCollectives},
	} {
		if unusual.n != 0 {
			f.add(unusual.name, "%s", units.Comma(unusual.n))
		}
	}
}

// CaptureFacts describes how the run was captured: label, hosts, the options of the capture, and the version of commq.
func (r Found) CaptureFacts() []Fact {
	m := r.Manifest
	var f facts
	if m.Origin.Label != "" {
		f.add("label", "%s", m.Origin.Label)
	}
	if len(m.Origin.Hosts) > 0 {
		f.add("hosts", "%s", strings.Join(m.Origin.Hosts, ", "))
	}
	f.addCores(&m.Origin)
	f.add("captured with", "%s", strings.Join(captureOptions(m), "; "))
	f.add("written by", "commq %s, schema version %d", m.Origin.Commq, m.SchemaVersion)
	return f
}

// addCores describes the cores of the hosts, those with the same numbers once.
func (f *facts) addCores(o *schema.Origin) {
	hosts := map[schema.HostCores]int64{} // number of hosts that differ in nothing but their names
	key := func(c schema.HostCores) schema.HostCores { c.Host = 0; return c }
	for _, c := range o.Cores {
		hosts[key(c)]++
	}
	for _, c := range o.Cores {
		if n := hosts[key(c)]; n > 0 {
			hosts[key(c)] = 0
			name := o.HostName(c.Host)
			if n > 1 {
				name += " and of " + units.Count(n-1, "other host")
			}
			f.add("cores", "%s", coresText(name, &c))
		}
	}
}

// coresText describes the cores of a host: 16 ranks on 2 cores of n1.
func coresText(host string, c *schema.HostCores) string {
	text := fmt.Sprintf("%s on %s of %s", units.Count(int64(c.Ranks), "rank"), units.Count(int64(c.Cores), "core"),
		host)
	switch {
	case c.Least < c.Most:
		text += fmt.Sprintf(", a rank on %d to %d", c.Least, c.Most)
	case c.Least < c.Cores:
		text += fmt.Sprintf(", a rank on %d", c.Least)
	}
	if c.SharingRanks > 0 {
		text += fmt.Sprintf("; %s share %s", units.Count(int64(c.SharingRanks), "rank"),
			units.Count(int64(c.SharedCores), "core"))
	}
	return text
}

// captureOptions describes each option of the capture.
func captureOptions(m *schema.Manifest) []string {
	with := []string{"record " + m.Record, "clock " + m.ComputeClock}
	if m.HashVerify {
		with = append(with, "hash "+m.Hash+", verified")
	} else {
		with = append(with, "hash "+m.Hash)
	}
	if m.Callsites {
		with = append(with, "call sites of "+units.Count(int64(max(m.Stack, 1)), "frame"))
	} else {
		with = append(with, "no call sites")
	}
	if m.Counters != "" {
		with = append(with, "counters "+m.Counters)
	}
	if len(m.Filters) > 0 {
		with = append(with, "filters "+strings.Join(m.Filters, " "))
	}
	return with
}

// HostsText says on how many hosts a run was captured, to follow its number of ranks; empty if they are not known.
func HostsText(o *schema.Origin) string {
	switch n := len(o.Hosts); n {
	case 0:
		return ""
	case 1:
		return " on 1 host"
	default:
		return fmt.Sprintf(" on %d hosts", n)
	}
}

// timeText describes the times of a run: how long it took, by which clocks, and in how many epochs.
func timeText(m *schema.Manifest, exact bool) string {
	if m.TimeOrigin == "untimed" {
		return "untimed"
	}
	span, step := units.Duration(m.EndNs), units.Duration(m.TimeResolutionNs)
	if exact {
		span, step = fmt.Sprintf("%.9f s", float64(m.EndNs)/1e9), fmt.Sprintf("%d ns", m.TimeResolutionNs)
	}
	resolution := ""
	if m.TimeResolutionNs > 1 {
		resolution = " in steps of " + step
	}
	return fmt.Sprintf("%s %s%s, compute clock %s, %s", span, m.TimeOrigin, resolution, m.ComputeClock,
		units.Count(int64(m.Epochs), "epoch"))
}

// shownDigest is the number of digits of a digest in texts.
const shownDigest = 12

// MachineText names the machine of virtual times, by name or by file and digest, and how many ranks simulated it.
func MachineText(s *schema.Simulation) string {
	name := s.Machine
	if len(s.Digest) >= shownDigest && strings.ContainsRune(name, '/') {
		name += fmt.Sprintf(" (SHA-256 %s...)", s.Digest[:shownDigest])
	}
	return name + ", " + units.Count(int64(s.Ranks), "simulator rank")
}

// TraceText names a trace of another tool: its file, its format and the program, if that is known.
func TraceText(t *schema.Trace) string {
	text := fmt.Sprintf("%s (%s)", t.File, t.Format)
	if t.Program != "" {
		text += " of " + t.Program
	}
	return text
}

// Remarks tells what is not as in most runs, in words: rows that were not kept, calls that could not be recorded, times
// that were not measured, an end before MPI_Finalize. It is "" if there is nothing.
func Remarks(m *schema.Manifest) string {
	var all []string
	if m.Record != "all" {
		all = append(all, m.Record+" only")
	}
	if m.SwitchedOff() {
		all = append(all, "switched off by MPI_Pcontrol")
	}
	f := m.CallFilter()
	if len(f.Kept) > 0 {
		all = append(all, "only "+strings.Join(f.Kept, " "))
	}
	if len(f.Out) > 0 {
		all = append(all, "without "+strings.Join(f.Out, " "))
	}
	if m.Counts.Dropped > 0 {
		all = append(all, units.Count(m.Counts.Dropped, "call")+" lost")
	}
	if m.TimeOrigin != "measured" {
		all = append(all, m.TimeOrigin)
	}
	if m.Ended != schema.EndedNames[schema.EndedFinalized] {
		all = append(all, m.Ended)
	}
	return strings.Join(all, ", ")
}
