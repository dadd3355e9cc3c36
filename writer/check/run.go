package check

import (
	"slices"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
)

// run is what rules share about the run. The rule that reads a table first fills in its part; rules run in the order
// of Rules.
type run struct {
	manifest *schema.Manifest
	place    place
	rows     map[string]int64 // by table

	ranks      []rankState // filled by the rule ranks
	totals     rankTotals
	comms      communicators         // filled by the rule comms
	persistent persistentCollectives // filled by the rule instances
	overlaps   derive.Overlaps       // filled by the rule thread-order
	inProgress int64                 // calls without an end; filled by the rule times
}

// rankState is what rules share about a rank.
type rankState struct {
	events  int64 // rows of events by the table ranks
	rows    int64 // rows of events so far
	lastSeq int64
	epoch   int32
}

// rankTotals are sums over the table ranks.
type rankTotals struct {
	events, polls, dropped int64
	unfinished             int // ranks that are not finalized
}

func newRun(m *schema.Manifest) *run {
	return &run{manifest: m, rows: map[string]int64{},
		comms: communicators{byID: map[int32]*communicator{}, members: map[uint64]*member{}},
		persistent: persistentCollectives{filtered: len(m.Filters) > 0,
			made: map[uint64]*persistentCollective{}}}
}

// recordsAll reports whether the run has all rows of events, except those left out by filters.
func (r *run) recordsAll() bool { return r.manifest.Record == "all" }

// filtered reports whether rows were left out by name or by MPI_Pcontrol.
func (r *run) filtered() bool { return len(r.manifest.Filters) > 0 }

// dense reports whether the run has every row of events.
func (r *run) dense() bool { return r.recordsAll() && !r.filtered() }

// finalized reports whether, according to the manifest, every rank reached MPI_Finalize.
func (r *run) finalized() bool { return r.manifest.Ended == schema.EndedNames[schema.EndedFinalized] }

// lacks reports whether the run lacks a derived table.
func (r *run) lacks(t *schema.Table) bool {
	for _, info := range r.manifest.Tables {
		if info.Name == t.Name {
			return len(info.Files) == 0
		}
	}
	return true
}

// rank returns the state of a rank; nil when the run has no such rank, which another rule (ranks) reports.
func (r *run) rank(rank int32) *rankState {
	if rank < 0 || int(rank) >= len(r.ranks) {
		return nil
	}
	return &r.ranks[rank]
}

// communicators are the rows of comms.
type communicators struct {
	byID    map[int32]*communicator
	members map[uint64]*member // by memberKey

	// The last member found: rows of one rank and communicator come together.
	lastKey uint64
	last    *member
}

// communicator holds the world ranks of its one or two groups.
type communicator struct {
	groups [2][]int32
	parent int32
	alien  bool // has a member outside the run's MPI_COMM_WORLD
	native bool // has a member inside
}

// member is a rank in a communicator.
type member struct {
	remote int32
	rank   int32  // in its group
	first  bool   // the first member of the communicator that is in the run's MPI_COMM_WORLD
	next   int64  // the next instance expected
	calls  uint64 // sum of hashes of its instances and calls
}

func memberKey(comm, world int32) uint64 { return uint64(uint32(comm))<<32 | uint64(uint32(world)) }

// member finds the member with that world rank; nil when there is none.
func (c *communicators) member(comm, world int32) *member {
	key := memberKey(comm, world)
	if c.last == nil || c.lastKey != key {
		c.lastKey, c.last = key, c.members[key]
	}
	return c.last
}

// isFirst reports whether the rank is the communicator's first member in the run's MPI_COMM_WORLD. Counting only the
// calls of that member counts every operation once.
func (c *communicators) isFirst(world, comm int32) bool {
	m := c.member(comm, world)
	return m != nil && m.first
}

// peers returns the group that the member's peers belong to: the remote one in an intercommunicator.
func (c *communicator) peers(m *member) []int32 {
	if len(c.groups[1]) > 0 {
		return c.groups[1-m.remote]
	}
	return c.groups[0]
}

// persistentCollectives are the rows that made persistent collectives, by rowKey. The start of one is a call of the
// operation that its row made.
type persistentCollectives struct {
	filtered bool // rows were left out by name
	made     map[uint64]*persistentCollective
}

// persistentCollective is a persistent collective of a rank.
type persistentCollective struct {
	call schema.CallID // that made it
	next int64         // the instance expected of its next start
}

// add remembers a row when it makes a persistent collective.
func (p *persistentCollectives) add(e *schema.Events, i int) {
	call := schema.CallID(e.Call[i])
	if e.Instance[i] != schema.NullInt64 && call.Is(schema.FactCollective|schema.FactPersistent) {
		p.made[schema.RowKey(e.Rank[i], e.Seq[i])] = &persistentCollective{call: call, next: (e.Instance[i] + 1) << 32}
	}
}

// startedBy finds the persistent collective that a row starts; nil when it starts none.
func (p *persistentCollectives) startedBy(e *schema.Events, i int) *persistentCollective {
	if !startsCollective(e, i) || e.InitSeq[i] == schema.NullInt64 {
		return nil
	}
	return p.made[schema.RowKey(e.Rank[i], e.InitSeq[i])]
}

// isOrphan reports whether a row starts a persistent collective whose maker was filtered out, so that its operation
// is not known.
func (p *persistentCollectives) isOrphan(e *schema.Events, i int) bool {
	return p.filtered && startsCollective(e, i) && p.startedBy(e, i) == nil
}

// operation returns the operation that a row of class collective performs: for a start, that of the call that made
// the request.
func (p *persistentCollectives) operation(e *schema.Events, i int) schema.CallID {
	if s := p.startedBy(e, i); s != nil {
		return s.call
	}
	return schema.CallID(e.Call[i])
}

func startsCollective(e *schema.Events, i int) bool {
	return schema.Class(e.Class[i]) == schema.ClassCollective && schema.CallID(e.Call[i]).Is(schema.FactStarts)
}

func sortedKeys[K int32 | uint64, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
