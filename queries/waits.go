package queries

import (
	"regexp"

	"github.com/commq/commq/schema"
)

// derivedPart is SQL for the rows of a derived table of a run in folder dir that lacks it; alone says that there is no other run.
func derivedPart(r Run, dir string, t *schema.Table, alone bool) (string, error) {
	if t != &schema.ProfileTable {
		return madeOf(t, r.Name, alone)
	}
	files, err := tableFiles(r, dir, &schema.EventsTable)
	if err != nil {
		return "", err
	}
	return profileOfEvents(selectTable(r.Name, &schema.EventsTable, files)), nil
}

// madeOf is SQL for the rows of a derived table of a run that lacks it, of the views of its other tables; run is what the run is called, and
// alone says that there is no other.
func madeOf(t *schema.Table, run string, alone bool) (string, error) {
	s, err := source{text: "{{include made_" + t.Name + "}}", places: []place{{}}}.expand(func(name string) (source, error) { return includeOf(files, name) }, nil)
	if err != nil {
		return "", err
	}
	s, err = s.replace(func(string, place) (source, error) { return source{text: "TRUE"}, nil }) // every message counts
	if err != nil {
		return "", err
	}
	text := s.text
	if !alone {
		text = tableUse.ReplaceAllString(text, "$1 (SELECT * FROM $2 WHERE run = "+literalInReplacement(quote(run))+")")
	}
	return selectColumns(run, t, func(c schema.Column) string { return quoteName(c.Name) }) + "\nFROM (" + text + ") AS made", nil
}

// tableUse is where the included files name tables.
var tableUse = regexp.MustCompile(`\b(FROM|JOIN) (events|messages|ranks)\b`)

// literalInReplacement is a text that means itself in a replacement of a regular expression.
func literalInReplacement(s string) string { return regexp.MustCompile(`\$`).ReplaceAllString(s, "$$$$") }
