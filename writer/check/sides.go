package check

// sides holds the descriptions of sides of messages that wait for the second one, by schema.RowKey. Keys of one rank
// come close together, so there is a page for each slotsPerPage consecutive keys, as long as something waits on it.
type sides struct {
	pages  map[uint64]*page // by number: keys / slotsPerPage
	recent []*page          // pages used last, by recentOf; at least twice as many as pages
	spare  []*page          // empty, for new numbers
	halves []half           // what waits, at any place
	free   []int32          // places in halves where nothing waits
}

const slotsPerPage = 64

// page has the keys from number*slotsPerPage on.
type page struct {
	number  uint64
	waiting int                 // slots that are not zero
	slots   [slotsPerPage]int32 // 1 + the place in halves; 0: nothing waits
}

func newSides() *sides { return &sides{pages: map[uint64]*page{}, recent: make([]*page, 256)} }

// recentOf returns where a page is noted when it is used.
func (s *sides) recentOf(number uint64) **page {
	const spread = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio: neighbours go to places far apart
	return &s.recent[(number*spread>>32)&uint64(len(s.recent)-1)]
}

// page returns the page of a key; nil if nothing waits on it.
func (s *sides) page(key uint64) *page {
	recent := s.recentOf(key / slotsPerPage)
	if p := *recent; p != nil && p.number == key/slotsPerPage {
		return p
	}
	p := s.pages[key/slotsPerPage]
	if p != nil {
		*recent = p
	}
	return p
}

// find returns what waits for a key, until the next call of add; nil if nothing does.
func (s *sides) find(key uint64) *half {
	if p := s.page(key); p != nil {
		if at := p.slots[key%slotsPerPage]; at != 0 {
			return &s.halves[at-1]
		}
	}
	return nil
}

// add keeps h for a key for which nothing waits.
func (s *sides) add(key uint64, h *half) {
	p := s.page(key)
	if p == nil {
		p = s.newPage(key)
	}
	p.waiting++
	if n := len(s.free); n > 0 {
		at := s.free[n-1]
		s.free = s.free[:n-1]
		s.halves[at], p.slots[key%slotsPerPage] = *h, at+1
		return
	}
	s.halves = append(s.halves, *h)
	p.slots[key%slotsPerPage] = int32(len(s.halves))
}

func (s *sides) newPage(key uint64) *page {
	var p *page
	if n := len(s.spare); n > 0 {
		p, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		p = &page{}
	}
	p.number = key / slotsPerPage
	s.pages[p.number] = p
	if 2*len(s.pages) > len(s.recent) {
		s.recent = make([]*page, 2*len(s.recent))
	}
	*s.recentOf(p.number) = p
	return p
}

// remove forgets what waits for a key, which must be something.
func (s *sides) remove(key uint64) {
	p := s.page(key)
	slot := &p.slots[key%slotsPerPage]
	s.free = append(s.free, *slot-1)
	*slot = 0
	if p.waiting--; p.waiting > 0 {
		return
	}
	delete(s.pages, p.number)
	s.spare, *s.recentOf(p.number) = append(s.spare, p), nil
}

// each calls f with everything that waits, by increasing key.
func (s *sides) each(f func(key uint64, h *half)) {
	for _, number := range sortedKeys(s.pages) {
		p := s.pages[number]
		for i, at := range p.slots {
			if at != 0 {
				f(number*slotsPerPage+uint64(i), &s.halves[at-1])
			}
		}
	}
}
