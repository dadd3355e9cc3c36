package simulate

import "slices"

// thread is the state of a thread of a rank.
type thread struct {
	queue opQueue
	op    op          // the current operation, or the one after the current burst
	burst Picoseconds // how long it computes, does input or output, or is busy with a latency, before op
	io    Picoseconds // the part of the burst that is input and output

	entered, blockedAt, readyAt, rowStart Picoseconds

	rank, node int32
	next       int32 // in a node's queue
	waitDone   int   // number of requests of its wait that are done

	locals []localRow // rows in the burst that only compute

	going   bool // ran ahead: a burst begins at readyAt
	startup bool // the burst is the latency of op
	paid    bool // op's latency is over
	inRow   bool // op is not the first of its row
	blocked bool
	over    bool

	// Only in Dimemas, where a wait takes any nonblocking collective of the thread: the collectives that ended, and
	// the waits for one.
	collectives, collectiveWaits int32

	times Times
}

// localRow is a row that only computes. Its times are relative to the beginning of its burst.
type localRow struct {
	seq        int64
	begin, end Picoseconds
}

// node has a node's CPUs, and the queue of ready threads.
type node struct {
	cpus, busy  int32
	first, last int32 // threads that are ready
	dirty       bool  // it is in scheduler.dirty
}

// scheduler gives the CPUs of each node to its threads, first come, first served, until their bursts end.
type scheduler struct {
	clock   *clock
	done    func(rank int32, seq int64, start, end Picoseconds) `snapshot:"-"` // of the options
	threads []thread
	nodes   []node
	dirty   []int32 // nodes where a thread became ready since dispatchDirty
	running int     // threads that are not over

	// While threads run ahead of the events (lookahead.go), no thread waits for a CPU.
	lookahead bool
	going     []int32 // threads with a burst to begin
	current   int32   // the thread that is running ahead, or none
}

func newScheduler(c *clock, x *setting) *scheduler {
	s := &scheduler{clock: c, nodes: make([]node, len(x.nodes)), current: none}
	for i := range s.nodes {
		s.nodes[i] = node{cpus: int32(x.nodes[i].CPUs), first: none, last: none}
	}
	for rank, n := range x.program.Threads {
		for range max(n, 1) {
			s.threads = append(s.threads, thread{rank: int32(rank), node: x.nodeOf[rank], next: none})
		}
	}
	s.running = len(s.threads)
	return s
}

// ready puts a thread into its node's queue; at the front if it has just had the CPU.
func (c *scheduler) ready(i int32, front bool) {
	s := &c.threads[i]
	s.readyAt = c.clock.now
	if c.lookahead {
		s.going = true
		if i != c.current {
			c.going = append(c.going, i)
		}
		return
	}
	n := &c.nodes[s.node]
	switch {
	case n.first == none:
		n.first, n.last, s.next = i, i, none
	case front:
		s.next, n.first = n.first, i
	default:
		c.threads[n.last].next, n.last, s.next = i, i, none
	}
	if !n.dirty {
		n.dirty = true
		c.dirty = append(c.dirty, s.node)
	}
}

// dispatchDirty gives out the CPUs of the nodes where a thread became ready, in the order of the nodes.
func (c *scheduler) dispatchDirty() {
	if len(c.dirty) > 1 {
		slices.Sort(c.dirty)
	}
	for _, i := range c.dirty {
		n := &c.nodes[i]
		n.dirty = false
		for n.first != none && n.busy < n.cpus {
			c.dispatchFirst(n)
		}
	}
	c.dirty = c.dirty[:0]
}

// dispatchOne gives a CPU of the node to one thread, if a CPU is free and a thread is ready.
func (c *scheduler) dispatchOne(node int32) {
	if n := &c.nodes[node]; n.first != none && n.busy < n.cpus {
		c.dispatchFirst(n)
	}
}

// dispatchFirst gives a free CPU to the first ready thread.
func (c *scheduler) dispatchFirst(n *node) {
	i := n.first
	s := &c.threads[i]
	n.first = s.next
	n.busy++
	s.times.CPUWait += c.clock.now - s.readyAt
	if len(s.locals) > 0 && !s.startup {
		c.reportLocals(s)
	}
	c.clock.schedule(c.clock.after(s.burst), burstEnds, i)
}

// reportLocals reports the rows in the burst that begins.
func (c *scheduler) reportLocals(s *thread) {
	if c.done != nil {
		for _, l := range s.locals {
			c.done(s.rank, l.seq, c.clock.after(l.begin), c.clock.after(l.end))
		}
	}
	s.locals = s.locals[:0]
}

// block stops a thread until something completes its operation.
func (c *scheduler) block(i int32) {
	s := &c.threads[i]
	s.blocked, s.blockedAt = true, c.clock.now
}

// finish ends a thread.
func (c *scheduler) finish(i int32) {
	s := &c.threads[i]
	s.over = true
	c.running--
	s.times.Finish = c.clock.now
}
