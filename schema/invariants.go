package schema

// Names of the rules that whoever reads the files looks after: they are about what Checker does not see.
const (
	RuleFiles   = "files"
	RuleDigests = "digests"
	RuleRepeats = "repeats"
)

// Rules are the invariants of a run: what holds in every run that commq wrote. commq runs check looks after them.
func Rules() []Rule {
	events, messages := []*Table{&EventsTable}, []*Table{&MessagesTable}
	return []Rule{
		{Name: RuleFiles, Doc: "A table's files are those the manifest lists, of the bytes and rows it lists, and every value can be read."},
		{Name: RuleDigests, Doc: "The digests of the tables and of the run are those of the rows and of the manifest."},
		{Name: "not-null", Doc: "Only columns that may be null hold null.", batch: checkNulls},
		{Name: "sorted", Doc: "The rows of a file are sorted by the table's key, those of an epoch's row groups of events merged, and no two have the same.", batch: checkSorted},
		{Name: "ranks", Doc: "ranks has one row per world rank, and every world rank anywhere is one of them.", batch: checkWorlds, finish: finishRanks},
		{Name: "ended", Doc: "A run is finalized exactly when each of its ranks is.", finish: finishEnded},
		{Name: "epochs", Doc: "An epoch lies between 0 and the manifest's epochs, and never decreases along a rank.",
			tables: []*Table{&EventsTable, &MessagesTable, &PartsTable}, batch: checkEpochs},
		{Name: "seq", Doc: "Along a rank seq counts from 0 without gaps; where rows were dropped (record messages or collectives, filters) it increases.", tables: events, batch: checkSeq},
		{Name: "times", Doc: "No call and no message ends before it starts, and no duration or count is negative; end_ns of the manifest is the latest.",
			tables: []*Table{&EventsTable, &MessagesTable}, batch: checkTimes, finish: finishTimes},
		{Name: "thread-order", Doc: "Along a thread of a rank start_ns never decreases.", tables: events, batch: checkThreads},
		{Name: "untimed", Doc: "The times of events and messages are null in an untimed run; in any other, every event has a start.",
			tables: []*Table{&EventsTable, &MessagesTable}, batch: checkUntimed},
		{Name: "comms", Doc: "Communicator 0 holds every rank; the ranks of every group count from 0, its members differ, and its parent is a communicator.",
			tables: []*Table{&CommsTable}, batch: checkComms, finish: finishComms},
		{Name: "references", Doc: "Every communicator, datatype and call site that a row names has its row in comms, datatypes or callsites.",
			tables: []*Table{&EventsTable, &MessagesTable, &CallsitesTable, &DatatypesTable}, batch: checkReferences},
		{Name: "callsites", Doc: "The ids of callsites count from 0, and a parent is an earlier row, so paths end; no row has a call site where none were captured.",
			tables: []*Table{&CallsitesTable, &EventsTable}, batch: checkCallsites},
		{Name: "members", Doc: "A rank calls on communicators that it is a member of; a message's source and destination are members of its communicator.",
			tables: []*Table{&EventsTable, &MessagesTable}, batch: checkMembers},
		{Name: "peers", Doc: "send_world and recv_world are the world ranks of send_peer and recv_peer in the communicator.", tables: events, batch: checkPeers},
		{Name: "flags", Doc: "posted_any and proc_null have no bits but those of the schema, and a side to MPI_PROC_NULL has no peer.", tables: events, batch: checkFlags},
		{Name: "requests", Doc: "A request is completed by a later row of its rank: done_seq is greater than seq, and is a row.",
			tables: events, batch: checkDone, finish: finishDone},
		{Name: "rma", Doc: "A row of one-sided communication has the sides that its call has, to a target or to MPI_PROC_NULL and then of 0 bytes; its window was made by an earlier row of the rank on the same communicator.",
			tables: events, batch: checkOneSided},
		{Name: "io", Doc: "A row of I/O has no peer, a send side if it writes and a receive side if it reads; its file was opened by an earlier row of the rank on the same communicator.",
			tables: events, batch: checkFiles},
		{Name: "instances", Doc: "Collective operations on a communicator count from 0 on each of its ranks, and so do the starts of a persistent one; in a finalized run every rank made the same ones. Filters leave gaps.",
			tables: events, batch: checkInstances, finish: finishInstances},
		{Name: "parts", Doc: "Every row of parts belongs to a collective call, and the parts of a call add up to its send_bytes and recv_bytes; those of a neighbourhood collective are always there.",
			tables: []*Table{&EventsTable, &PartsTable}, batch: checkParts, finish: finishParts},
		{Name: "messages", Doc: "Every message has the row that sent it and the row that received it, with the same peer, communicator, tag, bytes and times (record all); filters may leave out the row that received it.",
			tables: []*Table{&EventsTable, &MessagesTable}, batch: checkMessages, finish: finishMessages},
		{Name: "message-rows", Doc: "A message's bytes are not negative, and its receive is completed by the posting row or a later one.", tables: messages, batch: checkMessageRows},
		{Name: "causality", Doc: "In a run of virtual or simulated times no message is received before it was sent.", tables: messages, batch: checkCausality},
		{Name: "hashes", Doc: "Payload hashes are there only where the manifest names an algorithm, recv_hash only where receives were hashed; those that differ are as many as it says.",
			tables: []*Table{&EventsTable, &MessagesTable}, batch: checkHashes, finish: finishHashes},
		{Name: "waits", Doc: "The rows of waits, transfers and collective_waits are the sums of those of events and messages, unless the run lacks them.",
			tables: []*Table{&RanksTable, &CommsTable, &EventsTable, &MessagesTable, &WaitsTable, &TransfersTable, &CollectiveWaitsTable}, batch: checkWaits, finish: finishWaits},
		{Name: RuleRepeats, Doc: "The rows of repeats are the sums of those of messages, unless the run lacks them."},
		{Name: "profile", Doc: "The rows of profile are the sums of those of events, unless the run, made by an older commq, lacks it.",
			tables: []*Table{&EventsTable, &ProfileTable}, batch: checkProfile, finish: finishProfile},
		{Name: "counts", Doc: "The manifest's counts are those of the rows.", batch: countRows, finish: finishCounts},
	}
}

// checkNulls looks for nulls in columns that must not have them.
func checkNulls(c *Checker, b Batch) {
	for i := range c.table.Columns {
		if col := &c.table.Columns[i]; !col.Nullable {
			if row := firstNull(b.Data(i)); row >= 0 {
				rank, seq := where(b, row)
				c.bad(rank, seq, "%s is null", col.Name)
			}
		}
	}
}

func firstNull(data any) int {
	switch v := data.(type) {
	case []int32:
		return index(v, NullInt32)
	case []int64:
		return index(v, NullInt64)
	case []int16:
		return index(v, NullEnum)
	case []string:
		return index(v, NullText)
	}
	return -1
}

func index[T comparable](s []T, x T) int {
	for i, v := range s {
		if v == x {
			return i
		}
	}
	return -1
}

// checkSorted compares each row's key with that of the row before it in the file.
func checkSorted(c *Checker, b Batch) {
	keys := make([]any, len(c.table.Key))
	for k, name := range c.table.Key {
		_, i := c.table.Column(name)
		keys[k] = b.Data(i)
	}
	last := c.lastKeys[c.file]
	for i := range b.Len() {
		order := 1 // of this row after the last
		if last == nil {
			last = make([]int64, len(keys))
		} else {
			order = compareKey(keys, i, last)
		}
		if order <= 0 {
			rank, seq := where(b, i)
			c.bad(rank, seq, "%s", [2]string{"the row has the key of the row before it", "the row belongs before the one that precedes it"}[-order])
		}
		for k := range keys {
			last[k] = keyAt(keys[k], i)
		}
	}
	c.lastKeys[c.file] = last
}

func keyAt(data any, i int) int64 {
	if v, ok := data.([]int32); ok {
		return int64(v[i])
	}
	return data.([]int64)[i]
}

func compareKey(keys []any, i int, last []int64) int {
	for k := range keys {
		switch x := keyAt(keys[k], i); {
		case x > last[k]:
			return 1
		case x < last[k]:
			return -1
		}
	}
	return 0
}

// worldColumns are the columns that hold world ranks.
func worldColumns(t *Table) []string {
	switch t {
	case &EventsTable:
		return []string{"rank", "send_world", "recv_world", "root_world"}
	case &MessagesTable:
		return []string{"src", "dst"}
	case &PartsTable:
		return []string{"rank", "peer_world"}
	case &ProfileTable:
		return []string{"rank", "recv_world"}
	case &WaitsTable, &RepeatsTable:
		return []string{"src", "dst"}
	case &CollectiveWaitsTable:
		return []string{"rank"}
	case &CommsTable:
		return []string{"world_rank"}
	}
	return nil
}

// checkWorlds takes in the table ranks, and looks for world ranks that are not in it.
func checkWorlds(c *Checker, b Batch) {
	if t, ok := b.(*RankInfos); ok {
		c.addRanks(t)
		return
	}
	ranks := int32(len(c.ranks))
	for _, name := range worldColumns(c.table) {
		_, k := c.table.Column(name)
		for i, x := range b.Data(k).([]int32) {
			if uint32(x) >= uint32(ranks) && x != NullInt32 {
				rank, seq := where(b, i)
				c.bad(rank, seq, "%s is %d in a run of %d ranks", name, x, ranks)
			}
		}
	}
}

func (c *Checker) addRanks(t *RankInfos) {
	for i, r := range t.Rank {
		if int(r) != len(c.ranks) {
			c.bad(r, NullInt64, "row %d of ranks is of rank %d", len(c.ranks), r)
		}
		c.ranks = append(c.ranks, rankState{ended: t.Ended[i], events: t.Events[i], lastSeq: -1, epoch: 0, doneSeq: -1})
		c.totals.events += t.Events[i]
		c.totals.polls += t.Polls[i]
		c.totals.droppedN += t.Dropped[i]
		if t.Ended[i] != EndedFinalized {
			c.totals.unfinished++
		}
	}
}

func finishRanks(c *Checker) {
	if len(c.ranks) != int(c.manifest.Ranks) {
		c.wrong("ranks has %d rows; the manifest says %d ranks", len(c.ranks), c.manifest.Ranks)
	}
}

func finishEnded(c *Checker) {
	if (c.manifest.Ended == EndedNames[EndedFinalized]) != (c.totals.unfinished == 0) {
		c.wrong("the run ended %s, but %d of its %d ranks did not finalize", c.manifest.Ended, c.totals.unfinished, len(c.ranks))
	}
}

// checkEpochs looks at the range of epochs, and along ranks.
func checkEpochs(c *Checker, b Batch) {
	_, k := c.table.Column("epoch")
	for i, x := range b.Data(k).([]int32) {
		if x < 0 || x >= c.manifest.Epochs {
			rank, seq := where(b, i)
			c.bad(rank, seq, "epoch %d of %d", x, c.manifest.Epochs)
		}
	}
	e, ok := b.(*Events)
	if !ok {
		return
	}
	for i, x := range e.Epoch {
		if r := c.rank(e.Rank[i]); r != nil {
			if x < r.epoch {
				c.bad(e.Rank[i], e.Seq[i], "epoch %d after %d", x, r.epoch)
			}
			r.epoch = x
		}
	}
}

// checkSeq counts along each rank.
func checkSeq(c *Checker, b Batch) {
	e := b.(*Events)
	dense := c.dense()
	for i, seq := range e.Seq {
		r := c.rank(e.Rank[i])
		if r == nil {
			continue
		}
		if seq <= r.lastSeq || dense && seq != r.lastSeq+1 {
			c.bad(e.Rank[i], seq, "seq %d follows %d", seq, r.lastSeq)
		}
		r.lastSeq = seq
		r.rows++
	}
}

// checkTimes compares starts with ends.
func checkTimes(c *Checker, b Batch) {
	if m, ok := b.(*Messages); ok {
		c.endAfterStart(b, "send", m.SendStartNs, m.SendEndNs)
		c.endAfterStart(b, "receive", m.RecvStartNs, m.RecvEndNs)
		return
	}
	e := b.(*Events)
	c.endAfterStart(b, "", e.StartNs, e.EndNs)
	for _, x := range []struct {
		name string
		v    []int64
	}{{"compute_ns", e.ComputeNs}, {"polls", e.Polls}, {"poll_ns", e.PollNs}} {
		for i, v := range x.v {
			if v < 0 && v != NullInt64 {
				c.bad(e.Rank[i], e.Seq[i], "%s is %d", x.name, v)
			}
		}
	}
	for i, end := range e.EndNs {
		c.totals.endNs = max(c.totals.endNs, end)
		if end == NullInt64 && e.StartNs[i] != NullInt64 {
			c.totals.inProgress++
		}
	}
}

func (c *Checker) endAfterStart(b Batch, what string, start, end []int64) {
	for i, x := range end {
		if x < start[i] && x != NullInt64 {
			rank, seq := where(b, i)
			if what == "" {
				c.bad(rank, seq, "end %d ns before start", start[i]-x)
			} else {
				c.bad(rank, seq, "the %s ends %d ns before it starts", what, start[i]-x)
			}
		}
	}
}

func finishTimes(c *Checker) {
	latest, said := c.totals.endNs, c.manifest.EndNs
	if c.dense() && latest != said || latest > said {
		c.wrong("the latest end is at %d ns; the manifest's end_ns is %d", latest, said)
	}
}

func checkThreads(c *Checker, b Batch) {
	e := b.(*Events)
	c.overlaps.Add(e)
	var key uint64
	latest, held := NullInt64, false
	for i, start := range e.StartNs {
		if k := uint64(e.Rank[i])<<32 | uint64(uint32(e.Thread[i])); k != key || !held {
			if held {
				c.threads[key] = latest
			}
			var ok bool
			key, held = k, true
			if latest, ok = c.threads[k]; !ok {
				latest = NullInt64
			}
		}
		if start == NullInt64 {
			continue
		}
		if start < latest {
			c.bad(e.Rank[i], e.Seq[i], "thread %d starts the call %d ns before the call before it", e.Thread[i], latest-start)
		}
		latest = start
	}
	if held {
		c.threads[key] = latest
	}
}

// timeColumns are the columns that are null in an untimed run.
func timeColumns(t *Table) []string {
	if t == &MessagesTable {
		return []string{"send_start_ns", "send_end_ns", "recv_post_ns", "recv_start_ns", "recv_end_ns"}
	}
	return []string{"start_ns", "end_ns"}
}

func checkUntimed(c *Checker, b Batch) {
	if c.manifest.TimeOrigin != "untimed" {
		if e, ok := b.(*Events); ok {
			if i := index(e.StartNs, NullInt64); i >= 0 {
				c.bad(e.Rank[i], e.Seq[i], "start_ns is null in a run that is %s", c.manifest.TimeOrigin)
			}
		}
		return
	}
	for _, name := range timeColumns(c.table) {
		_, k := c.table.Column(name)
		for i, x := range b.Data(k).([]int64) {
			if x != NullInt64 {
				rank, seq := where(b, i)
				c.bad(rank, seq, "%s is %d in an untimed run", name, x)
				break
			}
		}
	}
}

func checkFlags(c *Checker, b Batch) {
	e := b.(*Events)
	for i, x := range e.PostedAny {
		if x != NullInt32 && x&^(AnySource|AnyTag) != 0 {
			c.bad(e.Rank[i], e.Seq[i], "posted_any is %d", x)
		}
	}
	for i, x := range e.ProcNull {
		switch {
		case x == NullInt32:
		case x&^(ProcNullSend|ProcNullRecv) != 0:
			c.bad(e.Rank[i], e.Seq[i], "proc_null is %d", x)
		case x&ProcNullSend != 0 && e.SendPeer[i] != NullInt32:
			c.bad(e.Rank[i], e.Seq[i], "a send to MPI_PROC_NULL has send_peer %d", e.SendPeer[i])
		case x&ProcNullRecv != 0 && e.RecvPeer[i] != NullInt32:
			c.bad(e.Rank[i], e.Seq[i], "a receive from MPI_PROC_NULL has recv_peer %d", e.RecvPeer[i])
		}
	}
}

func checkDone(c *Checker, b Batch) {
	e := b.(*Events)
	for i, done := range e.DoneSeq {
		if done == NullInt64 {
			continue
		}
		if done <= e.Seq[i] {
			c.bad(e.Rank[i], e.Seq[i], "done_seq is %d, not a later row", done)
		}
		if r := c.rank(e.Rank[i]); r != nil && done > r.doneSeq {
			r.doneSeq, r.doneFor = done, e.Seq[i]
		}
	}
}

func finishDone(c *Checker) {
	for i := range c.ranks {
		if r := &c.ranks[i]; c.dense() && r.doneSeq > r.lastSeq {
			c.bad(int32(i), r.doneFor, "done_seq is %d; the rank's last row is %d", r.doneSeq, r.lastSeq)
		}
	}
}

// countRows adds up what the manifest counts.
func countRows(c *Checker, b Batch) {
	switch t := b.(type) {
	case *Messages:
		for _, x := range t.Bytes {
			c.totals.messageBytes += x
		}
	case *Events:
		for i, class := range t.Class {
			if class == int16(ClassCollective) && c.isFirst(t.Rank[i], t.Comm[i]) {
				c.totals.collectives++
				if !c.orphan(t, i) {
					c.totals.byCall[c.collectiveOf(t, i)]++
				}
			}
		}
	}
}

func finishCounts(c *Checker) {
	m, t := &c.manifest.Counts, &c.totals
	same := func(what string, found, said int64) {
		if found != said {
			c.wrong("%s: found %d; the manifest says %d", what, found, said)
		}
	}
	within := func(what string, found, said int64) { // where rows were left out
		if found > said {
			c.wrong("%s: found %d; the manifest says that there were %d", what, found, said)
		}
	}
	messages, collectives := same, same
	if c.filtered() {
		messages, collectives = within, within
	}
	if c.bare() {
		messages = func(what string, found, _ int64) {
			if found != 0 {
				c.wrong("%s: found %d in a run without rows of messages", what, found)
			}
		}
	}
	messages("messages", c.rows["messages"], m.Messages)
	messages("message_bytes", t.messageBytes, m.MessageBytes)
	same("calls (the sum of ranks.events)", t.events, m.Calls)
	same("polls (the sum of ranks.polls)", t.polls, m.Polls)
	same("dropped (the sum of ranks.dropped)", t.droppedN, m.Dropped)
	same("overlapping_calls (those that end after the next one of their thread began)", c.overlaps.Count(), m.OverlappingCalls)
	if c.manifest.Ended == EndedNames[EndedFinalized] {
		collectives("collectives", t.collectives, m.Collectives)
		for call, n := range t.byCall {
			if c.manifest.Collectives != nil {
				collectives("collectives by "+CallID(call).String(), n, c.manifest.Collectives[CallID(call).String()])
			}
		}
	}
	if !c.dense() {
		return
	}
	if c.manifest.TimeOrigin != "untimed" {
		same("in_progress", t.inProgress, m.InProgress)
	}
	for i := range c.ranks {
		if r := &c.ranks[i]; r.rows != r.events {
			c.bad(int32(i), NullInt64, "%d rows of events; ranks says %d", r.rows, r.events)
		}
	}
}
