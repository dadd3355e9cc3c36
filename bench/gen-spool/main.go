// Command gen-spool writes the spool of a synthetic program: each rank exchanges messages with its neighbours. It is
// used to measure ingest, and to make runs that are too large for this project's test data.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/commq/commq/capture/spool/spoolgen"
)

func main() {
	h := spoolgen.Halo{Job: 0x5eed}
	var messages int64
	flag.IntVar(&h.Ranks, "ranks", 64, "number of ranks")
	flag.IntVar(&h.Neighbours, "neighbours", 2, "neighbours on either side of each rank")
	flag.Int64Var(&messages, "messages", 1_000_000, "messages in all, about")
	flag.Uint64Var(&h.Seed, "seed", 1, "seed of the noise in times")
	flag.BoolVar(&h.Hashes, "hashes", false, "payload hashes of the sends")
	flag.Parse()
	if flag.NArg() != 1 || h.Ranks < 1 || h.Neighbours < 1 {
		fmt.Fprintln(os.Stderr, "usage: gen-spool [flags] folder")
		flag.PrintDefaults()
		os.Exit(2)
	}
	h.Iterations = max(1, int(messages/int64(h.Ranks*2*h.Neighbours)))
	err := os.MkdirAll(flag.Arg(0), 0o755)
	if err == nil {
		err = h.Write(flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen-spool:", err)
		os.Exit(2)
	}
	fmt.Printf("%d calls, %d messages on %d ranks\n", h.Calls(), h.Messages(), h.Ranks)
}
