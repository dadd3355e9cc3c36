package inspector

import (
	"cmp"
	"slices"
)

// hasTimes reports whether the logs tell when each operation ran.
func (j *job) hasTimes() bool {
	for _, d := range j.devices {
		for _, m := range d.members {
			for i := range m.ops {
				if !m.ops[i].traced {
					return false
				}
			}
		}
	}
	return true
}

// inIssueOrder sorts the operations of each member by when they were asked for.
func (j *job) inIssueOrder() {
	for _, d := range j.devices {
		for _, m := range d.members {
			slices.SortStableFunc(m.ops, func(a, b op) int { return cmp.Compare(a.issued, b.issued) })
		}
	}
}

// earliest is before any time of a log: what is placed before it loses its duration.
const earliest = -1 << 60

// placeLast gives the operations that members made together the latest times that the logs allow: they end together, as
// no member leaves before the last has come, not after one of them was written, and not after the next one of a
// member's line began.
func placeLast(s *shared) {
	end := s.parts[0].in.limit
	for _, p := range s.parts {
		end = min(end, p.in.limit, p.op.dumpNs)
	}
	for _, p := range s.parts {
		o := p.op
		o.end, o.start = end, max(end-max(o.execNs, 0), earliest)
		o.end = max(o.end, o.start)
		o.issued, o.returned = o.start, o.start
		p.in.limit = min(p.in.limit, o.start)
	}
}

// inTurn lets no collective of a member begin before one that comes before it on all members.
func (m *member) inTurn() {
	var all []*op
	for i := range m.ops {
		if o := &m.ops[i]; !o.isMessage() {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *op) int { return cmp.Compare(b.with.turn, a.with.turn) })
	for i := 1; i < len(all); i++ {
		all[i].issued, all[i].start = max(all[i].issued, all[i-1].issued), max(all[i].start, all[i-1].start)
	}
}

// settle completes the times of a verbose log: an operation without kernels ran from when it was asked for.
func (o *op) settle() {
	if o.end == 0 {
		o.start = o.issued
		o.end = o.start + max(o.execNs, 0)
	}
}
