package simrank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/commq/commq/internal/private"
	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// Options control Run.
type Options struct {
	// Machine is the machine to simulate. It must be one on which messages do not wait for each other; Run fails with
	// others.
	Machine *models.Machine
	// Spool is the folder for the files of records. Run creates it if needed.
	Spool string
	// Log takes warnings.
	Log io.Writer
	// Verbose writes the summary to Log too.
	Verbose bool
}

// Summary is what a simulator rank has counted. It is written into the spool as JOB.simulator.K.json, K its number.
type Summary struct {
	// Job is the job's id in hexadecimal, Simulator the number of the simulator rank, Ranks how many it served.
	Job       string `json:"job"`
	Simulator int32  `json:"simulator"`
	Ranks     int64  `json:"ranks"`
	// Events is the number of events that it read. Messages were sent with MessageBytes of payload in all; RecordBytes
	// is the size of the records.
	Events       int64 `json:"events"`
	Messages     int64 `json:"messages"`
	MessageBytes int64 `json:"message_bytes"`
	RecordBytes  int64 `json:"record_bytes"`
	// Collectives counts the instances that all ranks entered, CollectivesOpen those that some did not.
	Collectives     int64 `json:"collectives"`
	CollectivesOpen int64 `json:"collectives_open"`
	// Choices, OutOfOrder and Early are sums over the ranks; see Choices, OutOfOrder and EarlyCollectives of
	// schema.Counts.
	Choices    int64 `json:"choices"`
	OutOfOrder int64 `json:"out_of_order"`
	Early      int64 `json:"early"`
	// Machine is the name of the machine, Description the text of its file.
	Machine     string `json:"machine"`
	Description string `json:"description"`
	// LastPs is the latest virtual time at which one of its ranks left.
	LastPs int64 `json:"last_ps"`
}

// instance is an instance of a collective on a communicator.
type instance struct{ key, n uint64 }

// gathering is a collective that not all ranks have entered yet.
type gathering struct {
	call      uint16
	want      int32
	ranks     []int32
	latest    models.Picoseconds
	root, all models.Sizes
}

// States of a rank.
const (
	unknown = iota
	present
	gone
)

// simulator is the state of a Run. Only the goroutine that reads events uses it.
type simulator struct {
	o         Options
	network   models.Network // until the first HELLO one for 0 ranks, which is enough for collectives
	in        io.Reader
	out       *answers
	disk      *disk
	stop      atomic.Bool
	ranks     []uint8 // by rank; empty before the first HELLO
	job       uint64
	first     int32 // lowest rank that it serves
	gathering map[instance]*gathering
	idle      []*gathering
	batch     []byte // answers that were not handed on yet
	warned    bool   // a warning about different operations was written
	summary   Summary
}

// Run reads events from in and writes the answers to out until in ends. All records are in their files then. Malformed
// input is an error. When ctx is done, Run returns before the end of the input.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	network, err := o.Machine.Stateless(0)
	if err != nil {
		return err
	}
	if _, err := private.Folder(o.Spool); err != nil {
		return fmt.Errorf("make the spool: %w", err)
	}
	s := &simulator{o: o, network: network, in: in, out: newAnswers(out), gathering: map[instance]*gathering{},
		first: math.MaxInt32}
	s.disk = newDisk(o.Spool, s.out, o.Log)
	done := make(chan error, 1)
	go func() { done <- s.run() }()
	select {
	case err = <-done:
		return err
	case <-ctx.Done():
	}
	s.stop.Store(true)
	select {
	case <-done:
	case <-time.After(time.Second):
	}
	return fmt.Errorf("simulator rank: %w", context.Cause(ctx))
}

func (s *simulator) run() error {
	err := s.serve()
	s.disk.close()
	return errors.Join(err, s.out.close(), s.finish())
}

// readBytes is the size of the read buffer.
const readBytes = 256 << 10

// serve reads and answers until the input ends.
func (s *simulator) serve() error {
	buf := make([]byte, readBytes)
	filled := 0
	for !s.stop.Load() {
		n, err := s.in.Read(buf[filled:])
		filled += n
		used, failed := s.takeEvents(buf[:filled])
		s.flush()
		switch {
		case failed != nil:
			return fmt.Errorf("event %d: %w", s.summary.Events, failed)
		case err == io.EOF && used != filled:
			return fmt.Errorf("event %d: the input ends within it: the simulator rank was killed", s.summary.Events+1)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read events: %w", err)
		}
		filled = copy(buf, buf[used:filled])
	}
	return nil
}

// flush hands the answers on. It is called before anything that may wait.
func (s *simulator) flush() {
	if len(s.batch) > 0 {
		s.out.put(s.batch)
		s.batch = s.batch[:0]
	}
}

// takeEvents handles the events at the beginning of b and returns how many bytes they are. When records continue
// beyond b it reads the rest.
func (s *simulator) takeEvents(b []byte) (used int, err error) {
	var e Event
	for len(b)-used >= EventBytes {
		e.decode(b[used:])
		used += EventBytes
		s.summary.Events++
		if e.Kind == Records {
			n, err := s.takeRecords(&e, b[used:])
			if err != nil {
				return used, err
			}
			used += n
			continue
		}
		if err := s.handle(&e); err != nil {
			return used, err
		}
	}
	return used, nil
}

// handle handles an event without records.
func (s *simulator) handle(e *Event) error {
	switch e.Kind {
	case Sent:
		return s.answerSend(e)
	case Entered:
		return s.enter(e)
	case Hello:
		return s.addRank(e)
	case Sync:
		if err := s.checkPresent(e); err != nil {
			return err
		}
		s.queueChunk(chunk{kind: Sync, rank: e.Rank})
		return nil
	case Left:
		return s.removeRank(e)
	}
	return fmt.Errorf("kind %d: no such event; is the simulator rank from another version of commq?", e.Kind)
}

// addRank handles the first event of a rank.
func (s *simulator) addRank(e *Event) error {
	switch {
	case e.Bytes != Version:
		return fmt.Errorf("rank %d has version %d of the simulator protocol, this commq has %d: build the shim again (commq capture build)",
			e.Rank, e.Bytes, Version)
	case e.Peer < 1 || e.Peer > schema.MaxRanks || e.Rank < 0 || e.Rank >= e.Peer:
		return fmt.Errorf("hello of rank %d of %d: no such rank", e.Rank, e.Peer)
	case len(s.ranks) > 0 && (e.N != s.job || int(e.Peer) != len(s.ranks)):
		return fmt.Errorf("hello of rank %d: it is in job %016x of %d ranks, others are in job %016x of %d ranks",
			e.Rank, e.N,
			e.Peer, s.job, len(s.ranks))
	}
	if len(s.ranks) == 0 {
		network, err := s.o.Machine.Stateless(int(e.Peer))
		if err != nil {
			return err
		}
		s.network = network
		s.ranks = make([]uint8, e.Peer)
		s.job = e.N
		s.disk.job = e.N
	}
	if s.ranks[e.Rank] != unknown {
		return fmt.Errorf("second hello of rank %d", e.Rank)
	}
	s.ranks[e.Rank] = present
	s.first = min(s.first, e.Rank)
	s.summary.Ranks++
	return nil
}

// checkPresent checks that a rank has sent a HELLO here and has not left.
func (s *simulator) checkPresent(e *Event) error {
	if e.Rank < 0 || int(e.Rank) >= len(s.ranks) || s.ranks[e.Rank] != present {
		return fmt.Errorf("event of kind %d from rank %d, which has sent no hello or has left", e.Kind, e.Rank)
	}
	return nil
}

// timeOf is the time of an event.
func timeOf(e *Event) (models.Picoseconds, error) {
	if e.TimePs < 0 {
		return 0, fmt.Errorf("event of kind %d from rank %d: time %d ps is negative", e.Kind, e.Rank, e.TimePs)
	}
	return min(models.Picoseconds(e.TimePs), models.Forever), nil
}

// answerSend tells the receiver of a message when it arrives. The answer may come before or after the message itself.
func (s *simulator) answerSend(e *Event) error {
	t, err := timeOf(e)
	if err != nil {
		return err
	}
	if uint(e.Rank) >= uint(len(s.ranks)) || uint(e.Peer) >= uint(len(s.ranks)) {
		return fmt.Errorf("message from rank %d to rank %d in a program of %d", e.Rank, e.Peer, len(s.ranks))
	}
	bytes := max(e.Bytes, 0)
	s.summary.Messages++
	s.summary.MessageBytes += bytes
	delay := s.network.Delay(int(e.Rank), int(e.Peer), bytes)
	e.Kind, e.Rank, e.Peer = Arrives, e.Peer, e.Rank
	e.TimePs, e.DelayPs = int64(t), int64(delay)
	s.batch = e.append(s.batch)
	return nil
}

// enter handles that a rank enters a collective.
func (s *simulator) enter(e *Event) error {
	t, err := timeOf(e)
	switch {
	case err != nil:
		return err
	case e.Peer < 1 || e.Peer > schema.MaxRanks || e.Rank < 0 || e.Rank >= schema.MaxRanks:
		return fmt.Errorf("rank %d enters a collective of %d ranks", e.Rank, e.Peer)
	case int(e.Call) >= len(schema.Calls) || e.Call == 0:
		return fmt.Errorf("rank %d enters a collective with the call number %d, which does not exist", e.Rank, e.Call)
	}
	p := instance{e.Key, e.N}
	g := s.gathering[p]
	if g == nil {
		g = s.newGathering()
		g.call, g.want = e.Call, e.Peer
		s.gathering[p] = g
	}
	if g.call != e.Call || g.want != e.Peer {
		s.warnMixed(g, e)
	}
	g.ranks = append(g.ranks, e.Rank)
	g.latest = max(g.latest, t)
	ranks := int64(e.Peer)
	sent, received := schema.CollectiveBytes(schema.CallID(e.Call), schema.CollectiveArgs{
		Peers: ranks, Group: ranks, Root: e.Flags&FlagRoot != 0, Send: e.Bytes, Recv: e.Received})
	if e.Flags&FlagRoot != 0 {
		g.root.Add(sent, received)
	}
	g.all.Add(sent, received)
	if len(g.ranks) >= int(g.want) {
		delete(s.gathering, p)
		s.answerAll(p, g)
	}
	return nil
}

// newGathering is an empty gathering, one that was used before if possible.
func (s *simulator) newGathering() *gathering {
	n := len(s.idle)
	if n == 0 {
		return &gathering{}
	}
	g := s.idle[n-1]
	s.idle = s.idle[:n-1]
	*g = gathering{ranks: g.ranks[:0]}
	return g
}

// answerAll tells all ranks when a collective ends.
func (s *simulator) answerAll(p instance, g *gathering) {
	sizes := &g.all
	if g.root.Ranks() > 0 {
		sizes = &g.root
	}
	s.summary.Collectives++
	t := g.latest + s.network.Collective(schema.CallID(g.call), int(g.want), sizes)
	e := Event{Kind: Leaves, Call: g.call, Peer: g.want, Key: p.key, N: p.n, TimePs: int64(min(t, models.Forever))}
	for _, e.Rank = range g.ranks {
		s.batch = e.append(s.batch)
	}
	s.idle = append(s.idle, g)
}

// warnMixed warns, once, that ranks are in different collectives where they should be in the same.
func (s *simulator) warnMixed(g *gathering, e *Event) {
	if s.warned {
		return
	}
	s.warned = true
	fmt.Fprintf(s.o.Log, "commq simrank: rank %d is in %s of %d ranks, but rank %d is in %s of %d ranks at the same place: it gets the time of the first\n",
		g.ranks[0], schema.CallID(g.call), g.want, e.Rank, schema.CallID(e.Call), e.Peer)
}

// maxOffset is larger than any file of records.
const maxOffset = 1 << 50

// takeRecords consumes the records of an event, from b and then from the pipe, and returns how many bytes of b it used.
func (s *simulator) takeRecords(e *Event, b []byte) (int, error) {
	if err := s.checkPresent(e); err != nil {
		return 0, err
	}
	if e.Bytes < 0 || e.Bytes > RecordBytes || e.N > maxOffset || e.Peer < 0 {
		return 0, fmt.Errorf("rank %d, thread %d: %d bytes of records at %d; there are at most %d", e.Rank, e.Peer,
			e.Bytes, e.N, RecordBytes)
	}
	data := s.disk.buffer(e.Bytes)
	n := copy(data, b)
	if n < len(data) {
		s.flush()
		if _, err := io.ReadFull(s.in, data[n:]); err != nil {
			return n, fmt.Errorf("rank %d: the input ends within its records: the simulator rank was killed (%w)",
				e.Rank, err)
		}
	}
	s.summary.RecordBytes += e.Bytes
	s.queueChunk(chunk{kind: Records, rank: e.Rank, thread: e.Peer, offset: int64(e.N), data: data})
	return n, nil
}

// queueChunk queues work for the disk.
func (s *simulator) queueChunk(c chunk) {
	select {
	case s.disk.queue <- c:
		return
	default:
	}
	s.flush()
	s.disk.queue <- c
}

// removeRank handles the last event of a rank.
func (s *simulator) removeRank(e *Event) error {
	if err := s.checkPresent(e); err != nil {
		return err
	}
	s.ranks[e.Rank] = gone
	s.summary.OutOfOrder += int64(e.N)
	s.summary.Choices += e.Bytes
	s.summary.Early += e.Received
	s.summary.LastPs = max(s.summary.LastPs, e.TimePs)
	s.queueChunk(chunk{kind: Left, rank: e.Rank})
	return nil
}

// finish warns about what did not end and writes the summary.
func (s *simulator) finish() error {
	s.summary.CollectivesOpen = int64(len(s.gathering))
	s.warnOpen()
	if len(s.ranks) == 0 {
		return nil
	}
	s.summary.Job, s.summary.Simulator = fmt.Sprintf("%016x", s.job), s.first
	s.summary.Machine, s.summary.Description = s.o.Machine.Name, s.o.Machine.Description
	data, err := json.Marshal(&s.summary)
	if err != nil {
		return err
	}
	if s.o.Verbose {
		fmt.Fprintf(s.o.Log, "commq simrank: %s\n", data)
	}
	path := filepath.Join(s.o.Spool, fmt.Sprintf("%016x.simulator.%d.json", s.job, s.first))
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		s.disk.warn(err) // the run is possible without a summary
	}
	return nil
}
