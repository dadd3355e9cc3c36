package spoolgen

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// Halo is a synthetic program: in every iteration each rank posts a receive from each of its neighbours, sends to each,
// and waits for all one by one; every tenth iteration ends with an Allreduce.
type Halo struct {
	// Ranks is the number of processes, Iterations of exchanges.
	Ranks, Iterations int
	// Neighbours is the number of ranks on either side that each rank sends to: 2 x Neighbours sends per iteration.
	Neighbours int
	// Seed is the seed of the noise in times.
	Seed uint64
	// Job is the job's id.
	Job uint64
	// Hashes adds a HASH slot to every send and collective.
	Hashes bool
}

// Calls is the number of MPI calls of the whole job.
func (h Halo) Calls() int64 {
	perRank := int64(h.Iterations)*int64(6*h.Neighbours) + int64(h.Iterations/10) + 2
	return int64(h.Ranks) * perRank
}

// Messages is the number of messages of the whole job.
func (h Halo) Messages() int64 { return int64(h.Ranks) * int64(h.Iterations) * int64(2*h.Neighbours) }

// Write writes the job's spool files into the folder.
func (h Halo) Write(dir string) error {
	if h.Ranks <= 2*h.Neighbours {
		return fmt.Errorf("%d neighbours on either side need more than %d ranks", h.Neighbours, 2*h.Neighbours)
	}
	for rank := range h.Ranks {
		if err := h.writeRank(dir, rank); err != nil {
			return err
		}
	}
	return nil
}

const (
	ticksPerNs = 2.5
	startNs    = 1_000_000_000
)

// header is the header of a rank's file. end is when the rank finished, in ns.
func (h Halo) header(rank int, end int64) spool.Header {
	header := spool.Header{Rank: int32(rank), Size: int32(h.Ranks), Job: h.Job, Timer: spool.TimerTSC,
		ComputeClock: spool.ClockCPU, Ended: spool.EndedFinalized,
		Clock0Tick: ticks(startNs), Clock0Ns: startNs, Clock1Tick: ticks(end), Clock1Ns: end,
		Sums:          1,
		RealtimeNs:    1_700_000_000_000_000_000,
		OffsetFinalNs: schema.NullInt64, OffsetFinalErrorNs: schema.NullInt64, OffsetFinalAtNs: schema.NullInt64}
	if h.Hashes {
		header.Hash = spool.AlgorithmCRC64
	}
	copy(header.Host[:], "node0")
	copy(header.MPILibrary[:], "Open MPI v4.1.4, synthetic")
	copy(header.Program[:], "halo")
	return header
}

func ticks(ns int64) uint64 { return uint64(float64(ns) * ticksPerNs) }

// haloRank writes one rank.
type haloRank struct {
	halo   Halo
	out    *Writer
	rng    *rand.Rand
	rank   int
	now    int64
	serial uint32
}

func (h Halo) writeRank(dir string, rank int) (err error) {
	header := h.header(rank, startNs+int64(h.Iterations)*h.iterationNs()*2+1_000_000)
	f, err := os.Create(filepath.Join(dir, FileName(&header)))
	if err != nil {
		return err
	}
	r := haloRank{halo: h, out: NewWriter(f, header), rng: rand.New(rand.NewPCG(h.Seed, uint64(rank))), rank: rank,
		now: startNs + 1000*int64(rank)}
	r.call(schema.CallInit, 50_000)
	r.out.DefType(0, "MPI_DOUBLE", 0, 8, 8)
	for i := range h.Iterations {
		r.now = max(r.now, startNs+100_000+int64(i)*h.iterationNs()) // keeps neighbours together
		r.iterate(i)
	}
	r.call(schema.CallFinalize, 50_000)
	if err = r.out.Close(); err == nil {
		_, err = f.WriteAt(r.out.Sealed(), 0)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// iterationNs is roughly the duration of an iteration.
func (h Halo) iterationNs() int64 { return 20_000 + int64(h.Neighbours)*12_000 }

// enter makes the CALL slot of a call that takes roughly so many ns.
func (r *haloRank) enter(call schema.CallID, duration int64) spool.Call {
	compute := 200 + r.rng.Int64N(300)
	r.now += compute
	c := NewCall(call, ticks(r.now), 0)
	c.ComputeNs = uint32(compute)
	r.now += duration + r.rng.Int64N(duration)
	c.T1 = ticks(r.now)
	return c
}

func (r *haloRank) call(call schema.CallID, duration int64) {
	c := r.enter(call, duration)
	r.out.Call(&c)
}

// peer is the k-th neighbour: to the right for even k, to the left for odd.
func (r *haloRank) peer(k int) int32 {
	d := k/2 + 1
	if k%2 == 1 {
		d = -d
	}
	return int32((r.rank + d + r.halo.Ranks) % r.halo.Ranks)
}

// hash writes the hashes of a payload of doubles, as noisy as real ones.
func (r *haloRank) hash() {
	if r.halo.Hashes {
		r.out.Hash(spool.Hashes{Flags: spool.HasHash | spool.HasHead, Hash: r.rng.Uint64(),
			Head: r.rng.Uint64() >> 12})
	}
}

// elements is the size of the k-th message of an iteration, the same for its sender and its receiver.
func elements(i, k int) int64 { return 16 << ((i + k) % 8) }

func (r *haloRank) iterate(i int) {
	n := 2 * r.halo.Neighbours
	first := r.serial + 1
	for k := range n {
		c := r.enter(schema.CallIrecv, 300)
		r.serial++
		c.Comm, c.Peer, c.Tag, c.Dtype, c.Count, c.Buf, c.Req = 0, r.peer(k^1), int32(k), 0, 1<<12,
			0x7f0000000000+uint64(k)<<16, r.serial
		r.out.Call(&c)
	}
	for k := range n {
		c := r.enter(schema.CallSend, 1500)
		c.Comm, c.Peer, c.Tag, c.Dtype, c.Count, c.Buf = 0, r.peer(k), int32(k), 0, elements(i, k),
			0x7e0000000000+uint64(k)<<16
		r.out.Call(&c)
		r.hash()
	}
	for k := range n {
		c := r.enter(schema.CallWait, 800)
		c.Req, c.Peer, c.Tag, c.Count = first+uint32(k), r.peer(k^1), int32(k), 8*elements(i, k)
		r.out.Call(&c)
	}
	if i%10 == 9 {
		r.allreduce(uint64(i / 10))
	}
}

func (r *haloRank) allreduce(instance uint64) {
	c := r.enter(schema.CallAllreduce, 8000)
	c.Comm, c.Dtype, c.Count, c.Buf = 0, 0, 2, 0x7d0000000000
	r.out.Call(&c)
	r.hash()
	coll := NewColl(instance)
	coll.Op, coll.Rdtype, coll.Rcount, coll.Sbytes, coll.Rbytes, coll.Rbuf = uint16(schema.OpSum), 0, 2, 16, 16,
		0x7d0000001000
	r.out.Coll(coll)
}
