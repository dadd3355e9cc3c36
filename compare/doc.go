// Package compare decides what differs between the measures of runs, and whether it may differ: two sets of runs, a
// baseline kept beside a program's source, and rules that runs follow or break.
//
// Measures are of two kinds. Exact ones (messages, bytes, calls) depend only on the program and must be equal. Times
// vary from run to run and are compared by a statistical test, as in benchstat (golang.org/x/perf/benchmath).
//
// The files, in reading order:
//
//   - measure.go asks the query measures; sample.go has the values of one run.
//   - runs.go measures runs and compares them, or makes a baseline of them, in one call.
//   - numbers.go returns the numbers that several samples have.
//   - benchfmt.go writes samples in the format of Go's benchmarks, for benchstat.
//   - diff.go compares two sets of samples; print.go and table.go show the result, grid.go aligns its lines.
//   - findings.go compares what commq diagnose finds in two sets of runs.
//   - wire.go compares what two runs send, message by message.
//   - baseline.go reads and writes baselines; equation.go adds the exact laws of measures over the number of ranks.
//   - rules.go reads rules, parts.go rejects parts of measures that no run can have.
//   - leftout.go tells what a run lacks of the calls that a rule counts.
//   - check.go applies rules to evidence, causes.go those about findings, laws.go those about equations, files.go
//     collects that evidence for the files of a command, verdict.go writes the verdict as text, JUnit, SARIF or GitHub
//     commands.
//   - reference.go writes the page docs/reference/rules.md.
package compare
