package predict_test

import (
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// trainingRun is a training as traces of PyTorch have it, without call sites: 2 stages of 2 processes, as often as they
// fit. Each of 3 steps has a broadcast on all, 2 messages from the first stage to the second, an all-reduce of each
// stage and one of 7200 elements across the replicas, and an MPI_Wait after each. name names communicators.
func trainingRun(ranks int, name func(group string) string) *signature.Run {
	members := map[string]func(r int) []int32{
		"tp": func(r int) []int32 { return []int32{int32(r &^ 1), int32(r | 1)} },
		"pp": func(r int) []int32 { return []int32{int32(r &^ 2), int32(r | 2)} },
		"dp": func(r int) (all []int32) {
			for m := r % 4; m < ranks; m += 4 {
				all = append(all, int32(m))
			}
			return all
		},
	}
	var comms [][]int32
	var names []string
	ids := map[string][]int{}
	for _, name := range []string{"dp", "pp", "tp"} {
		ids[name] = make([]int, ranks)
		for r := range ranks {
			all := members[name](r)
			if int(all[0]) == r {
				comms, names = append(comms, all), append(names, name)
			}
			if ids[name][r] = len(comms); int(all[0]) != r {
				ids[name][r] = ids[name][all[0]]
			}
		}
	}
	run := testruns.Calls(ranks, comms, func(r int) (all []testruns.Call) {
		add := func(call schema.CallID, comm, to, from, bytes int) {
			c := testruns.Call{Call: call, To: to, From: from, Root: testruns.None, Bytes: bytes, Comm: comm, Tag: 9}
			if call == schema.CallIbcast {
				c.Root = 0
			}
			all = append(all, c, testruns.Call{Call: schema.CallWait, To: testruns.None, From: testruns.None,
				Root: testruns.None})
		}
		for range 3 {
			add(schema.CallIbcast, 0, testruns.None, testruns.None, 8)
			for range 2 {
				if r&2 == 0 {
					add(schema.CallIsend, ids["pp"][r], r|2, testruns.None, 4097)
				} else {
					add(schema.CallIrecv, ids["pp"][r], testruns.None, r&^2, 4097)
				}
			}
			add(schema.CallIallreduce, ids["tp"][r], testruns.None, testruns.None, 384)
			add(schema.CallIallreduce, ids["dp"][r], testruns.None, testruns.None, 7200)
		}
		return all
	})
	for i := range run.Comms {
		if c := run.Comms[i].Comm; c > 0 {
			run.Comms[i].Name = name(names[c-1])
		}
	}
	events := run.Events
	run.Events = func(add func(*schema.Events) error) error {
		return events(func(b *schema.Events) error {
			for i := range b.Len() {
				b.Callsite[i] = schema.NullInt32
				switch schema.CallID(b.Call[i]) {
				case schema.CallWait:
					b.Comm[i] = schema.NullInt32
				default:
					b.DoneSeq[i] = b.Seq[i] + 1
				}
				b.Request[i] = b.Seq[i] / 2
			}
			return add(b)
		})
	}
	return run
}

// Without call sites the program knows its communicators by their names: runs on 4, 8, 12, 20 and 24 ranks tell all of
// one on 16. Without names, or with one name for the three communicators of a rank, only the broadcast is known, as no
// communicator of a run is that of another one.
func TestCommunicatorsInPlaceOfCallSites(t *testing.T) {
	program := func(name func(string) string) func(ranks int) *signature.Run {
		return func(ranks int) *signature.Run { return trainingRun(ranks, name) }
	}
	own := func(group string) string { return group }
	m := train(t, []int{4, 8, 12, 20, 24}, program(own))
	x := extrapolate(t, m, 16)
	truth := sign(t, trainingRun(16, own))
	want := report.Score{Ranks: 16, EdgePrecision: 1, EdgeRecall: 1, Messages: 8 * 2 * 3, Bytes: 8 * 2 * 3 * 4097}
	if got := report.Compare(x.Signature, truth); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	v := report.Judge(m, x, truth)
	if v.Calls.Exact == 0 || v.Calls.Wrong+v.Calls.Unknown+v.Bytes.Wrong+v.Bytes.Unknown+v.Edges.Wrong != 0 {
		t.Errorf("%+v", v)
	}

	m = train(t, []int{4, 8, 12}, program(own)) // laws of whole sets rule out what fits the next members
	v = report.Judge(m, extrapolate(t, m, 16), truth)
	if v.Calls.Exact != 16*4 || v.Bytes.Exact != 40 || len(v.Places) > 0 {
		t.Errorf("from 4, 8 and 12: %+v", v)
	}

	for _, name := range []string{schema.NullText, "one"} {
		m = train(t, []int{4, 8, 12, 20, 24}, program(func(string) string { return name }))
		x, err := generate.Predict(t.Context(), m, 16, generate.Options{})
		p := report.NewPartial(report.NewWeigher(m, x, 16))
		if err == nil || p == nil || p.Known != 1 || p.Collectives != 3*16 {
			t.Errorf("with %q as all names: %v, %+v", name, err, p)
		}
	}
}
