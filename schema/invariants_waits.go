package schema

// checkWaits makes waits and transfers again.
func checkWaits(c *Checker, b Batch) {
	if c.lacks(&WaitsTable) && c.lacks(&TransfersTable) {
		return
	}
	switch t := b.(type) {
	case *RankInfos:
		c.hosts = append(c.hosts, t.Host...)
	case *Waits, *Transfers:
		c.waiting[b.Table()].Add(b)
	case *Events:
		if c.manifest.TimeOrigin != "untimed" { // such a run has no rows of waits
			c.waitSums().AddEvents(t)
		}
	case *Messages:
		if c.manifest.TimeOrigin != "untimed" {
			c.waitSums().AddMessages(t)
		}
	}
}

// waitSums are those of the run's events and messages.
func (c *Checker) waitSums() *WaitSums {
	if c.waits == nil {
		c.waits = NewWaitSums(c.hosts, c.dense())
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
	if c.lacks(&WaitsTable) && c.lacks(&TransfersTable) {
		return
	}
	waits, transfers := c.waitSums().Rows()
	for _, t := range []*Table{&WaitsTable, &TransfersTable} {
		if c.lacks(t) {
			continue
		}
		want := NewDigester(t)
		if t == &WaitsTable && waits != nil {
			want.Add(waits)
		}
		if t == &TransfersTable && transfers != nil {
			want.Add(transfers)
		}
		if is := c.waiting[t]; is.Rows() != want.Rows() || is.Sum() != want.Sum() {
			c.wrong("the %d rows of %s are not the %d sums of the rows of events and messages; commq runs profile makes them again", is.Rows(), t.Name, want.Rows())
		}
	}
}
