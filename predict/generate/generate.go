package generate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/compute"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/phases"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Options control Predict. The zero value works.
type Options struct {
	// TakeSimplest resolves conflicts between laws that fit all runs but send messages to different ranks at the wanted
	// number of ranks: it takes the simplest law for which sends and receives match. Without it a conflict is an error.
	TakeSimplest bool
	// Doubted are events whose laws must not be used.
	Doubted []Doubt
	// Progress is called with the number of ranks that are finished, and of all; nil means no callback.
	Progress func(done, all int32)
}

// Doubt is an event whose laws may not hold at the wanted number of ranks, and the reason.
type Doubt struct {
	Event int32
	Why   string
}

// Prediction is the predicted run at one number of ranks.
type Prediction struct {
	// Signature and Run are the predicted run.
	Signature *signature.Signature
	Run       *signature.Run
	// Unmatched describes sends without a receive, and receives without a send. A correct program has none.
	Unmatched []string
	// Numbers is the number of values (bytes, counts, tags, roots) that laws gave. Inexact is the number of those that
	// are estimates: the law does not fit all runs, or laws that fit all runs give different values.
	Numbers, Inexact int64
	// Compute has the sums of the compute times; nil if they cannot be predicted, see compute.Laws.Refused.
	Compute *compute.Time
	// Loops are the loops whose number of iterations is uncertain.
	Loops []UncertainLoop
	// Unknown are the communications that the model cannot predict, with the reasons. Gaps has the reasons by event;
	// events without a gap are complete. If there are gaps, Run is nil and Signature lacks the calls that are not
	// predicted.
	Unknown []string
	Gaps    map[int32]*Gap
	// Warnings describe other assumptions.
	Warnings []string
	// Conflicts are the communications for which the simplest of several conflicting laws was taken
	// (Options.TakeSimplest). ConflictMessages of all Messages belong to the calls of these communications.
	Conflicts                  []string
	ConflictMessages, Messages int64

	bounds map[*law.Law]map[int64]Bounds // of numbers that are not exact, by law and value
}

// Gap has the reasons why calls of an event are not predicted: Calls (who makes them, how often and with which peers),
// or only their Sizes or Peers. Empty means predicted.
type Gap struct {
	Calls, Sizes, Peers string
	// onlyLevels means that only one thing is unknown of the calls: at which levels of a hierarchy ranks make them.
	onlyLevels bool
	// doubted means that several laws fit: the peers of the calls, or the iterations of a loop around them, are
	// ambiguous.
	doubted bool
}

// UncertainLoop is a loop whose number of iterations is uncertain. Value is the one that was taken for the first rank,
// Least to Most the range of those taken for all ranks, and Low to High the range that is possible. All bounds are
// inclusive; High is math.MaxInt64 if there is no upper bound.
type UncertainLoop struct {
	Loop             string
	Node             int32
	Value, Low, High int64
	Least, Most      int64
	// Widened tells that other laws than its own, shares of the ranks or the data may give it as well.
	Widened bool
}

// Bounds is an interval with its ends. High is math.MaxInt64 if there is no upper bound.
type Bounds struct{ Low, High int64 }

// RangeText writes an interval: "2 to 3", or "2 or more" if high is no bound.
func RangeText(low, high int64) string {
	if high >= law.Unbounded {
		return fmt.Sprintf("%d or more", low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

// BoundsOf returns the interval of a value that a law gave; inexact is false if the value is exact.
func (x *Prediction) BoundsOf(l *law.Law, number int64) (b Bounds, inexact bool) {
	b, inexact = x.bounds[l][number]
	return b, inexact
}

// HasInexact reports whether a law gave values that are not exact.
func (x *Prediction) HasInexact(l *law.Law) bool { return len(x.bounds[l]) > 0 }

// addBounds widens the interval of a value that is not exact.
func (x *Prediction) addBounds(l *law.Law, e law.Estimate) {
	if e.High >= law.Unbounded {
		e.High = math.MaxInt64
	}
	if x.bounds == nil {
		x.bounds = map[*law.Law]map[int64]Bounds{}
	}
	if x.bounds[l] == nil {
		x.bounds[l] = map[int64]Bounds{}
	}
	b, known := x.bounds[l][e.Value]
	if !known {
		b = Bounds{e.Low, e.High}
	}
	x.bounds[l][e.Value] = Bounds{min(b.Low, e.Low), max(b.High, e.High)}
}

// ConflictWarning describes the conflicts that were resolved; false if there were none.
func (x *Prediction) ConflictWarning() (text string, found bool) {
	if len(x.Conflicts) == 0 {
		return "", false
	}
	return fmt.Sprintf(
		"laws that fit all runs conflict for %d communications (%s), which carry %d of %d messages; the "+
			"simplest law is taken: peers and sizes there may be wrong", len(x.Conflicts), x.Conflicts[0],
		x.ConflictMessages, x.Messages), true
}

// generator is the state that all ranks share while a run is made.
type generator struct {
	model    *model.Model
	ranks    int32
	peers    *peerLaws
	comms    *communicators
	times    *compute.Predictor
	sig      *signature.Signature
	recorder *sign.Recorder
	constant []int32 // by event: model.ConstantCalls
	result   *Prediction
	unknown  *unknowns
	warned   map[string]bool
	// iterations has the number of iterations of loops whose iterations differ, by node.
	iterations map[int32]law.Estimate
	doubted    map[doubtedLoop]bool // that doubtCalls has handled
	totals     totalsCache
	shares     map[int32][]int64       // by node: sharesOf
	sharers    map[int32][]*model.Site // by event: sharersOf
	// lacksRequests has the events that a law has on ranks without requests: see followsRequests.
	lacksRequests map[int32]bool
	hasEmpty      bool // a rank has nothing to send where the runs have no rank without
}

// doubtedLoop is a loop with a number of iterations that is exact, or not.
type doubtedLoop struct {
	node  int32
	exact bool
}

// unknowns has the reasons why parts of the run cannot be predicted.
type unknowns struct {
	reasons map[string]string // by name of the slot, loop or number
	gaps    map[int32]*Gap    // by event
}

// gap returns the gap of an event, and adds it if there is none.
func (u *unknowns) gap(event int32) *Gap {
	if u.gaps[event] == nil {
		u.gaps[event] = &Gap{}
	}
	return u.gaps[event]
}

// lacksCalls reports whether it is unknown who makes the calls of an event, or how many.
func (u *unknowns) lacksCalls(event int32) bool {
	gap := u.gaps[event]
	return gap != nil && gap.Calls != ""
}

// addCalls notes that the calls of an event cannot be predicted. name identifies the slot, loop or number, for the list
// of reasons.
func (u *unknowns) addCalls(event int32, name, why string) {
	u.reasons[name] = why
	g := u.gap(event)
	if g.onlyLevels = false; g.Calls == "" {
		g.Calls = why
	}
}

// addDoubt notes that the peers of an event's calls, or the iterations of a loop around it, are ambiguous.
func (u *unknowns) addDoubt(event int32, name, why string) {
	u.addCalls(event, name, why)
	u.gap(event).doubted = true
}

// addLevels notes that the levels of a hierarchy are unknown at which ranks make the calls of an event.
func (u *unknowns) addLevels(event int32, name, why string) {
	u.reasons[name] = why
	if g := u.gap(event); g.Calls == "" {
		g.Calls, g.onlyLevels = why, true
	}
}

// addSizes notes that sizes of an event's calls cannot be predicted. name identifies the number, for the list of
// reasons.
func (u *unknowns) addSizes(event int32, name, why string) {
	u.reasons[name] = why
	if g := u.gap(event); g.Sizes == "" {
		g.Sizes = why
	}
}

// addPeers notes that the peers of an event's calls cannot be predicted. name identifies the number, for the list of
// reasons.
func (u *unknowns) addPeers(event int32, name, why string) {
	u.reasons[name] = why
	u.gap(event).Peers = why
}

// follow notes that the calls of an event cannot be predicted because others cannot.
func (u *unknowns) follow(event int32, why string) {
	if g := u.gap(event); g.Calls == "" {
		g.Calls = why
	}
}

// addLoop notes that the calls in a loop cannot be predicted.
func (u *unknowns) addLoop(n *template.Node, name, why string) {
	for _, c := range n.Children {
		if c.Loop {
			u.addLoop(c, name, why)
		} else {
			u.addCalls(c.ID, name, why)
		}
	}
}

// Predict makes the run at a number of ranks. It returns an error if the training runs do not determine all of it, or
// if the predicted ranks would wait for one another forever; the prediction then has everything that is known. Predict
// stops when ctx ends.
func Predict(ctx context.Context, m *model.Model, ranks int32, o Options) (*Prediction, error) {
	if ranks < 1 {
		return nil, fmt.Errorf("%d ranks: want at least 1", ranks)
	}
	x := &Prediction{}
	if why := m.ExceedsDomain(ranks); why != "" {
		return x, errors.New(why)
	}
	if why := m.UnusedAxis(); why != "" && ranks > m.LargestRun() {
		x.Warnings = append(x.Warnings, why)
	}
	unknown := &unknowns{map[string]string{}, map[int32]*Gap{}}
	g := &generator{model: m, ranks: ranks, result: x, unknown: unknown, warned: map[string]bool{},
		iterations: map[int32]law.Estimate{}, doubted: map[doubtedLoop]bool{}, times: m.Times().NewPredictor(ranks),
		totals: totalsCache{known: map[totalsKey]*totals{}}, shares: map[int32][]int64{},
		sharers: map[int32][]*model.Site{}, lacksRequests: map[int32]bool{}}
	for _, s := range o.Doubted {
		g.unknown.addCalls(s.Event, m.NodeName(m.SiteOf(s.Event).Event), s.Why)
	}
	noteUnpredicted(g)
	g.peers = newPeerLaws(m, ranks, o.TakeSimplest, g.unknown)
	g.comms = newCommunicators(m, ranks, g.unknown)
	run := g.newRun()
	unmatched, err := g.generate(ctx, run, o.Progress)
	if ctx.Err() != nil {
		return x, ctx.Err()
	}
	if err == nil {
		x.Signature = g.sig
	}
	if err := g.checkUnknown(err); err != nil {
		return x, fmt.Errorf("at %d ranks: %w", ranks, err)
	}
	g.countConflicts()
	x.Run, x.Unmatched, x.Compute = run, unmatched, g.times.Finish(g.sig)
	return x, nil
}

// newRun returns the run with its small tables: those of all training runs.
func (g *generator) newRun() *signature.Run {
	joint, last := g.model.Joint.Sig, g.model.Joint.Last()
	run := &signature.Run{Name: fmt.Sprintf("%s at %d", last.Run, g.ranks), Comms: g.comms.rows,
		Manifest: &schema.Manifest{SchemaVersion: schema.Version, Ranks: g.ranks, TimeOrigin: "untimed",
			ComputeClock: g.model.Times().Clock(), Record: "all", Hash: "none",
			Callsites: len(joint.Frames) > 0, Stack: last.Stack, Ended: "finalized"}}
	for i := range joint.Frames {
		f := &joint.Frames[i]
		run.Callsites = append(run.Callsites, f.Row(f.ID, nulls.Value(f.Parent, schema.NullInt32)))
	}
	for _, d := range joint.Datatypes {
		row := schema.NullDatatype
		row.ID, row.Name, row.Combiner, row.Bytes, row.ExtentBytes = d.ID, nulls.Text(d.Name), "named", d.Bytes, d.Bytes
		if d.Name == "" {
			row.Combiner = "other"
		}
		run.Datatypes = append(run.Datatypes, row)
	}
	run.Events = func(add func(*schema.Events) error) error { return g.sig.Rows(add) }
	return run
}

// generate records what each rank does, on the template of the training runs, and finds the phases of the result. It
// returns messages without a partner.
func (g *generator) generate(ctx context.Context, run *signature.Run,
	progress func(done, all int32)) (unmatched []string, err error) {
	g.sig = sign.NewSignature(run)
	g.sig.Symbols, g.sig.Template = g.model.Joint.Sig.Symbols, g.model.Joint.Sig.Template.Clone()
	g.sig.Link()
	g.recorder, g.constant = sign.NewRecorder(g.sig), model.ConstantCalls(g.model)
	for r := range g.ranks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		calls, err := g.generateRank(r)
		if err != nil {
			return nil, err
		}
		g.sig.Calls += calls
		if progress != nil {
			progress(r+1, g.ranks)
		}
	}
	g.peers.askTheRest()
	doubtRequests(g)
	if len(g.unknown.reasons) > 0 {
		g.addFollowing()
		g.checkMatches()
		g.checkSizes()
		return nil, nil // what is left need not come to an end
	}
	found, err := phases.Find(g.sig, nil)
	if err != nil || len(found.Unmatched) > 0 {
		if g.checkMatches(); len(g.unknown.reasons) > 0 {
			g.addFollowing()
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	g.checkSizes()
	g.sig.Phases, g.sig.Ticks = found.Phases, found.Ticks
	return found.Unmatched, nil
}

// addFollowing adds the gaps of calls that follow from others that are not known: they are the other side of their
// messages, or complete their requests.
func (g *generator) addFollowing() {
	if g.beginsBefore() {
		g.addMessages("a loop begins with an iteration that no run shows, and who takes part in others may change with it")
	}
	families := map[string]bool{} // of the other side
	for _, x := range g.model.Sites {
		gap := g.unknown.gaps[x.Event.ID]
		if gap == nil || gap.Calls == "" {
			continue
		}
		partners := g.model.Partners
		if gap.onlyLevels {
			partners = g.model.NearPartners
		}
		for _, slot := range x.Calls.Slots {
			for _, family := range []string{x.To, x.From} {
				for _, partner := range partners(family, slot) {
					families[partner] = true
				}
			}
		}
		if gap.doubted {
			for _, event := range g.model.Exchanges().OtherSides(x.Event.ID) {
				g.unknown.follow(event, "the other side of its messages is not known")
			}
		}
	}
	for _, x := range g.model.Sites {
		if families[x.To] || families[x.From] {
			g.unknown.follow(x.Event.ID, "the other side of its messages is not known")
		}
	}
	for _, x := range g.model.Sites {
		if x.Completes == nil {
			continue
		}
		for event := range x.Completes.Events {
			if g.unknown.lacksCalls(event) {
				g.unknown.follow(x.Event.ID, "it completes requests of "+g.model.NodeName(g.model.SiteOf(event).Event))
			}
		}
	}
	addLeftRequests(g)
}

// beginsBefore reports whether a family of slots begins with one that no run has.
func (g *generator) beginsBefore() bool {
	return slices.ContainsFunc(g.model.Sites, func(x *model.Site) bool {
		families := []string{x.To, x.From}
		if !x.FollowsRequests() || !loopsBeginAsSeen(g, x) {
			families = append(families, x.In)
		}
		return slices.ContainsFunc(families,
			func(family string) bool { return g.model.Pattern.BeginsBefore(family, g.ranks) })
	})
}

// addMessages adds gaps for all messages.
func (g *generator) addMessages(why string) {
	for _, x := range g.model.Sites {
		if x.Sends || x.Receives {
			g.unknown.follow(x.Event.ID, why)
		}
	}
}

// noteUnpredicted notes what is not predicted of any program: the targets of one-sided communication, the neighbours in
// a graph of ranks, what pairs exchange in collective operations unless it is a product of the ranks' totals, and, on
// more ranks than in all runs, the partners of messages that are all to MPI_PROC_NULL in these.
func noteUnpredicted(g *generator) {
	for _, x := range g.model.Sites {
		call := g.model.Joint.Sig.Symbols[x.Event.Symbol].CallID
		switch c := x.Comm; {
		case call.Is(schema.FactOneSided|schema.FactTransfers) && (x.Send.Like.HasPeer() || x.Recv.Like.HasPeer()):
			g.unknown.addPeers(x.Event.ID, g.model.NodeName(x.Event), "targets of one-sided communication are not predicted")
		case x.HasNoPartner() && g.ranks > g.model.LargestRun():
			g.unknown.addPeers(x.Event.ID, g.model.NodeName(x.Event), "in all runs it is to or from MPI_PROC_NULL, as along "+
				"an axis of one rank, which does not tell to whom")
		case call.IsNeighborhood() && c != nil && (c.Kind == "graph" || c.Kind == "dist_graph"):
			g.unknown.addPeers(x.Event.ID, g.model.NodeName(x.Event), "neighbours in a graph of ranks are not predicted")
		case x.Parts == signature.NoParts && signature.PartsRuleOf(call) == signature.PartsExchange:
			g.result.Warnings = append(g.result.Warnings, fmt.Sprintf("what each pair of ranks exchanges in %s has no law: "+
				"only what a rank exchanges with all is predicted", g.model.NodeName(x.Event)))
		}
	}
}

// noteEmpty makes who sends and receives unknown: a site may have sizes of 0 on a rank, and has none in the runs. Many
// programs leave ranks out that have no part of the domain.
func noteEmpty(g *generator, empty *model.Site, rank int32) {
	if g.hasEmpty {
		return
	}
	g.hasEmpty = true
	for _, x := range g.model.Sites {
		if x.Sends || x.Receives {
			g.unknown.addCalls(x.Event.ID, g.model.NodeName(x.Event), fmt.Sprintf("%s may have 0 bytes on rank %d, as in no "+
				"run: whether such ranks take part is not known", g.model.NodeName(empty.Event), rank))
		}
	}
}

// checkUnknown returns an error if something is unknown, with err, which may follow from it.
func (g *generator) checkUnknown(err error) error {
	if len(g.unknown.reasons) == 0 {
		return err
	}
	var why []string
	for _, k := range slices.Sorted(maps.Keys(g.unknown.reasons)) {
		why = append(why, k+": "+g.unknown.reasons[k])
	}
	g.result.Unknown, g.result.Gaps = why, g.unknown.gaps
	first := strings.Join(why[:min(3, len(why))], "; ")
	if err == nil {
		return fmt.Errorf("%d communications are not known there: %s", len(why), first)
	}
	return fmt.Errorf("%d communications are not known there: %s; what is left cannot run: %w", len(why), first, err)
}
