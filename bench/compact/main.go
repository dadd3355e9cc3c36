// Command compact measures what capture in constant space would take, on the calls of kept records and on signatures:
//
//	go run ./bench/compact [-buffers] [-rounds 9] FOLDER... SIGNATURE.json.gz...
//
// FOLDER has the files of a commq capture --keep-spool. bench/compact.md explains what is printed.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
)

func main() {
	buffers := flag.Bool("buffers", false, "calls with different buffers are different")
	rounds := flag.Int("rounds", 9, "rounds of timing; the fastest counts")
	flag.Parse()
	if flag.NArg() == 0 || *rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	for _, arg := range flag.Args() {
		measure := func(path string) error { return measureRecords(path, *buffers, *rounds) }
		if strings.HasSuffix(arg, ".gz") {
			measure = measureSignature
		}
		if err := measure(arg); err != nil {
			fmt.Fprintln(os.Stderr, "compact:", err)
			os.Exit(2)
		}
	}
}

// measureSignature prints the calls that a signature unfolds to, and its bytes.
func measureSignature(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	in, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s, err := signature.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.Link()
	var calls int64
	for rank := range s.Ranks {
		signature.WalkTimes(s, int32(rank), func(_ *template.Node, _ *signature.Call, times int64) { calls += times })
	}
	bare, err := withoutTimes(s)
	if err != nil {
		return err
	}
	per := func(bytes int64) float64 { return float64(bytes) / float64(calls) }
	fmt.Printf("%s: %d calls, %d bytes, %.4f a call; without times %d, %.4f\n",
		strings.TrimSuffix(filepath.Base(path), ".json.gz"), calls, info.Size(), per(info.Size()), bare, per(bare))
	return nil
}

// withoutTimes takes the times away from a signature, and returns its compressed bytes then.
func withoutTimes(s *signature.Signature) (int64, error) {
	for i := range s.Values {
		s.Values[i].Times = nil
		for _, c := range s.Values[i].Events {
			c.ComputeNs, c.FirstNs = nil, nil
		}
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if err := errors.Join(s.Write(z), z.Close()); err != nil {
		return 0, err
	}
	return int64(out.Len()), nil
}
