package detect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/detect/guess"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// guessedBytes is the memory for one message of a run without hashes.
const guessedBytes = 256

// Guess finds the collective operations that point-to-point messages look like in a run without payload hashes: by
// sources, destinations, sizes and order. All findings are candidates that rest on structure. Errors are those of
// run.Messages and run.Events.
func Guess(run *Run, options Options) (*Result, error) {
	most := cmp.Or(options.MemoryBytes, DefaultMemoryBytes) / guessedBytes
	result := &Result{Findings: []Finding{}}
	var list []guess.Message
	err := run.Messages(Columns, func(b *schema.Messages, _ schema.Rest) error {
		for i := range b.Len() {
			if result.Messages++; int64(len(list)) >= most {
				result.LeftOut++
				result.NoRoom++
				continue
			}
			list = append(list, guess.Message{Src: b.Src[i], Dst: b.Dst[i], Comm: b.Comm[i], Tag: b.Tag[i], Bytes: b.Bytes[i],
				SendSeq: b.SendSeq[i], PostSeq: b.RecvPostSeq[i], DoneSeq: b.RecvDoneSeq[i], Datatype: b.SendDatatype[i],
				SendSite: b.SendCallsite[i], RecvSite: b.RecvCallsite[i]})
		}
		return run.stopped()
	})
	if err != nil {
		return nil, err
	}
	result.Unhashed, result.Replayed = result.Messages, int64(len(list))
	if result.NoRoom > 0 {
		return result, nil // of a part of the messages nothing can be told
	}
	byKey := map[string]int{}
	r := reporter{comms: run.Comms, placed: map[string]Finding{}}
	for _, s := range guess.Find(list, run.Comms, cmp.Or(options.MinRanks, DefaultMinRanks)) {
		f := guessed(&s, list)
		key := fmt.Sprint(f.Operation, f.Ranks, s.Comm, f.BytesMin, f.SendSites, f.RecvSites)
		if k, ok := byKey[key]; ok {
			g := &result.Findings[k]
			g.Instances, g.Messages, g.MessageBytes = g.Instances+1, g.Messages+f.Messages, g.MessageBytes+f.MessageBytes
			continue
		}
		if r.over(&f, map[int32]bool{s.Comm: true}); f.Completeness < options.Completeness {
			continue
		}
		byKey[key] = len(result.Findings)
		result.Findings = append(result.Findings, f)
	}
	slices.SortStableFunc(result.Findings, func(a, b Finding) int { return cmp.Compare(b.MessageBytes, a.MessageBytes) })
	result.Calls, err = run.callsAt(result.Findings)
	return result, err
}

// stopped returns the error that ends the detection; nil for none.
func (run *Run) stopped() error {
	if run.Stopped == nil {
		return nil
	}
	return run.Stopped()
}

// guessed makes the finding of one shape.
func guessed(s *guess.Shape, list []guess.Message) Finding {
	f := Finding{Operation: s.Operation, Others: s.Others, Ranks: s.Ranks, BytesMin: s.Bytes, BytesMax: s.Bytes, Segments: 1,
		Instances: 1, Messages: int64(len(s.Messages)), Certainty: ledger.Candidate, Basis: ledger.ByStructure}
	for _, i := range s.Messages {
		m := &list[i]
		f.MessageBytes += m.Bytes
		f.Datatypes = withID(f.Datatypes, m.Datatype)
		f.SendSites, f.RecvSites = withID(f.SendSites, m.SendSite), withID(f.RecvSites, m.RecvSite)
	}
	return f
}

// withID adds an id to an ascending list, if it is none that the list has.
func withID(list []int32, id int32) []int32 {
	if k, has := slices.BinarySearch(list, id); !has && id != schema.NullInt32 {
		return slices.Insert(list, k, id)
	}
	return list
}

// callsAt finds the calls at the call sites of findings; nil if the run has no events.
func (run *Run) callsAt(findings []Finding) (map[int32][]schema.CallID, error) {
	calls := map[int32][]schema.CallID{}
	for i := range findings {
		for _, id := range slices.Concat(findings[i].SendSites, findings[i].RecvSites) {
			calls[id] = nil
		}
	}
	if len(calls) == 0 || run.Events == nil {
		return nil, nil
	}
	err := run.Events(func(e *schema.Events) error {
		for i, id := range e.Callsite {
			if list, wanted := calls[id]; wanted && !slices.Contains(list, schema.CallID(e.Call[i])) {
				calls[id] = append(list, schema.CallID(e.Call[i]))
			}
		}
		return nil
	})
	return calls, err
}
