package inspector

import (
	"cmp"
	"slices"
)

// device is a rank of the run: a GPU of a process.
type device struct {
	process *process
	index   int // in its process
	members []*member
	world   int32
}

// job is the state of an import.
type job struct {
	*reader
	devices []*device
	world   *comm // the communicator of all ranks; nil if there is none
	ranks   int32
	// guessed is the number of processes with several GPUs only some of which are in a communicator.
	guessed int64
	// numbers is the number of collectives on each communicator that some log has.
	numbers map[*comm]int64
}

// place finds the ranks of the run. The largest communicator that all processes are in numbers them; without one they
// count by host and process.
func (v *reader) place() *job {
	j := &job{reader: v}
	slices.SortFunc(v.comms, func(a, b *comm) int {
		return cmp.Or(cmp.Compare(b.ranks, a.ranks), cmp.Compare(a.id, b.id))
	})
	slices.SortFunc(v.processes, func(a, b *process) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.pid, b.pid))
	})
	for _, p := range v.processes {
		if p.place() {
			j.guessed++
		}
		j.devices = append(j.devices, p.devices...)
	}
	j.ranks = int32(len(j.devices))
	for i, d := range j.devices {
		d.world = int32(i)
	}
	for _, c := range v.comms {
		if len(c.members) == len(j.devices) && c.hasAll(j.devices) {
			j.world, j.ranks = c, c.ranks
			for _, m := range c.members {
				m.device.world = m.rank
			}
			break
		}
	}
	slices.SortFunc(j.devices, func(a, b *device) int { return cmp.Compare(a.world, b.world) })
	return j
}

// hasAll reports whether all devices are members of the communicator, each once.
func (c *comm) hasAll(devices []*device) bool {
	seen := map[*device]bool{}
	for _, m := range c.members {
		seen[m.device] = true
	}
	return len(seen) == len(devices)
}

// place finds the devices of a process: as many as it has ranks in one communicator, in the order of these. guessed
// reports that a communicator has fewer of them, whose devices the log does not tell.
func (p *process) place() (guessed bool) {
	byComm := map[*comm][]*member{}
	for _, m := range p.members {
		byComm[m.comm] = append(byComm[m.comm], m)
	}
	n := 0
	for _, all := range byComm {
		n = max(n, len(all))
	}
	for i := range n {
		p.devices = append(p.devices, &device{process: p, index: i})
	}
	for _, all := range byComm {
		guessed = guessed || len(all) < n
		slices.SortFunc(all, func(a, b *member) int { return cmp.Compare(a.rank, b.rank) })
		for i, m := range all {
			m.device = p.devices[i]
		}
	}
	for _, m := range p.members {
		m.device.members = append(m.device.members, m)
	}
	for _, d := range p.devices {
		slices.SortFunc(d.members, func(a, b *member) int {
			return cmp.Or(cmp.Compare(b.comm.ranks, a.comm.ranks), cmp.Compare(a.comm.id, b.comm.id))
		})
	}
	return guessed
}

// sorted returns the members that have a log, by rank.
func (c *comm) sorted() []*member {
	all := make([]*member, 0, len(c.members))
	for _, m := range c.members {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *member) int { return cmp.Compare(a.rank, b.rank) })
	return all
}
