package writer

import (
	"context"
	"fmt"

	"github.com/commq/commq/schema"
)

// Problem is something in a run that breaks a rule.
type Problem struct {
	// Rule is the name of the rule.
	Rule string
	// Where is the file or table.
	Where string
	// What was found.
	What string
}

// String is the problem in one line.
func (p Problem) String() string { return fmt.Sprintf("%s: %s (%s)", p.Where, p.What, p.Rule) }

// Check reads the run in folder dir and lists what breaks a rule.
func Check(ctx context.Context, dir string) ([]Problem, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for i, t := range schema.Tables() {
		d := schema.NewDigester(t)
		err := ReadTable(ctx, dir, t, 1<<14, func(b schema.Batch) error { d.Add(b); return nil })
		if err != nil {
			return nil, err
		}
		if d.Sum().String() != m.Tables[i].Digest || d.Rows() != m.Tables[i].Rows {
			problems = append(problems, Problem{"digest", t.Name, fmt.Sprintf("%d rows with digest %s; the manifest says %d with %s", d.Rows(), d.Sum(), m.Tables[i].Rows, m.Tables[i].Digest)})
		}
	}
	return problems, nil
}
