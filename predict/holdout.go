package predict

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// Score compares a run that was predicted with the one that was measured.
type Score struct {
	Ranks int32 `json:"ranks"`
	// EdgePrecision is the part of the predicted pairs of ranks that send to one another that there are, EdgeRecall the part of those that there
	// are that was predicted.
	EdgePrecision float64 `json:"edge_precision"`
	EdgeRecall    float64 `json:"edge_recall"`
	// MessageError and ByteError are the sums over all pairs of ranks of how far messages and bytes are off, by those of the run.
	MessageError float64 `json:"message_error"`
	ByteError    float64 `json:"byte_error"`
	// CollectiveError is the same of calls of collectives, by rank, operation, size of the communicator and bytes.
	CollectiveError float64 `json:"collective_error"`
	Messages        int64   `json:"messages"`
	Bytes           int64   `json:"bytes"`
}

type traffic struct{ messages, bytes int64 }

// Score says how far a predicted run is from the one that was measured.
func (s *Signature) Score(measured *Signature) Score {
	edges := func(s *Signature) (map[[2]int32]traffic, map[string]int64) {
		all, collectives := map[[2]int32]traffic{}, map[string]int64{}
		for r := range s.Ranks {
			s.Walk(r, func(n *Node, c *Call) {
				class := s.classOf(n, c)
				switch {
				case (class == schema.ClassSend || class == schema.ClassSendrecv) && !peerless(c.Send):
					k := [2]int32{r, r + c.Send[SidePeer].int32()}
					t := all[k]
					t.messages++
					t.bytes += int64(max(c.Send[SideBytes], 0))
					all[k] = t
				case class == schema.ClassCollective:
					size := 0
					if m := s.comms[c.Comm.int32()]; m != nil {
						size = len(m.Members)
					}
					bytes := [2]Int{null, null}
					if c.Send != nil {
						bytes[0] = c.Send[SideBytes]
					}
					if c.Recv != nil {
						bytes[1] = c.Recv[SideBytes]
					}
					collectives[fmt.Sprint(r, s.Symbols[n.Symbol].Call, size, bytes)]++
				}
			})
		}
		return all, collectives
	}
	got, gotC := edges(s)
	want, wantC := edges(measured)
	score := Score{Ranks: measured.Ranks}
	both, offM, offB := 0, int64(0), int64(0)
	for k, w := range want {
		g, hit := got[k]
		if hit {
			both++
		}
		offM += abs(g.messages - w.messages)
		offB += abs(g.bytes - w.bytes)
		score.Messages += w.messages
		score.Bytes += w.bytes
	}
	for k, g := range got {
		if _, hit := want[k]; !hit {
			offM += g.messages
			offB += g.bytes
		}
	}
	share := func(a, of int64) float64 {
		if of == 0 {
			if a == 0 {
				return 0
			}
			return math.Inf(1)
		}
		return float64(a) / float64(of)
	}
	score.EdgePrecision, score.EdgeRecall = 1, 1
	if len(got) > 0 {
		score.EdgePrecision = float64(both) / float64(len(got))
	}
	if len(want) > 0 {
		score.EdgeRecall = float64(both) / float64(len(want))
	}
	score.MessageError, score.ByteError = share(offM, score.Messages), share(offB, score.Bytes)
	off, all := int64(0), int64(0)
	for k, w := range wantC {
		off += abs(gotC[k] - w)
		all += w
	}
	for k, g := range gotC {
		if _, hit := wantC[k]; !hit {
			off += g
		}
	}
	score.CollectiveError = share(off, all)
	return score
}

func abs(x int64) int64 { return max(x, -x) }

// Traffic counts the messages that ranks send, their bytes, and the calls of collectives.
func (s *Signature) Traffic() (messages, bytes, collectives int64) {
	for r := range s.Ranks {
		s.Walk(r, func(n *Node, c *Call) {
			class := s.classOf(n, c)
			switch {
			case (class == schema.ClassSend || class == schema.ClassSendrecv) && !peerless(c.Send):
				messages++
				bytes += int64(max(c.Send[SideBytes], 0))
			case class == schema.ClassCollective:
				collectives++
			}
		})
	}
	return messages, bytes, collectives
}

// Coverage says how well the intervals of a prediction hold: of the bytes that calls send, each different pair of a predicted and a measured number
// of a rank at a place in the program counted once.
type Coverage struct {
	// Numbers is how many there are, Covered how many of them lie in their interval.
	Numbers int64 `json:"numbers"`
	Covered int64 `json:"covered"`
	// Exact is how many were said to be exact, ExactRight how many of these are.
	Exact      int64 `json:"exact"`
	ExactRight int64 `json:"exact_right"`
	// Wrong are the places in the program that have numbers that were said to be exact and are not, with the first of these.
	Wrong []WrongNumber `json:"wrong"`
	// WidthMedian is the median width of the intervals of the others, a fraction of the number; null where there are none, or half of them are
	// infinite.
	WidthMedian *float64 `json:"width_median"`
}

// WrongNumber is a place in the program at which numbers were said to be exact and are not.
type WrongNumber struct {
	// Call says which call it is, and where.
	Call string `json:"call"`
	// Numbers is how many are wrong. Of the first one, Rank made the call, Predicted bytes were predicted, Measured bytes are in the run.
	Numbers   int64 `json:"numbers"`
	Rank      int32 `json:"rank"`
	Predicted int64 `json:"predicted"`
	Measured  int64 `json:"measured"`
}

// Coverage compares the intervals of an extrapolation with what was measured at that number of ranks.
func (m *Model) Coverage(x *Extrapolation, measured *Signature) (c Coverage) {
	paths, own := x.Signature.paths(m.t.levels), measured.paths(m.t.levels)
	type number struct {
		site           string
		predicted, was int64
	}
	var widths []float64
	wrong := map[int32]int{} // where in c.Wrong, by node
	c.Wrong = []WrongNumber{}
	for r := range min(x.Signature.Ranks, measured.Ranks) {
		was := map[string][]int64{}
		measured.Walk(r, func(n *Node, call *Call) {
			if len(call.Send) > 0 && call.Send[SideBytes] != null {
				was[own[n.ID]] = append(was[own[n.ID]], int64(call.Send[SideBytes]))
			}
		})
		at, seen := map[string]int{}, map[number]bool{}
		x.Signature.Walk(r, func(n *Node, call *Call) {
			if len(call.Send) == 0 || call.Send[SideBytes] == null {
				return
			}
			k := paths[n.ID]
			i := at[k]
			at[k]++
			if i >= len(was[k]) {
				return // that it is not there is told by the messages
			}
			v := int64(call.Send[SideBytes])
			q := number{k, v, was[k][i]}
			if seen[q] {
				return
			}
			seen[q] = true
			c.Numbers++
			b, bounded := x.told[m.byNode[n.ID].sendBytes][v]
			if !bounded {
				c.Exact++
				b = [2]int64{v, v}
			} else {
				widths = append(widths, (float64(b[1])-float64(b[0]))/float64(max(v, 1)))
			}
			if q.was >= b[0] && q.was <= b[1] {
				c.Covered++
				if !bounded {
					c.ExactRight++
				}
			} else if !bounded {
				w, known := wrong[n.ID]
				if !known {
					w = len(c.Wrong)
					wrong[n.ID] = w
					c.Wrong = append(c.Wrong, WrongNumber{Call: m.t.name(m.byNode[n.ID].node), Rank: r, Predicted: q.predicted, Measured: q.was})
				}
				c.Wrong[w].Numbers++
			}
		})
	}
	slices.Sort(widths)
	if n := len(widths); n > 0 && !math.IsInf(widths[n/2], 0) && widths[n/2] < 1e12 {
		c.WidthMedian = &widths[n/2]
	}
	return c
}

// paths are what events are known by in other runs: call and call path, the same at all levels of a recursion or not.
func (s *Signature) paths(levels bool) []string {
	frames, _ := s.callPaths(levels)
	all := make([]string, len(s.nodes))
	for _, n := range s.nodes {
		if !n.Loop {
			sym := &s.Symbols[n.Symbol]
			all[n.ID] = sym.Call + " " + frames[value(sym.Frame, -1)]
		}
	}
	return all
}
