package derive

import (
	"slices"

	"github.com/commq/commq/schema"
)

// The sizes of the table activity. docs/adr/0028-activity-over-time-is-a-table.md has the reasons.
const (
	// ActivityCalls is the least number of calls of a run that has the table.
	ActivityCalls = 1 << 18
	// activityCellCalls is how many calls a cell (a block of ranks in a step) of the finest resolution has at least,
	// on average.
	activityCellCalls = 192
	// activityCells is the largest number of cells of the finest resolution.
	activityCells = 1 << 20
	// activityFewBlocks is the number of blocks of ranks up to which they do not get larger, and activityManyBlocks the
	// number from which on there are always larger blocks too.
	activityFewBlocks, activityManyBlocks = 64, 512
	// activityFewSteps is the least number of steps of a resolution that is kept beside one with larger blocks, and
	// activityManySteps the number up to which there are larger blocks, whose steps are shorter.
	activityFewSteps, activityManySteps = 64, 256
	// activityWiden is the exponent by which the ranks of a block grow from one resolution to the next.
	activityWiden = 3
	// activityCoarsen is the same of steps.
	activityCoarsen = 2
	// activitySteps is the number of steps up to which they get longer.
	activitySteps = 256
	// activityLeastPower is the exponent of the shortest step: 1 µs.
	activityLeastPower = 10
	// activityUnended is the largest number of calls that never returned.
	activityUnended = 1 << 16
	// activityOpen is the largest number of operations that some members have entered and others not yet: 100 MB.
	activityOpen = 1 << 20
	// activityLatest is the latest time of a call, in ns.
	activityLatest = 1 << 60
)

// ActivitySums makes the rows of the table activity from those of events and messages, in any order. Its memory is at
// most 16 MB for each class of calls that the program makes all the time, and 100 MB for open operations. It must not
// be used concurrently.
type ActivitySums struct {
	least     int64 // calls that a run with the table has at least
	cellCalls int64 // activityCellCalls
	calls     int64
	lastNs    int64 // the latest time of a call
	grids     []activityGrid
	unended   []unendedCall
	members   map[int32]int32 // of communicators, in both groups
	open      map[operationKey]operationSum
	mostOpen  int  // activityOpen
	tooMany   bool // calls that never returned
}

// operationKey names a collective operation.
type operationKey struct {
	comm     int32
	instance int64
}

// operationSum is what the members that have entered an operation sent in it.
type operationSum struct {
	entered        int32
	first          int32 // the rank that entered first
	startNs, bytes int64
}

// unendedCall is a call that never returned.
type unendedCall struct {
	rank    int32
	class   int16
	startNs int64
}

// activityGrid has the sums for one size of blocks of ranks. Its steps get longer as the run does.
type activityGrid struct {
	rankPower, power int
	ranks            int32
	n                int               // the number of blocks
	most             int64             // steps up to which there are not too many cells
	blocks           [][]activityTrack // by block and class; as many as have calls so far
}

// activityTrack has the sums of a class of calls of a block, by step.
type activityTrack []activityCell

type activityCell struct{ calls, amount int64 } // the amount is ns or, of messages and operations, bytes

// NewActivitySums returns an ActivitySums for a run of this many ranks.
func NewActivitySums(ranks int) *ActivitySums {
	s := &ActivitySums{least: ActivityCalls, cellCalls: activityCellCalls, members: map[int32]int32{},
		open: map[operationKey]operationSum{}, mostOpen: activityOpen}
	for p := 0; ; p += activityWiden {
		n := (ranks + 1<<p - 1) >> p
		s.grids = append(s.grids, activityGrid{rankPower: p, power: activityLeastPower, ranks: int32(ranks), n: n})
		if n <= activityFewBlocks {
			break
		}
	}
	for len(s.grids) > 1 && int64(s.grids[0].n)*activityFewSteps > s.cells() {
		s.grids = s.grids[1:] // would never be kept
	}
	return s
}

// ActivityColumns lists the columns of events or messages that ActivitySums reads.
func ActivityColumns(t *schema.Table) []string {
	if t == &schema.EventsTable {
		return []string{"rank", "class", "start_ns", "end_ns", "comm", "instance", "send_bytes", "error_class"}
	}
	return []string{"src", "send_start_ns", "bytes"}
}

// AddComms adds members of communicators. Add all of them before any row of events.
func (s *ActivitySums) AddComms(c *schema.Comms) {
	for i, comm := range c.Comm {
		if uint32(c.WorldRank[i]) < uint32(s.grids[0].ranks) {
			s.members[comm]++
		}
	}
}

// AddEvents adds calls.
func (s *ActivitySums) AddEvents(e *schema.Events) {
	s.calls += int64(e.Len())
	last := s.lastNs
	for i, start := range e.StartNs {
		last = max(last, min(start, activityLatest), min(e.EndNs[i], activityLatest)) // nulls are below all times
	}
	s.extend(last)
	for i, start := range e.StartNs {
		end := e.EndNs[i]
		if schema.Class(e.Class[i]) == schema.ClassCollective && s.has(e.Rank[i], start) {
			s.enter(e, i)
		}
		switch {
		case !s.has(e.Rank[i], start) || end > activityLatest || e.Class[i] < 0: // not in a run that is whole
		case end == schema.NullInt64:
			s.addUnended(unendedCall{e.Rank[i], e.Class[i], start})
		default:
			for g := range s.grids {
				s.grids[g].add(e.Rank[i], e.Class[i], start, end)
			}
		}
	}
}

// enter adds row i of events to its operation. When all members have entered, the operation is counted. If too many are
// open, as where a rank has no rows, operations are given up.
func (s *ActivitySums) enter(e *schema.Events, i int) {
	if e.ErrorClass[i] != schema.NullInt32 || e.Instance[i] == schema.NullInt64 || s.open == nil {
		return
	}
	key := operationKey{e.Comm[i], e.Instance[i]}
	op, entered := s.open[key]
	if rank, start := e.Rank[i], e.StartNs[i]; !entered || start < op.startNs || start == op.startNs && rank < op.first {
		op.first, op.startNs = rank, start
	}
	op.bytes += max(e.SendBytes[i], 0) // null is negative
	op.entered++
	if op.entered == s.members[key.comm] {
		s.addOperation(op)
		delete(s.open, key)
		return
	}
	if s.open[key] = op; len(s.open) <= s.mostOpen {
		return
	}
	s.open = nil
	for g := range s.grids {
		for _, tracks := range s.grids[g].blocks {
			if len(tracks) > int(schema.ActivityOperations) {
				tracks[schema.ActivityOperations] = nil
			}
		}
	}
}

// addOperation counts an operation that no further member enters.
func (s *ActivitySums) addOperation(op operationSum) {
	for g := range s.grids {
		c := s.grids[g].cell(op.first, schema.ActivityOperations, op.startNs)
		c.calls++
		c.amount += op.bytes
	}
}

// AddMessages adds messages.
func (s *ActivitySums) AddMessages(m *schema.Messages) {
	last := s.lastNs
	for _, start := range m.SendStartNs {
		last = max(last, min(start, activityLatest))
	}
	s.extend(last)
	for i, start := range m.SendStartNs {
		if !s.has(m.Src[i], start) {
			continue
		}
		for g := range s.grids {
			c := s.grids[g].cell(m.Src[i], schema.ActivitySent, start)
			c.calls++
			c.amount += m.Bytes[i]
		}
	}
}

// has reports whether a rank and a time can be added. Others are in damaged runs, of which package check reports them.
func (s *ActivitySums) has(rank int32, at int64) bool {
	return rank >= 0 && rank < s.grids[0].ranks && at >= 0 && at <= activityLatest
}

func (s *ActivitySums) addUnended(c unendedCall) {
	if s.tooMany = s.tooMany || len(s.unended) == activityUnended; !s.tooMany {
		s.unended = append(s.unended, c)
	}
}

// extend makes steps so long that there are not too many up to a time.
func (s *ActivitySums) extend(last int64) {
	s.lastNs = last
	for i := range s.grids {
		s.grids[i].limit(last, s.cells())
	}
}

// cells returns the largest number of cells of a grid.
func (s *ActivitySums) cells() int64 { return activityCells / int64(len(s.grids)) }

// keep returns the grids whose rows are worth having, and how many cells each of them may have.
func (s *ActivitySums) keep() (kept []activityGrid, cells int64) {
	for i := range s.grids {
		n := 1
		share := func() int64 { return min(s.cells(), s.calls/s.cellCalls/int64(n)) }
		for ; i+n < len(s.grids); n++ {
			if last := s.grids[i+n-1].n; last <= activityManyBlocks && share() >= int64(last)*activityManySteps {
				break
			}
		}
		if kept, cells = s.grids[i:i+n], share(); cells >= int64(kept[0].n)*activityFewSteps {
			break
		}
	}
	return kept, cells
}

// limit makes steps longer until there are no more than cells cells up to the time last.
func (g *activityGrid) limit(last, cells int64) {
	g.most = cells / int64(max(g.n, 1))
	for int64(g.n)*(last>>g.power+1) > cells && g.power < 62 {
		g.coarsen()
	}
}

// coarsen doubles the length of steps.
func (g *activityGrid) coarsen() {
	g.power++
	for _, tracks := range g.blocks {
		for class, t := range tracks {
			n := (len(t) + 1) / 2
			for i := range n {
				c := t[2*i]
				if 2*i+1 < len(t) {
					c.calls += t[2*i+1].calls
					c.amount += t[2*i+1].amount
				}
				t[i] = c
			}
			clear(t[n:])
			tracks[class] = t[:n]
		}
	}
}

// cell returns the sums of a rank's block at a time.
func (g *activityGrid) cell(rank int32, class int16, at int64) *activityCell {
	t := &g.tracks(rank)[class]
	if step := int(at >> g.power); step < len(*t) {
		return &(*t)[step]
	}
	return g.newCell(t, at)
}

// newCell does the same as cell for a time behind the end of a track.
func (g *activityGrid) newCell(t *activityTrack, at int64) *activityCell {
	step := int(at >> g.power)
	*t = t.grown(step+1, int(g.most))
	return &(*t)[step]
}

// tracks returns the sums of a rank's block by class.
func (g *activityGrid) tracks(rank int32) []activityTrack {
	if block := int(rank) >> g.rankPower; block < len(g.blocks) && g.blocks[block] != nil {
		return g.blocks[block]
	}
	return g.newTracks(int(rank) >> g.rankPower)
}

// newTracks makes the sums of a block.
func (g *activityGrid) newTracks(block int) []activityTrack {
	if block >= len(g.blocks) {
		g.blocks = slices.Grow(g.blocks, block+1-len(g.blocks))[:block+1]
	}
	g.blocks[block] = make([]activityTrack, len(schema.ActivityNames))
	return g.blocks[block]
}

// grown returns the track with n steps, and room for up to most. What was beyond its length is zero.
func (t activityTrack) grown(n, most int) activityTrack {
	if n <= cap(t) {
		return t[:n]
	}
	longer := make(activityTrack, n, max(n, min(2*n, most)))
	copy(longer, t)
	return longer
}

// add adds a call, to each step its part.
func (g *activityGrid) add(rank int32, class int16, start, end int64) {
	c := g.cell(rank, class, start)
	c.calls++
	next := (start>>g.power + 1) << g.power
	if end < next {
		c.amount += end - start
		return
	}
	c.amount += next - start
	if last := end >> g.power << g.power; last >= next {
		g.cell(rank, class, last).amount += end - last // the last step first: then the track is as long as it must be
		track := g.tracks(rank)[class]
		for ; next < last; next += 1 << g.power {
			track[next>>g.power].amount += 1 << g.power
		}
	}
}

// HasActivity reports whether a run can have rows of activity.
func HasActivity(m *schema.Manifest) bool {
	return m.TimeOrigin != "untimed" && m.Record == "all" && m.Counts.Calls >= ActivityCalls
}

// Rows passes the rows of activity to write, in batches. A run of few calls has none. The sums are empty afterwards.
func (s *ActivitySums) Rows(write func(*schema.ActivityCells) error) error {
	if s.calls < s.least || s.tooMany || s.grids[0].ranks == 0 {
		return nil
	}
	for _, u := range s.unended {
		for i := range s.grids {
			s.grids[i].add(u.rank, u.class, u.startNs, s.lastNs)
		}
	}
	for _, op := range s.open {
		s.addOperation(op)
	}
	out := &activityRows{write: write}
	kept, cells := s.keep()
	for i := range kept {
		g := &kept[i]
		g.limit(s.lastNs, cells)
		for {
			if err := out.add(g, s.lastNs); err != nil {
				return err
			}
			if s.lastNs>>g.power < activitySteps {
				break
			}
			for range activityCoarsen {
				g.coarsen()
			}
		}
		g.blocks = nil
	}
	*s = ActivitySums{}
	return out.flush()
}

// activityRows collects rows and passes them on in batches.
type activityRows struct {
	rows  schema.ActivityCells
	write func(*schema.ActivityCells) error
}

// activityBatch is the number of rows of a batch, which become a row group: an SQL engine that asks for a window of
// time then reads few rows more.
const activityBatch = 1 << 15

// add adds the rows of a grid at its present resolution.
func (o *activityRows) add(g *activityGrid, last int64) error {
	for step := range last>>g.power + 1 {
		for block, tracks := range g.blocks {
			nth := int32(0)
			for class, t := range tracks {
				if step >= int64(len(t)) || t[step] == (activityCell{}) {
					continue
				}
				row := schema.ActivityCell{RankPower: int32(g.rankPower), StepPower: int32(g.power),
					StartNs: step << g.power, Rank: int32(block) << g.rankPower, Nth: nth, Class: int16(class),
					Calls: t[step].calls, TimeNs: t[step].amount}
				if row.Class >= schema.ActivitySent {
					row.TimeNs, row.Bytes = 0, row.TimeNs
				}
				o.rows.Append(&row)
				nth++
			}
		}
		if o.rows.Len() >= activityBatch {
			if err := o.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *activityRows) flush() error {
	if o.rows.Len() == 0 {
		return nil
	}
	err := o.write(&o.rows)
	o.rows.Resize(0)
	return err
}
