package calibrate

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// Quantile is the quantile of the times of equal messages or operations that represents them.
type Quantile float64

// The quantiles. Other activity on the machine makes times longer, never shorter: a low quantile excludes most of it.
const (
	Minimum       Quantile = 0
	LowerQuartile Quantile = 0.25
	Median        Quantile = 0.5
)

// Columns are the columns of events that Collectives needs.
var Columns = []string{"rank", "call", "class", "comm", "instance", "start_ns", "end_ns", "request", "root_world",
	"send_bytes", "recv_bytes", "error_class"}

// Collectives gathers how long the blocking collective operations of a run took: from the entry of the last rank to
// the exit of the last, as in the model all ranks leave at the same time (equation 2).
type Collectives struct {
	// Members is the number of ranks of each communicator; operations on other communicators are skipped.
	Members map[int32]int

	open    map[instanceKey]*openOperation
	samples map[operationKey]*sample
}

type instanceKey struct {
	comm     int32
	instance int64
}

// openOperation is an operation that some ranks have entered.
type openOperation struct {
	key                 operationKey
	entered             int
	lastEntry, lastExit int64
	skip                bool // no time is known, a call failed, or ranks call different operations
}

// operationKey groups operations that take equally long in the model.
type operationKey struct {
	operation schema.CallID
	ranks     int
	sizes     models.Sizes
}

// Add adds rows, each rank's in order. It skips nonblocking and persistent operations, in which ranks do other things
// meanwhile, those of one rank, and those on neighbourhoods, in which not all ranks wait for each other.
func (c *Collectives) Add(b *schema.Events) {
	if c.open == nil {
		c.open, c.samples = map[instanceKey]*openOperation{}, map[operationKey]*sample{}
	}
	for i := range b.Rank {
		operation := schema.CallID(b.Call[i]).Operation()
		ranks := c.Members[b.Comm[i]]
		if schema.Class(b.Class[i]) != schema.ClassCollective || operation == 0 || operation.IsNeighborhood() ||
			ranks < 2 || b.Request[i] != schema.NullInt64 || b.Instance[i] == schema.NullInt64 {
			continue
		}
		k := instanceKey{b.Comm[i], b.Instance[i]}
		r := c.open[k]
		if r == nil {
			r = &openOperation{key: operationKey{operation: operation, ranks: ranks}}
			c.open[k] = r
		}
		if b.StartNs[i] == schema.NullInt64 || b.EndNs[i] == schema.NullInt64 || operation != r.key.operation {
			r.skip = true // a call that never returned has no time
		}
		r.skip = r.skip || b.ErrorClass[i] != schema.NullInt32
		if root := b.RootWorld[i]; root == schema.NullInt32 || root == b.Rank[i] {
			r.key.sizes.Add(b.SendBytes[i], b.RecvBytes[i])
		}
		r.lastEntry, r.lastExit = max(r.lastEntry, b.StartNs[i]), max(r.lastExit, b.EndNs[i])
		if r.entered++; r.entered == ranks {
			delete(c.open, k)
			if !r.skip {
				c.addTime(r.key, float64(r.lastExit-r.lastEntry))
			}
		}
	}
}

// addTime adds the time of an operation in ns.
func (c *Collectives) addTime(k operationKey, ns float64) {
	s := c.samples[k]
	if s == nil {
		s = &sample{every: 1}
		c.samples[k] = s
	}
	s.add(ns)
}

// sample keeps every n-th of a number of times, so that at most sampleSize are in memory.
type sample struct {
	times        []float64
	every, count int64
}

const sampleSize = 2048

func (s *sample) add(t float64) {
	if s.count%s.every == 0 {
		if len(s.times) == sampleSize {
			for i := range sampleSize / 2 {
				s.times[i] = s.times[2*i]
			}
			s.times, s.every = s.times[:sampleSize/2], 2*s.every
		}
		if s.count%s.every == 0 {
			s.times = append(s.times, t)
		}
	}
	s.count++
}

func (s *sample) quantile(q Quantile) float64 {
	slices.Sort(s.times)
	return quantileOf(s.times, q)
}

// quantileOf returns a quantile of sorted values, of which there is at least one.
func quantileOf(sorted []float64, q Quantile) float64 {
	if q == Minimum {
		return sorted[0]
	}
	return stat.Quantile(float64(q), stat.Empirical, sorted, nil)
}

// Operation describes how well an operation's phases fit the measurements.
type Operation struct {
	// Call is the blocking form, Phases are the fitted phases, Table3 those of the paper (the default).
	Call   schema.CallID `json:"-"`
	Phases models.Phases `json:"-"`
	Table3 models.Phases `json:"-"`
	// Count is how many there were, Points of how many different sizes and numbers of ranks.
	Count  int64            `json:"count"`
	Points []OperationPoint `json:"points"`
	// MinRanks and MaxRanks, MinBytes and MaxBytes (of the largest size of a rank's) is the range it was learnt on.
	MinRanks int   `json:"min_ranks"`
	MaxRanks int   `json:"max_ranks"`
	MinBytes int64 `json:"min_bytes"`
	MaxBytes int64 `json:"max_bytes"`
	// Factor is by how much the model is off at a typical point, 1 or more: exp of the mean of |ln(model /
	// measured)|; Table3Factor is that of Table 3.
	Factor       float64 `json:"error_factor"`
	Table3Factor float64 `json:"table3_error_factor"`
}

// OperationPoint is one size and number of ranks of an operation.
type OperationPoint struct {
	// Ranks is the number of ranks.
	Ranks int `json:"ranks"`
	// Bytes is the largest size of a rank's data.
	Bytes int64 `json:"bytes"`
	// Count is the number of operations.
	Count int64 `json:"count"`
	// Ns is the time that represents them.
	Ns float64 `json:"ns"`
	// FitNs is the time by the model.
	FitNs float64 `json:"fit_ns"`

	sizes models.Sizes
}

// keepTable3 is the fraction of Table 3's error below which the error of other phases has to be for them to replace it.
const keepTable3 = 0.9

// Fit finds the phases (Tables 1 and 2 of the paper) that predict the measured times of each operation best on an
// interconnect. Phases of the machine (table) stay unless others are clearly better.
func (c *Collectives) Fit(link *models.Interconnect, table map[schema.CallID]models.Phases, q Quantile) []Operation {
	by := map[schema.CallID]*Operation{}
	for k, s := range c.samples {
		o := by[k.operation]
		if o == nil {
			o = &Operation{Call: k.operation, Table3: table[k.operation], MinRanks: k.ranks, MinBytes: math.MaxInt64}
			by[k.operation] = o
		}
		p := OperationPoint{Ranks: k.ranks, Bytes: k.sizes.Largest(), Count: s.count, Ns: s.quantile(q), sizes: k.sizes}
		o.Points = append(o.Points, p)
		o.Count += s.count
		o.MinRanks, o.MaxRanks = min(o.MinRanks, p.Ranks), max(o.MaxRanks, p.Ranks)
		o.MinBytes, o.MaxBytes = min(o.MinBytes, p.Bytes), max(o.MaxBytes, p.Bytes)
	}
	var all []Operation
	for _, o := range by {
		slices.SortFunc(o.Points, func(a, b OperationPoint) int {
			return cmp.Or(cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Ns, b.Ns),
				cmp.Compare(a.Count, b.Count))
		})
		o.choose(link)
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b Operation) int { return cmp.Compare(a.Call.String(), b.Call.String()) })
	return all
}

// choose takes the phases with the smallest error.
func (o *Operation) choose(link *models.Interconnect) {
	table3 := o.logError(link, o.Table3)
	best, least := o.Table3, table3*keepTable3
	for _, p := range candidates() {
		if e := o.logError(link, p); e < least-1e-9 {
			best, least = p, e
		}
	}
	o.Phases, o.Factor, o.Table3Factor = best, math.Exp(o.logError(link, best)), math.Exp(table3)
	for i := range o.Points {
		o.Points[i].FitNs = o.Points[i].modelNs(link, best)
	}
}

// logError returns the mean of |ln(model/measured)| over the points, each time being at least 1 ns. A point counts
// once, whatever its size and count.
func (o *Operation) logError(link *models.Interconnect, p models.Phases) float64 {
	var sum float64
	for i := range o.Points {
		sum += math.Abs(math.Log(max(o.Points[i].modelNs(link, p), 1) / max(o.Points[i].Ns, 1)))
	}
	return sum / float64(len(o.Points))
}

// modelNs returns the time of the operation by the model, in ns.
func (p *OperationPoint) modelNs(link *models.Interconnect, phases models.Phases) float64 {
	return float64(link.Collective(phases, p.Ranks, &p.sizes)) / 1000
}

// candidates returns all combinations of Tables 1 and 2, those with fewer phases and simpler sizes first.
func candidates() []models.Phases {
	factors := []models.Factor{models.LOG, models.LIN, models.CT}
	sizes := []models.Size{models.MAX, models.MEAN, models.MIN, models.SumSR, models.TwoMAX}
	var all []models.Phases
	for _, out := range factors {
		for _, size := range sizes {
			all = append(all, models.Phases{FanOut: out, SizeOut: size})
		}
	}
	for _, in := range factors {
		for _, sizeIn := range sizes {
			for _, out := range factors {
				for _, size := range sizes {
					all = append(all, models.Phases{FanIn: in, SizeIn: sizeIn, FanOut: out, SizeOut: size})
				}
			}
		}
	}
	return all
}
