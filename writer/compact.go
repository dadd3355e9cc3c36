package writer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/commq/commq/schema"
)

// compactRows is how many rows Compact reads at a time.
const compactRows = 1 << 16

// Compact rewrites the run in folder dir in place: many small files of a table become a few, by ranges of ranks, with
// about perFile rows of events each (0 means the usual number) and sorted by the key. Rows and digest stay the same;
// Compact fails when the digest comes out different. Derived tables are made again. Memory is bounded by an epoch. On
// an error other than ErrInPlace, and when ctx ends, the run stays as it was. It returns the manifests before and
// after.
//
// progress is called from time to time with the number of rows of events and messages written so far and in all; it may
// be nil.
func Compact(ctx context.Context, dir string, perFile int64,
	progress func(done, total int64)) (before, after *schema.Manifest, err error) {
	before, after, err = compact(ctx, filepath.Clean(dir), perFile, progress)
	if err != nil {
		err = fmt.Errorf("compact %s: %w", dir, err)
	}
	return before, after, err
}

func compact(ctx context.Context, dir string, perFile int64,
	progress func(done, total int64)) (before, after *schema.Manifest, err error) {
	if before, err = ReadManifest(dir); err != nil {
		return nil, nil, err
	}
	if after, err = ReadManifest(dir); err != nil {
		return nil, nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // a linked run stays a link: what it leads to is compacted
		return nil, nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	r, err := rewriteRun(dir, partialFolder(filepath.Split(dir)))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	done, total := int64(0), before.Counts.Calls+before.Counts.Messages
	if err := sortRun(ctx, r, dir, mostRanks(before), perFile, func(rows int) {
		if done += int64(rows); progress != nil {
			progress(done, total)
		}
	}); err != nil {
		return nil, nil, err
	}
	if err := r.seal(ctx, after); err != nil {
		return nil, nil, err
	}
	after.Origin.Name = before.Origin.Name
	if after.Digest != before.Digest {
		return nil, nil, fmt.Errorf("the digest of the rows is %s, the manifest says %s; commq runs check tells what "+
			"is wrong", after.Digest, before.Digest)
	}
	return before, after, r.place.replace(dir)
}

// sortRun writes the rows of all tables of the run in folder dir, of so many ranks, that are not derived to r, sorted
// and in few files.
func sortRun(ctx context.Context, r *Run, dir string, ranks, perFile int64, wrote func(rows int)) error {
	rows, err := rowsByRank(ctx, dir, ranks)
	if err != nil {
		return err
	}
	shards, _ := Shards(rows, perFile)
	for _, t := range schema.Tables() {
		switch t {
		case &schema.EventsTable, &schema.MessagesTable:
			err = sortTable(ctx, r, dir, t, shards, wrote)
		default:
			err = r.CopyTable(ctx, dir, t, compactRows, func(schema.Batch) error { return ctx.Err() })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mostRanks is the number of ranks of a run, whose tables have at least a row for each: a manifest that was changed
// shall not take all memory.
func mostRanks(m *schema.Manifest) int64 {
	rows := int64(0)
	for i := range m.Tables {
		rows += m.Tables[i].Rows
	}
	return min(int64(m.Ranks), rows)
}

// rowsByRank counts the rows of events of each rank of a run.
func rowsByRank(ctx context.Context, dir string, ranks int64) (rows []int64, err error) {
	e, err := readEpochs(dir, &schema.EventsTable, compactRows, "rank")
	if err != nil {
		return nil, err
	}
	err = e.All(ctx, func(b schema.Batch) error {
		for _, rank := range b.(*schema.Events).Rank {
			if rank < 0 || int64(rank) >= ranks {
				return fmt.Errorf("events: a row of rank %d in a run of %d ranks; commq runs check tells what is wrong", rank,
					ranks)
			}
			for int(rank) >= len(rows) {
				rows = append(rows, 0)
			}
			rows[rank]++
		}
		return nil
	})
	return rows, err
}

// sortTable writes the rows of events or messages to r, epoch by epoch. shards has the file for the rows of each rank,
// which for messages is the sender.
func sortTable(ctx context.Context, r *Run, dir string, t *schema.Table, shards []int, wrote func(rows int)) error {
	names := make([]string, len(t.Columns))
	for i := range t.Columns {
		names[i] = t.Columns[i].Name
	}
	e, err := readEpochs(dir, t, compactRows, names...)
	if err != nil {
		return err
	}
	parts := map[int]schema.Batch{}
	for {
		err := e.Next(ctx, func(b schema.Batch) error {
			ranks, _, _ := keyColumns(b)
			for i, j := 0, 0; i < b.Len(); i = j {
				shard := shardOf(shards, ranks[i])
				for j = i + 1; j < b.Len() && shardOf(shards, ranks[j]) == shard; j++ {
				}
				if parts[shard] == nil {
					parts[shard] = schema.NewBatch(t)
				}
				appendRows(parts[shard], b, span{i, j})
			}
			return ctx.Err()
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for shard, b := range parts {
			if err := r.Write(shard, sortedRows(b)); err != nil {
				return err
			}
			wrote(b.Len())
		}
		clear(parts)
	}
}

// shardOf returns the file of a rank: the first for a rank beyond those that have rows of events.
func shardOf(shards []int, rank int32) int {
	if rank < 0 || int(rank) >= len(shards) {
		return 0
	}
	return shards[rank]
}

// keyColumns returns the columns that rows of events or messages are sorted by.
func keyColumns(b schema.Batch) (ranks []int32, seqs []int64, epochs []int32) {
	switch b := b.(type) {
	case *schema.Events:
		return b.Rank, b.Seq, b.Epoch
	case *schema.Messages:
		return b.Src, b.SendSeq, b.Epoch
	}
	panic("writer: keyColumns: " + b.Table().Name)
}

// appendRows appends the rows s of a batch to another of the same table.
func appendRows(to, from schema.Batch, s span) {
	at := to.Len()
	to.(resizer).Resize(at + s.j - s.i)
	list := []stretch{{s, at}}
	for c := range from.Table().Columns {
		copyStretches(to.Data(c), from.Data(c), list)
	}
}

// sortedRows returns the rows of b in the order of the key, b itself when they are in order already.
func sortedRows(b schema.Batch) schema.Batch {
	ranks, seqs, epochs := keyColumns(b)
	compare := func(i, j int) int {
		return cmp.Or(cmp.Compare(epochs[i], epochs[j]), cmp.Compare(ranks[i], ranks[j]), cmp.Compare(seqs[i], seqs[j]))
	}
	order := make([]int, b.Len())
	inOrder := true
	for i := range order {
		order[i] = i
		inOrder = inOrder && (i == 0 || compare(i-1, i) <= 0)
	}
	if inOrder {
		return b
	}
	slices.SortStableFunc(order, compare)
	to := schema.NewBatch(b.Table())
	for i, j := 0, 0; i < len(order); i = j {
		for j = i + 1; j < len(order) && order[j] == order[j-1]+1; j++ {
		}
		appendRows(to, b, span{order[i], order[j-1] + 1})
	}
	return to
}
