package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Rule is a kind of finding.
type Rule string

// The rules.
const (
	// Imbalance: ranks compute longer than others, over the whole run, and others wait for them.
	Imbalance Rule = "imbalance"
	// Variation: ranks compute longer in turn, so that others wait now for this one and now for that one.
	Variation Rule = "variation"
	// LateSender: ranks compute before they send although the computing could come after it.
	LateSender Rule = "late-sender"
	// LateReceiver: ranks compute before they post a receive whose sender waits.
	LateReceiver Rule = "late-receiver"
	// LateRoot: the root of a broadcast or scatter computes before it while the others wait.
	LateRoot Rule = "late-root"
	// EarlyRoot: the root of a reduction or gather waits for ranks that compute before it.
	EarlyRoot Rule = "early-root"
	// LateCollective: ranks compute before any other collective operation, in which the others wait.
	LateCollective Rule = "late-collective"
	// LatePost: ranks compute before they expose a window that others wait for.
	LatePost Rule = "late-post"
	// LateComplete: ranks compute before they end an access that the exposed ranks wait for.
	LateComplete Rule = "late-complete"
	// LongLock: ranks compute while they have the lock of a window that others wait for.
	LongLock Rule = "long-lock"
	// SerialSection: always the same rank computes while others wait, and would hold them up later too.
	SerialSection Rule = "serial-section"
	// Communication: point-to-point calls and the messages that they wait for take long themselves.
	Communication Rule = "communication"
	// CollectiveTime: collective operations take long after all ranks have entered.
	CollectiveTime Rule = "collective-time"
	// FileTime: calls of MPI-IO are on the critical path.
	FileTime Rule = "file-time"
	// OneSidedTime: windows and one-sided communication are on the critical path.
	OneSidedTime Rule = "one-sided-time"
	// CommunicatorTime: making and freeing communicators is on the critical path.
	CommunicatorTime Rule = "communicator-time"
	// LateStart: ranks begin MPI_Init late while others wait in it. It is in Diagnosis.Start, not among the findings.
	LateStart Rule = "late-start"
	// HandWritten: point-to-point messages do what a collective operation would do faster. Package detect finds them,
	// and Options.Evidence has them.
	HandWritten Rule = "hand-written-collective"
)

// Rules are all rules but LateStart, which costs time before that of the diagnosis.
var Rules = []Rule{Imbalance, Variation, LateSender, LateReceiver, LateRoot, EarlyRoot, LateCollective, LatePost,
	LateComplete,
	LongLock, SerialSection, Communication, CollectiveTime, FileTime, OneSidedTime, CommunicatorTime, HandWritten}

// advice says what to do about a finding, by rule.
var advice = map[Rule]string{
	Imbalance: "Give these ranks less work: distribute by the time that parts take, not by their number.",
	Variation: "Look at the same step on several ranks and at the same rank in several steps (query timeline): work " +
		"that depends on data, other processes on the node, or memory that is touched first.",
	LateSender:     "Send first and compute afterwards, or start the send with MPI_Isend as soon as its data is ready.",
	LateReceiver:   "Post the receive (MPI_Irecv) before computing, so that the sender need not wait.",
	LateRoot:       "Let the root do this work after the collective, or share it out.",
	EarlyRoot:      "Do this work after the collective, or start a nonblocking one before it.",
	LateCollective: "Do this work after the collective, share it out, or start a nonblocking collective before it.",
	LatePost:       "Expose the window (MPI_Win_post) before this work: others may access it meanwhile.",
	LateComplete:   "End the access (MPI_Win_complete) before this work, as soon as its transfers are started.",
	LongLock: "Give back the lock (MPI_Win_unlock) before this work, or flush (MPI_Win_flush) under a shared " +
		"lock (MPI_Win_lock_all).",
	LateStart: "Do what comes before MPI_Init after it, on the ranks that need it; else see why the launcher or " +
		"the file system starts these processes late.",
	SerialSection: "Share this work out among the ranks that wait, or do without it: done later it would " +
		"hold them up too.",
	Communication:  "Send less or in fewer messages, or compute while messages are under way (MPI_Isend, MPI_Irecv).",
	CollectiveTime: "Call it less often, for several values at once, or overlap it (MPI_Iallreduce and the like).",
	FileTime:       "Write less often, in larger pieces and with collective calls, or overlap it (MPI_File_iwrite).",
	OneSidedTime: "Make windows once; prefer MPI_Win_lock_all and MPI_Win_flush to fences; put several values at " +
		"once.",
	CommunicatorTime: "Make the communicator once, before the loop, and keep it. If it is made once, it matters less " +
		"the longer the run is.",
	HandWritten: "Call the collective instead; commq detect has all lines, and commq replace makes the run " +
		"that would be.",
}

// adviceBeforeSend is the advice for LateSender if the call after the computing sends nothing itself.
const adviceBeforeSend = "Send what is ready before this work: others wait for a message that is sent after it."

// adviceInChain is the advice for LateSender if ranks compute one after the other.
const adviceInChain = "If what is sent does not depend on this work, send first and compute afterwards, which the " +
	"gain assumes. Else send it in pieces, so that the next rank can begin before this one is done."

// adviceBeforeFence is the advice for LateCollective if the call after the computing is a fence.
const adviceBeforeFence = "Do this work after the fence, share it out, or synchronise only with the ranks whose data " +
	"is needed (MPI_Win_post, MPI_Win_start)."

// newFinding returns a finding of a rule with its advice and empty lists.
func newFinding(rule Rule, title string) Finding {
	return Finding{Rule: rule, Title: title, Advice: advice[rule], Ranks: []int32{}, Computing: []RankTime{},
		Parts: []Part{}, Callers: []Caller{},
		Waits: []Wait{}}
}

// lateRules gives the rule for each kind of wait, and the fact of the window calls that end such a wait. Waits in
// collectives have several rules; see ruleByWaits.
var lateRules = [critical.Awaits]struct {
	rule   Rule
	before schema.Facts
}{
	critical.AwaitsSender:   {rule: LateSender},
	critical.AwaitsReceiver: {rule: LateReceiver},
	critical.AwaitsPost:     {LatePost, schema.FactExposes},
	critical.AwaitsComplete: {LateComplete, schema.FactEndsAccess},
	critical.AwaitsUnlock:   {LongLock, schema.FactUnlock},
}

// ruleByWaits returns the kind of finding: by the call after the computing, if others wait for such a call, otherwise
// by the kind of wait that took most time. Waits spread from rank to rank, so most of them may be in other calls.
func (c *gathered) ruleByWaits() Rule {
	own := c.parts[0].call
	switch class := schema.Calls[own].Class; {
	case class == schema.ClassSend && c.forNs[critical.AwaitsSender] > 0:
		return LateSender
	case class == schema.ClassRecv && c.forNs[critical.AwaitsReceiver] > 0:
		return LateReceiver
	case own.Operation().Is(schema.FactFromRoot) && c.forNs[critical.AwaitsCollective] > 0:
		return LateRoot
	case own.Operation().Is(schema.FactToRoot) && c.forNs[critical.AwaitsCollective] > 0:
		return EarlyRoot
	}
	for a := range critical.Awaits {
		if rule := lateRules[a]; rule.before != 0 && own.Is(rule.before) && c.forNs[a] > 0 {
			return rule.rule
		}
	}
	most := critical.AwaitsSender
	for a := range critical.Awaits {
		if c.forNs[a] > c.forNs[most] {
			most = a
		}
	}
	if rule := lateRules[most].rule; rule != "" {
		return rule
	}
	call := schema.CallID(-1)
	for other, ns := range c.collectiveNs {
		if call < 0 || ns > c.collectiveNs[call] || ns == c.collectiveNs[call] && other < call {
			call = other
		}
	}
	switch {
	case call.Is(schema.FactFromRoot):
		return LateRoot
	case call.Is(schema.FactToRoot):
		return EarlyRoot
	}
	return LateCollective
}

func (c *cause) finding() Finding {
	if c.rule == Variation {
		most := ""
		if c.varies.place != "" {
			most = ", most of all before " + run.SiteText(c.varies.call.String(), "", c.varies.place)
		}
		f := newFinding(Variation, "Ranks compute longer in turn"+most+", so that others wait now for this one and "+
			"now for that one")
		f.Place, f.without, f.least, f.mean = c.varies.place, c.change, c.withoutExcess, c.mean
		if f.Place != "" {
			f.Call = c.varies.call.String()
		}
		return f
	}
	work, slower := c.work()
	first, f := c.parts[0], newFinding(c.rule, c.title()+work)
	f.Place, f.Call, f.Ranks, f.WaitNs, f.without = first.place, first.call.String(), c.ranks(), c.waitNs, c.change
	f.least, f.Instances, f.excessNs, f.bySite = c.withoutExcess, c.found, c.excessNs(), first.bySite
	if f.Advice = c.advice(); slower {
		f.Advice = sameWork
	}
	if c.rule != Imbalance {
		f.keeping = c.keeping
	}
	f.Waits = append(f.Waits, c.waits...)
	for _, p := range c.parts {
		f.Parts = append(f.Parts, Part{Place: p.place, Call: p.call.String(), Ranks: slices.Sorted(maps.Keys(p.excess)),
			ExcessNs: sumOf(c.speeds.allOnMachine(p.excess))})
	}
	if c.rule == Imbalance {
		f.timesMore = c.timesMore()
		for _, rank := range f.Ranks {
			f.Computing = append(f.Computing, RankTime{rank, c.speeds.onMachine(rank, c.total[rank]),
				float64(c.total[rank]) / meanOfWorkers(c.total)})
		}
	}
	return f
}

// advice returns the rule's advice, or another one where the first call suggests a better remedy.
func (c *cause) advice() string {
	call := c.parts[0].call
	switch {
	case c.chain() != nil:
		return adviceInChain
	case c.rule == LateSender && !call.Is(schema.FactSends) && !call.Is(schema.FactStarts):
		return adviceBeforeSend
	case c.rule == LateCollective && call.Is(schema.FactFence):
		return adviceBeforeFence
	}
	return advice[c.rule]
}

// title returns one sentence about the cause.
func (c *cause) title() string {
	ranks, first := c.ranks(), c.parts[0]
	computes, together := rankText(ranks)+" computes", ""
	if len(ranks) > 1 {
		computes, together = rankText(ranks)+" compute", " together"
	}
	before := "before " + run.SiteText(first.call.String(), "", first.place)
	if c.rule != Imbalance {
		text := fmt.Sprintf("%s %s%s %s while others wait", computes, units.Duration(c.excessNs()), together, before)
		if chain := c.chain(); chain != nil {
			text += fmt.Sprintf("; %s are a chain: each waits for the one before", strings.ToLower(rankText(chain)))
		}
		return text
	}
	if c.group {
		return c.groupTitle(before)
	}
	times := 0.0
	for _, rank := range ranks {
		times += float64(c.total[rank]) / meanOfWorkers(c.total) / float64(len(ranks))
	}
	return fmt.Sprintf("%s %s times as long as the mean, %s", computes, units.Number(times), c.beforeFirst(before))
}

// groupTitle names only the ranks of a group that compute longer before the first call; the others do so elsewhere.
func (c *cause) groupTitle(before string) string {
	first, others := c.parts[0], 0
	for _, rank := range c.ranks() {
		if first.excess[rank] == 0 {
			others++
		}
	}
	ranks := slices.Sorted(maps.Keys(first.excess))
	text := rankText(ranks) + " computes "
	if len(ranks) > 1 {
		text = rankText(ranks) + " compute up to "
	}
	excess := c.speeds.allOnMachine(first.excess)
	text += fmt.Sprintf("%s longer than the others %s", units.Duration(excess[topOf(excess)]), before)
	if len(c.parts) > 1 {
		text += ", and "
		if others > 0 {
			text += "together with " + units.Count(int64(others), "other rank") + " "
		}
		text += units.Duration(c.excessNs()-sumOf(excess)) + " before other calls"
	}
	return text
}

// beforeFirst says how much of an imbalance is before its first call.
func (c *cause) beforeFirst(before string) string {
	share := float64(sumOf(c.speeds.allOnMachine(c.parts[0].excess))) / float64(max(1, c.excessNs()))
	if share < 0.5 {
		return units.Percent(share) + " of the excess " + before
	}
	return "most of it " + before
}

// timesMore returns how much longer than the others the ranks of an imbalance compute, as a fraction: in the whole run,
// or, for the imbalance of a group, before its first call.
func (c *cause) timesMore() (most float64) {
	ranks := c.ranks()
	var others []int64
	for rank, ns := range workers(c.total) {
		if !slices.Contains(ranks, rank) {
			others = append(others, ns)
		}
	}
	for _, rank := range ranks {
		if !c.group {
			most = max(most, float64(c.total[rank])/max(1, meanOf(others))-1)
		} else if excess := c.parts[0].excess[rank]; excess > 0 {
			most = max(most, float64(excess)/float64(max(1, c.parts[0].computed[rank]-excess)))
		}
	}
	return most
}

// mostRanks is how many ranks a sentence names.
const mostRanks = 4

// rankText names ranks: rank 3, or ranks 0, 2 and 3.
func rankText(ranks []int32) string {
	var names []string
	for _, r := range ranks {
		names = append(names, fmt.Sprint(r))
	}
	if len(names) == 1 {
		return "Rank " + names[0]
	}
	if rest := len(names) - mostRanks; rest > 0 {
		names = append(slices.Clone(names[:mostRanks]), units.Count(int64(rest), "other"))
	}
	last := len(names) - 1
	return "Ranks " + strings.Join(names[:last], ", ") + " and " + names[last]
}

// questions has the question that each rule answers.
var questions = map[Rule]string{
	Imbalance:        "Do some ranks compute longer than the others over the whole run?",
	Variation:        "Do ranks compute longer in turn?",
	LateSender:       "Do ranks compute before a send that others wait for?",
	LateReceiver:     "Do ranks compute before they post a receive whose sender waits?",
	LateRoot:         "Does the root compute before a broadcast or scatter that others wait for?",
	EarlyRoot:        "Does the root of a reduction or gather wait for ranks that compute before it?",
	LateCollective:   "Do ranks compute before another collective that others wait in?",
	LatePost:         "Do ranks compute before they expose a window that others wait for?",
	LateComplete:     "Do ranks compute before they end an access that others wait for?",
	LongLock:         "Do ranks compute while they have a lock that others wait for?",
	LateStart:        "Do ranks begin MPI_Init long after the others?",
	SerialSection:    "Does one rank compute something that the others can only wait for?",
	Communication:    "Do point-to-point calls take long themselves?",
	CollectiveTime:   "Do collectives take long after all ranks have come?",
	FileTime:         "Do calls of MPI-IO take long?",
	OneSidedTime:     "Do windows and one-sided calls take long?",
	CommunicatorTime: "Does making or freeing communicators take long?",
	HandWritten:      "Do messages do by hand what a collective would do faster?",
}

// Question returns the question that the rule answers; "" for a rule from a file.
func (r Rule) Question() string { return questions[r] }

// Advice returns the advice of the rule; "" for a rule from a file.
func (r Rule) Advice() string { return advice[r] }

// Gain returns how the gain of the rule is found. All but that of LateStart are simulated. Gains of slow calls are
// bounds if the network of the simulation takes no time, as are those of late receivers of sends that wait only in the
// run.
func (r Rule) Gain() string {
	if r == LateStart {
		return string(WayBound)
	}
	return "simulated"
}
