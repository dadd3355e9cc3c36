package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// largeClockError is a bound of a clock offset's error beyond which latencies mean little.
const largeClockError = 50 * time.Microsecond

// run checks a run.
func (c *checkup) run(ctx context.Context, a *app, dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	m, err := writer.ReadManifest(abs)
	if err != nil {
		return err
	}
	run := queries.Run{Name: filepath.Base(abs), Dir: abs, Manifest: m}
	if err := c.ofRun(ctx, run); err != nil {
		return err
	}
	c.twice(a, run)
	c.ranProgram(ctx, m)
	c.warnings(m)
	return nil
}

// ofRun checks what the run itself knows.
func (c *checkup) ofRun(ctx context.Context, run queries.Run) error {
	m := run.Manifest
	c.ending(m)
	c.recorded(m)
	c.times(m)
	c.unmatched(m)
	c.hashes(m)
	return c.asked(ctx, run)
}

// ending says how the run ended.
func (c *checkup) ending(m *schema.Manifest) {
	const name = "end"
	switch {
	case m.Ended == schema.EndedNames[schema.EndedFinalized] && m.Counts.InProgress == 0:
		c.ok(name, "all ranks finalized")
	case m.Counts.InProgress > 0:
		c.warn(name, "the run's warnings name the calls; commq hang says more of a spool that was kept",
			"%s, %s never returned", m.Ended, counted(m.Counts.InProgress, "call"))
	default:
		c.warn(name, "", "%s: the run ends where the program did", m.Ended)
	}
	if s := m.Origin.ExitStatus; s != nil && *s != 0 {
		c.warn("exit status", "see what the program printed", "%d", *s)
	}
}

// recorded says whether calls are missing.
func (c *checkup) recorded(m *schema.Manifest) {
	if n := m.Counts.Dropped; n > 0 {
		c.fail("dropped", "capture again with more room: a larger --max-spool, or another --spool",
			"%s could not be recorded: counts are too small", counted(n, "call"))
	} else {
		c.ok("dropped", "no call")
	}
	if m.Record != "all" || len(m.Filters) > 0 {
		c.ok("left out", "by request: record %s%s; the manifest's counts have everything", m.Record, prefixed(", filters ", strings.Join(m.Filters, " ")))
	}
}

// times says whether the times are coarse.
func (c *checkup) times(m *schema.Manifest) {
	if coarse := coarseTimes(m); coarse != "" {
		c.ok("times", "by request: %s; ask it about counts and bytes", coarse)
	}
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func (c *checkup) unmatched(m *schema.Manifest) {
	n := m.Counts.UnmatchedSends + m.Counts.UnmatchedReceives
	found := fmt.Sprintf("%s and %s", counted(m.Counts.UnmatchedSends, "send"), counted(m.Counts.UnmatchedReceives, "receive"))
	switch {
	case n == 0:
		c.ok("unmatched", "every message has both sides")
	case m.Ended != schema.EndedNames[schema.EndedFinalized]:
		c.warn("unmatched", "expected of a run that did not end well", "%s without a partner", found)
	default:
		c.warn("unmatched", "commq query unmatched lists them", "%s without a partner", found)
	}
}

func (c *checkup) hashes(m *schema.Manifest) {
	switch {
	case m.Counts.HashMismatches > 0:
		c.fail("payload hashes", "the network or a buffer changed them, or commq hashed wrongly: SELECT * FROM messages WHERE recv_hash <> payload_hash",
			"%s of %s arrived with another hash", counted(m.Counts.HashMismatches, "message"), grouped(m.Counts.HashesVerified))
	case m.HashVerify:
		c.ok("payload hashes", "%s arrived as they were sent", counted(m.Counts.HashesVerified, "message"))
	}
}

// ask asks a query of the engine's run, and calls f with each row.
func ask(ctx context.Context, db *queries.DB, name string, f func(row []any)) error {
	all, err := queries.All()
	if err != nil {
		return err
	}
	for _, q := range all {
		if q.Name != name {
			continue
		}
		rows, err := db.Ask(ctx, q, nil)
		if err != nil {
			return err
		}
		for rows.Next() {
			f(rows.Row())
		}
		return errors.Join(rows.Err(), rows.Close())
	}
	return fmt.Errorf("no query %s", name)
}

func integer(v any) int64 {
	switch n := v.(type) {
	case int32:
		return int64(n)
	case int64:
		return n
	}
	return 0
}

// asked checks what only the rows know.
func (c *checkup) asked(ctx context.Context, run queries.Run) error {
	db, err := queries.Open(ctx, []queries.Run{run}, queries.Options{})
	if err != nil {
		return err
	}
	err = errors.Join(c.ranks(ctx, db), c.latencies(ctx, db, run), c.overlaps(ctx, db, run))
	return errors.Join(err, db.Close())
}

// ranks finds ranks without records, and how well the hosts' clocks are known.
func (c *checkup) ranks(ctx context.Context, db *queries.DB) error {
	rows, err := db.Query(ctx, "SELECT rank, events, greatest(coalesce(clock_error_init_ns, 0), coalesce(clock_error_final_ns, 0)) AS error_ns FROM ranks ORDER BY rank")
	if err != nil {
		return err
	}
	var missing []string
	worst, worstRank, total := int64(0), int64(0), 0
	for rows.Next() {
		r := rows.Row()
		total++
		if integer(r[1]) == 0 {
			missing = append(missing, fmt.Sprint(r[0]))
		}
		if e := integer(r[2]); e > worst {
			worst, worstRank = e, integer(r[0])
		}
	}
	if len(missing) > 0 {
		c.fail("ranks", "put the records of all nodes into one folder and ingest again; a rank that could not write its spool said so on stderr",
			"no records of %d of %d: %s", len(missing), total, strings.Join(missing[:min(len(missing), 10)], ", "))
	} else {
		c.ok("ranks", "records of all %d", total)
	}
	switch {
	case worst > int64(largeClockError):
		c.warn("clocks", "times between hosts mean little below that; a quieter network at MPI_Init and MPI_Finalize helps",
			"the offset of rank %d's host is known to %s", worstRank, time.Duration(worst))
	case worst > 0:
		c.ok("clocks", "offsets between hosts are known to %s", time.Duration(worst))
	default:
		c.ok("clocks", "one clock for all ranks")
	}
	return errors.Join(rows.Err(), rows.Close())
}

func (c *checkup) latencies(ctx context.Context, db *queries.DB, run queries.Run) error {
	if run.Manifest.TimeOrigin == "untimed" || run.Manifest.Record == ingest.RecordCollectives {
		return nil
	}
	var messages, beyond, worst, bound, src, dst int64
	err := ask(ctx, db, "negative-latencies", func(r []any) {
		messages += integer(r[2])
		beyond += integer(r[3])
		if w := integer(r[4]); w > worst {
			src, dst, worst, bound = integer(r[0]), integer(r[1]), w, integer(r[5])
		}
	})
	found := fmt.Sprintf("%s received before they were sent; the worst from %d to %d by %s, where the clocks are known to %s",
		counted(messages, "message"), src, dst, time.Duration(worst), time.Duration(bound))
	switch {
	case err != nil:
	case messages == 0:
		c.ok("latencies", "no message was received before it was sent")
	case beyond > 0:
		c.fail("latencies", "commq query negative-latencies has the pairs; do not trust times between these ranks", "%s", found)
	default:
		c.warn("latencies", "within the error of the clocks; commq query negative-latencies has the pairs", "%s", found)
	}
	return err
}

func (c *checkup) overlaps(ctx context.Context, db *queries.DB, run queries.Run) error {
	if run.Manifest.TimeOrigin == "untimed" {
		return nil
	}
	n, first := int64(0), ""
	err := ask(ctx, db, "overlaps", func(r []any) {
		if n++; n == 1 {
			first = fmt.Sprintf("rank %v, seq %v: %v and %v", r[0], r[2], r[3], r[5])
		}
	})
	if err == nil && n > 0 {
		c.fail("double capture", "calls were recorded twice: see commq doctor PROGRAM for what else wraps MPI", "%s that overlap (%s)", counted(n, "pair of calls"), first)
	} else if err == nil {
		c.ok("double capture", "no calls of a thread overlap")
	}
	return err
}

// twice looks for other runs of the same job.
func (c *checkup) twice(a *app, run queries.Run) {
	if run.Manifest.Origin.Job == "" {
		return
	}
	infos, err := writer.List(filepath.Dir(run.Dir))
	if err != nil {
		return
	}
	var same []string
	for _, i := range infos {
		if i.Err == nil && i.Name != run.Name && i.Manifest.Origin.Job == run.Manifest.Origin.Job {
			same = append(same, i.Name)
		}
	}
	if len(same) > 0 {
		c.warn("same job", "queries over both count it twice; commq runs remove one", "the job is also run %s", strings.Join(same, ", "))
	}
}

// ranProgram looks at the program, where it is still there and older than the run.
func (c *checkup) ranProgram(ctx context.Context, m *schema.Manifest) {
	if len(m.Origin.Command) == 0 {
		return
	}
	path := m.Origin.Command[0]
	info, err := os.Stat(path)
	started, timeErr := time.Parse(time.RFC3339, m.Origin.Started)
	switch {
	case err != nil || !info.Mode().IsRegular():
		c.ok("functions", "the program %s is not here, so what it calls is not known", path)
	case timeErr == nil && info.ModTime().After(started.Add(time.Second)):
		c.ok("functions", "the program %s was changed since the run, so what it called is not known", path)
	default:
		c.functions(ctx, path)
	}
}

// warnings repeats what ingest said.
func (c *checkup) warnings(m *schema.Manifest) {
	for _, w := range m.Warnings {
		c.warn("ingest said", "", "%s", w)
	}
}
