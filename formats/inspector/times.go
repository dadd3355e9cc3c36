package inspector

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

// settle completes the times of a verbose log: an operation without kernels ran from when it was asked for.
func (o *op) settle() {
	if o.end == 0 {
		o.start = o.issued
		o.end = o.start + max(o.execNs, 0)
	}
}
