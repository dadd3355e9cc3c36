package report

import (
	"fmt"
	"math"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Score compares a predicted run with a measured one. Errors are sums of absolute differences divided by the measured
// sum.
type Score struct {
	// Ranks is the number of ranks.
	Ranks int32 `json:"ranks"`
	// EdgePrecision is the fraction of the predicted pairs of communicating ranks that exist, EdgeRecall the fraction
	// of the existing pairs that were predicted.
	EdgePrecision float64 `json:"edge_precision"`
	EdgeRecall    float64 `json:"edge_recall"`
	// MessageError and ByteError are the errors of messages and bytes over pairs of ranks.
	MessageError float64 `json:"message_error"`
	ByteError    float64 `json:"byte_error"`
	// CollectiveError is the error of the numbers of collective calls, by rank, operation, size of the communicator and
	// bytes.
	CollectiveError float64 `json:"collective_error"`
	// Messages is the number of messages of the run that was left out.
	Messages int64 `json:"messages"`
	// Bytes is their payload.
	Bytes int64 `json:"message_bytes"`
}

// Traffic is the traffic of a run, or a part of it. Collectives counts calls.
type Traffic struct{ Messages, Bytes, Collectives int64 }

// trafficOf returns the messages by pair of ranks, and the collective calls by what they do.
func trafficOf(s *signature.Signature) (edges map[[2]int32]Traffic, collectives map[string]int64) {
	edges, collectives = map[[2]int32]Traffic{}, map[string]int64{}
	for r := range s.Ranks {
		signature.WalkTimes(s, r, func(n *template.Node, c *signature.Call, times int64) {
			switch {
			case s.SendsMessage(n, c):
				k := [2]int32{r, c.Send.PeerOf(r)}
				t := edges[k]
				t.Messages += times
				t.Bytes += times * int64(max(c.Send[signature.SideBytes], 0))
				edges[k] = t
			case s.Class(n, c) == schema.ClassCollective:
				size := 0
				if m := s.CommByID(c.Comm.Int32()); m != nil {
					size = len(m.Members)
				}
				bytes := [2]signature.Int{signature.Null, signature.Null}
				for i, side := range [2]signature.Side{c.Send, c.Recv} {
					if side != nil {
						bytes[i] = side[signature.SideBytes]
					}
				}
				collectives[fmt.Sprint(r, s.Symbols[n.Symbol].Call, size, bytes)] += times
			}
		})
	}
	return edges, collectives
}

// Compare scores a predicted run.
func Compare(predicted, measured *signature.Signature) Score {
	got, gotCollectives := trafficOf(predicted)
	want, wantCollectives := trafficOf(measured)
	score := Score{Ranks: measured.Ranks}
	both, offMessages, offBytes := 0, int64(0), int64(0)
	for k, w := range want {
		g, hit := got[k]
		if hit {
			both++
		}
		offMessages += distance(g.Messages, w.Messages)
		offBytes += distance(g.Bytes, w.Bytes)
		score.Messages += w.Messages
		score.Bytes += w.Bytes
	}
	for k, g := range got {
		if _, hit := want[k]; !hit {
			offMessages += g.Messages
			offBytes += g.Bytes
		}
	}
	score.EdgePrecision, score.EdgeRecall = 1, 1
	if len(got) > 0 {
		score.EdgePrecision = float64(both) / float64(len(got))
	}
	if len(want) > 0 {
		score.EdgeRecall = float64(both) / float64(len(want))
	}
	score.MessageError = relativeError(offMessages, score.Messages)
	score.ByteError = relativeError(offBytes, score.Bytes)
	off, all := int64(0), int64(0)
	for k, w := range wantCollectives {
		off += distance(gotCollectives[k], w)
		all += w
	}
	for k, g := range gotCollectives {
		if _, hit := wantCollectives[k]; !hit {
			off += g
		}
	}
	score.CollectiveError = relativeError(off, all)
	return score
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// relativeError returns off/all; infinity if only all is 0.
func relativeError(off, all int64) float64 {
	switch {
	case all != 0:
		return float64(off) / float64(all)
	case off == 0:
		return 0
	}
	return math.Inf(1)
}
