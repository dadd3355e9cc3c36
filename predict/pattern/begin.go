package pattern

// BeginsBefore reports whether a family, given by its site, would begin at a process count with an index that no run
// has: with finer levels than those of the runs, for example.
func (p *Program) BeginsBefore(site string, ranks int32) bool {
	for i := range p.Laws {
		if p.Laws[i].Site != site || len(p.Laws[i].Ranges) == 0 {
			continue
		}
		if _, before := p.Laws[i].negative(ranks); before {
			return true
		}
	}
	return false
}
