package inspector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// Options control the import.
type Options = importing.Options

// format is the name of the format.
const format = "inspector"

// ImportPath imports a log, or those in a folder, as the run of this name in a store. Without a name the run gets that
// of the file or folder. All operations are in memory, about 900 bytes each. An error names the file, the record and
// what was found.
func ImportPath(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	return training.ImportPath(ctx, path, store, name, o, []string{".gz", ".jsonl", ".log"}, load)
}

// load reads the logs of a job as ranks of a run.
func load(ctx context.Context, path string, progress func(read, all int64)) ([]*training.Rank, training.Options, error) {
	how := training.Options{Format: format, Numbered: true, NoCompute: true}
	files, err := find(path)
	if err != nil {
		return nil, how, err
	}
	v, err := readAll(ctx, files, progress)
	if err != nil {
		return nil, how, err
	}
	j := v.place()
	placed := !j.hasTimes()
	place := placeLast
	if placed {
		how.TimeOrigin = "simulated"
	} else {
		j.inIssueOrder()
		place = func(s *shared) {
			for _, p := range s.parts {
				p.op.settle()
			}
		}
	}
	forced := j.order(place)
	var ranks []*training.Rank
	for _, d := range j.devices {
		ranks = append(ranks, j.rank(d))
	}
	ranks[0].Warnings = j.warnings(placed, forced)
	for _, r := range ranks {
		r.Close()
	}
	return ranks, how, nil
}

// rank makes a rank of the run of a device.
func (j *job) rank(d *device) *training.Rank {
	r := &training.Rank{Rank: d.world, World: j.ranks, Host: d.process.host, Device: true}
	for _, m := range d.members {
		g := training.Group{Name: m.comm.id, Description: m.comm.name}
		if g.Description == "" || g.Description == "unknown" {
			g.Description = "communicator " + m.comm.id
		}
		all := m.comm.sorted()
		for _, x := range all {
			g.Ranks = append(g.Ranks, x.device.world)
		}
		if m.comm == j.world {
			g.Ranks = training.Everyone(j.ranks)
		}
		r.File = cmp.Or(r.File, m.file)
		r.Dropped += max(m.dropped, j.lost(m))
		r.Events += int64(len(m.ops))
		m.inTurn()
		byTurn := make([]*op, len(m.ops))
		for i := range m.ops {
			byTurn[i] = &m.ops[i]
		}
		slices.SortFunc(byTurn, func(a, b *op) int { return cmp.Compare(b.with.turn, a.with.turn) })
		for _, o := range byTurn {
			r.Ops = append(r.Ops, j.operation(m, o, len(r.Groups)))
		}
		r.Groups = append(r.Groups, g)
	}
	spread(r.Ops)
	return r
}

// operation makes an operation of the run.
func (j *job) operation(m *member, o *op, group int) training.Op {
	x := training.Op{Call: o.call, Group: group, Seq: training.Unknown, IssuedNs: o.issued, ReturnedNs: o.returned,
		StartNs: o.start, EndNs: o.end, InBytes: true, Root: training.Unknown, Peer: training.Unknown, Label: o.label}
	x.InElements, x.OutElements = training.ArgumentSizes(o.call, o.bytes, int64(m.comm.ranks))
	if !o.isMessage() {
		x.Seq = o.with.instance
	} else if m.comm == j.world {
		x.Peer = o.peer
	} else if peer := m.comm.members[o.peer]; peer != nil {
		x.Peer = peer.device.world
	}
	return x
}

// spread gives operations that overlap streams of their own.
func spread(ops []training.Op) {
	slices.SortStableFunc(ops, func(a, b training.Op) int { return cmp.Compare(a.StartNs, b.StartNs) })
	var free []int64
	for i := range ops {
		o := &ops[i]
		k := slices.IndexFunc(free, func(end int64) bool { return end <= o.StartNs })
		if k < 0 {
			k = len(free)
			free = append(free, 0)
		}
		free[k], o.Stream = o.EndNs, int64(k)
	}
}

// warnings tell what the logs lack, and how ranks and times were found.
func (j *job) warnings(placed bool, forced int64) (w []string) {
	say := func(n int64, what string) {
		if n > 0 {
			w = append(w, fmt.Sprintf("%s: %d.", what, n))
		}
	}
	if placed {
		w = append(w, "The logs tell how long operations took, not when they ran: each is placed as late as the times of the "+
			"dumps allow, and the ranks of one end together. Durations, and how much longer a rank took than the last to come, "+
			"are measured; gaps between operations are not.")
	}
	if j.world == nil {
		w = append(w, "No communicator has all processes: ranks are numbered by host and process id.")
	}
	say(j.guessed, "Processes with several GPUs of which a communicator has some, taken in order")
	w = append(w, "Durations come from: "+j.timingText()+".")
	lost, partial := j.losses()
	say(lost, "Operations that the numbers count and the logs do not have (collectives smaller than "+
		"NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES, any without a time of the GPU, or overwritten), by rank")
	say(partial, "Communicators of which some ranks wrote no log; they have the others, and bytes by their true size")
	say(forced, "Operations whose order the logs of the ranks contradict")
	say(j.repaired, "Sizes of elements of type ncclUint8, which the plugin writes as negative numbers, repaired")
	say(j.proxies, "Records of the proxy, not read")
	say(j.others, "Records of other operations, not read")
	say(j.cut, "Logs that end within a record, as those of killed processes do")
	return w
}

// timingText counts the sources of the durations.
func (j *job) timingText() string {
	var names []string
	for name := range j.timings {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, j.timings[name])
	}
	return cmp.Or(strings.Join(names, ", "), "nothing")
}

// losses counts the operations that logs lack, over all members, and the communicators without the logs of some ranks.
func (j *job) losses() (lost, partial int64) {
	for _, c := range j.comms {
		if len(c.members) < int(c.ranks) && c != j.world {
			partial++
		}
		for _, m := range c.members {
			lost += j.lost(m)
		}
	}
	return lost, partial
}

// lost counts the operations of a member that its log lacks: collectives by their numbers, which count from 0 for
// each call, and by what the logs of other members have; messages by their numbers, which count from 1 for all that
// are not too small.
func (j *job) lost(m *member) int64 {
	most, made := map[schema.CallID]int64{}, int64(0)
	distinct, messages, last := int64(0), int64(0), int64(0)
	for key, n := range m.seen {
		if schema.Calls[key.call].Class == schema.ClassCollective {
			most[key.call] = max(most[key.call], min(key.number, mostBytes)+1)
			made, distinct = made+int64(n), distinct+1
		} else {
			messages, last = messages+1, max(last, min(key.number, mostBytes))
		}
	}
	numbered := int64(0)
	for _, n := range most {
		numbered += n
	}
	return max(numbered-distinct, j.numbers[m.comm]-made) + max(last-messages, 0)
}
