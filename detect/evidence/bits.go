package evidence

import (
	"math"

	"github.com/commq/commq/detect/ledger"
)

// Finding is the input of Weigh: all instances of an operation by the same ranks at the same lines.
type Finding struct {
	Op    ledger.Operation
	Ranks []int32 // world ranks, sorted
	// CommSize is the number of ranks of the communicator of which Ranks are all or a part; 0 if it is unknown.
	CommSize  int
	Instances []*ledger.Instance // with whole messages, not pieces
	Basis     ledger.Basis
	Whole     bool // Ranks are all ranks of a communicator

	places   []ledger.Place
	sent     map[ledger.Place]int64 // its messages by place
	messages int64
	pulled   bool                      // receivers request payloads, so they decide who gets one
	again    map[*ledger.Instance]bool // instances that repeat the payload of another instance of the finding
}

// times returns how often the operation is done.
func (f *Finding) times() (n int64) {
	for _, i := range f.Instances {
		n += i.Times()
	}
	return n
}

// The bits that a finding needs. By chance an operation is verified in one of a million runs, and inferred in one of a
// thousand.
const (
	VerifiedBits = 20
	InferredBits = 10
)

// PriorBits is the prior: without other knowledge of the payloads of a place, one payload in 256 is assumed to be one
// that another rank has anyway. Payloads of one number have fewer bits until they have changed often.
const PriorBits = 8

// tinyBytes is the largest size of a payload that may be one number.
const tinyBytes = 8

// maxSingles limits the payloads sent to one rank only, per payload that was spread. From that ratio on, a second
// message with the same payload is no surprise.
const maxSingles = 1.0 / 16

// Weigh returns the evidence for a finding, in bits, and its basis.
//
// The payload of a broadcast over n ranks is sent at least n-1 times. By chance, a payload that was sent is sent once
// more with probability q, which is measured where the finding's messages are sent, among messages of no instance of it
// (Laplace's rule of succession with a prior that one message has):
//
//	q = (again + 2^-8) / (again + ended + 1)
//
// again counts the messages that carry on a payload without completing it, and instances that repeat an earlier one;
// ended counts the payloads that were given up. So s different spread payloads have s (n-2) log2(1/q) bits. The choice
// of s among all N payloads of the places, and of n among the ranks of the communicator, is subtracted:
// log2 C(N,s) + log2 C(size,n), a Bonferroni correction.
//
// A habit can explain that too: a place may pass on whatever comes, or answer whoever asks. So there are at most
//
//	log2(1/q) + s log2(e (n-1))
//
// bits, the second term for payloads that were sent exactly n-1 times. If more were sent, the choice of the needed ones
// is subtracted, too.
//
// Without evidence from payloads there is the structure, which never verifies: of the messages of a gather by chance,
// all but the first have to choose the root among n-1 ranks, so an instance has (n-2) log2(n-1) bits, and log2((n-1)!)
// more if blocks come in the order of ranks.
func (w *Weigher) Weigh(f *Finding) (bits float64, basis ledger.Basis) {
	payload, compared := f.compared()
	if compared {
		payload -= f.placements(w.opportunities(f), float64(f.times()))
	} else {
		payload = w.spread(f)
	}
	shape := w.structure(f)
	switch {
	case f.Basis != ledger.ByPayload:
		return max(shape, 0), f.Basis
	case f.Op.Neighborly() && f.times() == 1: // once does not show that these are all neighbours
		return max(payload, shape, 0), ledger.ByStructure
	case payload >= VerifiedBits || payload >= shape || f.Op == ledger.Bcast && shape == 0:
		return max(payload, 0), ledger.ByPayload
	}
	return max(shape, 0), ledger.ByStructure
}

// Certainty returns the certainty of a finding with this many bits on a basis.
func Certainty(bits float64, basis ledger.Basis) ledger.Certainty {
	switch {
	case bits >= VerifiedBits && basis == ledger.ByPayload:
		return ledger.Verified
	case bits >= InferredBits:
		return ledger.Inferred
	}
	return ledger.Candidate
}

// Joined returns the bits of two findings by different ranks at the same lines: they share the prior.
func Joined(a, b float64) float64 { return max(a, b) + max(0, min(a, b)-PriorBits) }

// compared returns the bits of comparing payloads with the results of an operation on other payloads. ok is false if
// there were no comparisons: payloads only spread.
func (f *Finding) compared() (bits float64, ok bool) {
	counted := map[*ledger.Proof]bool{}
	for _, i := range f.Instances {
		if p := i.Proof; p != nil && !counted[p] {
			counted[p] = true
			bits += p.Bits
		}
	}
	return bits, len(counted) > 0
}

// spread returns the bits of the payloads of a broadcast, allgather or neighbour allgather; 0 for other operations.
func (w *Weigher) spread(f *Finding) float64 {
	blocks, n := 1, float64(len(f.Ranks))
	switch {
	case f.Op == ledger.Allgather || f.Op == ledger.Allgatherv:
		blocks = len(f.Ranks)
	case f.Op == ledger.NeighborAllgather:
		blocks, n = w.neighbours(f)
	case f.Op != ledger.Bcast:
		return 0
	}
	spread, tiny := 0.0, true
	for _, i := range f.Instances {
		if i.Bytes == 0 {
			return 0
		}
		tiny = tiny && (i.Blank || i.Bytes <= tinyBytes)
		if !f.again[i] {
			spread += float64(blocks * max(1, i.Segments))
		}
	}
	if spread == 0 {
		return 0
	}
	t := w.unexplained(f)
	singles := t.singles
	if f.Op == ledger.NeighborAllgather { // at the ends of a grid there is one neighbour
		singles = 0
	}
	prior := math.Ldexp(1, -PriorBits)
	if tiny {
		prior = max(prior, 1/(spread*(spread-1)/2+2))
	}
	again, extra := t.again+float64(len(f.again)), f.redundant(blocks)
	q := min(1, (again+prior)/(again+t.ended+1))
	first := min(1, max(q, singles/spread/maxSingles))
	each := -(n-3)*math.Log2(q) - math.Log2(first)
	if f.isPart() { // the first payload only shows which ranks they are
		extra.exact--
	}
	if blocks > 1 {
		extra.exact *= w.independent(f)
	}
	habit := -math.Log2(q) + extra.exact*coverBits(n)
	bits := min(spread*each-f.rankChoices(), habit) - extra.choices - logChoose(spread+t.ended+t.singles, spread)
	if bits > wantBits(spread) && w.arePulled(f) {
		bits, f.pulled = wantBits(spread), true
	}
	return bits
}

// neighbours returns how many ranks send to neighbours, and how many ranks have a payload on average: its sender and
// the sender's neighbours.
func (w *Weigher) neighbours(f *Finding) (senders int, ranks float64) {
	seen := map[int32]bool{}
	for _, i := range f.Instances {
		for _, m := range i.Messages {
			seen[w.messages[m].Src] = true
		}
	}
	return len(seen), 1 + float64(f.messages)/float64(f.times()*int64(len(seen)))
}

// redundancy describes the messages of broadcasts beyond those needed.
type redundancy struct {
	exact   float64 // payloads that were sent exactly as often as needed
	choices float64 // log2 of the number of ways to choose the needed messages
}

// minExtra: one redundant message in minExtra, of a payload in segments, is no sign of chance.
const minExtra = 8

// extraOfRing returns the redundant messages, as a fraction of those needed, that are no sign of chance if a payload
// has segments: a scatter by a binomial tree sends n/2 log2 n blocks, and the ring after it all n (n-1) that are
// needed.
func extraOfRing(ranks float64) float64 { return max(1.0/minExtra, math.Log2(ranks)/(2*(ranks-1))) }

// coverBits returns the evidence of a payload that is sent exactly n-1 times by a habit, passing on whatever comes or
// answering whoever asks. The chance of that is largest, 1/(e (n-1)), if n-1 is the mean.
func coverBits(ranks float64) float64 { return math.Log2(math.E * (ranks - 1)) }

// redundant compares the number of messages of instances with the number needed for their blocks.
func (f *Finding) redundant(blocks int) (r redundancy) {
	for _, i := range f.Instances {
		needed, sent := float64(blocks*max(1, i.Segments)*(len(f.Ranks)-1)), float64(len(i.Messages))
		if sent > needed && (i.Segments < 2 || sent-needed > needed*extraOfRing(float64(len(f.Ranks)))) {
			r.choices += logChoose(sent, needed)
		} else if !f.again[i] {
			r.exact += float64(blocks * max(1, i.Segments))
		}
	}
	return r
}

// wantBits returns the evidence of payloads that go to ranks that ask for them. Any number of ranks may want a payload,
// so the chance that all want each of spread payloads is 1/(spread+1) (Laplace).
func wantBits(spread float64) float64 { return math.Log2(spread + 1) }

// structure returns the bits of who sends to whom. Broadcasts have none unless the root sends in rank order: tokens,
// answers and halos of a constant look like them.
func (w *Weigher) structure(f *Finding) float64 {
	times, n := float64(f.times()), float64(len(f.Ranks))
	each := max(1, n-2) * math.Log2(max(2, n-1))
	switch {
	case f.pulled:
		return 0
	case f.Op == ledger.Bcast:
		return f.arranged()
	case f.Op == ledger.Barrier:
		each = coverBits(n)
	case f.Op == ledger.Alltoall || f.Op == ledger.Alltoallv:
		each = n * ((n-1)*math.Log2(n-1) - logFactorial(n-1))
	}
	return times*each + f.order() - f.placements(w.opportunities(f), times)
}

// arranged returns the bits of broadcasts whose roots send in rank order; 0 unless all instances do.
func (f *Finding) arranged() (bits float64) {
	for _, i := range f.Instances {
		if i.Arranged == 0 {
			return 0
		}
		bits += i.Arranged
	}
	return bits
}

// order returns the bits of the order in which the blocks of gathers arrive.
func (f *Finding) order() (bits float64) {
	counted := map[*ledger.Proof]bool{}
	for _, i := range f.Instances {
		if p := i.Proof; p != nil && !counted[p] {
			counted[p] = true
			bits += p.Order
		}
	}
	return bits
}

// opportunities returns how often the places of a finding could have done an operation with as many messages.
func (w *Weigher) opportunities(f *Finding) float64 {
	times := float64(f.times())
	return times + w.unexplained(f).messages*times/float64(f.messages)
}

// placements returns log2 of the number of ways to choose the instances among all opportunities, and the finding's
// ranks.
func (f *Finding) placements(all, some float64) float64 {
	return logChoose(all, some) + f.rankChoices()
}

// isPart reports whether a finding leaves out ranks of its communicator.
func (f *Finding) isPart() bool { return f.CommSize > len(f.Ranks) }

// rankChoices returns log2 of the number of ways to choose the finding's ranks in their communicator.
func (f *Finding) rankChoices() float64 {
	return logChoose(float64(max(f.CommSize, len(f.Ranks))), float64(len(f.Ranks)))
}

// ArrangedBits returns the evidence, in bits, of a broadcast whose root sends to the other ranks in rank order, as any
// other order was possible. Later broadcasts at a place (not first) count little: they may follow the same habit.
func ArrangedBits(ranks int, first bool) float64 {
	n := float64(ranks)
	if first {
		return (n - 1) * math.Log2(n-1)
	}
	return coverBits(n)
}

// SpareBits returns the bits to subtract if spare of an operation's messages are redundant.
func SpareBits(messages, spare int) float64 { return logChoose(float64(messages), float64(spare)) }

// logChoose returns the logarithm to base 2 of the number of ways to choose k of n.
func logChoose(n, k float64) float64 { return logFactorial(n) - logFactorial(k) - logFactorial(n-k) }

func logFactorial(n float64) float64 {
	y, _ := math.Lgamma(n + 1)
	return y / math.Ln2
}
