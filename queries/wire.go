package queries

import (
	"context"
	"errors"

	"github.com/commq/commq/internal/rows"
)

// CountMessages calls each with the numbers of messages of every run: all of them, and those with a payload but no
// hash.
func CountMessages(ctx context.Context, d *DB, each func(run string, messages, unhashed int64)) error {
	answer, err := d.Query(ctx, "SELECT run, count(*) AS messages, "+
		"count(*) FILTER (payload_hash IS NULL AND bytes > 0) AS unhashed FROM messages GROUP BY run")
	if err != nil {
		return err
	}
	header := rows.NewHeader("run", "messages", "unhashed")
	for answer.Next() {
		r := rows.Row{Header: header, Values: answer.Row()}
		each(r.Text("run"), r.Int("messages"), r.Int("unhashed"))
	}
	return errors.Join(answer.Err(), answer.Close())
}
