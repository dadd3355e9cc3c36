package ingest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/schema"
)

// machine executes a random program as MPI would, message by message. A send goes to the first posted receive that it
// matches, else into the unexpected queue, where a receive takes the first message that it matches. So every match is
// known directly; ingest must find the same ones from the rows alone.
type machine struct {
	rng     *rand.Rand
	scripts []*script
	rows    []int64 // next row of each rank
	serial  []uint32
	posted  [][]*receive // by destination, in posting order
	arrived [][]*sending
	open    [][]*receive // by rank: with a request that has not ended
	sends   [][]uint32   // by rank: requests of sends that have not ended
	found   [][]*receive // by rank: matched probes whose message is not received yet
	now     uint64
	truth   []string
}

type receive struct {
	comm, src, tag int32 // as posted: anyRank, anyTag
	row            int64
	req            uint32
	got            *sending
}

type sending struct {
	comm, src, dst, tag int32
	row, elements       int64
}

func (r *receive) fits(s *sending) bool {
	return r.comm == s.comm && (r.src == anyRank || r.src == s.src) && (r.tag == anyTag || r.tag == s.tag)
}

// members of communicator 2: the world backwards.
func (m *machine) worldOf(comm, rank int32) int32 {
	if comm == 2 {
		return int32(len(m.scripts)) - 1 - rank
	}
	return rank
}

func (m *machine) call(rank int, id schema.CallID, edit func(*spool.Call)) int64 {
	s := m.scripts[rank]
	s.now = m.now
	m.now += 10
	s.call(id, edit)
	m.rows[rank]++
	return m.rows[rank] - 1
}

func (m *machine) request(rank int) uint32 {
	m.serial[rank]++
	return m.serial[rank]
}

func (m *machine) pick(n int) int32 { return int32(m.rng.IntN(n)) }

func (m *machine) comm() int32 { return 2 * m.pick(2) }

// step does one random thing that is possible.
func (m *machine) step() {
	rank := m.rng.IntN(len(m.scripts))
	switch m.rng.IntN(8) {
	case 0, 1, 2:
		m.send(rank)
	case 3, 4:
		m.post(rank)
	case 5:
		m.finish(rank)
	case 6:
		m.probe(rank)
	case 7:
		m.receiveBlocking(rank)
	}
}

func (m *machine) send(rank int) {
	s := &sending{comm: m.comm(), src: int32(rank), tag: 1 + m.pick(2), elements: 1 + int64(m.pick(9))}
	peer := m.pick(len(m.scripts))
	s.dst = m.worldOf(s.comm, peer)
	if m.pick(2) == 0 {
		s.row = m.call(rank, schema.CallSend, to(s.comm, peer, s.tag, s.elements, 0))
	} else {
		req := m.request(rank)
		s.row = m.call(rank, schema.CallIsend, to(s.comm, peer, s.tag, s.elements, req))
		m.sends[rank] = append(m.sends[rank], req)
	}
	for i, r := range m.posted[s.dst] {
		if r.fits(s) {
			r.got = s
			m.posted[s.dst] = slices.Delete(m.posted[s.dst], i, i+1)
			return
		}
	}
	m.arrived[s.dst] = append(m.arrived[s.dst], s)
}

// random returns a random receive, as posted, and the index of the message that is there for it.
func (m *machine) random(rank int) (r *receive, at int) {
	r = &receive{comm: m.comm(), src: anyRank, tag: anyTag}
	if m.pick(3) > 0 {
		r.src = m.pick(len(m.scripts))
	}
	if m.pick(3) > 0 {
		r.tag = 1 + m.pick(2)
	}
	return r, slices.IndexFunc(m.arrived[rank], r.fits)
}

// peer returns the rank in the communicator, or anyRank.
func (m *machine) peer(comm, world int32) int32 {
	if world == anyRank {
		return anyRank
	}
	return m.worldOf(comm, world) // reversing twice gives the original order
}

func (m *machine) take(rank, at int) *sending {
	s := m.arrived[rank][at]
	m.arrived[rank] = slices.Delete(m.arrived[rank], at, at+1)
	return s
}

func (m *machine) post(rank int) {
	r, at := m.random(rank)
	r.req = m.request(rank)
	r.row = m.call(rank, schema.CallIrecv, from(r.comm, m.peer(r.comm, r.src), r.tag, r.req))
	if at >= 0 {
		r.got = m.take(rank, at)
	} else {
		m.posted[rank] = append(m.posted[rank], r)
	}
	m.open[rank] = append(m.open[rank], r)
}

// finish waits for a random selection of the requests that can end, or cancels a receive.
func (m *machine) finish(rank int) {
	var done []spool.DoneEntry
	var met []*receive
	m.open[rank] = slices.DeleteFunc(m.open[rank], func(r *receive) bool {
		if m.pick(2) == 0 {
			return false
		}
		if r.got == nil {
			return m.pick(4) == 0 && m.cancel(rank, r)
		}
		met = append(met, r)
		done = append(done, spool.DoneEntry{Req: r.req, Source: m.peer(r.comm, r.got.src), Tag: r.got.tag,
			Bytes: 4 * r.got.elements})
		return true
	})
	m.sends[rank] = slices.DeleteFunc(m.sends[rank], func(req uint32) bool {
		if m.pick(2) == 0 {
			return false
		}
		done = append(done, spool.DoneEntry{Req: req, Source: null32, Tag: null32, Bytes: null64})
		return true
	})
	if len(done) == 0 {
		return
	}
	m.rng.Shuffle(len(done), func(i, j int) { done[i], done[j] = done[j], done[i] })
	row := m.call(rank, schema.CallWaitall, nil)
	m.scripts[rank].Done(done...)
	for _, r := range met {
		m.met(r.got, r.row, row)
	}
}

func (m *machine) cancel(rank int, r *receive) bool {
	m.call(rank, schema.CallCancel, func(c *spool.Call) { c.Req = r.req })
	m.call(rank, schema.CallWait, func(c *spool.Call) { c.Req, c.Flags = r.req, spool.FlagCancelled })
	m.posted[rank] = slices.DeleteFunc(m.posted[rank], func(p *receive) bool { return p == r })
	return true
}

// probe takes a message with a matched probe, or receives one taken before.
func (m *machine) probe(rank int) {
	if found := m.found[rank]; len(found) > 0 && m.pick(2) == 0 {
		m.receiveFound(rank, int(m.pick(len(found))))
		return
	}
	r, at := m.random(rank)
	if at < 0 {
		return
	}
	r.got, r.req = m.take(rank, at), m.request(rank)
	r.row = m.call(rank, schema.CallMprobe, func(c *spool.Call) {
		from(r.comm, m.peer(r.comm, r.src), r.tag, r.req)(c)
		c.Dtype, c.Peer, c.Tag, c.Count = null32, m.peer(r.comm, r.got.src), r.got.tag, 4*r.got.elements
	})
	m.found[rank] = append(m.found[rank], r)
}

func (m *machine) receiveFound(rank, k int) {
	r := m.found[rank][k]
	m.found[rank] = slices.Delete(m.found[rank], k, k+1)
	if m.pick(2) == 0 {
		row := m.call(rank, schema.CallMrecv,
			func(c *spool.Call) { c.Dtype, c.Count, c.Req = 0, 9, uint32(4*r.got.elements) })
		m.scripts[rank].Wide(spool.WideMessage, int64(r.req))
		m.met(r.got, r.row, row)
		return
	}
	taken := *r
	taken.req = m.request(rank)
	m.call(rank, schema.CallImrecv, func(c *spool.Call) { c.Dtype, c.Count, c.Req = 0, 9, taken.req })
	m.scripts[rank].Wide(spool.WideMessage, int64(r.req))
	m.open[rank] = append(m.open[rank], &taken)
}

func (m *machine) receiveBlocking(rank int) {
	r, at := m.random(rank)
	if at < 0 {
		return
	}
	s := m.take(rank, at)
	row := m.call(rank, schema.CallRecv, func(c *spool.Call) {
		from(r.comm, m.peer(r.comm, r.src), r.tag, 0)(c)
		c.Peer, c.Tag, c.Req = m.peer(r.comm, s.src), s.tag, uint32(4*s.elements)
	})
	m.met(s, row, row)
}

func (m *machine) met(s *sending, posted, done int64) {
	m.truth = append(m.truth, fmt.Sprintf("%d>%d tag %d bytes %d rows %d %d %d", s.src, m.worldOfSend(s), s.tag,
		4*s.elements, s.row, posted, done))
}

func (m *machine) worldOfSend(s *sending) int32 { return s.dst }

// end finishes what can be finished: receives and messages that have been matched.
func (m *machine) end() {
	for rank := range m.scripts {
		for len(m.found[rank]) > 0 {
			m.receiveFound(rank, 0)
		}
		for slices.ContainsFunc(m.open[rank], func(r *receive) bool { return r.got != nil }) {
			m.finish(rank)
		}
	}
}

// randomSpool writes the spool of a random program, and returns what ingest must find in it.
func randomSpool(t testing.TB, seed uint64, ranks, steps int) (dir string, truth []string, unmatchedSends,
	unmatchedReceives int64) {
	dir = t.TempDir()
	m := machine{rng: rand.New(rand.NewPCG(seed, 0)), rows: make([]int64, ranks), serial: make([]uint32, ranks),
		posted:  make([][]*receive, ranks),
		arrived: make([][]*sending, ranks), open: make([][]*receive, ranks), sends: make([][]uint32, ranks),
		found: make([][]*receive, ranks), now: 1000}
	world := make([]int32, ranks)
	for i := range world {
		world[i] = int32(ranks - 1 - i)
	}
	var files []*os.File
	for rank := range ranks {
		h := spool.Header{Rank: int32(rank), Size: int32(ranks), Job: testJob, Ended: spool.EndedFinalized,
			OffsetInitNs: null64, OffsetFinalNs: null64}
		f, err := os.Create(dir + "/" + spoolgen.FileName(&h))
		if err != nil {
			t.Fatal(err)
		}
		s := &script{Writer: spoolgen.NewWriter(f, h)}
		m.scripts, files = append(m.scripts, s), append(files, f)
		s.call(schema.CallInit, nil)
		s.DefType(0, "MPI_INT", 0, 4, 4)
		making(s, schema.CallCommSplit, rank, 2, 0, 0, world, nil)
		m.rows[rank] = 2
	}
	for range steps {
		m.step()
	}
	m.end()
	for rank, s := range m.scripts {
		unmatchedSends += int64(len(m.arrived[rank]))
		unmatchedReceives += int64(len(m.posted[rank]))
		s.now = m.now
		s.call(schema.CallFinalize, nil)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		files[rank].Close()
	}
	slices.Sort(m.truth)
	return dir, m.truth, unmatchedSends, unmatchedReceives
}

func TestRandomProgramsAreMatchedAsTheyRan(t *testing.T) {
	for seed := range uint64(60) {
		ranks := 1 + int(seed%5)
		dir, truth, sends, receives := randomSpool(t, seed, ranks, 40+int(seed)*10)
		var whole *result
		for _, epochRows := range []int64{1 << 20, 60, 3} {
			r := inMemory(t, dir, Options{epochRows: epochRows, shardRows: 40, maxShards: 8, Workers: 1 + int(seed%3)})
			var found []string
			for _, m := range r.messages {
				found = append(found, fmt.Sprintf("%d>%d tag %d bytes %d rows %d %d %d", m.Src, m.Dst, m.Tag, m.Bytes,
					m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq))
			}
			slices.Sort(found)
			name := fmt.Sprintf("seed %d, epochs of %d rows", seed, epochRows)
			compareLines(t, name, strings.Join(found, "\n"), strings.Join(truth, "\n"))
			if c := r.Counts; c.UnmatchedSends != sends || c.UnmatchedReceives != receives {
				t.Errorf("%s: %d and %d unmatched, want %d and %d", name, c.UnmatchedSends, c.UnmatchedReceives,
					sends, receives)
			}
			checkWindows(t, name, r)
			if whole == nil {
				whole = r
			}
			compareExceptEpochs(t, name, whole, r)
			if t.Failed() {
				return
			}
		}
	}
}

// checkWindows checks that epochs are windows of time, and that the epoch of a message is the latest one of its rows.
func checkWindows(t *testing.T, name string, r *result) {
	t.Helper()
	type key struct {
		rank int32
		seq  int64
	}
	first, last := map[int32]int64{}, map[int32]int64{}
	epochs := map[key]int32{}
	for _, e := range r.events {
		if f, ok := first[e.Epoch]; !ok || e.StartNs < f {
			first[e.Epoch] = e.StartNs
		}
		last[e.Epoch] = max(last[e.Epoch], e.StartNs)
		epochs[key{e.Rank, e.Seq}] = e.Epoch
	}
	for e := int32(1); e < r.Epochs; e++ {
		if first[e] <= last[e-1] {
			t.Errorf("%s: epoch %d ends at %d, the next begins at %d", name, e-1, last[e-1], first[e])
		}
	}
	for _, m := range r.messages {
		if want := max(epochs[key{m.Src, m.SendSeq}], epochs[key{m.Dst, m.RecvPostSeq}]); m.Epoch != want {
			t.Errorf("%s: message %d.%d in epoch %d, want %d", name, m.Src, m.SendSeq, m.Epoch, want)
		}
	}
}

// compareExceptEpochs compares the events of two runs, without their epochs.
func compareExceptEpochs(t *testing.T, name string, a, b *result) {
	t.Helper()
	if len(a.events) != len(b.events) {
		t.Fatalf("%s: %d events, want %d", name, len(b.events), len(a.events))
	}
	for i := range a.events {
		x, y := a.events[i], b.events[i]
		x.Epoch, y.Epoch = 0, 0
		if x != y {
			t.Fatalf("%s: rank %d, seq %d:\n%+v, want\n%+v", name, y.Rank, y.Seq, y, x)
		}
	}
}

// The rows do not depend on the number of workers.
func TestDigestDoesNotDependOnWorkers(t *testing.T) {
	dir, _, _, _ := randomSpool(t, 4711, 7, 2000)
	for _, record := range []string{RecordAll, RecordMessages} {
		var want *result
		for _, workers := range []int{1, 2, 7} {
			r := ingested(t, dir, Options{Record: record, Workers: workers, epochRows: 100, shardRows: 300, maxShards: 8})
			if want == nil {
				want = r
			}
			if r.Digest != want.Digest || r.Counts != want.Counts || r.Epochs < 10 || len(r.Tables[0].Files) < 3 {
				t.Errorf("%s with %d workers: digest %s, %+v; with 1: %s, %+v", record, workers, r.Digest, r.Counts,
					want.Digest, want.Counts)
			}
		}
	}
}
