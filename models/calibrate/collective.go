package calibrate

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// Quantile is which of the times of equal things stands for them.
type Quantile float64

// The quantiles. Whatever else the machine does makes things longer, never shorter: the less of it is wanted, the lower.
const (
	Minimum       Quantile = 0
	LowerQuartile Quantile = 0.25
	Median        Quantile = 0.5
)

// Columns are those of events that Collectives needs.
var Columns = []string{"rank", "call", "class", "comm", "instance", "start_ns", "end_ns", "request", "root_world", "send_bytes", "recv_bytes"}

// Collectives gathers how long the blocking collective operations of a run took, from the entry of the last rank to the exit of
// the last: all leave at the same time in the model (equation 2).
type Collectives struct {
	// Members is how many ranks each communicator has; one that is not in it does not count.
	Members map[int32]int

	open   map[instance]*running
	groups map[group]*sample
}

type instance struct {
	comm int32
	nth  int64
}

// running is an operation that not all ranks have come to yet.
type running struct {
	group
	entered         int
	lastIn, lastOut int64
	broken          bool
}

// group is what operations have in common that take equally long.
type group struct {
	operation schema.CallID
	ranks     int
	sizes     models.Sizes
}

// Add takes rows in, each rank's in order. Nonblocking and persistent operations, those of one rank, and neighbourhood ones do not
// count: ranks do other things meanwhile, or need not come.
func (c *Collectives) Add(b *schema.Events) {
	if c.open == nil {
		c.open, c.groups = map[instance]*running{}, map[group]*sample{}
	}
	for i := range b.Rank {
		operation := schema.CallID(b.Call[i]).Operation()
		ranks := c.Members[b.Comm[i]]
		if schema.Class(b.Class[i]) != schema.ClassCollective || operation == 0 || operation.IsNeighborhood() || ranks < 2 || b.Request[i] != schema.NullInt64 || b.Instance[i] == schema.NullInt64 {
			continue
		}
		at := instance{b.Comm[i], b.Instance[i]}
		r := c.open[at]
		if r == nil {
			r = &running{group: group{operation: operation, ranks: ranks}}
			c.open[at] = r
		}
		if b.StartNs[i] == schema.NullInt64 || b.EndNs[i] == schema.NullInt64 || operation != r.operation {
			r.broken = true // one that never returned has no time
		}
		if root := b.RootWorld[i]; root == schema.NullInt32 || root == b.Rank[i] {
			r.sizes.Add(b.SendBytes[i], b.RecvBytes[i])
		}
		r.lastIn, r.lastOut = max(r.lastIn, b.StartNs[i]), max(r.lastOut, b.EndNs[i])
		if r.entered++; r.entered == ranks {
			delete(c.open, at)
			if !r.broken {
				c.count(r)
			}
		}
	}
}

func (c *Collectives) count(r *running) {
	s := c.groups[r.group]
	if s == nil {
		s = &sample{every: 1}
		c.groups[r.group] = s
	}
	s.add(float64(r.lastOut - r.lastIn))
}

// sample keeps a bounded number of times, evenly spread over all that there were.
type sample struct {
	kept         []float64
	every, count int64
}

const sampleSize = 2048

func (s *sample) add(t float64) {
	if s.count%s.every == 0 {
		if len(s.kept) == sampleSize {
			for i := range sampleSize / 2 {
				s.kept[i] = s.kept[2*i]
			}
			s.kept, s.every = s.kept[:sampleSize/2], 2*s.every
		}
		if s.count%s.every == 0 {
			s.kept = append(s.kept, t)
		}
	}
	s.count++
}

func (s *sample) quantile(q Quantile) float64 {
	slices.Sort(s.kept)
	if q == Minimum {
		return s.kept[0]
	}
	return stat.Quantile(float64(q), stat.Empirical, s.kept, nil)
}

// Operation is how an operation's phases fit what was measured.
type Operation struct {
	// Call is the blocking form, Phases what was found to fit it, Table3 what every machine has.
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
	// Factor is by how much the model is off at a typical point, 1 or more: exp of the mean of |ln(model / measured)|; Table3Factor
	// is that of Table 3.
	Factor       float64 `json:"error_factor"`
	Table3Factor float64 `json:"table3_error_factor"`
}

// OperationPoint is one size and number of ranks of an operation.
type OperationPoint struct {
	Ranks int     `json:"ranks"`
	Bytes int64   `json:"bytes"`
	Count int64   `json:"count"`
	Ns    float64 `json:"ns"`
	FitNs float64 `json:"fit_ns"`

	sizes models.Sizes
}

// keepTable3 is how much smaller, as a share of what Table 3 is off by, the error of other phases has to be.
const keepTable3 = 0.9

// Fit finds the phases (Tables 1 and 2 of the paper) with which each operation takes what was measured, on an interconnect. The
// phases that the machine has (table) stay where no others are clearly better.
func (c *Collectives) Fit(link *models.Interconnect, table map[schema.CallID]models.Phases, q Quantile) []Operation {
	by := map[schema.CallID]*Operation{}
	for g, s := range c.groups {
		o := by[g.operation]
		if o == nil {
			o = &Operation{Call: g.operation, Table3: table[g.operation], MinRanks: g.ranks, MinBytes: math.MaxInt64}
			by[g.operation] = o
		}
		p := OperationPoint{Ranks: g.ranks, Bytes: g.sizes.Largest(), Count: s.count, Ns: s.quantile(q), sizes: g.sizes}
		o.Points = append(o.Points, p)
		o.Count += s.count
		o.MinRanks, o.MaxRanks = min(o.MinRanks, p.Ranks), max(o.MaxRanks, p.Ranks)
		o.MinBytes, o.MaxBytes = min(o.MinBytes, p.Bytes), max(o.MaxBytes, p.Bytes)
	}
	var all []Operation
	for _, o := range by {
		slices.SortFunc(o.Points, func(a, b OperationPoint) int {
			return cmp.Or(cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Ns, b.Ns), cmp.Compare(a.Count, b.Count))
		})
		o.choose(link)
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b Operation) int { return cmp.Compare(a.Call.String(), b.Call.String()) })
	return all
}

// choose takes the phases that are off least.
func (o *Operation) choose(link *models.Interconnect) {
	table3 := o.off(link, o.Table3)
	best, least := o.Table3, table3*keepTable3
	for _, p := range candidates() {
		if off := o.off(link, p); off < least-1e-9 {
			best, least = p, off
		}
	}
	o.Phases, o.Factor, o.Table3Factor = best, math.Exp(o.off(link, best)), math.Exp(table3)
	for i := range o.Points {
		o.Points[i].FitNs = o.Points[i].model(link, best)
	}
}

// off is the mean of |ln(model/measured)|, with at least 1 ns for each: a point counts once, whatever its size and number.
func (o *Operation) off(link *models.Interconnect, p models.Phases) float64 {
	var sum float64
	for i := range o.Points {
		sum += math.Abs(math.Log(max(o.Points[i].model(link, p), 1) / max(o.Points[i].Ns, 1)))
	}
	return sum / float64(len(o.Points))
}

func (p *OperationPoint) model(link *models.Interconnect, phases models.Phases) float64 {
	return float64(link.Collective(phases, p.Ranks, &p.sizes)) / 1000
}

// candidates are the phases of Tables 1 and 2, those with fewer phases and plainer sizes first.
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
