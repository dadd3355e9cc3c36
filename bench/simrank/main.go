// Command simrank measures how many events commq simrank answers through pipes, as a simulator rank has it do. It
// prints a line per run; see bench/sim.md.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/commq/commq/capture/simrank"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

var (
	commq = flag.String("commq", "commq", "the commq to measure")
	kind  = flag.String("kind", "messages",
		"messages, records (messages with the records of their calls), collectives, or roundtrip (one message at a "+
			"time)")
	million = flag.Float64("millions", 5, "events in millions; a hundredth of it for roundtrip")
	ranks   = flag.Int("ranks", 32, "ranks of the program")
	perCall = flag.Int("record-bytes", 200, "bytes of records per message")
)

func main() {
	flag.Parse()
	log.SetFlags(0)
	dir, err := os.MkdirTemp("", "simrank")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := measure(dir); err != nil {
		log.Print(err)
		os.RemoveAll(dir)
		os.Exit(2)
	}
}

// stream is the input: a beginning, a block that is repeated, and an end.
type stream struct {
	begin, block, end      []byte
	events, answers, bytes int // per block
}

func put(b []byte, e simrank.Event) []byte {
	b = append(b, make([]byte, simrank.EventBytes)...)
	if _, err := binary.Encode(b[len(b)-simrank.EventBytes:], binary.LittleEndian, e); err != nil {
		panic(err)
	}
	return b
}

func newStream() (*stream, error) {
	s := &stream{}
	for r := range int32(*ranks) {
		s.begin = put(s.begin, simrank.Event{Kind: simrank.Hello, Rank: r, Peer: int32(*ranks), N: 0xabc,
			Bytes: simrank.Version})
		s.begin = put(s.begin, simrank.Event{Kind: simrank.Records, Rank: r, Bytes: spool.HeaderBytes})
		s.begin = append(s.begin, make([]byte, spool.HeaderBytes)...)
		s.end = put(s.end, simrank.Event{Kind: simrank.Left, Rank: r, Peer: spool.EndedFinalized})
	}
	const rounds = 2048
	records := make([]byte, 64<<10)
	behind := make([]int, *ranks) // records not sent yet
	for i := range rounds * *ranks {
		r := i % *ranks
		switch *kind {
		case "messages", "records", "roundtrip":
			s.block = put(s.block, simrank.Event{Kind: simrank.Sent, Rank: int32(r), Peer: int32((r + 1) % *ranks),
				Tag: 9, Key: 77, TimePs: int64(i) * 1000, Bytes: 4097})
		case "collectives":
			s.block = put(s.block, simrank.Event{Kind: simrank.Entered, Call: uint16(schema.CallAllreduce),
				Rank: int32(r), Peer: int32(*ranks), Key: 77, N: uint64(i / *ranks), TimePs: int64(i) * 1000,
				Bytes: 8, Received: 8})
		default:
			return nil, fmt.Errorf("-kind %s: want messages, records, collectives or roundtrip", *kind)
		}
		s.events++
		s.answers++
		if behind[r] += *perCall; *kind == "records" && behind[r] >= len(records) {
			behind[r] -= len(records)
			s.block = put(s.block, simrank.Event{Kind: simrank.Records, Rank: int32(r), N: spool.HeaderBytes,
				Bytes: int64(len(records))})
			s.block = append(s.block, records...)
			s.events++
			s.bytes += len(records)
		}
	}
	return s, nil
}

func measure(dir string) error {
	s, err := newStream()
	if err != nil {
		return err
	}
	machine := filepath.Join(dir, "machine.yaml")
	if err := os.WriteFile(machine, []byte("network: {latency_ns: 7000, bandwidth_bytes_per_s: 250000000}\n"),
		0o644); err != nil {
		return err
	}
	c := exec.Command(*commq, "simrank")
	c.Env = append(os.Environ(), "COMMQ_SIM_MACHINE="+machine, "COMMQ_SPOOL="+dir)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if *kind == "roundtrip" {
		return s.roundTrips(in, out, c)
	}
	return s.throughput(in, out, c)
}

func (s *stream) throughput(in io.WriteCloser, out io.Reader, c *exec.Cmd) error {
	blocks := max(1, int(*million*1e6)/s.events)
	got := make(chan int64)
	start := time.Now()
	go func() {
		n, _ := io.Copy(io.Discard, out)
		got <- n
	}()
	for _, b := range append(append([][]byte{s.begin}, slices.Repeat([][]byte{s.block}, blocks)...), s.end) {
		if _, err := in.Write(b); err != nil {
			return err
		}
	}
	if err := in.Close(); err != nil {
		return err
	}
	if n, want := <-got, int64(blocks*s.answers*simrank.EventBytes); n != want {
		return fmt.Errorf("%d bytes of answers, want %d", n, want)
	}
	wall := time.Since(start)
	if err := c.Wait(); err != nil {
		return err
	}
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	events := float64(blocks * s.events)
	fmt.Printf("%s events=%.0f records_MB=%.0f wall_s=%.3f cpu_s=%.3f events/s=%.0f events/cpu_s=%.0f rss_MB=%.0f\n",
		*kind, events, float64(blocks*s.bytes)/1e6, wall.Seconds(), cpu.Seconds(), events/wall.Seconds(),
		events/cpu.Seconds(), peakMB(c))
	return nil
}

// peakMB returns the peak memory of a process.
func peakMB(c *exec.Cmd) float64 {
	u, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return float64(u.Maxrss) / 1024
}

func (s *stream) roundTrips(in io.WriteCloser, out io.Reader, c *exec.Cmd) error {
	if _, err := in.Write(s.begin); err != nil {
		return err
	}
	n := max(100, int(*million*1e4))
	took := make([]time.Duration, n)
	answer := make([]byte, simrank.EventBytes)
	for i := range took {
		at := i % s.events * simrank.EventBytes
		start := time.Now()
		if _, err := in.Write(s.block[at : at+simrank.EventBytes]); err != nil {
			return err
		}
		if _, err := io.ReadFull(out, answer); err != nil {
			return err
		}
		took[i] = time.Since(start)
	}
	if _, err := in.Write(s.end); err != nil {
		return err
	}
	if err := in.Close(); err != nil {
		return err
	}
	if err := c.Wait(); err != nil {
		return err
	}
	slices.Sort(took)
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	fmt.Printf("roundtrip n=%d median_us=%.1f p99_us=%.1f cpu_us=%.1f\n", n, took[n/2].Seconds()*1e6,
		took[n*99/100].Seconds()*1e6, cpu.Seconds()*1e6/float64(n))
	return nil
}
