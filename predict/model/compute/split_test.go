package compute

import (
	"math"
	"testing"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/model/join"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/slots"
	"github.com/commq/commq/schema"
)

// A rank executes 5040 x 64 / P instructions in half a cycle of 0.4 ns each, and waits 900 ns for memory on any number
// of ranks but the largest, where everything is in the cache. On a machine with twice the cycle time execution takes
// twice as long, and stalls as long as before.
func TestExecutionAndStall(t *testing.T) {
	var runs []*signature.Signature
	for _, ranks := range []int{2, 3, 4, 6, 8} {
		run := testruns.Sends(ranks, 1, func(r, _ int) (int, int) { return (r + 1) % ranks, 4097 })
		s, err := sign.FromRows(testruns.WithTimes(run, "cpu", func(*schema.Event) (int64, int64, int64) {
			instructions := int64(5040 * 64 / ranks)
			stall := int64(900)
			if ranks == 8 {
				stall = 0
			}
			ns := instructions/5 + stall
			return ns, instructions, ns * 5 / 2
		}))
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, s)
	}
	joint, err := join.Runs(runs)
	if err != nil {
		t.Fatal(err)
	}
	found, err := slots.Find(joint.Sig, joint.SlotRuns())
	if err != nil {
		t.Fatal(err)
	}
	laws := Fit(joint, found.Sites, func(*slots.Site) *pattern.Grid { return nil })
	if len(laws.sites) != 1 {
		t.Fatalf("laws of %d sites", len(laws.sites))
	}
	for _, s := range laws.sites {
		p := s.mean.parts
		if p == nil {
			t.Fatal("execution and stalls are not separate")
		}
		if math.Abs(p.cpi-0.5) > 0.001 || math.Abs(p.cycleNs-0.4) > 0.001 {
			t.Errorf("%.4f cycles of %.4f ns per instruction, want 0.5 of 0.4", p.cpi, p.cycleNs)
		}
		// 5040 x 64 / 16 x 0.2 = 4032 ns
		executes := 20160 * p.cpi
		slow := *p
		slow.machineCycleNs = 0.8
		if d := slow.evaluate(16).value - p.evaluate(16).value; math.Abs(d/(executes*0.4)-1) > 0.02 {
			t.Errorf("twice the cycle time takes %.0f ns more, want %.0f", d, executes*0.4)
		}
		if v := p.instructions.evaluate(16).value; math.Abs(v/20160-1) > 0.01 {
			t.Errorf("%.0f instructions on 16 ranks, want 20160", v)
		}
	}
	if laws.ForCycleTime() {
		t.Error("the laws are for another processor before its cycle time is set")
	}
	if laws.SetCycleTime(0.8); !laws.ForCycleTime() {
		t.Error("a cycle time was set")
	}
}
