package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
)

// Weight is how much a run would settle.
type Weight struct {
	// UnknownCalls is the number of calls, of all ranks, of which the runs do not tell who makes them, how often or with
	// whom, if the totals go on as in the runs. They send messages or are collective operations.
	UnknownCalls int64 `json:"unknown_calls"`
	// SettledCalls is how many of them such a run settles: laws that differ at the wanted number of ranks all differ
	// there, so that it shows which one is right.
	SettledCalls int64 `json:"settled_calls"`
	// NarrowedCalls is of how many others it rules out some of the laws.
	NarrowedCalls int64 `json:"narrowed_calls"`
	// ToldCalls adds up both, each call by the share of the pairs of its laws that the run tells apart.
	ToldCalls int64 `json:"told_calls"`
	// UncertainBytes is the number of bytes of the calls whose sizes differ by the laws that fit all runs.
	UncertainBytes int64 `json:"uncertain_bytes"`
	// NarrowedBytes is of how many of them a run rules out some laws: their sizes differ there by the laws, too.
	NarrowedBytes int64 `json:"narrowed_bytes"`
}

// addCalls adds what a run settles of the unknown calls of a site.
func (w *Weight) addCalls(x *weighed, ranks int32) {
	settled, narrowed, told := x.settledBy(ranks)
	w.UnknownCalls, w.SettledCalls = addProduct(w.UnknownCalls, 1, x.total), w.SettledCalls+settled
	w.NarrowedCalls, w.ToldCalls = w.NarrowedCalls+narrowed, w.ToldCalls+told
}

// addBytes adds what a run settles of the uncertain bytes of a site.
func (w *Weight) addBytes(x *weighed, ranks int32) {
	settled, narrowed, _ := x.settledBy(ranks)
	w.UncertainBytes = addProduct(w.UncertainBytes, 1, x.total)
	w.NarrowedBytes = addProduct(w.NarrowedBytes, 1, settled+narrowed)
}

// compareWeights is negative if the first of two weights is the greater one.
func compareWeights(a, b Weight) int {
	return cmp.Or(cmp.Compare(b.SettledCalls, a.SettledCalls), cmp.Compare(b.ToldCalls, a.ToldCalls),
		cmp.Compare(b.NarrowedBytes, a.NarrowedBytes))
}

// Weigher asks the rival laws behind a prediction how much a run would settle.
type Weigher struct {
	model      *model.Model
	prediction *generate.Prediction
	ranks      int32
	asked      map[string][]pattern.Question
	known      map[string]bool   // by slot: whether its destinations are known at the wanted number of ranks
	partners   map[string]*doubt // by slot: its destinations
	loops      map[int32]*doubt
	comms      map[*model.CommGroup]*doubt
	calls      map[int32]*weighed // by event: calls that are not known
	bytes      map[int32]*weighed // by event: bytes whose laws differ
}

// weighed is a number of calls or bytes of a site, with what is not known of them by place.
type weighed struct {
	total  int64
	places []weighedPlace
}

// weighedPlace is a place of a site. A run settles its calls if it settles all doubts.
type weighedPlace struct {
	calls  int64 // in the largest run
	doubts []*doubt
}

// doubt is something that is not known at the wanted number of ranks. A run settles it if it settles one of its
// questions: there are several if the law of the other side of a message would tell it, too.
type doubt struct {
	questions []*question
	byRanks   map[int32]float64
}

// question has the numbers of the rival laws' answers at the wanted number of ranks and, asked, at another one: laws
// with the same number agree there.
type question struct {
	wanted []int
	ask    func(ranks int32) []int
}

// maxPlaces is the number of places of a site, spread over all, that are asked.
const maxPlaces = 64

// NewWeigher returns a weigher for the prediction at a number of ranks. x is the result of generate.Predict, even if
// that returned an error; nil if it was not called.
func NewWeigher(m *model.Model, x *generate.Prediction, ranks int32) *Weigher {
	w := &Weigher{model: m, prediction: x, ranks: ranks, asked: m.Pattern.Questions(), known: map[string]bool{},
		partners: map[string]*doubt{}, loops: map[int32]*doubt{}, comms: map[*model.CommGroup]*doubt{},
		calls: map[int32]*weighed{}, bytes: map[int32]*weighed{}}
	if x == nil {
		return w
	}
	uncertain := uncertainBytes(m, x)
	for _, s := range m.Sites {
		switch gap, counts := gapOf(m, x, s); {
		case !counts:
		case gap != nil:
			w.calls[s.Event.ID] = w.weighCalls(s, gap)
		case uncertain[s.Event.ID] > 0:
			w.bytes[s.Event.ID] = w.weighBytes(s, uncertain[s.Event.ID])
		}
	}
	return w
}

// Weigh returns how much a run on a number of ranks would settle, and whether that can be weighed: the wanted run
// itself would settle all.
func (w *Weigher) Weigh(ranks int32) (sum Weight, ok bool) {
	if ranks == w.ranks || slices.Contains(w.model.Training, ranks) {
		return Weight{}, false
	}
	for _, x := range w.calls {
		sum.addCalls(x, ranks)
	}
	for _, x := range w.bytes {
		sum.addBytes(x, ranks)
	}
	return sum, sum.UnknownCalls > 0 || sum.UncertainBytes > 0
}

// bestForCalls returns the number of ranks, of next, at which a run would settle most unknown calls of some events; 0
// if it would settle none at any.
func (w *Weigher) bestForCalls(next []int32, includes func(event int32) bool) (best int32) {
	most := Weight{}
	for _, ranks := range spreadOut(next) {
		var sum Weight
		for event, x := range w.calls {
			if includes(event) {
				sum.addCalls(x, ranks)
			}
		}
		if compareWeights(sum, most) < 0 {
			best, most = ranks, sum
		}
	}
	return best
}

// bestForBytes returns the number of ranks, of next, at which a run would settle most bytes: run, unless one settles
// more.
func (w *Weigher) bestForBytes(next []int32, run int32) (best int32) {
	best, most := run, int64(0)
	if run != 0 {
		at, _ := w.Weigh(run)
		most = at.NarrowedBytes
	}
	for _, ranks := range spreadOut(next) {
		if at, _ := w.Weigh(ranks); at.NarrowedBytes > most {
			best, most = ranks, at.NarrowedBytes
		}
	}
	return best
}

// settledBy returns how many of the calls or bytes a run settles, of how many it rules out laws, and how many it tells
// apart: each by the share of the pairs of laws that it tells apart.
func (x *weighed) settledBy(ranks int32) (settled, narrowed, told int64) {
	all, settles, narrows, sum := int64(0), int64(0), int64(0), 0.0
	for i := range x.places {
		p := &x.places[i]
		share, right := p.settledBy(ranks)
		switch all += p.calls; {
		case right:
			settles += p.calls
		case share > 0:
			narrows += p.calls
		}
		sum += share * float64(p.calls)
	}
	of := func(calls float64) int64 {
		return limited(math.Floor(float64(x.total) * (calls / float64(max(all, 1)))))
	}
	return of(float64(settles)), of(float64(narrows)), of(sum)
}

// settledBy returns the share of the pairs of laws that a run tells apart at a place, the mean of its doubts, and
// whether it settles all of them.
func (p *weighedPlace) settledBy(ranks int32) (share float64, settles bool) {
	settles = len(p.doubts) > 0
	for _, d := range p.doubts {
		of := d.shareTold(ranks)
		share, settles = share+of/float64(len(p.doubts)), settles && of == 1
	}
	return share, settles
}

// shareTold returns the share of the pairs of laws that a run tells apart: 1 if it settles the doubt.
func (d *doubt) shareTold(ranks int32) (share float64) {
	if known, asked := d.byRanks[ranks]; asked {
		return known
	}
	for _, q := range d.questions {
		share = max(share, q.shareTold(ranks))
	}
	if d.byRanks == nil {
		d.byRanks = map[int32]float64{}
	}
	d.byRanks[ranks] = share
	return share
}

// shareTold returns which share of the pairs of laws that differ at the wanted number of ranks differ in a run. An answer
// that stands for several laws is told from another by half: which of them is right may stay open.
func (q *question) shareTold(ranks int32) float64 {
	there := q.ask(ranks)
	if len(there) != len(q.wanted) {
		return 0
	}
	told, pairs := 0.0, 0
	for i := range there {
		for k := range i {
			if q.wanted[i] == q.wanted[k] {
				continue
			}
			switch pairs++; {
			case there[i] == there[k]:
			case q.isOneLaw(i) && q.isOneLaw(k):
				told++
			default:
				told += 0.5
			}
		}
	}
	return told / float64(pairs)
}

// isOneLaw reports whether an answer at the wanted number of ranks is that of one law.
func (q *question) isOneLaw(i int) bool {
	return q.wanted[i] != pattern.SeveralAnswers
}

// weighCalls weighs the calls of a site that are not known, because of a gap.
func (w *Weigher) weighCalls(s *model.Site, gap *generate.Gap) *weighed {
	x := &weighed{total: expectedCalls(w.model, s, w.ranks)}
	common := w.doubtsOfLoops(s)
	if gap.Peers != "" || gap.Sizes != "" && s.Root.IsEmpty() {
		common = append(common, doubtOf())
	}
	explained := false
	for _, slot := range spreadOver(s.Calls.Slots, maxPlaces) {
		p := weighedPlace{callsInLargest(slot), slices.Clone(common)}
		p.doubts = append(p.doubts, w.doubtsOfPartners(s, slot)...)
		if g := s.CommOf(slot.Index()); g != nil && g.World < 0 {
			p.doubts = append(p.doubts, w.doubtsOfComm(g)...)
		}
		p.doubts = append(p.doubts, w.doubtsOfRoot(s, slot)...)
		explained = explained || len(p.doubts) > len(common)
		x.places = append(x.places, p)
	}
	if refused := w.prediction.Gaps[s.Event.ID]; refused != nil && refused.Calls != "" && !explained {
		for i := range x.places { // the laws of partners have an answer, which no run shows to be right
			x.places[i].doubts = append(x.places[i].doubts, doubtOf())
		}
	}
	return x
}

// expectedCalls returns the number of calls of a site if the totals go on as in the runs; those of the largest run if
// nothing tells that.
func expectedCalls(m *model.Model, s *model.Site, ranks int32) int64 {
	var calls []regress.Point
	last := int64(0)
	for i := range m.Training {
		last = seenOf(m, s, i).Calls
		calls = append(calls, regress.Point{Ranks: int64(m.Training[i]), Value: float64(last)})
	}
	if t := newTotal(calls, ranks); t.High != nil || t.Value > 0 {
		return t.Value
	}
	return last
}

// callsInLargest returns the number of ranks that make the call of a slot in the largest run that has it.
func callsInLargest(slot *slots.Slot) (n int64) {
	for _, calls := range slices.Backward(slot.Runs) {
		for _, c := range calls {
			if c != nil {
				n++
			}
		}
		if n > 0 {
			break
		}
	}
	return n
}

// uncertainBytes returns, by event, how many bytes have sizes that differ by the laws that fit all runs.
func uncertainBytes(m *model.Model, x *generate.Prediction) map[int32]int64 {
	all := map[int32]int64{}
	if x.Signature == nil {
		return all
	}
	occurrences := x.Signature.Occurrences(x.Signature.Roots)
	for _, s := range m.Sites {
		l, event := s.Send.Bytes, s.Event.ID
		if l.IsEmpty() || !l.IsExact() || !x.HasInexact(l) {
			continue
		}
		for i, c := range x.Signature.Values[event].Events {
			if !c.Send.HasBytes() {
				continue
			}
			v := int64(c.Send[signature.SideBytes])
			if _, inexact := x.BoundsOf(l, v); inexact {
				all[event] = addProduct(all[event], occurrences[event][i], v)
			}
		}
	}
	return all
}
