package report

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
	"github.com/commq/commq/schema"
)

// Verdict compares all that was predicted with a run that was left out, also where not all of it is known.
type Verdict struct {
	// Edges are the pairs of ranks between which messages go.
	Edges Tally `json:"edges"`
	// Calls are the numbers of calls of a rank at a place in the program.
	Calls Tally `json:"calls"`
	// Messages are the numbers of messages that a rank sends at a place.
	Messages Tally `json:"messages"`
	// Bytes are those that a rank sends at a place, in messages and collective operations.
	Bytes Tally `json:"bytes"`
	// Places are those in the program with wrong numbers, in order of their names.
	Places []WrongPlace `json:"wrong"`
	// Lost counts the numbers of calls, messages and bytes that are not known by the reason, which is empty for
	// places that the prediction lacks.
	Lost map[string]int64 `json:"-"`
}

// WrongPlace is a place in the program where numbers were predicted as exact and are wrong.
type WrongPlace struct {
	// Call names the call and its place, or has its path if only the measured run makes it.
	Call string `json:"call"`
	// Number is which: calls, messages, bytes, or members of the communicators of collective operations, added up over
	// the calls: the same number of others is wrong, too.
	Number string `json:"number"`
	// Ranks is on how many ranks it is wrong.
	Ranks int64 `json:"ranks"`
	// Rank is the first of them.
	Rank int32 `json:"rank"`
	// Predicted is the predicted number on that rank.
	Predicted int64 `json:"predicted"`
	// Measured is the number in the run that was left out.
	Measured int64 `json:"measured"`
}

// Tally counts numbers by how they were predicted.
type Tally struct {
	// Exact were predicted as exact and are right.
	Exact int64 `json:"exact"`
	// Wrong were predicted as exact and are not right.
	Wrong int64 `json:"wrong"`
	// Inside are in their interval.
	Inside int64 `json:"inside"`
	// Outside are not in their interval.
	Outside int64 `json:"outside"`
	// Unknown are those that the prediction says it does not know, and those above the lower bound of an interval that
	// has no upper one.
	Unknown int64 `json:"unknown"`
}

// add counts a number with its interval. It returns whether the number counts as unknown, and whether it is wrong.
func (t *Tally) add(measured, low, high float64, isUnknown bool) (unknown, wrong bool) {
	const rounding = 1e-9 // of products of intervals
	switch {
	case isUnknown:
		t.Unknown++
		return true, false
	case low == high && measured == low:
		t.Exact++
	case low == high:
		t.Wrong++
		return false, true
	case measured < low*(1-rounding) || measured > high*(1+rounding):
		t.Outside++
	case math.IsInf(high, 1):
		t.Unknown++
		return true, false
	default:
		t.Inside++
	}
	return false, false
}

// placeCount has the numbers of a rank at a place in the program, each with its interval.
type placeCount struct {
	calls, messages, bytes interval
	isSend, isCollective   bool
	// members are those of the communicators of collective operations, added up over the calls, among the sum of a hash
	// of who they are.
	members int64
	among   uint64
}

// interval goes from low to high.
type interval struct{ low, high float64 }

func (i *interval) add(low, high float64) { i.low, i.high = i.low+low, i.high+high }

// placesOf returns, by node, the place of calls that are compared with each other: their path, or of collective
// operations the function, as ranks may meet in one operation from several places.
func placesOf(s *signature.Signature, levelsAsIterations bool) []string {
	places := s.EventPaths(levelsAsIterations)
	for _, n := range s.Nodes() {
		if !n.Loop && schema.Calls[s.Symbols[n.Symbol].CallID].Class == schema.ClassCollective {
			places[n.ID] = s.Symbols[n.Symbol].Call
		}
	}
	return places
}

// Judge compares a prediction with a measured run on the same number of ranks. A place that the prediction lacks is
// unknown if that is partial, or warns of call paths that no run shows.
func Judge(m *model.Model, x *generate.Prediction, measured *signature.Signature) (v Verdict) {
	partial := x.Signature == nil || len(x.Gaps) > 0 || newPaths(m) > 0
	v.Edges = judgeEdges(x, measured, partial)
	v.Places, v.Lost = []WrongPlace{}, map[string]int64{}
	measuredPaths := placesOf(measured, m.Joint.LevelsAsIterations)
	gaps, paths, names := map[string]*generate.Gap{}, []string(nil), map[string]string{}
	claimed := map[string]bool{} // paths of the calls that the prediction has, though some rank may make none
	if x.Signature != nil {
		paths = placesOf(x.Signature, m.Joint.LevelsAsIterations)
		for _, n := range x.Signature.Nodes() {
			if !n.Loop && paths[n.ID] != x.Signature.Symbols[n.Symbol].Call {
				names[paths[n.ID]] = x.Signature.NodeName(n)
			}
			claimed[paths[n.ID]] = !n.Loop
		}
		for event, gap := range x.Gaps {
			if known := gaps[paths[event]]; known == nil || known.Calls == "" {
				gaps[paths[event]] = gap
			}
		}
	}
	factors := iterationRanges(m, x)
	bounded := boundsIn(m, x, factors)
	hashes := memberHashes{}
	maybe := map[string]bool{} // paths in loops that may have iterations, but have none in the prediction
	for event, factor := range factors {
		if paths != nil && math.IsInf(factor.high, 1) {
			maybe[paths[event]] = true
		}
	}
	for rank := range measured.Ranks {
		want := countPlaces(measured, rank, measuredPaths, exactly, hashes)
		got := map[string]*placeCount{}
		if x.Signature != nil {
			got = countPlaces(x.Signature, rank, paths, bounded, hashes)
		}
		for path := range got {
			if want[path] == nil {
				want[path] = &placeCount{}
			}
		}
		for path, w := range want {
			at := place{cmp.Or(names[path], path), rank}
			v.addPlace(at, w, got[path], gaps[path], partial && !claimed[path] || maybe[path])
		}
	}
	slices.SortFunc(v.Places, func(a, b WrongPlace) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Number, b.Number))
	})
	return v
}

// place is a call on a rank.
type place struct {
	call string
	rank int32
}

// addWrong notes a wrong number.
func (v *Verdict) addWrong(at place, number string, predicted, measured float64) {
	i := slices.IndexFunc(v.Places, func(w WrongPlace) bool { return w.Call == at.call && w.Number == number })
	if i < 0 {
		i = len(v.Places)
		v.Places = append(v.Places, WrongPlace{at.call, number, 0, at.rank, int64(predicted), int64(measured)})
	}
	v.Places[i].Ranks++
}

// addPlace compares the numbers of a rank at a place. A place that is not in the prediction is unknown if that is
// partial, and wrong if it claims to be all.
func (v *Verdict) addPlace(at place, want, got *placeCount, gap *generate.Gap, partial bool) {
	unknown := gap != nil && gap.Calls != "" || got == nil && partial
	if got == nil {
		got = &placeCount{}
	}
	why := reasonOf(gap)
	add := func(t *Tally, number string, want, got *interval, unknown bool) {
		isOpen, wrong := t.add(want.low, got.low, got.high, unknown)
		switch {
		case unknown:
			v.Lost[why]++
		case isOpen:
			v.Lost[noUpperBound]++
		}
		if wrong {
			v.addWrong(at, number, got.low, want.low)
		}
	}
	if exact := got.calls.low == got.calls.high && got.calls == want.calls; exact && !unknown && got.among != want.among {
		v.Calls.Wrong++ // so many calls, but not on these communicators
		v.addWrong(at, "members", float64(got.members), float64(want.members))
	} else {
		add(&v.Calls, "calls", &want.calls, &got.calls, unknown)
	}
	if want.isSend || got.isSend {
		add(&v.Messages, "messages", &want.messages, &got.messages, unknown)
	}
	if want.isSend || got.isSend || want.isCollective || got.isCollective {
		add(&v.Bytes, "bytes", &want.bytes, &got.bytes, unknown || gap != nil && gap.Sizes != "")
	}
}

// noUpperBound is the reason of Lost for numbers in an interval without an upper bound.
const noUpperBound = "its interval has no upper bound"

// reasonOf returns why something is not known of a call; empty for a nil gap.
func reasonOf(gap *generate.Gap) string {
	if gap == nil {
		return ""
	}
	return cmp.Or(gap.Calls, gap.Sizes, gap.Peers)
}

// bounds tells how the numbers of an event's calls are bounded: the calls by a factor, the bytes that it sends.
type bounds func(event int32, bytes int64) (calls, size interval)

func exactly(_ int32, bytes int64) (calls, size interval) {
	return interval{1, 1}, interval{float64(bytes), float64(bytes)}
}

// boundsIn returns the bounds in a prediction; factors are its iterationRanges.
func boundsIn(m *model.Model, x *generate.Prediction, factors []interval) bounds {
	return func(event int32, bytes int64) (calls, size interval) {
		size = interval{float64(bytes), float64(bytes)}
		if b, inexact := x.BoundsOf(m.SiteOf(event).Send.Bytes, bytes); inexact {
			size = interval{float64(max(b.Low, 0)), float64(b.High)}
			if b.High == math.MaxInt64 {
				size.high = math.Inf(1)
			}
		}
		return factors[event], size
	}
}

// iterationRanges returns, by event, by which factors its number of calls may be less or more, as the number of
// iterations of loops around it is uncertain.
func iterationRanges(m *model.Model, x *generate.Prediction) []interval {
	nodes := m.Joint.Sig.Nodes()
	all := make([]interval, len(nodes))
	for _, n := range nodes { // a loop comes before what is in it
		all[n.ID] = interval{1, 1}
		if n.Parent != nil {
			all[n.ID] = all[n.Parent.ID]
		}
		for _, l := range x.Loops {
			if l.Node == n.ID {
				if l.Least <= 0 {
					all[n.ID] = interval{0, math.Inf(1)}
					continue
				}
				all[n.ID].low *= float64(l.Low) / float64(l.Most)
				if all[n.ID].high *= float64(l.High) / float64(l.Least); l.High == math.MaxInt64 {
					all[n.ID].high = math.Inf(1)
				}
			}
		}
	}
	for _, site := range m.Sites {
		if len(x.Conflicts) > 0 && (inConflict(site) || callersConflict(site, x.Conflicts)) {
			all[site.Event.ID] = interval{0, math.Inf(1)} // one of several conflicting laws was picked: nothing is sure
		}
	}
	return all
}

// callersConflict reports whether laws conflict about who makes a site's calls.
func callersConflict(s *model.Site, conflicts []string) bool {
	return s.In != "" && slices.ContainsFunc(s.Calls.Slots, func(slot *slots.Slot) bool {
		return slices.Contains(conflicts, model.SlotName(s.In, slot.Index()))
	})
}

// inConflict reports whether conflicting laws of messages may change a site's calls.
func inConflict(s *model.Site) bool { return s.Sends || s.Receives || s.Completes != nil }

// countPlaces adds up the numbers of a rank by the path of the call.
func countPlaces(s *signature.Signature, rank int32, paths []string, of bounds, hashes memberHashes) map[string]*placeCount {
	all := map[string]*placeCount{}
	occurrences := s.Occurrences(s.Roots[rank : rank+1])
	for _, n := range s.Nodes() {
		for i, c := range s.Values[n.ID].Events {
			if occurrences[n.ID][i] == 0 {
				continue
			}
			p := all[paths[n.ID]]
			if p == nil {
				p = &placeCount{}
				all[paths[n.ID]] = p
			}
			times, bytes := float64(occurrences[n.ID][i]), int64(0)
			if c.Send.HasBytes() {
				bytes = int64(c.Send[signature.SideBytes])
			}
			calls, size := of(n.ID, bytes)
			p.calls.add(times*calls.low, times*calls.high)
			if s.Class(n, c) == schema.ClassCollective {
				p.isCollective = true
				if comm := s.CommByID(c.Comm.Int32()); comm != nil {
					p.members += occurrences[n.ID][i] * int64(len(comm.Members))
					p.among += uint64(occurrences[n.ID][i]) * hashes.hashOf(comm)
				}
			}
			if s.SendsMessage(n, c) {
				p.isSend = true
				p.messages.add(times*calls.low, times*calls.high)
			} else if !p.isCollective {
				continue
			}
			p.bytes.add(times*calls.low*size.low, times*calls.high*size.high)
		}
	}
	return all
}

// memberHashes has for communicators a number that is not the same for other members but by chance.
type memberHashes map[*signature.Comm]uint64

// hashOf returns the number of a communicator.
func (m memberHashes) hashOf(c *signature.Comm) uint64 {
	hash, known := m[c]
	if !known {
		h := fnv.New64a()
		_ = binary.Write(h, binary.LittleEndian, c.Members) // it never fails
		hash = h.Sum64()
		m[c] = hash
	}
	return hash
}

// judgeEdges compares the pairs of ranks that communicate.
func judgeEdges(x *generate.Prediction, measured *signature.Signature, partial bool) (t Tally) {
	want := edgesOf(measured, nil)
	got := map[[2]int32]bool{}
	if x.Signature != nil {
		got = edgesOf(x.Signature, x.Gaps)
	}
	right, wrong := &t.Exact, &t.Wrong
	if len(x.Conflicts) > 0 {
		right, wrong = &t.Inside, &t.Outside
	}
	for e := range want {
		switch {
		case got[e]:
			*right++
		case partial:
			t.Unknown++
		default:
			*wrong++
		}
	}
	for e := range got {
		if !want[e] {
			*wrong++
		}
	}
	return t
}

// edgesOf returns the pairs of ranks between which a run sends, leaving out events with gaps.
func edgesOf(s *signature.Signature, gaps map[int32]*generate.Gap) map[[2]int32]bool {
	edges, visited := map[[2]int32]bool{}, map[[2]int32]bool{}
	for r := range s.Ranks {
		clear(visited)
		s.VisitEvents(r, visited, func(event, value int32) {
			c := s.Values[event].Events[value]
			if gap := gaps[event]; (gap == nil || gap.Calls == "") && s.SendsMessage(s.Nodes()[event], c) {
				edges[[2]int32{r, c.Send.PeerOf(r)}] = true
			}
		})
	}
	return edges
}
