package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/models"
)

// Transfer is a message of a round: a set of messages of one size that are sent at once.
type Transfer struct {
	// Src and Dst are world ranks.
	Src, Dst int32
	// Bytes is the size. StartNs is the start of its send, EndNs the end of the call that completed its receive.
	Bytes, StartNs, EndNs int64
}

// Limit is a number of links or buses with the range of numbers that fit the measured times as well; 0 is unlimited.
type Limit struct {
	// Number is the number that fits best.
	Number int `json:"number"`
	// Low is the least number that fits.
	Low int `json:"low"`
	// High is the largest number that fits. 0: any number above Low, as no more messages were sent at once.
	High int `json:"high"`
}

// Contains reports whether a number of links or buses, 0 for unlimited, is in the range.
func (l Limit) Contains(number int) bool {
	if number == 0 {
		return l.High == 0
	}
	return number >= l.Low && (l.High == 0 || number <= l.High)
}

// String writes the range: "1", "2 to 3", "4 or more".
func (l Limit) String() string {
	switch l.High {
	case l.Low:
		return fmt.Sprint(l.Low)
	case 0:
		return fmt.Sprintf("%d or more", l.Low)
	}
	return fmt.Sprintf("%d to %d", l.Low, l.High)
}

// Contention is how many messages a network carries at a time, learnt from rounds.
type Contention struct {
	// InputLinks and OutputLinks are of a node (inside a node: of a rank), Buses of the network.
	InputLinks  Limit `json:"input_links"`
	OutputLinks Limit `json:"output_links"`
	Buses       Limit `json:"buses"`
	// HalfDuplex is true if a link carries a message in or out. HalfDuplexKnown is false if both fit the times.
	HalfDuplex      bool `json:"half_duplex"`
	HalfDuplexKnown bool `json:"half_duplex_known"`
	// Bytes is the size of the messages, and AtOnce the largest number that were sent at once.
	Bytes  int64 `json:"bytes"`
	AtOnce int   `json:"at_once"`
	// Rounds are the measured sets of messages.
	Rounds []Round `json:"rounds"`
}

// Round is a set of messages that were sent at once, several times.
type Round struct {
	// Ranks are the pairs of source and destination.
	Ranks [][2]int32 `json:"ranks"`
	// Count is how often it was measured.
	Count int `json:"count"`
	// Turns is how long it takes as a multiple of the transfer of one message, TurnsLow and TurnsHigh its range, and
	// FitTurns the multiple on the learnt network.
	Turns     float64 `json:"turns"`
	TurnsLow  float64 `json:"turns_low"`
	TurnsHigh float64 `json:"turns_high"`
	FitTurns  int     `json:"fit_turns"`

	times []float64 // ns
	paths []path
}

// path lists the resources of a message: an output port, an input port and a pool of buses.
type path struct{ from, to, pool int32 }

// limits are a network's numbers of links and buses; 0 is unlimited.
type limits struct {
	in, out, buses int
	half           bool
}

// turns returns how many turns the messages take on a network. In each turn those messages start, in order, for which a
// link at both ends and a bus are free.
func (n limits) turns(paths []path) int {
	left := slices.Clone(paths)
	turn := 0
	for ; len(left) > 0; turn++ {
		out, in, buses := map[int32]int{}, map[int32]int{}, map[int32]int{}
		left = slices.DeleteFunc(left, func(p path) bool {
			outBusy, inBusy := out[p.from], in[p.to]
			if n.half { // a link in use in the other direction is not free
				outBusy, inBusy = outBusy+in[p.from], inBusy+out[p.to]
			}
			if n.out != 0 && outBusy >= n.out || n.in != 0 && inBusy >= n.in ||
				n.buses != 0 && buses[p.pool] >= n.buses {
				return false
			}
			out[p.from]++
			in[p.to]++
			buses[p.pool]++
			return true
		})
	}
	return turn
}

// sameTurns is the largest difference of a measured number of turns from the model's, as a fraction, at which both
// agree.
const sameTurns = 0.12

// fits reports whether a number of turns is in the range of the round. Between two whole numbers both fit.
func (r *Round) fits(turns int) bool {
	low, high := math.Ceil(r.TurnsLow*(1-sameTurns)), math.Floor(r.TurnsHigh*(1+sameTurns))
	if low > high {
		low, high = high, low
	}
	return float64(turns) >= max(low, 1) && float64(turns) <= max(high, 1)
}

// FindContention learns links and buses from rounds. node has the node of each rank. inside selects the rounds whose
// messages all stay in a node; the others are those between nodes. latencyNs is that of the network. It returns nil if
// there are no rounds of several messages, or none of one. The error says that no numbers fit the times.
func FindContention(rounds [][]Transfer, node []int32, inside bool, latencyNs float64, q Quantile) (*Contention,
	error) {
	c := &Contention{}
	var one []float64
	for _, r := range groupRounds(rounds, node, inside) {
		c.Bytes, c.AtOnce = r.bytes, max(c.AtOnce, len(r.Ranks))
		if len(r.Ranks) == 1 {
			one = append(one, r.times...)
		} else {
			c.Rounds = append(c.Rounds, r.Round)
		}
	}
	if len(one) == 0 || len(c.Rounds) == 0 {
		return nil, nil
	}
	slices.Sort(one)
	transfer := func(q Quantile) float64 { return max(quantileOf(one, q)-latencyNs, 1) }
	for i := range c.Rounds {
		r := &c.Rounds[i]
		slices.Sort(r.times)
		took := func(q Quantile) float64 { return max(quantileOf(r.times, q)-latencyNs, 1) }
		r.Turns = took(q) / transfer(q)
		r.TurnsLow = min(took(Minimum)/transfer(Median), r.Turns)
		r.TurnsHigh = max(took(Median)/transfer(Minimum), r.Turns)
	}
	return c, c.choose()
}

// choose takes, of the numbers of links and buses that fit all rounds, those with the fewest limits, and of these the
// ones whose turns are nearest to the measured ones.
func (c *Contention) choose() error {
	var fitting []limits
	best, least := limits{}, math.Inf(1)
	for _, n := range candidateLimits(c.AtOnce) {
		off, fits := 0.0, true
		for i := range c.Rounds {
			turns := n.turns(c.Rounds[i].paths)
			fits = fits && c.Rounds[i].fits(turns)
			off += math.Abs(math.Log(float64(turns) / c.Rounds[i].Turns))
		}
		if !fits {
			continue
		}
		if len(fitting) == 0 || n.count() == best.count() && off < least-1e-9 {
			best, least = n, off
		}
		fitting = append(fitting, n)
	}
	if len(fitting) == 0 {
		return c.contradiction()
	}
	c.InputLinks = c.rangeOf(fitting, best.in, func(n limits) int { return n.in })
	c.OutputLinks = c.rangeOf(fitting, best.out, func(n limits) int { return n.out })
	c.Buses = c.rangeOf(fitting, best.buses, func(n limits) int { return n.buses })
	c.HalfDuplex, c.HalfDuplexKnown = best.half, true
	for _, n := range fitting {
		c.HalfDuplexKnown = c.HalfDuplexKnown && n.half == best.half
	}
	for i := range c.Rounds {
		c.Rounds[i].FitTurns = best.turns(c.Rounds[i].paths)
	}
	return nil
}

// contradiction describes the round whose turns are farthest from a whole number.
func (c *Contention) contradiction() error {
	worst, most := &c.Rounds[0], -1.0
	for i := range c.Rounds {
		r := &c.Rounds[i]
		if d := math.Abs(r.Turns - math.Round(r.Turns)); d > most {
			worst, most = r, d
		}
	}
	return fmt.Errorf("no number of links and buses fits the messages that were sent at once: %d messages, the first "+
		"of rank %d to rank %d, take %.2f times as long as one", len(worst.Ranks), worst.Ranks[0][0], worst.Ranks[0][1],
		worst.Turns)
}

// candidateLimits returns the networks to try: numbers below that of the messages sent at once, and unlimited ones. The
// first ones have fewest limits.
func candidateLimits(atOnce int) (all []limits) {
	for out := range atOnce {
		for in := range atOnce {
			for buses := range atOnce {
				all = append(all, limits{in: in, out: out, buses: buses})
				if in == out && in != 0 {
					all = append(all, limits{in, out, buses, true})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b limits) int { return cmp.Compare(a.count(), b.count()) })
	return all
}

// count returns how many limits a network has.
func (n limits) count() int {
	k := min(n.in, 1) + min(n.out, 1) + min(n.buses, 1)
	if n.half {
		k++
	}
	return k
}

// rangeOf returns the range of a number over networks. What never waits is as many as messages were sent at once, or
// more.
func (c *Contention) rangeOf(all []limits, best int, number func(limits) int) Limit {
	l := Limit{Number: best}
	unlimited := false
	for _, n := range all {
		switch k := number(n); {
		case k == 0:
			unlimited = true
		default:
			l.High = max(l.High, k)
			if l.Low == 0 || k < l.Low {
				l.Low = k
			}
		}
	}
	if unlimited {
		l.High = 0
	}
	if l.Low == 0 {
		l.Low = c.AtOnce
	}
	return l
}

// rounds of one kind.
type roundOfBytes struct {
	Round
	bytes int64
}

// groupRounds collects equal rounds inside nodes or between them, in the order of their first time.
func groupRounds(rounds [][]Transfer, node []int32, inside bool) (groups []roundOfBytes) {
	index := map[string]int{}
	for _, messages := range rounds {
		var r roundOfBytes
		start, end, ok := int64(math.MaxInt64), int64(math.MinInt64), len(messages) > 0
		for _, m := range messages {
			same := node[m.Src] == node[m.Dst]
			ok = ok && same == inside && m.Bytes == messages[0].Bytes
			r.Ranks = append(r.Ranks, [2]int32{m.Src, m.Dst})
			if inside {
				r.paths = append(r.paths, path{m.Src, m.Dst, node[m.Src]})
			} else {
				r.paths = append(r.paths, path{node[m.Src], node[m.Dst], 0})
			}
			start, end = min(start, m.StartNs), max(end, m.EndNs)
		}
		if !ok {
			continue
		}
		r.bytes = messages[0].Bytes
		key := fmt.Sprint(r.Ranks)
		i, known := index[key]
		if !known {
			i = len(groups)
			index[key] = i
			groups = append(groups, r)
		}
		groups[i].times = append(groups[i].times, float64(end-start))
		groups[i].Count++
	}
	return groups
}

// set gives an interconnect the learnt links and buses.
func (c *Contention) set(i *models.Interconnect) {
	i.InputLinks, i.OutputLinks, i.Buses, i.HalfDuplex = c.InputLinks.Number, c.OutputLinks.Number, c.Buses.Number,
		c.HalfDuplex
}

// namedLimit is a limit with its name.
type namedLimit struct {
	name string
	Limit
}

func (c *Contention) limits() []namedLimit {
	return []namedLimit{{"input links", c.InputLinks}, {"output links", c.OutputLinks}, {"buses", c.Buses}}
}

// limitsText lists the limits that the machine gets.
func (c *Contention) limitsText() string {
	var names []string
	for _, l := range c.limits() {
		if l.Number > 0 {
			names = append(names, fmt.Sprintf("%s %d", l.name, l.Number))
		}
	}
	if c.HalfDuplex {
		names = append(names, "half duplex")
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// undecided names the numbers that the rounds do not decide; empty if they decide all.
func (c *Contention) undecided() string {
	var names []string
	for _, l := range c.limits() {
		if l.Low != l.High {
			names = append(names, fmt.Sprintf("how many %s there are (%s)", l.name, l.Limit))
		}
	}
	if !c.HalfDuplexKnown {
		names = append(names, "whether links are half duplex")
	}
	return strings.Join(names, ", ")
}

// note tells how links and buses were found, for the machine's YAML.
func (c *Contention) note() string {
	return fmt.Sprintf("From %d sets of up to %d messages of %d bytes that were sent at once: %s input links, %s "+
		"output links, %s buses fit.", len(c.Rounds), c.AtOnce, c.Bytes, c.InputLinks, c.OutputLinks, c.Buses)
}
