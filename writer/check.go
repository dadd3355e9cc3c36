package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/check"
	"github.com/commq/commq/writer/digest"
)

// Problem is a place in a run that breaks a rule.
type Problem = check.Problem

// checkRows is the number of rows per batch: few enough for a batch of events to stay in the cache.
const checkRows = 1 << 12

// Check reads the run in folder dir and lists where it breaks one of check.Rules. Its memory does not grow with the
// number of rows. It returns an error when dir is not a run or ctx ends.
func Check(ctx context.Context, dir string) ([]Problem, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	c := &runChecker{dir: dir, manifest: m, buffers: map[*schema.Table]*readBuffers{},
		digesters: map[*schema.Table]*digest.Digester{}, unreadable: map[*schema.Table]bool{}}
	c.rules = check.NewChecker(m, c.report)
	for i, t := range schema.Tables() {
		c.buffers[t], c.digesters[t] = newReadBuffers(t, checkRows), digest.New(t)
		c.openTable(t, m.Tables[i])
	}
	slices.SortStableFunc(c.groups, compareGroups)
	for _, g := range c.groups {
		if err := c.readGroup(ctx, g); err != nil {
			return nil, err
		}
	}
	c.compareDigests()
	if len(c.unreadable) > 0 {
		return c.problems, nil
	}
	c.rules.Finish()
	if c.changed {
		return c.problems, nil
	}
	err = errors.Join(c.compareRepeats(ctx), c.compareParts(ctx))
	return c.problems, err
}

// runChecker is a run being checked.
type runChecker struct {
	dir        string
	manifest   *schema.Manifest
	rules      *check.Checker
	buffers    map[*schema.Table]*readBuffers
	digesters  map[*schema.Table]*digest.Digester
	groups     []rowGroup
	problems   []Problem
	unreadable map[*schema.Table]bool
	changed    bool // a file is not that of the manifest: tables are not read again
}

// rowGroup is a row group of a file. Row groups are checked in the order that check.Checker requires.
type rowGroup struct {
	reader *tableReader
	group  int
	end    int   // the first row group that is not read together with group
	epoch  int64 // the first epoch in it; -1 in tables without epochs
	table  int   // tableOrder of its table
}

func compareGroups(a, b rowGroup) int {
	if a.epoch != b.epoch {
		return int(max(-1, min(1, a.epoch-b.epoch)))
	}
	return a.table - b.table
}

func (c *runChecker) report(p Problem) { c.problems = append(c.problems, p) }

// broken reports a problem of a file that is not about a row.
func (c *runChecker) broken(rule string, t *schema.Table, file, format string, args ...any) {
	c.report(Problem{Rule: rule, Table: t.Name, File: file, Rank: schema.NullInt32, Seq: schema.NullInt64,
		What: fmt.Sprintf(format, args...)})
}

// openTable compares a table's files with the manifest and lists their row groups.
func (c *runChecker) openTable(t *schema.Table, info schema.TableInfo) {
	listed := map[string]bool{}
	for _, f := range info.Files {
		listed[f.Path] = true
		c.openFile(t, f)
	}
	if files, err := filesInFolder(c.dir, t); err == nil {
		for _, f := range files {
			if !listed[f] && c.exists(f) {
				c.broken(check.RuleFiles, t, f, "the manifest does not list this file")
			}
		}
	}
}

// exists reports whether the run's folder has a file of that name.
func (c *runChecker) exists(file string) bool {
	_, err := os.Lstat(filepath.Join(c.dir, filepath.FromSlash(file)))
	return err == nil
}

func (c *runChecker) openFile(t *schema.Table, f schema.FileInfo) {
	r, err := newTableReader(c.dir, f.Path, c.buffers[t])
	if err != nil {
		c.unreadable[t] = true
		c.broken(check.RuleFiles, t, f.Path, "%v", unlocated(err))
		return
	}
	if info, err := os.Stat(filepath.Join(c.dir, filepath.FromSlash(f.Path))); err == nil && info.Size() != f.Bytes {
		c.changed = true
		c.broken(check.RuleFiles, t, f.Path, "%d bytes; the manifest says %d", info.Size(), f.Bytes)
	} else if err := verifyFile(c.dir, &f); err != nil {
		c.changed = true
		c.broken(check.RuleFiles, t, f.Path, "%v", err)
	}
	if rows := r.meta.NumRows; rows != f.Rows {
		c.broken(check.RuleFiles, t, f.Path, "%d rows; the manifest says %d", rows, f.Rows)
	}
	if f.Rows == 0 && len(c.tableInfo(t).Files) > 1 {
		c.broken(check.RuleFiles, t, f.Path, "a file without rows beside others")
	}
	for g, end := 0, 0; g < r.groups(); g = end {
		end = r.together(g)
		c.groups = append(c.groups, rowGroup{r, g, end, r.firstEpoch(g), tableOrder(t)})
	}
}

func (c *runChecker) tableInfo(t *schema.Table) schema.TableInfo {
	for _, info := range c.manifest.Tables {
		if info.Name == t.Name {
			return info
		}
	}
	return schema.TableInfo{}
}

// tableOrder returns a table's position among the row groups of an epoch: definitions, events, then tables that refer
// to them.
func tableOrder(t *schema.Table) int {
	order := []*schema.Table{&schema.RanksTable, &schema.CommsTable, &schema.DatatypesTable, &schema.CallsitesTable,
		&schema.EventsTable, &schema.MessagesTable, &schema.PartsTable, &schema.ProfileTable, &schema.WaitsTable,
		&schema.TransfersTable,
		&schema.CollectiveWaitsTable, &schema.RepeatsTable, &schema.ChannelsTable, &schema.CollectiveCallsTable,
		&schema.CollectivePartsTable, &schema.ActivityTable}
	return slices.Index(order, t)
}

// firstEpoch returns the first epoch of a row group by its statistics; -1 in a table without epochs. Without
// statistics it returns 0: then the check takes more memory, and finds the same problems.
func (r *tableReader) firstEpoch(g int) int64 {
	epoch, _ := r.epochOf(g)
	return epoch
}

// epochOf returns the same as firstEpoch; known is false when there are no statistics.
func (r *tableReader) epochOf(g int) (epoch int64, known bool) {
	_, i := r.table.Column("epoch")
	if i < 0 {
		return -1, true
	}
	defer func() {
		if recover() != nil {
			epoch, known = 0, false
		}
	}()
	chunk, err := r.meta.RowGroup(g).ColumnChunk(r.columns[i])
	if err != nil {
		return 0, false
	}
	stats, err := chunk.Statistics()
	if s, ok := stats.(*metadata.Int32Statistics); ok && err == nil && s.HasMinMax() {
		return int64(s.Min()), true
	}
	return 0, false
}

// readGroup checks the rows of a row group.
func (c *runChecker) readGroup(ctx context.Context, g rowGroup) error {
	t := g.reader.table
	err := g.reader.readTogether(ctx, g.group, g.end, func(b schema.Batch) error {
		c.digesters[t].Add(b)
		if len(c.unreadable) == 0 { // otherwise every row that refers to unreadable rows would be reported
			c.rules.Add(g.reader.name, b)
		}
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.unreadable[t] = true
		c.broken(check.RuleFiles, t, g.reader.name, "%v", unlocated(err))
	}
	return nil
}

// unlocated removes the file's name from a reading error, because the Problem names the file.
func unlocated(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// compareRepeats computes repeats again, in several passes over messages, and compares.
func (c *runChecker) compareRepeats(ctx context.Context) error {
	t := &schema.RepeatsTable
	if len(c.tableInfo(t).Files) == 0 {
		return nil
	}
	rows, err := makeRepeats(ctx, c.dir, nil)
	if err != nil {
		return err
	}
	want := digest.New(t)
	if rows != nil {
		want.Add(rows)
	}
	if found := c.digesters[t]; !found.Equal(want) {
		c.broken(check.RuleRepeats, t, "", "the %d rows are not the %d sums of the rows of messages; "+
			"commq runs profile makes them again", found.Rows(), want.Rows())
	}
	return nil
}

// compareParts computes collective_parts again, which needs the calls first, and compares.
func (c *runChecker) compareParts(ctx context.Context) error {
	t := &schema.CollectivePartsTable
	if len(c.tableInfo(t).Files) == 0 || c.tableInfo(t).Rows == 0 && c.tableInfo(&schema.PartsTable).Rows == 0 {
		return nil
	}
	sums, err := makeCollectives(ctx, c.dir, nil)
	if err != nil {
		return err
	}
	want := digest.New(t)
	if rows := sums.Parts(); rows != nil {
		want.Add(rows)
	}
	if found := c.digesters[t]; !found.Equal(want) {
		c.broken(check.RuleCollectiveParts, t, "", "the %d rows are not the %d sums of the rows of parts; "+
			"commq runs profile makes them again", found.Rows(), want.Rows())
	}
	return nil
}

// compareDigests compares the digests of the rows with those in the manifest.
func (c *runChecker) compareDigests() {
	for i, t := range schema.Tables() {
		info := c.manifest.Tables[i]
		if t.Derived && len(info.Files) == 0 {
			continue
		}
		if d := c.digesters[t].Sum().String(); d != info.Digest && !c.unreadable[t] {
			c.broken(check.RuleDigests, t, "", "the digest of the rows is %s; the manifest says %s", d, info.Digest)
		}
	}
	if d := digest.OfRun(c.manifest).String(); d != c.manifest.Digest {
		c.report(Problem{Rule: check.RuleDigests, File: manifestName, Rank: schema.NullInt32, Seq: schema.NullInt64,
			What: fmt.Sprintf("the digest of the manifest is %s; it says %s", d, c.manifest.Digest)})
	}
}
