package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// stencil is the program whose run the canned queries are measured on. Ranks on a periodic cube exchange a message
// with each of six neighbours (MPI_Irecv, MPI_Isend, one MPI_Waitall) and two along a row of a quarter of the ranks
// (MPI_Sendrecv on a communicator of its own); now and then they do collectives, a put, or write a file. This gives
// 15 rows of events and 8 messages per rank and step. Every column that a query reads is filled: times that follow
// from latency, bandwidth and noise, call paths, payload hashes, wildcards.
type stencil struct {
	side  int // ranks are side*side*side
	steps int
}

const (
	stencilRows   = 15      // of events, per rank and step, without the occasional calls
	stencilSends  = 8       // messages per rank and step
	stencilShards = 8       // files of events and of messages, more than ingest makes
	stencilEpoch  = 1 << 20 // rows of events per epoch, about
)

func (s stencil) ranks() int { return s.side * s.side * s.side }

// stencilOf returns the stencil with at least this many messages.
func stencilOf(side, messages int) stencil {
	perStep := side * side * side * stencilSends
	return stencil{side: side, steps: (messages + perStep - 1) / perStep}
}

func (s stencil) messages() int { return s.steps * s.ranks() * stencilSends }

// Intervals, in steps, of the occasional calls.
const (
	everyAllreduce = 4
	everyBcast     = 32
	everyPut       = 128
	everyWrite     = 512
	everyAlltoallv = 1024
)

// rows returns the number of rows of events of each rank at a step.
func (s stencil) rows(step int) int {
	n := stencilRows
	for _, x := range [...]struct{ every, rows int }{{everyAllreduce, 1}, {everyBcast, 1}, {everyPut, 2},
		{everyWrite, 1}, {everyAlltoallv, 1}} {
		if step%x.every == 0 {
			n += x.rows
		}
	}
	if step == 0 {
		n += 4 // MPI_Init, MPI_Comm_split, MPI_Win_create, MPI_File_open
	}
	if step == s.steps-1 {
		n += 3 // MPI_Win_free, MPI_File_close, MPI_Finalize
	}
	return n
}

// stencilRank is where a rank is.
type stencilRank struct {
	now, lastEnd int64
	seq, request int64
	row, message int // the next in the shard's batches
	winSeq       int64
	fileSeq      int64
	wait         int64 // seq of the MPI_Waitall of this step
	waitNs       [2]int64
	recv, send   [stencilSends]stencilSide
}

// stencilSide is one end of a message.
type stencilSide struct {
	seq            int64
	startNs, endNs int64
}

// stencilRun makes a run: a shard's batches belong to the ranks from first on.
type stencilRun struct {
	stencil
	rng      *rand.Rand
	k        []stencilRank
	events   []*schema.Events
	messages []*schema.Messages
	parts    []schema.Part
	instance map[int32]int64
	calls    map[string]int64
	bytes    int64
	epoch    int32
}

// Communicators: the world, the rows, and what MPI makes for the window and the file needs none.
func (s stencil) rowOf(rank int) int32   { return 1 + int32(4*rank/s.ranks()) }
func (s stencil) rowRank(rank int) int   { return rank % (s.ranks() / 4) }
func (s stencil) shardOf(rank int) int   { return rank * stencilShards / s.ranks() }
func (s stencil) rowFirst(rank int) int  { return rank - s.rowRank(rank) }
func (s stencil) wireNs(b int64) float64 { return 1500 + float64(b)/10 }

func (s stencil) neighbour(rank, direction int) int {
	at := [3]int{rank % s.side, rank / s.side % s.side, rank / s.side / s.side}
	step := 1 - direction%2*2
	at[direction/2] = (at[direction/2] + step + s.side) % s.side
	return at[0] + s.side*(at[1]+s.side*at[2])
}

func (s stencil) bytesOf(direction int) int64 { return int64(7200 * (1 + direction/2)) }

// Call sites: main calls solve and exchange, which call MPI; callsites has the lines.
const (
	siteMain int32 = iota
	siteSolve
	siteExchange
	siteInit
	siteIrecv
	siteIsend
	siteWaitall
	siteSendrecv
	siteAllreduce
	siteBcast
	sitePut
	siteFence
	siteWrite
	siteAlltoallv
	siteFinalize
	siteCount
)

// write writes the run.
func (s stencil) write(store, name string, o writer.Options) error {
	out, err := writer.Create(store, name, o)
	if err != nil {
		return err
	}
	defer out.Abort()
	r := &stencilRun{stencil: s, rng: rand.New(rand.NewPCG(20, 6)), k: make([]stencilRank, s.ranks()),
		instance: map[int32]int64{}, calls: map[string]int64{}}
	for i := range r.k {
		r.k[i].now = int64(r.rng.IntN(40000))
	}
	free := make(chan [2]any, 2)
	for range 2 {
		free <- [2]any{newShards[schema.Events](), newShards[schema.Messages]()}
	}
	var writing sync.WaitGroup
	errs := make(chan error, 1)
	for step := 0; step < s.steps; {
		b := <-free
		r.events, r.messages = b[0].([]*schema.Events), b[1].([]*schema.Messages)
		next := r.makeEpoch(step)
		step = next
		writing.Wait() // one epoch after the other, while the next is made
		writing.Add(1)
		go func() {
			defer writing.Done()
			if err := writeEpoch(out, b[0].([]*schema.Events), b[1].([]*schema.Messages)); err != nil {
				select {
				case errs <- err:
				default:
				}
			}
			free <- b
		}()
	}
	writing.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	if err := r.small(out); err != nil {
		return err
	}
	return out.Commit(context.Background(), r.manifest())
}

func newShards[T any]() []*T {
	b := make([]*T, stencilShards)
	for i := range b {
		b[i] = new(T)
	}
	return b
}

// writeEpoch writes an epoch, two files at a time.
func writeEpoch(out *writer.Run, events []*schema.Events, messages []*schema.Messages) error {
	batches := make(chan int)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for shard := range batches {
				if err := out.Write(shard, events[shard]); err != nil {
					errs[w] = err
				}
				if err := out.Write(shard, messages[shard]); err != nil {
					errs[w] = err
				}
			}
		}()
	}
	for shard := range events {
		batches <- shard
	}
	close(batches)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// makeEpoch makes the steps of one epoch, from first on, and gives the step after it.
func (r *stencilRun) makeEpoch(first int) int {
	rows, last := 0, first
	for ; last < r.steps && (last == first || rows*r.ranks() < stencilEpoch); last++ {
		rows += r.rows(last)
	}
	perShard := make([]int, stencilShards)
	for i := range r.k {
		shard := r.shardOf(i)
		r.k[i].row, r.k[i].message = perShard[shard]*rows, perShard[shard]*(last-first)*stencilSends
		perShard[shard]++
	}
	for shard, ranks := range perShard {
		r.events[shard].Resize(ranks * rows)
		r.messages[shard].Resize(ranks * (last - first) * stencilSends)
	}
	for step := first; step < last; step++ {
		r.step(step)
	}
	r.epoch++
	return last
}

func (r *stencilRun) step(step int) {
	if step == 0 {
		r.begin()
	}
	for rank := range r.k {
		r.post(rank, step)
	}
	for rank := range r.k {
		r.waitall(rank)
	}
	for turn := range 2 {
		for rank := range r.k {
			r.enterSendrecv(rank, turn)
		}
		for rank := range r.k {
			r.sendrecv(rank, turn)
		}
	}
	for rank := range r.k {
		r.send(rank, step)
	}
	r.nowAndThen(step)
	if step == r.steps-1 {
		r.finish()
	}
}

// compute lets a rank compute for about ns nanoseconds.
func (k *stencilRank) compute(ns float64) { k.now += int64(max(1, ns)) }

// noise returns a duration that is never short of least and now and then much longer.
func (r *stencilRun) noise(least, mean float64) float64 { return least + r.rng.ExpFloat64()*mean }

// call returns a row of a rank that begins now.
func (r *stencilRun) call(rank int, call schema.CallID, class schema.Class, site int32) schema.Event {
	k := &r.k[rank]
	e := schema.NullEvent
	e.Rank, e.Seq, e.Epoch, e.Call, e.Class = int32(rank), k.seq, r.epoch, int16(call), int16(class)
	e.StartNs, e.ComputeNs, e.Callsite = k.now, k.now-k.lastEnd, site
	return e
}

// done ends the row ns later and keeps it.
func (r *stencilRun) done(e *schema.Event, ns float64) {
	k := &r.k[e.Rank]
	k.now += int64(max(1, ns))
	e.EndNs, k.lastEnd = k.now, k.now
	r.events[r.shardOf(int(e.Rank))].Set(k.row, e)
	k.row++
	k.seq++
}

// post: receives from all sides, then sends to all sides. Every eighth step one of the receives is a wildcard.
func (r *stencilRun) post(rank, step int) {
	k := &r.k[rank]
	k.compute(20000 * (1 + 0.05*r.rng.NormFloat64()))
	k.wait = k.seq + 12
	for d := range 6 {
		from, bytes := int32(r.neighbour(rank, d^1)), r.bytesOf(d)
		k.compute(r.noise(50, 20))
		e := r.call(rank, schema.CallIrecv, schema.ClassRecv, siteIrecv)
		e.Comm, e.RecvPeer, e.RecvWorld, e.RecvTag = 0, from, from, int32(20+d)
		e.RecvCount, e.RecvDatatype, e.RecvBytes, e.RecvBuffer = bytes/8, 0, bytes,
			0x7f3a5c000000+int64(rank)<<24+int64(d)<<16
		e.PostedAny, e.ProcNull, e.Request, e.DoneSeq = 0, 0, k.request, k.wait
		if d == 5 && step%8 == 0 {
			e.PostedAny = schema.AnySource
		}
		k.request++
		r.done(&e, r.noise(150, 60))
		k.recv[d] = stencilSide{e.Seq, e.StartNs, e.EndNs}
	}
	for d := range 6 {
		to, bytes := int32(r.neighbour(rank, d)), r.bytesOf(d)
		k.compute(r.noise(50, 20))
		e := r.call(rank, schema.CallIsend, schema.ClassSend, siteIsend)
		e.Comm, e.SendPeer, e.SendWorld, e.SendTag = 0, to, to, int32(20+d)
		e.SendCount, e.SendDatatype, e.SendBytes, e.SendBuffer = bytes/8, 0, bytes,
			0x7f3a5d000000+int64(rank)<<24+int64(d)<<16
		e.ProcNull, e.Request, e.DoneSeq = 0, k.request, k.wait
		k.request++
		r.done(&e, r.noise(400, 200))
		k.send[d] = stencilSide{e.Seq, e.StartNs, e.EndNs}
	}
}

// waitall: until the last message is here, and for rendezvous until its receive was posted.
func (r *stencilRun) waitall(rank int) {
	k := &r.k[rank]
	k.compute(r.noise(60, 30))
	e := r.call(rank, schema.CallWaitall, schema.ClassComplete, siteWaitall)
	arrived := float64(k.now)
	for d := range 6 {
		from, to := &r.k[r.neighbour(rank, d^1)], &r.k[r.neighbour(rank, d)]
		begin := max(float64(from.send[d].startNs), float64(k.recv[d].startNs))
		if r.bytesOf(d) > 16384 {
			begin = max(begin, float64(to.recv[d].startNs))
		}
		arrived = max(arrived, begin+r.wireNs(r.bytesOf(d))+r.rng.ExpFloat64()*300)
	}
	k.waitNs[0] = k.now
	r.done(&e, arrived-float64(k.now)+r.noise(300, 100))
	k.waitNs[1] = k.now
}

// ring returns the rank that is step places along the row.
func (r *stencilRun) ring(rank, step int) int {
	n := r.ranks() / 4
	return r.rowFirst(rank) + (r.rowRank(rank)+step+n)%n
}

func (r *stencilRun) enterSendrecv(rank, turn int) {
	k := &r.k[rank]
	k.compute(r.noise(800, 100))
	k.send[6+turn] = stencilSide{k.seq, k.now, 0}
}

func (r *stencilRun) sendrecv(rank, turn int) {
	k := &r.k[rank]
	way := 1 - 2*turn
	to, from := r.ring(rank, way), r.ring(rank, -way)
	e := r.call(rank, schema.CallSendrecv, schema.ClassSendrecv, siteSendrecv)
	const bytes = 2048
	e.Comm = r.rowOf(rank)
	e.SendPeer, e.SendWorld, e.SendTag, e.SendCount, e.SendDatatype, e.SendBytes = int32(r.rowRank(to)), int32(to), 9,
		bytes/4, 1, bytes
	e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvCount, e.RecvDatatype, e.RecvBytes = int32(r.rowRank(from)),
		int32(from), 9, bytes/4, 1, bytes
	e.SendBuffer, e.RecvBuffer, e.PostedAny, e.ProcNull = 0x7ffc10000000+int64(rank)<<16,
		0x7ffc10008000+int64(rank)<<16, 0, 0
	arrived := max(float64(k.now), float64(r.k[from].send[6+turn].startNs)) + r.wireNs(bytes)
	r.done(&e, arrived-float64(k.now)+r.noise(200, 200))
	k.send[6+turn].endNs = k.now
	k.recv[6+turn] = k.send[6+turn]
}

// send keeps the messages of a rank's step.
func (r *stencilRun) send(rank, step int) {
	k := &r.k[rank]
	batch := r.messages[r.shardOf(rank)]
	for d := range stencilSends {
		m := schema.NullMessage
		dst, done := rank, stencilSide{}
		m.Src, m.Epoch = int32(rank), r.epoch
		if d < 6 {
			dst = r.neighbour(rank, d)
			done = stencilSide{r.k[dst].wait, r.k[dst].waitNs[0], r.k[dst].waitNs[1]}
			m.Comm, m.Tag, m.Bytes, m.SendDatatype, m.SendCallsite, m.RecvCallsite = 0, int32(20+d), r.bytesOf(d), 0,
				siteIsend, siteWaitall
			m.SendCount = m.Bytes / 8
			m.SrcBuffer, m.DstBuffer = 0x7f3a5d000000+int64(rank)<<24+int64(d)<<16,
				0x7f3a5c000000+int64(dst)<<24+int64(d)<<16
		} else {
			dst = r.ring(rank, 1-2*(d-6))
			done = r.k[dst].recv[d]
			m.Comm, m.Tag, m.Bytes, m.SendDatatype, m.SendCallsite, m.RecvCallsite = r.rowOf(rank), 9, 2048, 1,
				siteSendrecv, siteSendrecv
			m.SendCount = m.Bytes / 4
			m.SrcBuffer, m.DstBuffer = 0x7ffc10000000+int64(rank)<<16, 0x7ffc10008000+int64(dst)<<16
		}
		m.Dst = int32(dst)
		m.SendSeq, m.SendStartNs, m.SendEndNs = k.send[d].seq, k.send[d].startNs, k.send[d].endNs
		m.RecvPostSeq, m.RecvPostNs = r.k[dst].recv[d].seq, r.k[dst].recv[d].startNs
		m.RecvDoneSeq, m.RecvStartNs, m.RecvEndNs = done.seq, done.startNs, done.endNs
		m.PayloadHash, m.PayloadHead = r.payload(rank, step, d)
		r.bytes += m.Bytes
		batch.Set(k.message, &m)
		k.message++
	}
}

// payload returns the hash and the head. Every fourth step a rank sends the same payload east and west; every eighth
// step it sends north what it received in the step before; every 64th step the payload that goes up is all zeros.
func (r *stencilRun) payload(rank, step, direction int) (hash, head int64) {
	name := uint64(step)<<3 | uint64(direction)
	switch {
	case direction == 1 && step%4 == 1:
		name &^= 7
	case direction == 3 && step%8 == 2:
		name = uint64(step-1)<<3 | 3
	case direction == 7 && step%4 == 3:
		name = uint64(step)<<3 | 6
	case direction == 4 && step%64 == 0:
		return 0x5eed, 0
	}
	name |= uint64(rank) << 40
	hash = int64((name + 1) * 0x9e3779b97f4a7c15)
	hash ^= int64(uint64(hash) >> 29)
	hash *= -0x61c8864680b583eb
	return hash, hash ^ 0x55
}

// collective enters all members of a communicator into an operation and lets them go when the last has come.
func (r *stencilRun) collective(comm int32, call schema.CallID, class schema.Class, site int32,
	fill func(rank int, e *schema.Event)) {
	first, n := 0, r.ranks()
	if comm > 0 {
		n /= 4
		first = int(comm-1) * n
	}
	last := int64(0)
	for rank := first; rank < first+n; rank++ {
		r.k[rank].compute(r.noise(500, 200))
		last = max(last, r.k[rank].now)
	}
	for rank := first; rank < first+n; rank++ {
		e := r.call(rank, call, class, site)
		e.Comm, e.Instance = comm, r.instance[comm]
		fill(rank, &e)
		r.done(&e, float64(last-r.k[rank].now)+r.noise(4000, 900))
	}
	r.instance[comm]++
	if class == schema.ClassCollective {
		r.calls[call.String()]++
	}
}

func (r *stencilRun) nowAndThen(step int) {
	if step%everyAllreduce == 0 {
		r.collective(0, schema.CallAllreduce, schema.ClassCollective, siteAllreduce, func(_ int, e *schema.Event) {
			e.ReduceOp, e.SendCount, e.SendDatatype, e.SendBytes, e.RecvCount, e.RecvDatatype, e.RecvBytes = int16(schema.OpSum), 3, 0, 24, 3, 0, 24
			e.PayloadHash, e.PayloadHead = int64(step)*0x5eed7, int64(step)
		})
	}
	if step%everyBcast == 0 {
		for comm := int32(1); comm <= 4; comm++ {
			root := int32(int(comm-1) * r.ranks() / 4)
			r.collective(comm, schema.CallBcast, schema.ClassCollective, siteBcast, func(rank int, e *schema.Event) {
				e.RootWorld = root
				if int32(rank) == root {
					e.SendCount, e.SendDatatype, e.SendBytes, e.RecvBytes = 512, 0, 4096, 0
				} else {
					e.RecvCount, e.RecvDatatype, e.RecvBytes, e.SendBytes = 512, 0, 4096, 0
				}
			})
		}
	}
	if step%everyPut == 0 {
		for rank := range r.k {
			r.k[rank].compute(r.noise(300, 50))
			to := int32(r.ring(rank, 2))
			e := r.call(rank, schema.CallPut, schema.ClassRMA, sitePut)
			e.Comm, e.SendPeer, e.SendWorld, e.SendCount, e.SendDatatype, e.SendBytes = 0, to, to, 100, 0, 800
			e.ProcNull, e.InitSeq = 0, r.k[rank].winSeq
			r.done(&e, r.noise(900, 100))
			e = r.call(rank, schema.CallWinFence, schema.ClassRMA, siteFence)
			e.Comm, e.InitSeq = 0, r.k[rank].winSeq
			r.done(&e, r.noise(3000, 500))
		}
	}
	if step%everyWrite == 0 {
		for rank := range r.k {
			r.k[rank].compute(r.noise(300, 50))
			e := r.call(rank, schema.CallFileWriteAtAll, schema.ClassIO, siteWrite)
			e.Comm, e.SendCount, e.SendDatatype, e.SendBytes, e.InitSeq = 0, 100000, 0, 800000, r.k[rank].fileSeq
			r.done(&e, r.noise(400000, 90000))
		}
	}
	if step%everyAlltoallv == 0 {
		r.alltoallv()
	}
}

func (r *stencilRun) alltoallv() {
	r.collective(0, schema.CallAlltoallv, schema.ClassCollective, siteAlltoallv, func(rank int, e *schema.Event) {
		sent, received := int64(0), int64(0)
		for peer := range r.ranks() {
			p := schema.Part{Rank: int32(rank), Seq: e.Seq, Epoch: r.epoch, PeerWorld: int32(peer),
				SendBytes: int64(8 * (1 + (rank*7+peer*3)%50)), RecvBytes: int64(8 * (1 + (peer*7+rank*3)%50))}
			r.parts = append(r.parts, p)
			sent, received = sent+p.SendBytes, received+p.RecvBytes
		}
		e.SendCount, e.SendDatatype, e.SendBytes = sent/8, 0, sent
		e.RecvCount, e.RecvDatatype, e.RecvBytes = received/8, 0, received
	})
}

func (r *stencilRun) begin() {
	for rank := range r.k {
		e := r.call(rank, schema.CallInit, schema.ClassOther, siteInit)
		r.done(&e, r.noise(9000000, 90000))
	}
	r.collective(0, schema.CallCommSplit, schema.ClassComm, siteInit, func(int, *schema.Event) {})
	r.collective(0, schema.CallWinCreate, schema.ClassRMA, siteInit,
		func(rank int, e *schema.Event) { r.k[rank].winSeq = e.Seq })
	r.collective(0, schema.CallFileOpen, schema.ClassIO, siteInit, func(rank int, e *schema.Event) {
		e.Label = "/scratch/stencil.out"
		r.k[rank].fileSeq = e.Seq
	})
}

func (r *stencilRun) finish() {
	for rank := range r.k {
		for _, c := range [...]struct {
			call  schema.CallID
			class schema.Class
			init  int64
		}{{schema.CallWinFree, schema.ClassRMA, r.k[rank].winSeq},
			{schema.CallFileClose, schema.ClassIO, r.k[rank].fileSeq},
			{schema.CallFinalize, schema.ClassOther, schema.NullInt64}} {
			e := r.call(rank, c.call, c.class, siteFinalize)
			if e.InitSeq = c.init; c.init != schema.NullInt64 {
				e.Comm = 0
			}
			r.done(&e, r.noise(50000, 9000))
		}
	}
}

// small writes the small tables.
func (r *stencilRun) small(out *writer.Run) error {
	slices.SortFunc(r.parts, func(a, b schema.Part) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq),
			cmp.Compare(a.PeerWorld, b.PeerWorld))
	})
	parts := &schema.Parts{}
	for i := range r.parts {
		parts.Append(&r.parts[i])
	}
	comms, ranks, sites, types := &schema.Comms{}, &schema.RankInfos{}, &schema.Callsites{}, &schema.Datatypes{}
	for comm := range int32(5) {
		for rank := range r.k {
			c := schema.NullComm
			c.Comm, c.CommRank, c.WorldRank, c.Kind, c.Name = comm, int32(rank), int32(rank), int16(schema.CommWorld),
				"MPI_COMM_WORLD"
			if comm > 0 {
				c.CommRank, c.Kind, c.Parent, c.Name = int32(r.rowRank(rank)), int16(schema.CommSplit), 0, "row"
			}
			if comm == 0 || comm == r.rowOf(rank) {
				comms.Append(&c)
			}
		}
	}
	for rank := range r.k {
		i := schema.NullRankInfo
		i.Rank, i.Host, i.Threads, i.Ended, i.Events = int32(rank), int32(4*rank/r.ranks()), 1, schema.EndedFinalized,
			r.k[rank].seq
		i.ClockOffsetInitNs, i.ClockErrorInitNs, i.ClockOffsetFinalNs, i.ClockErrorFinalNs = int64(i.Host)*900,
			int64(i.Host)*300, int64(i.Host)*1100, int64(i.Host)*300
		ranks.Append(&i)
	}
	names := [siteCount]string{"main", "solve", "exchange", "main", "exchange", "exchange", "exchange", "exchange",
		"solve", "solve", "solve", "solve", "solve", "solve", "main"}
	parents := [siteCount]int32{schema.NullInt32, siteMain, siteSolve, schema.NullInt32, siteSolve, siteSolve,
		siteSolve, siteSolve, siteMain, siteMain, siteMain,
		siteMain, siteMain, siteMain, schema.NullInt32}
	for id := range siteCount {
		c := schema.NullCallsite
		c.ID, c.Parent, c.Module, c.BuildID, c.Offset, c.Function, c.File, c.Line = id, parents[id], "stencil",
			"5eed", 0x1000+int64(id)*16, names[id], "stencil.c", 100+id
		sites.Append(&c)
	}
	types.Append(&schema.Datatype{ID: 0, Name: "MPI_DOUBLE", Combiner: "named", Bytes: 8, ExtentBytes: 8})
	types.Append(&schema.Datatype{ID: 1, Name: "MPI_INT", Combiner: "named", Bytes: 4, ExtentBytes: 4})
	for _, b := range []schema.Batch{parts, comms, ranks, sites, types} {
		if err := out.Write(0, b); err != nil {
			return err
		}
	}
	return nil
}

func (r *stencilRun) manifest() *schema.Manifest {
	m := &schema.Manifest{Ranks: int32(r.ranks()), TimeOrigin: "measured", TimeResolutionNs: 1, ComputeClock: "cpu",
		Record: "all", Hash: "crc64",
		Callsites: true, Stack: 3, Ended: "finalized", Epochs: r.epoch, Collectives: r.calls}
	for i := range r.k {
		m.EndNs = max(m.EndNs, r.k[i].lastEnd)
		m.Counts.Calls += r.k[i].seq
	}
	for _, n := range r.calls {
		m.Counts.Collectives += n
	}
	m.Counts.Messages, m.Counts.MessageBytes = int64(r.steps*r.ranks()*stencilSends), r.bytes
	m.Counts.WildcardReceives = int64((r.steps + 7) / 8 * r.ranks())
	return m
}

// stencilRunOf finds or writes a run with at least this many messages. Another process writes it, because the peak
// memory of the measured processes would otherwise start at this one's.
func stencilRunOf(b *testing.B, store string, messages int) queries.Run {
	s := stencilOf(4, messages)
	name := fmt.Sprintf("stencil.%d", s.messages())
	dir := filepath.Join(store, name)
	if _, err := os.Stat(dir); err != nil {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", stencilTarget, messages, dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("write %s: %v\n%s", dir, err, out)
		}
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		b.Fatal(err)
	}
	return queries.Run{Name: name, Dir: dir, Manifest: m}
}

// stencilTarget is the environment variable that makes this process write a stencil's run and do nothing else. Its
// value is the number of messages, a blank, and the run's folder.
const stencilTarget = "COMMQ_BENCH_WRITE_STENCIL"

func TestMain(m *testing.M) {
	target := os.Getenv(stencilTarget)
	if target == "" {
		os.Exit(m.Run())
	}
	var messages int
	_, err := fmt.Sscan(target, &messages, &target)
	if err == nil {
		err = stencilOf(4, messages).write(filepath.Dir(target), filepath.Base(target), writer.Options{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// TestStencilIsARun checks that the run on which queries are measured obeys all rules, with one epoch and with
// several.
func TestStencilIsARun(t *testing.T) {
	for _, messages := range []int{1, 700_000} {
		if err := stencilOf(4, messages).write(t.TempDir(), "stencil", writer.Options{Check: true}); err != nil {
			t.Errorf("%d messages: %v", messages, err)
		}
	}
}
