package schema

// checkWaits makes waits and transfers again.
func checkWaits(c *Checker, b Batch) {
	if c.lacks(&WaitsTable) && c.lacks(&TransfersTable) {
		return
	}
	switch t := b.(type) {
	case *RankInfos:
		c.hosts = append(c.hosts, t.Host...)
	case *Events:
		c.waitSums().AddEvents(t)
	case *Messages:
		c.waitSums().AddMessages(t)
	default:
		c.waiting[b.Table()].Add(b)
	}
}

// waitSums are those of the run's events and messages.
func (c *Checker) waitSums() *WaitSums {
	if c.waits == nil {
		c.waits = NewWaitSums(c.hosts)
	}
	return c.waits
}

// lacks says whether the run lacks a derived table.
func (c *Checker) lacks(t *Table) bool {
	for _, info := range c.manifest.Tables {
		if info.Name == t.Name {
			return len(info.Files) == 0
		}
	}
	return true
}

func finishWaits(c *Checker) {
	if !c.dense() { // the tables say more than the rows that are there
		return
	}
	waits, transfers := c.waitSums().Rows()
	for _, b := range []Batch{waits, transfers} {
		t := b.Table()
		if c.lacks(t) {
			continue
		}
		want := NewDigester(t)
		want.Add(b)
		if is := c.waiting[t]; is.Rows() != want.Rows() || is.Sum() != want.Sum() {
			c.wrong("the %d rows of %s are not the %d sums of the rows of events and messages", is.Rows(), t.Name, want.Rows())
		}
	}
}
