package simulate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

func TestReadTarget(t *testing.T) {
	target, err := ReadTarget(TargetOptions{Machine: "flat", Set: []string{"latency_ns=1500"}, Mapping: "block"})
	if err != nil {
		t.Fatal(err)
	}
	if target.Machine.Network.Latency != 1_500_000 || target.Dialect != Paper ||
		!slices.Equal(target.Changes, []string{"latency_ns=1500", "mapping=block"}) {
		t.Errorf("%+v", target)
	}
	if o := target.Origin(); o.Machine != "flat" || o.Dialect != "paper" || len(o.Digest) != 64 {
		t.Errorf("%+v", o)
	}
	for want, o := range map[string]TargetOptions{
		"--set latency: want KEY=VALUE":                {Machine: "flat", Set: []string{"latency"}},
		"--set colour=9:":                              {Machine: "flat", Set: []string{"colour=9"}},
		"--dialect x: want one of paper, dimemas5":     {Machine: "flat", Dialect: "x"},
		"--mapping cyclic: the machine has any number": {Machine: "flat", Mapping: "cyclic"},
	} {
		if _, err := ReadTarget(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The manifest of a saved run has the nodes of a mapping's file: that may change, or not be there.
func TestOriginHasTheMapping(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nodes")
	if err := os.WriteFile(file, []byte("1\n0\n0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	target, err := ReadTarget(TargetOptions{Machine: "flat", Set: []string{"nodes=2"}, Mapping: file})
	if err != nil {
		t.Fatal(err)
	}
	origin := target.Origin()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	again, err := TargetOf(origin)
	if err != nil || !slices.Equal(again.Machine.NodeOf, []int{1, 0, 0}) ||
		!slices.Equal(origin.Set, []string{"nodes=2", "mapping=1,0x2"}) {
		t.Errorf("%+v, %v", origin.Set, err)
	}
	origin.Set[1] = "mapping=" + file
	if _, err := TargetOf(origin); err == nil || !strings.Contains(err.Error(), "simulate it again") {
		t.Errorf("a manifest with a file: %v", err)
	}
	if word, err := ReadTarget(TargetOptions{Machine: "flat", Mapping: "block"}); err != nil ||
		!slices.Equal(word.Origin().Set, []string{"mapping=block"}) {
		t.Errorf("%+v, %v", word, err)
	}
}

// Two ranks compute 300 and 100 ns. The program takes 400 ns on the ideal network and 500 ns on the machine.
func TestEfficiency(t *testing.T) {
	r := &Result{Time: 500_000, Ranks: []Times{{Compute: 300_000}, {Compute: 100_000}}}
	e := NewEfficiency(r, &Result{Time: 400_000})
	want := Efficiency{Parallel: 200.0 / 500, LoadBalance: 200.0 / 300, Serialisation: 300.0 / 400,
		Transfer: 400.0 / 500}
	if *e != want {
		t.Errorf("%+v, want %+v", *e, want)
	}
	if NewEfficiency(&Result{Ranks: make([]Times, 2)}, &Result{Time: 1}) != nil {
		t.Error("a program that takes no time has an efficiency")
	}
}

func TestNanosecondsRoundHalfUp(t *testing.T) {
	for p, want := range map[Picoseconds]int64{0: 0, 499: 0, 500: 1, 1499: 1, 1500: 2} {
		if got := Nanoseconds(p); got != want {
			t.Errorf("%d ps: %d ns, want %d", p, got, want)
		}
	}
}

// Which sends a call waits for: on flat no eager send, of a threshold those from it on, in Dimemas no nonblocking one.
func TestSendWaits(t *testing.T) {
	for _, c := range []struct {
		dialect, threshold string
		call               schema.CallID
		bytes              int64
		nonblocking, want  bool
	}{
		{"paper", "", schema.CallSendrecv, 1 << 30, false, false},
		{"paper", "1000", schema.CallSendrecv, 999, false, false},
		{"paper", "1000", schema.CallSendrecv, 1000, false, true},
		{"paper", "1000", schema.CallIsend, 1000, true, true},
		{"paper", "1000", schema.CallBsend, 1000, false, false},
		{"paper", "1000", schema.CallSsendInit, 8, true, true},
		{"dimemas5", "1000", schema.CallSsend, 8, false, false},
		{"dimemas5", "1000", schema.CallIsend, 1000, true, false},
		{"dimemas5", "1000", schema.CallSend, 1000, false, true},
	} {
		o := TargetOptions{Machine: "flat", Dialect: c.dialect}
		if c.threshold != "" {
			o.Set = []string{"eager_threshold_bytes=" + c.threshold}
		}
		target, err := ReadTarget(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := target.SendWaits(c.call, 0, 1, c.bytes, c.nonblocking); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
