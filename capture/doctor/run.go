package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Run is a run to check.
type Run struct {
	Name, Dir string
	Manifest  *schema.Manifest
	// Ask asks the run's queries.
	Ask rows.Ask
}

func (r *Run) opened() writer.Opened { return writer.Opened{Dir: r.Dir, Digest: r.Manifest.Digest} }

// Check checks a run, the store it lies in, and the program that made it if that is still there.
func (r *Run) Check(ctx context.Context) ([]Finding, error) {
	list, err := r.CheckContents(ctx)
	if err != nil {
		return nil, err
	}
	list = append(list, r.duplicates()...)
	list = append(list, originalProgram(r.Manifest)...)
	return append(list, IngestWarnings(r.Manifest)...), nil
}

// CheckContents checks the manifest and the rows of a run and nothing outside it.
func (r *Run) CheckContents(ctx context.Context) ([]Finding, error) {
	inRows, err := r.checkRows(ctx, true)
	if err != nil {
		return nil, err
	}
	return append(checkManifest(r.Manifest), inRows...), nil
}

// checkRows checks the rows of a run: all of them, or only those of its ranks.
func (r *Run) checkRows(ctx context.Context, all bool) (list []Finding, err error) {
	checks := []func(context.Context) ([]Finding, error){r.ranks}
	if all {
		checks = append(checks, r.latencies, r.overlaps, r.collectives)
	}
	for _, check := range checks {
		more, err := check(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// Doubts returns the checks of the run's contents that make its times and counts doubtful. Checks that read all rows
// are made only if it has at most mostCalls calls.
func (r *Run) Doubts(ctx context.Context, mostCalls int64) (doubts []Finding, err error) {
	inRows, err := r.checkRows(ctx, r.Manifest.Counts.Calls <= mostCalls)
	if err != nil {
		return nil, err
	}
	return r.doubtful(inRows), nil
}

// doubtful returns the doubts of the manifest, and those among the checks of the rows.
func (r *Run) doubtful(inRows []Finding) (doubts []Finding) {
	list := append(ending(r.Manifest), dropped(r.Manifest), unmatched(r.Manifest))
	for _, f := range append(list, inRows...) {
		if f.Status != OK && f.Check != "exit status" {
			doubts = append(doubts, f)
		}
	}
	return doubts
}

// IngestWarnings repeats the warnings that ingest wrote into the manifest. Those of an imported run are notes on what
// its trace does not tell: the run cannot be captured again.
func IngestWarnings(m *schema.Manifest) (list []Finding) {
	if trace := m.Origin.Trace; trace != nil {
		for _, w := range m.Warnings {
			list = append(list, ok("import said", "of its trace (%s): %s", trace.Format, w))
		}
		return list
	}
	for _, w := range m.Warnings {
		list = append(list, warning("ingest said", "ask about the rest of the run; for what it names, mend the cause and "+
			"capture again", "%s", w))
	}
	return list
}

// checkManifest makes the checks that need no rows.
func checkManifest(m *schema.Manifest) []Finding {
	list := ending(m)
	list = append(list, dropped(m))
	if m.Record != ingest.RecordAll || len(m.Filters) > 0 {
		filters := ""
		if len(m.Filters) > 0 {
			filters = ", filters " + strings.Join(m.Filters, " ")
		}
		list = append(list, ok("left out", "by request: record %s%s; the manifest's counts include everything",
			m.Record, filters))
	}
	if coarse := CoarseTimes(m); coarse != "" {
		list = append(list, ok("times", "by request: %s; ask it about counts and bytes", coarse))
	}
	list = append(list, unmatched(m))
	return append(list, hashes(m)...)
}

// ending checks how the program ended.
func ending(m *schema.Manifest) (list []Finding) {
	const name = "end"
	switch {
	case m.Ended == schema.EndedNames[schema.EndedFinalized] && m.Counts.InProgress == 0:
		list = append(list, ok(name, "all ranks finalized"))
	case m.Counts.InProgress > 0:
		list = append(list, warning(name,
			"the run's warnings name the calls; commq watch --hang says more about a spool that was kept",
			"%s, %s never returned", m.Ended, units.Count(m.Counts.InProgress, "call")))
	default:
		list = append(list, warning(name, "see what the program and its launcher printed; answers hold until then",
			"%s: the run ends where the program did", m.Ended))
	}
	if s := m.Origin.ExitStatus; s != nil && *s != 0 {
		list = append(list, warning("exit status", "see what the program printed", "%d", *s))
	}
	return list
}

// dropped checks for calls that were made and not recorded.
func dropped(m *schema.Manifest) Finding {
	if n := m.Counts.Dropped; n > 0 {
		return failure("dropped", "capture again with more room: a larger --max-spool, or another --spool",
			"%s could not be recorded: counts are too small", units.Count(n, "call"))
	}
	return ok("dropped", "no call")
}

// coarseFromNs is the resolution from which on times are too coarse for questions about single messages and calls,
// which take about a microsecond.
const coarseFromNs = 1000

// CoarseTimes describes the rounding of a run's times; empty if they are finer than most messages and calls are long.
func CoarseTimes(m *schema.Manifest) string {
	if m.TimeOrigin == "untimed" || m.TimeResolutionNs < coarseFromNs {
		return ""
	}
	return "its times were rounded down to multiples of " + units.Duration(m.TimeResolutionNs)
}

func unmatched(m *schema.Manifest) Finding {
	found := fmt.Sprintf("%s and %s", units.Count(m.Counts.UnmatchedSends, "send"),
		units.Count(m.Counts.UnmatchedReceives, "receive"))
	switch {
	case m.Counts.UnmatchedSends+m.Counts.UnmatchedReceives == 0:
		return ok("unmatched", "every message has both sides")
	case m.Ended != schema.EndedNames[schema.EndedFinalized]:
		return warning("unmatched", "expected when a program does not reach MPI_Finalize", "%s without a partner",
			found)
	}
	return warning("unmatched", "commq query unmatched lists them", "%s without a partner", found)
}

func hashes(m *schema.Manifest) []Finding {
	switch {
	case m.Counts.HashMismatches > 0:
		return []Finding{failure("payload hashes", "the network or a buffer changed them, or commq hashed wrongly: "+
			"SELECT * FROM messages WHERE recv_hash <> payload_hash", "%s of %s arrived with another hash",
			units.Count(m.Counts.HashMismatches, "message"), units.Comma(m.Counts.HashesVerified))}
	case m.HashVerify:
		return []Finding{ok("payload hashes", "%s arrived as they were sent",
			units.Count(m.Counts.HashesVerified, "message"))}
	}
	return nil
}

// largeClockError is the error of a clock offset from which on latencies between hosts mean little.
const largeClockError = 50 * time.Microsecond

// mostNamed limits the ranks without records that a finding names.
const mostNamed = 10

// rankBatch is the number of rows of the table ranks that are read at once.
const rankBatch = 4096

// ranks checks for ranks without records, and how well the offsets of the hosts' clocks are known.
func (r *Run) ranks(ctx context.Context) ([]Finding, error) {
	var missing []string
	worst, worstRank, total := int64(0), int32(0), 0
	err := r.opened().ReadTable(ctx, &schema.RanksTable, rankBatch, func(b schema.Batch) error {
		t := b.(*schema.RankInfos)
		total += t.Len()
		for i, rank := range t.Rank {
			if t.Events[i] == 0 {
				missing = append(missing, fmt.Sprint(rank))
			}
			if e := max(t.ClockErrorInitNs[i], t.ClockErrorFinalNs[i]); e > worst { // null is less than 0
				worst, worstRank = e, rank
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := []Finding{ok("ranks", "records of all %d", total)}
	if len(missing) > 0 {
		list[0] = failure("ranks", "put the records of all nodes into one folder and ingest again; a rank that could "+
			"not write its spool said so on stderr", "no records of %d of %d: %s", len(missing), total,
			strings.Join(missing[:min(len(missing), mostNamed)], ", "))
	}
	switch {
	case worst > int64(largeClockError):
		return append(list, warning("clocks", "times between hosts mean little below that; a quieter network at "+
			"MPI_Init and MPI_Finalize helps", "the offset of rank %d's host is known to %s", worstRank,
			units.Duration(worst))), nil
	case worst > 0:
		return append(list, ok("clocks", "offsets between hosts are known to %s", units.Duration(worst))), nil
	}
	return append(list, ok("clocks", "one clock for all ranks")), nil
}

// latencies checks for messages that were received before they were sent.
func (r *Run) latencies(ctx context.Context) ([]Finding, error) {
	if r.Manifest.TimeOrigin == "untimed" || r.Manifest.Record == ingest.RecordCollectives {
		return nil, nil
	}
	var messages, beyond, worst, bound, src, dst int64
	err := r.Ask(ctx, "negative-latencies", nil, func(pair rows.Row) error {
		messages += pair.Int("messages")
		beyond += pair.Int("beyond")
		if ns := pair.Int("worst_ns"); ns > worst {
			src, dst, worst, bound = pair.Int("src"), pair.Int("dst"), ns, pair.Int("bound_ns")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if messages == 0 {
		return []Finding{ok("latencies", "no message was received before it was sent")}, nil
	}
	found := fmt.Sprintf("%s received before they were sent; the worst from %d to %d by %s, where the clocks are "+
		"known to %s", units.Count(messages, "message"), src, dst, units.Duration(worst), units.Duration(bound))
	if beyond > 0 {
		return []Finding{failure("latencies", "commq query negative-latencies lists the pairs; do not trust times "+
			"between these ranks", "%s", found)}, nil
	}
	return []Finding{warning("latencies", "within the error of the clocks; commq query negative-latencies lists the "+
		"pairs", "%s", found)}, nil
}

// overlaps checks for calls of one thread that overlap in time: a sign that they were recorded twice.
func (r *Run) overlaps(ctx context.Context) ([]Finding, error) {
	if r.Manifest.TimeOrigin == "untimed" {
		return nil, nil
	}
	n, first := int64(0), ""
	err := r.Ask(ctx, "overlaps", nil, func(pair rows.Row) error {
		if n++; n == 1 {
			first = fmt.Sprintf("rank %d, seq %d: %s and %s", pair.Int("rank"), pair.Int("seq"), pair.Text("call"),
				pair.Text("next_call"))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n > 0 {
		return []Finding{failure("double capture", "calls were recorded twice; commq doctor PROGRAM lists what else "+
			"wraps MPI", "%s of calls of one thread (first: %s)", units.Count(n, "overlap"), first)}, nil
	}
	return []Finding{ok("double capture", "no calls of a thread overlap")}, nil
}

// duplicates finds other captures of the same job in the store. Runs that were made from this one, for example by commq
// simulate --name, have its job too, and repeat it on purpose.
func (r *Run) duplicates() []Finding {
	job := r.Manifest.Origin.Job
	if job == "" || r.Manifest.Evidence() != schema.EvidenceCaptured {
		return nil
	}
	infos, err := writer.List(filepath.Dir(r.Dir))
	if err != nil {
		return nil
	}
	var names []string
	for _, i := range infos {
		if i.Err == nil && i.Name != r.Name && i.Manifest.Origin.Job == job &&
			i.Manifest.Evidence() == schema.EvidenceCaptured {
			names = append(names, i.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{warning("same job", "queries over both count it twice; commq runs remove one",
		"the job is also run %s", strings.Join(names, ", "))}
}

// originalProgram checks the program that made the run if it is still there and older than the run.
func originalProgram(m *schema.Manifest) []Finding {
	if len(m.Origin.Command) == 0 {
		return nil
	}
	path := m.Origin.Command[0]
	info, err := os.Stat(path)
	started, timeErr := time.Parse(time.RFC3339, m.Origin.Started)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return []Finding{ok("functions", "the program %s is not here, so its calls were not checked", path)}
	case timeErr == nil && info.ModTime().After(started.Add(time.Second)):
		return []Finding{ok("functions", "the program %s was changed since the run, so its calls were not checked",
			path)}
	}
	return functions(path)
}
