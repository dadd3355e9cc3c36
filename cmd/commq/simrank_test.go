package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/capture/simrank"
)

func TestSimrank(t *testing.T) {
	dir := t.TempDir()
	slow := filepath.Join(dir, "slow.yaml")
	if err := os.WriteFile(slow, []byte("network: {latency_ns: 3, bandwidth_bytes_per_s: 1e6}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var good bytes.Buffer
	for _, e := range []simrank.Event{
		{Kind: simrank.Hello, Rank: 3, Peer: 5, N: 0xabc, Bytes: simrank.Version},
		{Kind: simrank.Sent, Rank: 3, Peer: 4, Bytes: 9, TimePs: 77},
		{Kind: simrank.Left, Rank: 3},
	} {
		if err := binary.Write(&good, binary.LittleEndian, e); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		machine, input, want string // of stderr
		delay                int64  // of the answer
		status               int
	}{
		{slow, good.String(), "", 9_003_000, exitDone},
		{"flat", good.String(), "", 10_009_000, exitDone},
		{"", "", "simrank: $COMMQ_SIM_MACHINE and $COMMQ_SPOOL are not both set; ", 0, exitCannot},
		{"flt", "", `unknown machine "flt"; did you mean flat?`, 0, exitCannot},
		{filepath.Join(dir, "flat"), "", "flat: no such file or directory; the machines with a name are ", 0,
			exitCannot},
		{dir, "", "is a directory", 0, exitCannot},
		{"myrinet", "", "machine myrinet: network.input_links is 1: ", 0, exitCannot},
		{"flat", strings.Repeat("#", simrank.EventBytes), "simrank: event 1: kind 8995: no such event", 0, exitCannot},
	} {
		t.Setenv("COMMQ_SIM_MACHINE", c.machine)
		t.Setenv("COMMQ_SPOOL", filepath.Join(t.TempDir(), "spool"))
		var out, stderr bytes.Buffer
		status := execute(t.Context(), []string{"simrank"}, strings.NewReader(c.input), &out, &stderr)
		if status != c.status || !strings.Contains(stderr.String(), c.want) || c.want == "" && stderr.Len() > 0 {
			t.Errorf("%s: status %d, want %d; %s", c.machine, status, c.status, stderr.String())
		}
		var e simrank.Event
		if c.status == exitDone {
			if err := binary.Read(&out, binary.LittleEndian, &e); err != nil ||
				e != (simrank.Event{Kind: simrank.Arrives, Rank: 4, Peer: 3, Bytes: 9, TimePs: 77, DelayPs: c.delay}) {
				t.Errorf("%s: %v, %+v", c.machine, err, e)
			}
		}
		if out.Len() != 0 {
			t.Errorf("%s: %d bytes more", c.machine, out.Len())
		}
	}
}
