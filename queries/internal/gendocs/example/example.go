// Package example makes small runs from text, for the tests of the queries and the example output in docs/QUERIES.md.
package example

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Write writes a run with this name into a store and returns its folder.
//
// The text consists of blocks: a line with the name of a table and columns, then a line per row, with values
// separated by blanks. - is null, # begins a comment line, an empty line ends a block. Columns that are not named are
// null, or 0 if they cannot be null. Rows must be in the order of the table's key. The manifest's end_ns is at least
// the latest of the rows'.
func Write(store, name, text string, m schema.Manifest) (string, error) {
	run, err := writer.Create(store, name, writer.Options{})
	if err != nil {
		return "", err
	}
	defer run.Abort()
	batches, err := parse(text)
	if err != nil {
		return "", err
	}
	for _, b := range batches {
		if events, ok := b.(*schema.Events); ok {
			m.EndNs = max(m.EndNs, slices.Max(events.EndNs)) // null is less than any value
		}
		if err := run.Write(0, b); err != nil {
			return "", err
		}
	}
	if err := run.Commit(context.Background(), &m); err != nil {
		return "", err
	}
	return writer.Find(store, name)
}

// Manifest returns a manifest with this number of ranks and every fact that a query can need.
func Manifest(ranks int32) schema.Manifest {
	return schema.Manifest{Ranks: ranks, TimeOrigin: "measured", ComputeClock: "cpu", Record: "all", Hash: "crc64",
		Callsites: true, Ended: "finalized", Epochs: 1}
}

// newBatch makes an empty batch of a table, and a row of nulls for it.
func newBatch(table string) (batch schema.Batch, row reflect.Value, err error) {
	switch table {
	case "events":
		return &schema.Events{}, reflect.ValueOf(schema.NullEvent), nil
	case "messages":
		return &schema.Messages{}, reflect.ValueOf(schema.NullMessage), nil
	case "parts":
		return &schema.Parts{}, reflect.ValueOf(schema.Part{}), nil
	case "comms":
		return &schema.Comms{}, reflect.ValueOf(schema.NullComm), nil
	case "callsites":
		return &schema.Callsites{}, reflect.ValueOf(schema.NullCallsite), nil
	case "datatypes":
		return &schema.Datatypes{}, reflect.ValueOf(schema.NullDatatype), nil
	case "ranks":
		return &schema.RankInfos{}, reflect.ValueOf(schema.NullRankInfo), nil
	}
	return nil, reflect.Value{}, fmt.Errorf("no table %q in an example", table)
}

func parse(text string) ([]schema.Batch, error) {
	var batches []schema.Batch
	var batch schema.Batch
	var null reflect.Value
	var columns []string
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			batch = nil
			continue
		case strings.HasPrefix(words[0], "#"):
			continue
		}
		var err error
		if batch == nil {
			batch, null, err = newBatch(words[0])
			batches, columns = append(batches, batch), words[1:]
		} else {
			err = addRow(batch, null, columns, words)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return batches, nil
}

func addRow(batch schema.Batch, null reflect.Value, columns, words []string) error {
	if len(words) != len(columns) {
		return fmt.Errorf("%d words for %d columns", len(words), len(columns))
	}
	row := reflect.New(null.Type())
	row.Elem().Set(null)
	for i, name := range columns {
		c, _ := batch.Table().Column(name)
		if c == nil {
			return fmt.Errorf("table %s has no column %s", batch.Table().Name, name)
		}
		if words[i] == "-" {
			continue
		}
		if err := setField(row.Elem().FieldByName(c.Goname), c, words[i]); err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
	}
	reflect.ValueOf(batch).MethodByName("Append").Call([]reflect.Value{row})
	return nil
}

func setField(field reflect.Value, c *schema.Column, word string) error {
	if c.Type == schema.Text {
		field.SetString(word)
		return nil
	}
	if c.Type == schema.Enum {
		i := slices.Index(c.Names, word)
		if i < 0 {
			return fmt.Errorf("no value %q", word)
		}
		field.SetInt(int64(i))
		return nil
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return err
	}
	field.SetInt(n)
	return nil
}
