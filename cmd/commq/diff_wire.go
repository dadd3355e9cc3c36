package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
)

// wireDifference is a message, or a contribution to a collective, that differs between two runs.
type wireDifference struct {
	// Kind is message or the collective function; Nth counts from 1 along rank, peer, communicator and tag.
	Kind    string `json:"kind"`
	Rank    int32  `json:"rank"`
	Peer    *int32 `json:"peer,omitempty"`
	Comm    int32  `json:"comm"`
	Tag     *int32 `json:"tag,omitempty"`
	Nth     int64  `json:"nth"`
	Differs string `json:"differs"`
	// BaseBytes and NewBytes are its sizes, null where it is not there.
	BaseBytes *int64 `json:"base_bytes"`
	NewBytes  *int64 `json:"new_bytes"`
	AtNs      *int64 `json:"at_ns"`
	Function  string `json:"function,omitempty"`
	File      string `json:"file,omitempty"`
	Line      int32  `json:"line,omitempty"`
}

// wireAnswer is what differs on the wire.
type wireAnswer struct {
	Base string `json:"base"`
	New  string `json:"new"`
	// Compared is how many messages the base has, Unhashed those of both runs without a hash, of which only sizes are compared.
	Compared int64 `json:"compared"`
	Unhashed int64 `json:"unhashed"`
	// Counts are how many differ, by what differs; First is the earliest.
	Counts map[string]int64 `json:"counts"`
	First  *wireDifference  `json:"first"`
}

// checkWire says what keeps payloads of two runs from being compared.
func checkWire(s sides) error {
	if len(s.base) != 1 || len(s.new) != 1 {
		return errors.New("diff --wire: compares two runs; give one of each side")
	}
	base, new := s.base[0], s.new[0]
	for _, r := range []queries.Run{base, new} {
		if hashBits[r.Manifest.Hash] == 0 {
			return fmt.Errorf("diff --wire: run %q was captured without payload hashes; capture it again with --hash crc64", r.Name)
		}
	}
	switch {
	case base.Name == new.Name:
		return fmt.Errorf("diff --wire: two runs are called %q; copy one of them to another name", base.Name)
	case base.Manifest.Hash != new.Manifest.Hash:
		return fmt.Errorf("diff --wire: run %q has hashes by %s and run %q by %s; capture one again with the other's --hash", base.Name, base.Manifest.Hash, new.Name, new.Manifest.Hash)
	case base.Manifest.Ranks != new.Manifest.Ranks:
		return fmt.Errorf("diff --wire: run %q has %s and run %q %d; capture both with as many", base.Name, counted(int64(base.Manifest.Ranks), "rank"), new.Name, new.Manifest.Ranks)
	}
	return nil
}

// runDiffWire compares payloads message by message.
func runDiffWire(ctx context.Context, a *app, o *diffOptions, s sides) (err error) {
	if err := checkWire(s); err != nil {
		return err
	}
	q, err := queries.Named([]string{"wire"})
	if err != nil {
		return err
	}
	db, err := queries.Open(ctx, []queries.Run{s.base[0], s.new[0]}, o.engine())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	args := map[string]string{"base": s.base[0].Name}
	answer := &wireAnswer{Base: s.base[0].Name, New: s.new[0].Name, Counts: map[string]int64{}}
	if err := answer.population(ctx, db); err != nil {
		return err
	}
	rows, err := db.Ask(ctx, q[0], args)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return answer.write(w, o.format, rows) }
	if o.output != "" {
		err = writeFile(o.output, write)
	} else {
		err = write(a.screen())
	}
	if err := errors.Join(err, rows.Close()); err != nil {
		return err
	}
	if o.exit && len(answer.Counts) > 0 {
		return exitError(exitFailed)
	}
	return nil
}

// population counts the messages of the base, and those of both runs without a hash.
func (w *wireAnswer) population(ctx context.Context, db *queries.DB) error {
	rows, err := db.Query(ctx, "SELECT run, count(*) AS messages, count(*) FILTER (payload_hash IS NULL AND bytes > 0) AS unhashed FROM messages GROUP BY run")
	if err != nil {
		return err
	}
	for rows.Next() {
		r := rows.Row()
		if r[0].(string) == w.Base {
			w.Compared = r[1].(int64)
		}
		w.Unhashed += r[2].(int64)
	}
	return errors.Join(rows.Err(), rows.Close())
}

// write writes the answer: csv has all that differs, the others the first of them and how many there are.
func (w *wireAnswer) write(to io.Writer, format string, rows queries.Rows) error {
	if format == "csv" {
		return output.Write(to, format, &countedRows{Rows: rows, answer: w})
	}
	for rows.Next() {
		w.count(rows.Row())
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if format == "json" {
		return printJSON(to, w)
	}
	return w.text(to)
}

// countedRows counts rows that somebody else reads.
type countedRows struct {
	queries.Rows
	answer *wireAnswer
}

func (c *countedRows) Next() bool {
	if !c.Rows.Next() {
		return false
	}
	c.answer.count(c.Rows.Row())
	return true
}

// count takes a row of the query wire.
func (w *wireAnswer) count(r []any) {
	d := wireDifference{Kind: r[0].(string), Rank: r[1].(int32), Peer: pointer[int32](r[2]), Comm: r[3].(int32), Tag: pointer[int32](r[4]), Nth: r[5].(int64),
		Differs: r[6].(string), BaseBytes: pointer[int64](r[7]), NewBytes: pointer[int64](r[8]), AtNs: pointer[int64](r[9])}
	d.Function, _ = r[10].(string)
	d.File, _ = r[11].(string)
	d.Line, _ = r[12].(int32)
	if w.First == nil {
		w.First = &d
	}
	w.Counts[d.Differs]++
}

func pointer[T any](v any) *T {
	if x, ok := v.(T); ok {
		return &x
	}
	return nil
}

// text writes the answer for people.
func (w *wireAnswer) text(to io.Writer) error {
	var b strings.Builder
	switch first := w.First; {
	case first == nil:
		fmt.Fprintf(&b, "%s of %s and all contributions to collectives are the same in %s, byte by byte\n", counted(w.Compared, "message"), w.Base, w.New)
	default:
		fmt.Fprintf(&b, "first difference: %s\n", first.text())
		var parts []string
		for _, what := range [...][2]string{{"payload", "with another payload"}, {"bytes", "with another size"}, {"missing", "only in " + w.Base}, {"new", "only in " + w.New}} {
			if n := w.Counts[what[0]]; n > 0 {
				parts = append(parts, grouped(n)+" "+what[1])
			}
		}
		fmt.Fprintf(&b, "all differences: %s (--format csv lists them); %s has %s\n", strings.Join(parts, ", "), w.Base, counted(w.Compared, "message"))
	}
	if w.Unhashed > 0 {
		fmt.Fprintf(&b, "%s of both runs without a hash: their sizes alone were compared\n", counted(w.Unhashed, "message"))
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// text names a message or contribution, and what differs.
func (d *wireDifference) text() string {
	var b strings.Builder
	switch {
	case d.Peer != nil && d.Tag != nil:
		fmt.Fprintf(&b, "message %d from rank %d to rank %d with tag %d on communicator %d", d.Nth, d.Rank, *d.Peer, *d.Tag, d.Comm)
	default:
		fmt.Fprintf(&b, "what rank %d contributes to operation %d (%s) of communicator %d", d.Rank, d.Nth, d.Kind, d.Comm)
	}
	switch {
	case d.File != "" && d.Line > 0 && d.Function != "":
		fmt.Fprintf(&b, ", at %s (%s:%d)", d.Function, d.File, d.Line)
	case d.Function != "":
		fmt.Fprintf(&b, ", at %s", d.Function)
	}
	switch d.Differs {
	case "payload":
		fmt.Fprintf(&b, ": another payload of %s", counted(*d.NewBytes, "byte"))
	case "bytes":
		fmt.Fprintf(&b, ": %s, before %s", counted(*d.NewBytes, "byte"), grouped(*d.BaseBytes))
	case "missing":
		fmt.Fprintf(&b, ": is missing (%s before)", counted(*d.BaseBytes, "byte"))
	case "new":
		fmt.Fprintf(&b, ": is new (%s)", counted(*d.NewBytes, "byte"))
	}
	return b.String()
}
