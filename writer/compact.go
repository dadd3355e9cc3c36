package writer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/schema"
)

// compactRows is the number of rows that Compact reads at a time.
const compactRows = 1 << 16

// Compact writes the run in folder dir again, in its place: tables of many small files become few of about perFile rows of events each (0 is
// the usual number), by ranges of ranks, their rows sorted by the key. The rows stay, and with them the digest; Compact fails when it comes out
// different. Derived tables are made again. Memory is bounded by an epoch. On an error, and when ctx ends, the run is as it was. It returns the
// manifest before and after.
//
// progress is called now and then with the rows of events and messages that are written, and all; it may be nil.
func Compact(ctx context.Context, dir string, perFile int64, progress func(done, total int64)) (before, after *schema.Manifest, err error) {
	before, after, err = compact(ctx, filepath.Clean(dir), perFile, progress)
	if err != nil {
		err = fmt.Errorf("compact %s: %w", dir, err)
	}
	return before, after, err
}

func compact(ctx context.Context, dir string, perFile int64, progress func(done, total int64)) (before, after *schema.Manifest, err error) {
	if before, err = ReadManifest(dir); err != nil {
		return nil, nil, err
	}
	if after, err = ReadManifest(dir); err != nil {
		return nil, nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	store, name := filepath.Split(dir)
	r, err := rewriting(dir, filepath.Join(store, "."+name+".partial"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	done, total := int64(0), before.Counts.Calls+before.Counts.Messages
	if err := r.rewrite(ctx, dir, perFile, func(rows int) {
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
		return nil, nil, fmt.Errorf("the digest of what was read is %s, and the manifest says %s; commq runs check says what is wrong", after.Digest, before.Digest)
	}
	return before, after, r.exchange(dir)
}

// exchange gives the run the name of the folder dir, which is removed. At no time is there no run of that name, where the file system can do that.
func (r *Run) exchange(dir string) error {
	err := unix.Renameat2(unix.AT_FDCWD, r.dir, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE)
	if err == nil {
		return errors.Join(syncFolder(r.store), os.RemoveAll(r.dir)) // what it is now: the old one
	}
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EOPNOTSUPP) {
		return &os.LinkError{Op: "exchange", Old: r.dir, New: dir, Err: err}
	}
	old := r.dir + ".old" // two steps; who is killed between them finds both folders, hidden
	if err := errors.Join(os.RemoveAll(old), os.Rename(dir, old)); err != nil {
		return err
	}
	if err := os.Rename(r.dir, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return errors.Join(syncFolder(r.store), os.RemoveAll(old))
}

// rewrite writes the rows of all tables that are not derived.
func (r *Run) rewrite(ctx context.Context, dir string, perFile int64, wrote func(rows int)) error {
	rows, err := rowsByRank(ctx, dir)
	if err != nil {
		return err
	}
	of, _ := Shards(rows, perFile)
	for _, t := range schema.Tables() {
		switch t {
		case &schema.EventsTable, &schema.MessagesTable:
			err = r.sortTable(ctx, dir, t, of, wrote)
		default:
			err = r.CopyTable(ctx, dir, t, compactRows, func(schema.Batch) error { return ctx.Err() })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rowsByRank is the number of rows of events by rank.
func rowsByRank(ctx context.Context, dir string) (rows []int64, err error) {
	e, err := ReadEpochs(dir, &schema.EventsTable, compactRows, "rank")
	if err != nil {
		return nil, err
	}
	err = e.All(ctx, func(b schema.Batch) error {
		for _, rank := range b.(*schema.Events).Rank {
			if rank < 0 {
				return fmt.Errorf("events: a row of rank %d; commq runs check says what is wrong", rank)
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

// sortTable writes the rows of events or messages, epoch by epoch, those of each rank (of messages the sender) to the file that of names.
func (r *Run) sortTable(ctx context.Context, dir string, t *schema.Table, of []int, wrote func(rows int)) error {
	names := make([]string, len(t.Columns))
	for i := range t.Columns {
		names[i] = t.Columns[i].Name
	}
	e, err := ReadEpochs(dir, t, compactRows, names...)
	if err != nil {
		return err
	}
	parts := map[int]schema.Batch{}
	for {
		err := e.Next(ctx, func(b schema.Batch) error {
			ranks, _, _ := rowKey(b)
			for i, j := 0, 0; i < b.Len(); i = j {
				shard := shardOf(of, ranks[i])
				for j = i + 1; j < b.Len() && shardOf(of, ranks[j]) == shard; j++ {
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
			if err := r.Write(shard, sorted(b)); err != nil {
				return err
			}
			wrote(b.Len())
		}
		clear(parts)
	}
}

// shardOf is the file of a rank; that of one beyond all that have rows of events is the first.
func shardOf(of []int, rank int32) int {
	if rank < 0 || int(rank) >= len(of) {
		return 0
	}
	return of[rank]
}

// rowKey are the columns that rows of events or messages are sorted by, within an epoch.
func rowKey(b schema.Batch) (ranks []int32, seqs []int64, epochs []int32) {
	switch b := b.(type) {
	case *schema.Events:
		return b.Rank, b.Seq, b.Epoch
	case *schema.Messages:
		return b.Src, b.SendSeq, b.Epoch
	}
	panic("writer: rowKey: " + b.Table().Name)
}

// appendRows appends the rows s of a batch to another of the same table.
func appendRows(to, from schema.Batch, s span) {
	at := to.Len()
	to.(resizer).Resize(at + s.j - s.i)
	for c := range from.Table().Columns {
		copyRows(to.Data(c), at, from.Data(c), s)
	}
}

// sorted are the rows of b by the key: b itself where they are sorted already.
func sorted(b schema.Batch) schema.Batch {
	ranks, seqs, epochs := rowKey(b)
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
