package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/replace"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// Replaceable returns the groups of all findings, one after the other, as package replace takes them. They must list
// their instances.
func (p *Report) Replaceable() ([]replace.Finding, error) {
	var out []replace.Finding
	for i := range p.Findings {
		f := &p.Findings[i]
		for k := range f.Groups {
			x, err := f.replaceable(&f.Groups[k])
			if err != nil {
				return nil, fmt.Errorf("finding %d: %w", f.Finding, err)
			}
			out = append(out, *x)
		}
	}
	return out, nil
}

// Indices returns the indices in Replaceable of the findings with these numbers, ascending; of all findings if there
// are no numbers. An unknown number is an error.
func (p *Report) Indices(numbers []int) (indices []int, err error) {
	for _, n := range numbers {
		if !slices.ContainsFunc(p.Findings, func(f Finding) bool { return f.Finding == n }) {
			return nil, fmt.Errorf("finding %d: there are %s; commq detect --run %s lists them", n,
				units.Count(int64(len(p.Findings)), "finding"), p.Run)
		}
	}
	for i, group := range p.groups() {
		if len(numbers) == 0 || slices.Contains(numbers, p.Findings[i].Finding) {
			indices = append(indices, group...)
		}
	}
	return indices, nil
}

// groups returns the indices in Replaceable of each finding's groups.
func (p *Report) groups() (indices [][]int) {
	n := 0
	for i := range p.Findings {
		var own []int
		for range p.Findings[i].Groups {
			own = append(own, n)
			n++
		}
		indices = append(indices, own)
	}
	return indices
}

func (f *Finding) replaceable(g *Group) (*replace.Finding, error) {
	op, err := replace.Operation(f.Operation)
	if err != nil {
		return nil, err
	}
	if int64(len(g.List)) != g.Instances {
		return nil, fmt.Errorf("%s in its list of %s; commq detect --format json writes them with --messages",
			units.Count(int64(len(g.List)), "instance"), units.Comma(g.Instances))
	}
	x := &replace.Finding{Number: f.Finding, Operation: op, ReduceOp: schema.NullEnum, Comm: schema.NullInt32, Ranks: g.Ranks}
	if g.Communicator != nil {
		x.Comm = *g.Communicator
	}
	if len(f.Reductions) == 1 { // of several that fit nothing tells the right one
		x.ReduceOp = int16(slices.Index(schema.OpNames, f.Reductions[0]))
	}
	for k := range g.List {
		in, err := g.List[k].detected()
		if err != nil {
			return nil, fmt.Errorf("instance %d: %w", k+1, err)
		}
		x.Instances = append(x.Instances, in)
	}
	return x, nil
}

// detected returns the instance as detection found it.
func (p *Instance) detected() (detect.Instance, error) {
	in := detect.Instance{Root: schema.NullInt32, Bytes: p.Bytes, RankBytes: p.RankBytes}
	if p.Root != nil {
		in.Root = *p.Root
	}
	for _, m := range p.Messages {
		for _, rank := range m[:2] {
			if rank < 0 || rank > math.MaxInt32 {
				return in, fmt.Errorf("a message of rank %d", rank)
			}
		}
		message := detect.Message{Src: int32(m[0]), Dst: int32(m[1]), SendSeq: m[2], PostSeq: m[3], DoneSeq: m[4]}
		if m[4] < 0 {
			message.DoneSeq = schema.NullInt64
		}
		in.Messages = append(in.Messages, message)
	}
	return in, nil
}
