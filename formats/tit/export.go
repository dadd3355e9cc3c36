package tit

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/commq/commq/formats/schedule"
	"github.com/commq/commq/schema"
)

// ListName is the file with the names of all others in the folder that Export makes: what smpirun -replay takes.
const ListName = "list"

// NsPerFlop is the time of a floating point operation in a trace that Export writes: a host of 1 Gf computes as fast as
// the machine of the run.
const NsPerFlop = 1

// Export writes the run in folder dir as a trace in a new folder out. The list names its files in the folder shown: out
// itself, or what it will be named. Notes are sentences about what the trace lacks or represents differently.
func Export(ctx context.Context, dir, out, shown string) (notes []string, err error) {
	if err := os.Mkdir(out, 0o777); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(out) // the first error counts
		}
	}()
	x := &exporter{out: out, current: -1, changed: schedule.Notes{}}
	ranks, err := x.write(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := x.list(shown, ranks); err != nil {
		return nil, err
	}
	for what, n := range x.changed {
		x.notes[what] += n
	}
	return x.notes.Texts(), nil
}

// exporter writes the files of the ranks. It has one open at a time, as there may be more ranks than files may be open.
type exporter struct {
	out     string
	ranks   int32
	current int32 // the rank whose file is open, -1 for none
	file    *os.File
	w       *bufio.Writer
	line    []byte
	notes   schedule.Notes
	changed schedule.Notes // what this format changes
}

func (x *exporter) write(ctx context.Context, dir string) (int32, error) {
	begun := map[int32]bool{}
	keep := func(c *schedule.Collective) bool { return x.keeps(c) }
	ranks, notes, err := schedule.Each(ctx, dir, schedule.Options{Keep: keep,
		Begin: func(n int32) error { x.ranks = n; return nil }},
		func(a *schedule.Action) error {
			if err := x.open(a.Rank); err != nil {
				return err
			}
			if !begun[a.Rank] {
				begun[a.Rank] = true
				x.begin(a.Rank, "init").end()
			}
			return x.action(a)
		})
	if err != nil {
		return 0, err
	}
	x.notes = notes
	for rank := range ranks {
		if err := x.open(rank); err != nil {
			return 0, err
		}
		if !begun[rank] {
			x.begin(rank, "init").end()
		}
		x.begin(rank, "finalize").end()
	}
	return ranks, x.close()
}

func fileName(rank int32) string { return fmt.Sprintf("%d.txt", rank) }

// open makes the file of a rank the current one.
func (x *exporter) open(rank int32) error {
	if rank == x.current {
		return nil
	}
	if err := x.close(); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(x.out, fileName(rank)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	x.current, x.file = rank, f
	if x.w == nil {
		x.w = bufio.NewWriterSize(f, 1<<18)
	}
	x.w.Reset(f)
	return nil
}

// close closes the current file. The writer returns the first error of all writes.
func (x *exporter) close() error {
	if x.file == nil {
		return nil
	}
	err := x.w.Flush()
	if e := x.file.Close(); err == nil {
		err = e
	}
	x.file, x.current = nil, -1
	return err
}

// list writes the list of files.
func (x *exporter) list(shown string, ranks int32) error {
	f, err := os.Create(filepath.Join(x.out, ListName))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for rank := range ranks {
		fmt.Fprintln(w, filepath.Join(shown, fileName(rank)))
	}
	err = w.Flush()
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// begin begins a line; num adds a number and end writes it.
func (x *exporter) begin(rank int32, name string) *exporter {
	x.line = strconv.AppendInt(x.line[:0], int64(rank), 10)
	x.line = append(append(x.line, ' '), name...)
	return x
}

func (x *exporter) num(n int64) *exporter {
	x.line = strconv.AppendInt(append(x.line, ' '), n, 10)
	return x
}

// size adds a number of bytes, which SimGrid keeps in 32 bits.
func (x *exporter) size(bytes int64) *exporter {
	if bytes > math.MaxInt32 {
		x.changed["Sizes above 2147483647 bytes, which were written as that many: SimGrid keeps them in 32 bits"]++
		bytes = math.MaxInt32
	}
	return x.num(bytes)
}

func (x *exporter) sizes(all []int64) *exporter {
	for _, n := range all {
		x.size(n)
	}
	return x
}

func (x *exporter) end() {
	_, _ = x.w.Write(append(x.line, '\n')) // Flush returns its error
}

func (x *exporter) action(a *schedule.Action) error {
	switch a.Kind {
	case schedule.Compute:
		x.begin(a.Rank, "compute").num(a.Ns / NsPerFlop).end()
	case schedule.Send, schedule.Recv:
		name := "send"
		if a.Kind == schedule.Recv {
			name = "recv"
		}
		if a.ID > 0 {
			name = "i" + name
		}
		x.begin(a.Rank, name).num(int64(a.Peer)).num(int64(a.Tag)).size(a.Bytes).end()
	case schedule.Wait:
		src, dst := a.Peer, a.Rank
		if a.Sends {
			src, dst = dst, src
		}
		x.begin(a.Rank, "wait").num(int64(src)).num(int64(dst)).num(int64(a.Tag)).end()
	case schedule.CollectiveCall:
		x.collective(a.Rank, a.Call)
	}
	return nil
}

// keeps reports whether the format has the collective: a blocking one of all ranks. All of them must answer the same.
func (x *exporter) keeps(c *schedule.Collective) bool {
	return c.Blocking && c.IsWorld(x.ranks) && !c.Op.IsNeighborhood() &&
		(c.Op != schema.CallAllgatherv || c.RecvFrom != nil) && (c.Op != schema.CallAlltoallv || !c.NoParts)
}

// collective writes a collective in bytes. Reductions compute nothing: that time is not known.
func (x *exporter) collective(rank int32, c *schedule.Collective) {
	n := int64(len(c.Members))
	x.changed.Assume(c)
	root := int64(c.RootOrFirst())
	switch c.Op {
	case schema.CallBcast:
		x.begin(rank, "bcast").size(max(c.SendBytes, c.RecvBytes)).num(root).end()
	case schema.CallReduce:
		x.begin(rank, "reduce").size(max(c.SendBytes, c.RecvBytes)).num(0).num(root).end()
	case schema.CallAllreduce:
		x.begin(rank, "allreduce").size(c.SendBytes).num(0).end()
	case schema.CallScan:
		x.begin(rank, "scan").size(c.SendBytes).num(0).end()
	case schema.CallExscan:
		x.begin(rank, "exscan").size(c.SendBytes).num(0).end()
	case schema.CallGather:
		x.begin(rank, "gather").size(c.SendBytes).size(c.SendBytes).num(root).end()
	case schema.CallScatter:
		x.begin(rank, "scatter").size(c.RecvBytes).size(c.RecvBytes).num(root).end()
	case schema.CallAllgather:
		x.begin(rank, "allgather").size(c.SendBytes).size(c.RecvBytes / n).end()
	case schema.CallAlltoall:
		x.begin(rank, "alltoall").size(c.SendBytes / n).size(c.RecvBytes / n).end()
	case schema.CallGatherv:
		x.begin(rank, "gatherv").size(c.SendBytes).sizes(c.Shares(c.RecvFrom, c.RecvBytes)).num(root).end()
	case schema.CallScatterv:
		x.begin(rank, "scatterv").sizes(c.Shares(c.SendTo, c.SendBytes)).size(c.RecvBytes).num(root).end()
	case schema.CallAllgatherv: // the type is byte
		x.begin(rank, "allgatherv").size(c.SendBytes).sizes(c.RecvFrom).num(byteType).num(byteType).end()
	case schema.CallAlltoallv, schema.CallAlltoallw:
		x.begin(rank, "alltoallv").size(c.SendBytes).sizes(c.Shares(c.SendTo, c.SendBytes)).
			size(c.RecvBytes).sizes(c.Shares(c.RecvFrom, c.RecvBytes)).end()
	case schema.CallReduceScatter, schema.CallReduceScatterBlock:
		shares := c.Shares(nil, c.SendBytes)
		if c.RecvBytes != shares[c.Me] {
			x.changed["MPI_Reduce_scatter with uneven parts, written with even ones"]++
		}
		x.begin(rank, "reducescatter").sizes(shares).num(0).end()
	default:
		x.begin(rank, "barrier").end()
	}
}
