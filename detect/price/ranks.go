package price

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// addRanks adds the times of one instance of a finding with other numbers of ranks.
func (p *Pricer) addRanks(price *Price, finding int, ranks []int) {
	if len(ranks) == 0 {
		return
	}
	pattern, err := p.Replaceable.Pattern(finding)
	if err != nil {
		price.PatternProblem = err.Error()
		return
	}
	price.Pattern = pattern.String()
	for _, n := range slices.Compact(slices.Sorted(slices.Values(ranks))) {
		at := AtRanks{Ranks: n}
		byHand, called, err := pattern.Rows(n)
		if err == nil {
			at.ByHandNs, err = p.timeOf(n, byHand)
		}
		if err == nil {
			at.CalledNs, err = p.timeOf(n, called)
		}
		if err != nil {
			at.Problem = err.Error()
		}
		price.AtRanks = append(price.AtRanks, at)
	}
	price.PaysFrom = paysFrom(price.AtRanks)
}

// paysFrom returns the least number of ranks from which on the collective is always faster; nil if there is none.
// Numbers of ranks with a problem do not count.
func paysFrom(list []AtRanks) (ranks *int) {
	for k := len(list) - 1; k >= 0; k-- {
		switch at := &list[k]; {
		case at.Problem != "":
		case *at.CalledNs >= *at.ByHandNs:
			return ranks
		default:
			ranks = &at.Ranks
		}
	}
	return ranks
}

// timeOf returns the time that ranks take for only these rows.
func (p *Pricer) timeOf(ranks int, list []schema.Event) (ns *int64, err error) {
	if withheld, _, err := p.doubts(ranks); err != nil || withheld != "" {
		return nil, cmp.Or(err, errors.New(withheld))
	}
	program := &simulate.Program{Comms: []run.Comm{{}}}
	for rank := range ranks {
		program.Threads = append(program.Threads, 1)
		program.Comms[0].Members = append(program.Comms[0].Members, int32(rank))
	}
	rows := &schema.Events{}
	for i := range list {
		rows.Append(&list[i])
	}
	read := false
	r, err := simulate.Simulate(p.Machine, program, &p.Options, func(add func(*schema.Events) error) error {
		if read {
			return io.EOF
		}
		read = true
		return add(rows)
	})
	if err != nil {
		return nil, err
	}
	t := nanoseconds(r.Time)
	return &t, nil
}
