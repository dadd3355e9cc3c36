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

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// Options of Run.
type Options struct {
	// Machine is what the program is to run on. One with something that messages wait for is an error.
	Machine *models.Machine
	// Spool is the folder for the files of records; it is made where it is not there.
	Spool string
	// Log takes what is to be said beside the answers.
	Log io.Writer
	// Verbose says to write the summary to Log too.
	Verbose bool
}

// Summary is what a simulator has seen. It is written into the spool as JOB.simulator.K.json, K its number.
type Summary struct {
	// Job is the job's id in hexadecimal, Simulator the number of the simulator rank, Ranks how many it served.
	Job       string `json:"job"`
	Simulator int32  `json:"simulator"`
	Ranks     int64  `json:"ranks"`
	// Events are all it was told, Messages those that were sent, with MessageBytes of payload, Records the bytes of records.
	Events       int64 `json:"events"`
	Messages     int64 `json:"messages"`
	MessageBytes int64 `json:"message_bytes"`
	RecordBytes  int64 `json:"record_bytes"`
	// Collectives are the instances that all ranks entered, CollectivesOpen those that they did not.
	Collectives     int64 `json:"collectives"`
	CollectivesOpen int64 `json:"collectives_open"`
	// Choices, OutOfOrder and Early are the ranks' counts; see Choices, OutOfOrder and EarlyCollectives of schema.Counts.
	Choices    int64 `json:"choices"`
	OutOfOrder int64 `json:"out_of_order"`
	Early      int64 `json:"early"`
	// Machine is the name of the machine and Description its file.
	Machine     string `json:"machine"`
	Description string `json:"description"`
	// LastPs is the latest virtual time at which one of its ranks left.
	LastPs int64 `json:"last_ps"`
}

// place is an instance of a collective on a communicator.
type place struct{ key, n uint64 }

// gathering is a collective that not all ranks have entered yet.
type gathering struct {
	call      uint16
	want      int32
	ranks     []int32
	latest    models.Picoseconds
	root, all models.Sizes
}

// What is known of a rank.
const (
	unknown = iota
	present
	gone
)

// simulator is the state of a Run. Only the goroutine that reads uses it.
type simulator struct {
	o         Options
	network   models.Network // before the first HELLO one for no ranks: collectives are the same on it
	in        io.Reader
	out       *answers
	disk      *disk
	stop      atomic.Bool
	ranks     []uint8 // by rank; empty before the first HELLO
	job       uint64
	first     int32 // lowest rank that it serves
	gathering map[place]*gathering
	idle      []*gathering
	batch     []byte // answers to what was read last
	mixed     bool   // it was said that ranks are in different operations
	summary   Summary
}

// Run reads events from in and writes the answers to out until in ends; then all records are in their files. Malformed input
// is an error. When ctx is done it returns without having read everything.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	network, err := o.Machine.Stateless(0)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Spool, 0o777); err != nil {
		return fmt.Errorf("make the spool: %w", err)
	}
	s := &simulator{o: o, network: network, in: in, out: newAnswers(out), gathering: map[place]*gathering{}, first: math.MaxInt32}
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

// readBytes is how much is read at once.
const readBytes = 256 << 10

// serve reads and answers until the input ends.
func (s *simulator) serve() error {
	buf := make([]byte, readBytes)
	have := 0
	for !s.stop.Load() {
		n, err := s.in.Read(buf[have:])
		have += n
		used, wrong := s.take(buf[:have])
		s.flush()
		switch {
		case wrong != nil:
			return fmt.Errorf("event %d: %w", s.summary.Events, wrong)
		case err == io.EOF && used != have:
			return fmt.Errorf("event %d: the input ends within it: the simulator rank was killed", s.summary.Events+1)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read events: %w", err)
		}
		have = copy(buf, buf[used:have])
	}
	return nil
}

// flush hands the answers on. It comes before everything that may wait.
func (s *simulator) flush() {
	if len(s.batch) > 0 {
		s.out.put(s.batch)
		s.batch = s.batch[:0]
	}
}

// take handles the events at the beginning of b and returns how many bytes they are. Records that go on behind b are read.
func (s *simulator) take(b []byte) (used int, err error) {
	var e Event
	for len(b)-used >= EventBytes {
		e.decode(b[used:])
		used += EventBytes
		s.summary.Events++
		if e.Kind == Records {
			n, err := s.records(&e, b[used:])
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

func (s *simulator) handle(e *Event) error {
	switch e.Kind {
	case Sent:
		return s.sent(e)
	case Entered:
		return s.entered(e)
	case Hello:
		return s.hello(e)
	case Sync:
		if err := s.own(e); err != nil {
			return err
		}
		s.ask(chunk{kind: Sync, rank: e.Rank})
		return nil
	case Left:
		return s.left(e)
	}
	return fmt.Errorf("kind %d: no such event; is the simulator rank of another version of commq?", e.Kind)
}

// maxRanks is more ranks than a job has.
const maxRanks = 1 << 24

func (s *simulator) hello(e *Event) error {
	switch {
	case e.Bytes != Version:
		return fmt.Errorf("rank %d says version %d, this commq %d: build the shim again (commq capture build)", e.Rank, e.Bytes, Version)
	case e.Peer < 1 || e.Peer > maxRanks || e.Rank < 0 || e.Rank >= e.Peer:
		return fmt.Errorf("hello of rank %d of %d: no such rank", e.Rank, e.Peer)
	case len(s.ranks) > 0 && (e.N != s.job || int(e.Peer) != len(s.ranks)):
		return fmt.Errorf("hello of rank %d: job %016x of %d ranks, others are of job %016x of %d ranks", e.Rank, e.N, e.Peer, s.job, len(s.ranks))
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

// own checks that a rank is one of those that said hello here.
func (s *simulator) own(e *Event) error {
	if e.Rank < 0 || int(e.Rank) >= len(s.ranks) || s.ranks[e.Rank] != present {
		return fmt.Errorf("kind %d of rank %d, which has not said hello or has left", e.Kind, e.Rank)
	}
	return nil
}

// at checks a time.
func at(e *Event) (models.Picoseconds, error) {
	if e.TimePs < 0 {
		return 0, fmt.Errorf("kind %d of rank %d: time %d ps is negative", e.Kind, e.Rank, e.TimePs)
	}
	return min(models.Picoseconds(e.TimePs), models.Forever), nil
}

// sent answers the message's receiver: the event overtakes or follows the message itself.
func (s *simulator) sent(e *Event) error {
	t, err := at(e)
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

func (s *simulator) entered(e *Event) error {
	t, err := at(e)
	switch {
	case err != nil:
		return err
	case e.Peer < 1 || e.Peer > maxRanks || e.Rank < 0 || e.Rank >= maxRanks:
		return fmt.Errorf("rank %d enters a collective of %d ranks", e.Rank, e.Peer)
	case int(e.Call) >= len(schema.Calls) || e.Call == 0:
		return fmt.Errorf("rank %d enters a collective that is call %d, of which there is none", e.Rank, e.Call)
	}
	p := place{e.Key, e.N}
	g := s.gathering[p]
	if g == nil {
		g = s.gather()
		g.call, g.want = e.Call, e.Peer
		s.gathering[p] = g
	}
	if g.call != e.Call || g.want != e.Peer {
		s.complain(g, e)
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
		s.leave(p, g)
	}
	return nil
}

// gather is an empty gathering.
func (s *simulator) gather() *gathering {
	n := len(s.idle)
	if n == 0 {
		return &gathering{}
	}
	g := s.idle[n-1]
	s.idle = s.idle[:n-1]
	*g = gathering{ranks: g.ranks[:0]}
	return g
}

// leave lets all ranks out of a collective.
func (s *simulator) leave(p place, g *gathering) {
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

// complain says once that ranks disagree on what collective they are in.
func (s *simulator) complain(g *gathering, e *Event) {
	if s.mixed {
		return
	}
	s.mixed = true
	fmt.Fprintf(s.o.Log, "commq simrank: rank %d is in %s of %d ranks, rank %d at the same place in %s of %d: its time is that of the first\n",
		g.ranks[0], schema.CallID(g.call), g.want, e.Rank, schema.CallID(e.Call), e.Peer)
}

// maxOffset is longer than a file of records gets.
const maxOffset = 1 << 50

// records takes the records behind an event: those in b, whose length it returns, and those not read yet.
func (s *simulator) records(e *Event, b []byte) (int, error) {
	if err := s.own(e); err != nil {
		return 0, err
	}
	if e.Bytes < 0 || e.Bytes > RecordBytes || e.N > maxOffset || e.Peer < 0 {
		return 0, fmt.Errorf("rank %d, thread %d: %d bytes of records at %d; there are at most %d", e.Rank, e.Peer, e.Bytes, e.N, RecordBytes)
	}
	data := s.disk.buffer(e.Bytes)
	n := copy(data, b)
	if n < len(data) {
		s.flush()
		if _, err := io.ReadFull(s.in, data[n:]); err != nil {
			return n, fmt.Errorf("rank %d: the input ends within its records: the simulator rank was killed (%w)", e.Rank, err)
		}
	}
	s.summary.RecordBytes += e.Bytes
	s.ask(chunk{kind: Records, rank: e.Rank, thread: e.Peer, at: int64(e.N), data: data})
	return n, nil
}

// ask gives the disk something to do.
func (s *simulator) ask(c chunk) {
	select {
	case s.disk.queue <- c:
		return
	default:
	}
	s.flush()
	s.disk.queue <- c
}

func (s *simulator) left(e *Event) error {
	if err := s.own(e); err != nil {
		return err
	}
	s.ranks[e.Rank] = gone
	s.summary.OutOfOrder += int64(e.N)
	s.summary.Choices += e.Bytes
	s.summary.Early += e.Received
	s.summary.LastPs = max(s.summary.LastPs, e.TimePs)
	s.ask(chunk{kind: Left, rank: e.Rank})
	return nil
}

// finish says what did not end, and writes the summary.
func (s *simulator) finish() error {
	s.summary.CollectivesOpen = int64(len(s.gathering))
	s.sayOpen()
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
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		s.disk.complain(err) // the records are worth more
	}
	return nil
}
