package inspector

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/jsonstream"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// op is an operation of a member of a communicator.
type op struct {
	call   schema.CallID
	number int64 // of collectives: the same on all members, counted for each call
	repeat int32 // how many of its number came before, as in replayed graphs
	peer   int32 // in the communicator, of sends and receives
	bytes  int64 // by the call's arguments; Unknown if not told
	label  string
	execNs int64 // Unknown if not told
	dumpNs int64 // when it was written, since 1970

	traced   bool  // the times are those of the log
	issued   int64 // ns since 1970
	returned int64
	start    int64
	end      int64

	with *shared // what its communicator made together
}

func (o *op) isMessage() bool { return o.call == schema.CallIsend || o.call == schema.CallIrecv }

// comm is a communicator of NCCL.
type comm struct {
	id, name string
	ranks    int32
	members  map[int32]*member
}

// member is a rank of a communicator.
type member struct {
	comm    *comm
	rank    int32
	process *process
	file    string
	ops     []op // in the order in which they ended
	seen    map[opKey]int32
	device  *device
	// dropped is the number of operations that the plugin says it overwrote.
	dropped int64
}

type opKey struct {
	call   schema.CallID
	number int64
}

// process is a process of the job, which may use several GPUs.
type process struct {
	host    string
	pid     int64
	members []*member
	devices []*device
}

type processKey struct {
	host string
	pid  int64
}

// reader reads the logs of a job.
type reader struct {
	comms     []*comm // in the order in which they are met
	byID      map[string]*comm
	processes []*process
	byKey     map[processKey]*process
	files     int

	records, proxies, others, repaired, cut int64
	timings                                 map[string]int64
}

// mostUs is more than any time since 1970, mostExecUs than any operation takes: 12 days.
const mostUs, mostExecUs = 1 << 52, 1 << 40

// mostBytes is more than the size of any operation.
const mostBytes = 1 << 48

func readAll(ctx context.Context, files []string, progress func(read, all int64)) (*reader, error) {
	v := &reader{byID: map[string]*comm{}, byKey: map[processKey]*process{}, timings: map[string]int64{}}
	for i, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := v.readFile(file); err != nil {
			return nil, err
		}
		if progress != nil {
			progress(int64(i+1), int64(len(files)))
		}
	}
	v.files = len(files)
	if len(v.comms) == 0 {
		return nil, fmt.Errorf("%s: no records of operations; want a log of NCCL Inspector in JSON", files[0])
	}
	return v, nil
}

func (v *reader) readFile(file string) error {
	f, err := jsonstream.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	cut, err := records(f, func(r *record) error { return v.record(r, file) })
	if err != nil {
		return fmt.Errorf("%s: %w; want records of NCCL Inspector in JSON, one after the other: leave the file out, or write it again",
			file, err)
	}
	if cut {
		v.cut++
	}
	return nil
}

// record takes a record.
func (v *reader) record(r *record, file string) error {
	v.records++
	if len(r.Proxy) > 0 {
		v.proxies++
		return nil
	}
	if r.Coll == nil && r.P2P == nil && r.Stats == nil {
		v.others++
		return nil
	}
	m, err := v.member(r, file)
	if err != nil {
		return err
	}
	if r.Stats != nil {
		m.dropped = max(m.dropped, min(max(r.Stats.CollDropped, 0), mostBytes)+min(max(r.Stats.P2PDropped, 0), mostBytes))
	}
	if r.Coll != nil {
		return v.collective(m, r)
	}
	if r.P2P != nil {
		return v.message(m, r)
	}
	return nil
}

// member returns the member of a communicator that a record is of.
func (v *reader) member(r *record, file string) (*member, error) {
	h, d := r.Header, r.Metadata
	switch {
	case h == nil || d == nil:
		return nil, fmt.Errorf("no header or metadata, and no dump_stats with them before it")
	case h.ID == "":
		return nil, fmt.Errorf("header without the id of the communicator")
	case h.Ranks < 1 || h.Ranks > importing.MostRanks || h.Rank < 0 || h.Rank >= h.Ranks:
		return nil, fmt.Errorf("rank %d of %d in communicator %s; want one of at most %d", h.Rank, h.Ranks, h.ID,
			importing.MostRanks)
	case d.DumpUs <= 0 || d.DumpUs >= mostUs:
		return nil, fmt.Errorf("dump_timestamp_us %d; want microseconds since 1970", d.DumpUs)
	}
	c := v.byID[h.ID]
	if c == nil {
		c = &comm{id: h.ID, name: h.Name, ranks: int32(h.Ranks), members: map[int32]*member{}}
		v.byID[h.ID], v.comms = c, append(v.comms, c)
	} else if c.ranks != int32(h.Ranks) {
		return nil, fmt.Errorf("communicator %s has %d ranks here, and %d in records before", h.ID, h.Ranks, c.ranks)
	}
	key := processKey{d.Host, d.PID}
	p := v.byKey[key]
	if p == nil {
		p = &process{host: d.Host, pid: d.PID}
		v.byKey[key], v.processes = p, append(v.processes, p)
	}
	m := c.members[int32(h.Rank)]
	if m == nil {
		m = &member{comm: c, rank: int32(h.Rank), process: p, file: file, seen: map[opKey]int32{}}
		c.members[m.rank] = m
		p.members = append(p.members, m)
	} else if m.process != p {
		return nil, fmt.Errorf("rank %d of communicator %s is process %d on %q here, and process %d on %q in %s; want the logs of "+
			"one job", h.Rank, h.ID, d.PID, d.Host, m.process.pid, m.process.host, m.file)
	}
	return m, nil
}

// callOf returns the call for an operation of NCCL, 0 for others.
func callOf(name string) schema.CallID {
	switch name {
	case "All2All":
		return schema.CallIalltoall
	case "AllGatherV":
		return schema.CallIallgatherv
	}
	return training.CallOf(name)
}

func (v *reader) collective(m *member, r *record) error {
	c := r.Coll
	o := op{call: callOf(c.Name), number: c.Number, label: strings.TrimSpace(c.Algo + " " + c.Proto)}
	if o.call == 0 || schema.Calls[o.call].Class != schema.ClassCollective {
		v.others++
		return nil
	}
	if c.Number < 0 {
		return fmt.Errorf("coll_sn %d; want a number from 0", c.Number)
	}
	if c.Trace != nil {
		if err := o.times(c.Trace.StartUs, c.Trace.StopUs, c.Trace.Kernels); err != nil {
			return err
		}
	}
	return v.add(m, &o, c.Bytes, c.ExecUs, c.Timing, r.Metadata)
}

func (v *reader) message(m *member, r *record) error {
	p := r.P2P
	o := op{call: callOf(p.Name), number: p.Number, peer: -1}
	if !o.isMessage() {
		v.others++
		return nil
	}
	if p.Peer != nil && *p.Peer >= 0 && *p.Peer < int64(m.comm.ranks) {
		o.peer = int32(*p.Peer)
	}
	if p.Trace != nil {
		if err := o.times(p.Trace.StartUs, p.Trace.StopUs, p.Trace.Kernels); err != nil {
			return err
		}
	}
	return v.add(m, &o, p.Bytes, p.ExecUs, p.Timing, r.Metadata)
}

// add adds an operation with its size and duration.
func (v *reader) add(m *member, o *op, bytes *uint64, execUs *float64, timing string, d *metadata) error {
	o.dumpNs, o.execNs = d.DumpUs*1000, training.Unknown
	if execUs != nil && *execUs >= 0 && *execUs < mostExecUs {
		o.execNs = int64(math.Round(*execUs * 1000))
	}
	o.bytes = v.size(bytes)
	v.timings[cmp.Or(timing, "unknown")]++
	key := opKey{o.call, o.number}
	o.repeat = m.seen[key]
	m.seen[key]++
	m.ops = append(m.ops, *o)
	return nil
}

// size returns the bytes of an operation. The plugin does not know the type ncclUint8: it writes the count times -1,
// modulo 2^64.
func (v *reader) size(bytes *uint64) int64 {
	switch {
	case bytes == nil:
		return training.Unknown
	case -*bytes <= mostBytes && *bytes != 0:
		v.repaired++
		return int64(-*bytes)
	case *bytes > mostBytes:
		return training.Unknown
	}
	return int64(*bytes)
}

// times takes the times of a verbose log: when the operation was asked for, and when its kernels ran.
func (o *op) times(startUs, stopUs int64, kernels []kernel) error {
	if startUs <= 0 || startUs >= mostUs || stopUs >= mostUs {
		return fmt.Errorf("start at %d us and stop at %d us; want microseconds since 1970", startUs, stopUs)
	}
	o.traced = true
	o.issued, o.returned = startUs*1000, max(startUs, stopUs)*1000
	first, last := int64(mostUs), int64(0)
	for _, k := range kernels {
		if k.StartUs > 0 && k.StopUs >= k.StartUs && k.StopUs < mostUs {
			first, last = min(first, k.StartUs), max(last, k.StopUs)
		}
	}
	if last > 0 {
		o.start, o.end = first*1000, last*1000
	}
	return nil
}
