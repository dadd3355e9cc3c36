package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// BenchmarkDetect measures commq detect, the whole command, on runs of $COMMQ_BENCH_MESSAGES messages (default one
// epoch) of a halo on a ring of 64 ranks. In the first run the payloads differ, except in every 200th step, in which
// rank 0 broadcasts four times to all, from rank to rank (1 % of the messages). In another all payloads are one
// constant, and in the third ranks make random numbers of other calls between the steps. If $COMMQ_BENCH_STORE is set,
// the runs are kept there and reused. $COMMQ_BENCH_RUN names a run to measure instead.
func BenchmarkDetect(b *testing.B) {
	commq := buildCommq(b)
	if dir := os.Getenv("COMMQ_BENCH_RUN"); dir != "" {
		measureDetect(b, commq, dir)
		return
	}
	store := os.Getenv("COMMQ_BENCH_STORE")
	if store == "" {
		store = b.TempDir()
	}
	for _, kind := range []string{"halo", "constant", "uneven"} {
		h := ringHalo{messages: benchMessages(b), kind: kind}
		dir := filepath.Join(store, h.name())
		if _, err := os.Stat(dir); err != nil {
			if err := h.write(store); err != nil {
				b.Fatal(err)
			}
		}
		measureDetect(b, commq, dir)
	}
}

func measureDetect(b *testing.B, commq, dir string) {
	m, err := writer.ReadManifest(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Run(filepath.Base(dir), func(b *testing.B) {
		var peak int64
		var cpu time.Duration
		for b.Loop() {
			cmd := exec.Command(commq, "detect", "--run", dir)
			cmd.Stderr = os.Stderr
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
			peak = max(peak, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
			cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		}
		b.ReportMetric(float64(m.Counts.Messages)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mmessages/s")
		b.ReportMetric(float64(m.Counts.Messages)*float64(b.N)/cpu.Seconds()/1e6, "Mmessages/cpu-s")
		b.ReportMetric(float64(peak)/1024, "peak-MiB")
	})
}

// ringHalo is a program on a ring of ranks that exchange messages with both neighbours.
type ringHalo struct {
	messages int
	kind     string
}

const (
	haloRanks = 64
	haloEpoch = 1 << 12 // steps
	haloEvery = 200     // steps between broadcasts
	haloTimes = 4       // broadcasts then: 252 messages of 25,852
)

func (h ringHalo) name() string { return fmt.Sprintf("%s.%d", h.kind, h.messages) }

// write writes the run.
func (h ringHalo) write(store string) error {
	out, err := writer.Create(store, h.name(), writer.Options{})
	if err != nil {
		return err
	}
	defer out.Abort()
	rng := rand.New(rand.NewPCG(3, 9))
	var seq [haloRanks]int64
	steps, epochs := h.messages/(2*haloRanks), int32(0)
	for first := 0; first < steps; first += haloEpoch {
		b := &schema.Messages{}
		for step := first; step < min(first+haloEpoch, steps); step++ {
			h.step(b, epochs, rng, &seq)
			for k := 0; step%haloEvery == 0 && k < haloTimes; k++ {
				broadcastRing(b, epochs, rng.Int64(), &seq)
			}
		}
		if err := out.Write(0, b); err != nil {
			return err
		}
		epochs++
	}
	comms, events, ranks := &schema.Comms{}, &schema.Events{}, &schema.RankInfos{}
	for rank := range int32(haloRanks) {
		c, e, r := schema.NullComm, schema.NullEvent, schema.NullRankInfo
		r.Rank, r.Host = rank, 0
		ranks.Append(&r)
		c.CommRank, c.WorldRank, c.Kind = rank, rank, int16(schema.CommWorld)
		comms.Append(&c)
		e.Rank, e.Comm, e.Instance, e.Call, e.Class, e.SendBytes, e.RecvBytes = rank, 0, 0, int16(schema.CallBarrier),
			int16(schema.ClassCollective), 0, 0
		events.Append(&e)
	}
	for _, b := range []schema.Batch{comms, events, ranks} {
		if err := out.Write(0, b); err != nil {
			return err
		}
	}
	return out.Commit(context.Background(), &schema.Manifest{Ranks: haloRanks, TimeOrigin: "untimed", ComputeClock: "none",
		Record: "messages", Hash: "crc64", Ended: "finalized", Epochs: epochs,
		Counts: schema.Counts{Messages: int64(h.messages)}})
}

// step exchanges with both neighbours: two sends, then two receives.
func (h ringHalo) step(b *schema.Messages, epoch int32, rng *rand.Rand, seq *[haloRanks]int64) {
	for rank := range int32(haloRanks) {
		for side, to := range [2]int32{(rank + 1) % haloRanks, (rank + haloRanks - 1) % haloRanks} {
			hash := int64(77)
			if h.kind != "constant" {
				hash = rng.Int64()
			}
			addHalo(b, epoch, rank, to, int32(side), 7200, hash, seq[rank]+int64(side), seq[to]+2+int64(side))
		}
	}
	for rank := range seq {
		seq[rank] += 4
		if h.kind == "uneven" {
			seq[rank] += rng.Int64N(4)
		}
	}
}

// broadcastRing passes one payload on from rank to rank.
func broadcastRing(b *schema.Messages, epoch int32, hash int64, seq *[haloRanks]int64) {
	for rank := range int32(haloRanks - 1) {
		addHalo(b, epoch, rank, rank+1, 9, 4096, hash, seq[rank], seq[rank+1])
		seq[rank]++
		seq[rank+1]++
	}
}

func addHalo(b *schema.Messages, epoch, src, dst, tag int32, bytes, hash, sent, received int64) {
	m := schema.NullMessage
	m.Src, m.Dst, m.Epoch, m.Comm, m.Tag, m.Bytes, m.SendCount, m.SendDatatype = src, dst, epoch, 0, tag, bytes,
		bytes/8, 0
	m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq, m.PayloadHash, m.PayloadHead = sent, received, received, hash, hash>>7
	m.SrcBuffer, m.DstBuffer = 0x7f0000000000+int64(src)<<24+int64(tag)<<16,
		0x7f1000000000+int64(dst)<<24+int64(tag)<<16
	m.SendCallsite, m.RecvCallsite = tag, 20+tag
	b.Append(&m)
}
