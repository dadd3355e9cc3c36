package schema

// waitTables are the tables that WaitSums makes.
var waitTables = []*Table{&WaitsTable, &TransfersTable, &CollectiveWaitsTable}

// checkWaits makes waits, transfers and collective_waits again.
func checkWaits(c *Checker, b Batch) {
	if c.lacksWaits() {
		return
	}
	switch t := b.(type) {
	case *RankInfos:
		c.hosts = append(c.hosts, t.Host...)
	case *Comms:
		c.waitSums().AddComms(t)
	case *Waits, *Transfers, *CollectiveWaits:
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

// lacksWaits says whether the run has none of waitTables.
func (c *Checker) lacksWaits() bool {
	for _, t := range waitTables {
		if !c.lacks(t) {
			return false
		}
	}
	return true
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
	if c.lacksWaits() {
		return
	}
	digests := map[*Table]*Digester{}
	c.waitSums().Rows(func(b Batch) error { // it returns no error but those of this
		if digests[b.Table()] == nil {
			digests[b.Table()] = NewDigester(b.Table())
		}
		digests[b.Table()].Add(b)
		return nil
	})
	for _, t := range waitTables {
		if c.lacks(t) {
			continue
		}
		want := digests[t]
		if want == nil {
			want = NewDigester(t)
		}
		if is := c.waiting[t]; is.Rows() != want.Rows() || is.Sum() != want.Sum() {
			c.wrong("the %d rows of %s are not the %d sums of the rows of events and messages; commq runs profile makes them again", is.Rows(), t.Name, want.Rows())
		}
	}
}
