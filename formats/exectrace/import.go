package exectrace

import (
	"cmp"
	"context"
	"slices"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// Options control the import.
type Options = importing.Options

// format is the name of the format.
const format = "exectrace"

// ImportPath imports a trace, or those in a folder, as an untimed run of this name in a store. Without a name the run
// gets that of the file or folder. A file is read once, node by node. An error names the file, the byte and what was
// found.
func ImportPath(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	return training.ImportPath(ctx, path, store, name, o, []string{".gz", ".json"}, load)
}

// load reads the traces of a job as ranks of a run.
func load(ctx context.Context, path string, progress func(read, all int64)) (ranks []*training.Rank,
	how training.Options, err error) {
	how = training.Options{Format: format, TimeOrigin: "untimed", NoCompute: true}
	files, err := find(path)
	if err != nil {
		return nil, how, err
	}
	var traces []*trace
	for i, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, how, err
		}
		t, err := read(file)
		if err != nil {
			return nil, how, err
		}
		traces = append(traces, t)
		if progress != nil {
			progress(int64(i+1), int64(len(files)))
		}
	}
	if err := setRanks(traces); err != nil {
		return nil, how, err
	}
	for _, t := range traces {
		t.withoutParams()
		t.inOrder()
		t.Warnings = append(t.Warnings, "Execution traces have no times: the rows are in the order of the nodes, and a wait "+
			"stands where the trace has one, else after all operations.")
		t.Close()
		ranks = append(ranks, t.Rank)
	}
	return ranks, how, nil
}

// moment is a node that asks for an operation, or waits for one.
type moment struct {
	id, number int64
	op         int // index in Ops; -1: a wait
}

// inOrder gives the operations places in the order of the nodes in place of times: where they were asked for, and
// where the process waited for them. A wait names the number of an operation, which several groups may have: it is
// for the last one that no wait was for.
func (t *trace) inOrder() {
	slices.SortStableFunc(t.moments, func(a, b moment) int { return cmp.Compare(a.id, b.id) })
	end := int64(len(t.moments))
	open := map[int64][]int{}
	for at, m := range t.moments {
		if m.op >= 0 {
			op := &t.Ops[m.op]
			op.IssuedNs, op.ReturnedNs, op.StartNs, op.EndNs = int64(at), int64(at), int64(at), end
			open[m.number] = append(open[m.number], m.op)
		} else if all := open[m.number]; len(all) > 0 {
			t.Ops[all[len(all)-1]].EndNs = int64(at)
			open[m.number] = all[:len(all)-1]
		}
	}
	t.Busy.Add(-1, end+1) // waits are points in the order
}
