package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/schema"
)

// runDiffWire compares payloads message by message.
func runDiffWire(ctx context.Context, a *app, o *diffOptions, s sides) error {
	wire, err := compare.NewWire(comparedRuns(s.base), comparedRuns(s.new))
	if err != nil {
		return err
	}
	if wire.SizesOnly && o.exit {
		return fmt.Errorf("diff --wire --exit-code: runs %q and %q have no payload hashes, so that an exit status of 0 would "+
			"not mean that their payloads are the same; without --exit-code commq compares sizes", wire.Base, wire.New)
	}
	q, err := queries.Named([]string{"wire"})
	if err != nil {
		return err
	}
	err = askWire(ctx, q[0], s, o.engine(), wire.AddMessages, func(answer queries.Rows) error {
		return o.write(a, func(w io.Writer) error { return writeWire(w, o.format, wire, answer) })
	})
	if err != nil {
		return err
	}
	noteLacking(a, s.all(), func(m *schema.Manifest) schema.Reads { return q[0].Reads(m, nil) })
	return o.status(wire.Changed())
}

// askWire gives count the numbers of messages of both runs, asks for their differences and gives use the answer.
func askWire(ctx context.Context, q *queries.Query, s sides, o queries.Options,
	count func(run string, messages, unhashed int64), use func(queries.Rows) error) (err error) {
	db, err := queries.Open(ctx, []queries.Run{s.base[0], s.new[0]}, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := queries.CountMessages(ctx, db, count); err != nil {
		return err
	}
	answer, err := db.Ask(ctx, q, map[string]string{"base": s.base[0].Name})
	if err != nil {
		return err
	}
	return errors.Join(use(answer), answer.Close())
}

// writeWire writes the differences: csv lists all, json and text have the first and how many there are.
func writeWire(w io.Writer, format string, wire *compare.Wire, answer queries.Rows) error {
	if format == "csv" {
		return output.Write(w, format, &tappedRows{Rows: answer, header: headerOf(answer), each: wire.Add})
	}
	if err := forEach(answer, func(r rows.Row) error { wire.Add(r); return nil }); err != nil {
		return err
	}
	if format == "json" {
		return printJSON(w, wire)
	}
	return wire.Text(w)
}

// tappedRows call each with every row that is read.
type tappedRows struct {
	queries.Rows
	header rows.Header
	each   func(rows.Row)
}

// Next makes the next row current.
func (t *tappedRows) Next() bool {
	if !t.Rows.Next() {
		return false
	}
	t.each(rows.Row{Header: t.header, Values: t.Row()})
	return true
}
