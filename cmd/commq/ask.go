package main

import (
	"context"
	"errors"

	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/queries"
)

// withEngine opens the engine over runs, gives use a function that asks it named queries, and closes it.
func withEngine(ctx context.Context, runs []queries.Run, o queries.Options, use func(rows.Ask) error) (err error) {
	db, err := queries.Open(ctx, runs, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return use(func(ctx context.Context, query string, args map[string]string, each func(rows.Row) error) error {
		q, err := queries.Named([]string{query})
		if err != nil {
			return err
		}
		answer, err := db.Ask(ctx, q[0], args)
		if err != nil {
			return err
		}
		return errors.Join(forEach(answer, each), answer.Close())
	})
}

// forEach calls each with every row of an answer.
func forEach(answer queries.Rows, each func(rows.Row) error) error {
	header := headerOf(answer)
	for answer.Next() {
		if err := each(rows.Row{Header: header, Values: answer.Row()}); err != nil {
			return err
		}
	}
	return answer.Err()
}

// headerOf finds the columns of an answer by their names.
func headerOf(answer queries.Rows) rows.Header {
	var names []string
	for _, c := range answer.Columns() {
		names = append(names, c.Name)
	}
	return rows.NewHeader(names...)
}
