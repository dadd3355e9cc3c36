package nsys

import (
	"cmp"
	"context"
	"slices"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/training"
)

// event is a range of NVTX that matters.
type event struct {
	label
	payload
	thread     int64
	start, end int64
}

// activity is a kernel of a library for collectives.
type activity struct {
	label
	start, end     int64
	device, stream int64
	correlation    int64
	graph          bool // it ran as a part of a CUDA graph
}

// launch is the thread and the time in which a kernel was requested.
type launch struct {
	thread     int64
	start, end int64
}

// process is a process of an export that used a GPU or a library for collectives.
type process struct {
	export   *export
	id       int64 // globalPid
	events   []event
	steps    []training.Step
	kernels  []activity
	launches map[int64]launch // by correlation, of the kernels
	busy     map[int64]*training.Busy
	mpiRank  int32 // or Unknown
	read     int64
	onDevice bool // operations run on a GPU
}

// export is the contents of a file.
type export struct {
	path      string
	host      string
	version   string // of Nsight Systems
	env       map[string]string
	baseNs    int64 // of its times, since 1970; 0 if unknown
	processes map[int64]*process
	payloads  *payloads
	mpi       int64 // rows of MPI
	// endless are ranges that did not end, backward those that end before they begin, which got no length.
	endless, backward int64
}

// pidOf returns the process of a thread: the last 24 bits of a thread's number are its own.
func pidOf(thread int64) int64 { return thread &^ 0xffffff }

func (x *export) process(id int64) *process {
	p := x.processes[id]
	if p == nil {
		p = &process{export: x, id: id, launches: map[int64]launch{}, busy: map[int64]*training.Busy{},
			mpiRank: training.Unknown}
		x.processes[id] = p
	}
	return p
}

// sorted returns the processes by their numbers.
func (x *export) sorted() []*process {
	all := make([]*process, 0, len(x.processes))
	for _, p := range x.processes {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *process) int { return cmp.Compare(a.id, b.id) })
	return all
}

// span returns the two times of a row. What ends before it begins gets no length.
func (x *export) span(r *row, start, end int) (int64, int64) {
	from, to := r.time(start), r.time(end)
	if to < from {
		x.backward++
		to = from
	}
	return from, to
}

// readExport reads what matters of a file.
func readExport(ctx context.Context, f *file) (*export, error) {
	x := &export{path: f.path, env: map[string]string{}, processes: map[int64]*process{}}
	if err := x.readInfo(ctx, f); err != nil {
		return nil, err
	}
	names, err := readLabels(ctx, f)
	if err != nil {
		return nil, err
	}
	if x.payloads, err = readPayloads(ctx, f); err != nil {
		return nil, err
	}
	for _, read := range []func(ctx context.Context, f *file, names labels) error{x.readKernels, x.readLaunches,
		x.readRanges, x.readRanks} {
		if err := read(ctx, f, names); err != nil {
			return nil, err
		}
	}
	x.mpi, err = countMPI(ctx, f)
	return x, err
}

// readKernels reads the table of kernels. Those of libraries for collectives are kept, of others when they ran.
func (x *export) readKernels(ctx context.Context, f *file, names labels) error {
	return f.each(ctx, "CUPTI_ACTIVITY_KIND_KERNEL", []string{"start", "end", "deviceId", "streamId", "globalPid",
		"correlationId", "shortName", "demangledName", "graphNodeId"}, "", func(r *row) {
		p := x.process(r.integer(4, 0))
		p.read++
		k := activity{device: r.integer(2, 0), stream: r.integer(3, 0), correlation: r.integer(5, training.Unknown),
			graph: r.values[8] != nil}
		k.start, k.end = x.span(r, 0, 1)
		if k.label = names[r.integer(6, training.Unknown)]; k.is != kernel {
			k.label = names[r.integer(7, training.Unknown)]
		}
		if k.is == kernel {
			p.kernels = append(p.kernels, k)
			p.launches[k.correlation] = launch{}
			return
		}
		busy := p.busy[k.device]
		if busy == nil {
			busy = &training.Busy{}
			p.busy[k.device] = busy
		}
		busy.Add(k.start, k.end)
	})
}

// readLaunches reads where the kept kernels were asked for.
func (x *export) readLaunches(ctx context.Context, f *file, _ labels) error {
	return f.each(ctx, "CUPTI_ACTIVITY_KIND_RUNTIME", []string{"correlationId", "globalTid", "start", "end"}, "",
		func(r *row) {
			id, thread := r.integer(0, training.Unknown), r.integer(1, 0)
			p := x.processes[pidOf(thread)]
			if p == nil {
				return
			}
			p.read++
			if _, kept := p.launches[id]; kept {
				start, end := x.span(r, 2, 3)
				p.launches[id] = launch{thread, start, end}
			}
		})
}

// readRanges reads the ranges of NVTX that matter.
func (x *export) readRanges(ctx context.Context, f *file, names labels) error {
	tail := ""
	if f.hasColumn("NVTX_EVENTS", "eventType") {
		tail = "WHERE eventType IN (59, 60)" // NvtxPushPopRange, NvtxStartEndRange
	}
	return f.each(ctx, "NVTX_EVENTS", []string{"start", "end", "text", "textId", "globalTid", "binaryData", "eventId"},
		tail,
		func(r *row) {
			thread := r.integer(4, 0)
			if p := x.processes[pidOf(thread)]; p != nil {
				p.read++
			}
			l := names[r.integer(3, training.Unknown)]
			if r.values[2] != nil {
				l = labelOf(first(r.text(2), longest))
			}
			switch {
			case l.is == other || l.is == kernel:
				return
			case r.values[1] == nil && l.is != groupStart && l.is != groupEnd:
				x.endless++
				return
			}
			e := event{label: l, thread: thread, payload: noPayload}
			if r.values[1] == nil {
				e.start = r.time(0)
				e.end = e.start // of a group, whose bounds these are
			} else {
				e.start, e.end = x.span(r, 0, 1)
			}
			p := x.process(pidOf(thread))
			if l.is == step {
				p.steps = append(p.steps, training.Step{Name: l.text, StartNs: e.start})
				return
			}
			if r.values[5] != nil {
				e.payload = x.payloads.decode(r.values[5])
			} else if at, ok := x.payloads.events[r.integer(6, training.Unknown)]; ok {
				e.payload = at
			}
			e.text = "" // not needed any more, and long
			p.events = append(p.events, e)
		})
}

// first returns the first n bytes of a text.
func first(text string, n int) string { return text[:min(len(text), n)] }

// readRanks reads the ranks of MPI.
func (x *export) readRanks(ctx context.Context, f *file, _ labels) error {
	return f.each(ctx, "MPI_RANKS", []string{"globalTid", "rank"}, "", func(r *row) {
		rank := r.number(1)
		if rank < 0 || rank >= importing.MostRanks {
			r.bad(1, "the rank of a process")
			return
		}
		x.process(pidOf(r.number(0))).mpiRank = int32(rank)
	})
}
