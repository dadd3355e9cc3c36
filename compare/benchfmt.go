package compare

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// WriteBenchfmt writes the samples of runs, a line for each, in the format of Go's benchmarks. Exact measures are
// declared as such. name is that of the benchmark; an empty one stands for the program of each run. Without runs it
// returns an error and writes nothing.
func WriteBenchfmt(w io.Writer, name string, runs []Run, samples []Sample) error {
	var head, lines strings.Builder
	declared := map[string]bool{}
	for i := range samples {
		fmt.Fprintf(&lines, "%s 1", benchmarkName(name, runs[i]))
		for k := range samples[i].Values {
			v := &samples[i].Values[k]
			unit, perUnit := benchmarkUnit(v)
			if unit == "" {
				continue
			}
			if v.Exact && !declared[unit] {
				declared[unit] = true
				fmt.Fprintf(&head, "Unit %s assume=exact\n", unit)
			}
			value := strconv.FormatInt(v.Value, 10)
			if perUnit != 1 { // divided: whole nanoseconds keep their digits
				value = strconv.FormatFloat(float64(v.Value)/perUnit, 'g', -1, 64)
			}
			fmt.Fprintf(&lines, " %s %s", value, unit)
		}
		lines.WriteString("\n")
	}
	if lines.Len() == 0 {
		return errors.New("no run to write")
	}
	_, err := io.WriteString(w, head.String()+lines.String())
	return err
}

// notInNames are characters that a benchmark's name cannot have: it ends at a blank, and - precedes the number of CPUs.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9_.]+`)

// benchmarkName names a run's benchmark; it must begin with a capital letter.
func benchmarkName(name string, r Run) string {
	if name == "" && len(r.Manifest.Origin.Command) > 0 {
		name = filepath.Base(r.Manifest.Origin.Command[0])
	}
	name = notInNames.ReplaceAllString(name, "_")
	if name == "" {
		name = "Run"
	}
	return fmt.Sprintf("Benchmark%s%s/ranks=%d", strings.ToUpper(name[:1]), name[1:], r.Manifest.Ranks)
}

// BenchfmtLeavesOut are the names of the measures of samples that WriteBenchfmt leaves out.
func BenchfmtLeavesOut(samples []Sample) (names []string) {
	for i := range samples {
		for k := range samples[i].Values {
			v := &samples[i].Values[k]
			unit, _ := benchmarkUnit(v)
			name := v.Measure
			if v.Item != "" {
				name += "/..."
			}
			if unit == "" && v.Measure != "ranks" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// benchmarkUnit returns the unit of a measure and how much of the measure is one of it; the unit is empty for measures
// that benchfmt leaves out: of fingerprints, places and sizes, whose names benchfmt cannot have.
func benchmarkUnit(v *Value) (unit string, perUnit float64) {
	name := strings.ReplaceAll(v.Key(), " ", "")
	switch {
	case v.Unit == Fingerprint || strings.HasPrefix(v.Measure, "site") || v.Measure == "ranks" ||
		strings.ContainsAny(name, "<>"):
		return "", 0
	case v.Measure == "end_ns":
		return "sec/op", 1e9
	case v.Unit == "ns":
		return strings.Replace(name, "_ns", "", 1) + "-sec/op", 1e9
	}
	return name, 1
}
