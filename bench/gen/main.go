// Command gen writes runs of any size that look like those of real programs (bench/gen.md).
//
//	go run ./bench/gen --pattern shift --ranks 64 --messages 1000000 --store runs --run shift.64
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/commq/commq/bench/gen/synth"
)

func main() {
	var o synth.Options
	pattern := flag.String("pattern", "shift", "code: "+strings.Join(synth.Patterns(), ", "))
	ranks := flag.Int("ranks", 64, "ranks of the run")
	messages := flag.Int64("messages", 1e6, "messages that it has at least")
	store := flag.String("store", "runs", "folder of runs")
	name := flag.String("run", "", "name of the run (default PATTERN.RANKS)")
	profile := flag.String("cpuprofile", "", "file for a profile of this program")
	flag.Uint64Var(&o.Seed, "seed", 1, "where all that is random comes from")
	flag.Int64Var(&o.TimeResolutionNs, "time-resolution-ns", 1, "round times down to multiples of this power of two")
	flag.BoolVar(&o.Hash, "hash", false, "hash payloads")
	flag.BoolVar(&o.Callsites, "callsites", true, "rows have call sites")
	flag.IntVar(&o.RanksPerHost, "ranks-per-host", 0, "ranks of each host; 0: all")
	flag.StringVar(&o.Record, "record", "all", "rows of events to keep: all or messages")
	stop := flag.Duration("stop-after", 0, "end the run after this time, with fewer messages; 0: never")
	flag.BoolVar(&o.Check, "check", false, "check the run as commq runs check does")
	flag.Parse()
	if *stop > 0 {
		o.StopAt = time.Now().Add(*stop)
	}
	if *name == "" {
		*name = fmt.Sprintf("%s.%d", *pattern, *ranks)
	}
	if err := generate(*pattern, *ranks, *messages, *store, *name, *profile, o); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(2)
	}
}

// manyRanks is a number of ranks whose state would hardly fit twice into a machine's memory.
const manyRanks = 1 << 17

func generate(pattern string, ranks int, messages int64, store, name, profile string, o synth.Options) error {
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	p, err := synth.New(pattern, ranks, messages)
	if err != nil {
		return err
	}
	if ranks > manyRanks {
		debug.SetGCPercent(25) // most of the memory is state that grows with the ranks
	}
	begin, said := time.Now(), time.Now()
	o.Progress = func(n int64) {
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d messages, %.2f M/s\n", n, p.Messages(),
				float64(n)/1e6/time.Since(begin).Seconds())
		}
	}
	if err := synth.Write(p, store, name, o); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: %d messages in %.1f s\n", name, p.Messages(), time.Since(begin).Seconds())
	return nil
}
