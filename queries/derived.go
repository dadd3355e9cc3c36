package queries

import (
	"regexp"
	"strings"

	"github.com/commq/commq/schema"
)

// derivedPart returns SQL for the rows of a derived table that a run in folder dir lacks. alone reports that the
// engine has no other run.
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

// madeOf returns SQL for the rows of a derived table that a run lacks, computed from the views of its other tables.
// run is the run's name in these views. alone reports that the engine has no other run.
func madeOf(t *schema.Table, run string, alone bool) (string, error) {
	s, err := source{text: "{{include made_" + t.Name + "}}",
		places: []place{{}}}.expand(func(name string) (source, error) { return includeOf(files, name) }, nil)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, until := range schema.UntilNames {
		made, err := s.replace(func(name string, _ place) (source, error) {
			if name == "until" {
				return source{text: quote(until)}, nil
			}
			if u := unlessOf(name); u != nil {
				return source{text: u.table.Name}, nil
			}
			return source{text: "TRUE"}, nil // every message counts
		})
		if err != nil {
			return "", err
		}
		if texts = append(texts, "("+made.text+")"); t != &schema.CollectiveWaitsTable {
			break // it has no placeholder {{until}}
		}
	}
	text := strings.Join(texts, "\nUNION ALL\n")
	if !alone {
		text = tableUse.ReplaceAllString(text, "$1 (SELECT * FROM $2 WHERE run = "+literalInReplacement(quote(run))+")")
	}
	return selectColumns(run, t, func(c schema.Column) string { return quoteName(c.Name) }) + "\nFROM (" +
		text + ") AS made", nil
}

// tableUse matches the uses of tables in the included files.
var tableUse = regexp.MustCompile(`\b(FROM|JOIN) (events|messages|parts|ranks|comms|profile)\b`)

// literalInReplacement escapes a text for the replacement of a regular expression.
func literalInReplacement(s string) string {
	return regexp.MustCompile(`\$`).ReplaceAllString(s, "$$$$")
}

// profileOfEvents returns SQL for the rows of profile, computed as the writer does from the rows of events that the
// given SQL selects. Runs of older versions lack this table.
func profileOfEvents(events string) string {
	return `SELECT run, rank, ROW_NUMBER() OVER (PARTITION BY rank ORDER BY MIN(seq)) - 1 AS nth, CAST(0 AS INTEGER) AS epoch, thread, call, class, comm, callsite,
       error_class, posted_any, proc_null, in_progress, any_world AS recv_world, any_tag AS recv_tag,
       CAST(COUNT(*) AS BIGINT) AS calls, CAST(COUNT(send_peer) AS BIGINT) AS sends, CAST(COUNT(recv_peer) AS BIGINT) AS receives,
       CAST(SUM(send_bytes) AS BIGINT) AS send_bytes, CAST(SUM(recv_bytes) AS BIGINT) AS recv_bytes,
       CAST(SUM(end_ns - start_ns) AS BIGINT) AS time_ns, MIN(end_ns - start_ns) AS min_ns, MAX(end_ns - start_ns) AS max_ns,
       MIN(start_ns) AS first_ns, MAX(COALESCE(end_ns, start_ns)) AS last_ns,
       CAST(SUM(compute_ns) AS BIGINT) AS compute_ns, CAST(SUM(polls) AS BIGINT) AS polls, CAST(SUM(poll_ns) AS BIGINT) AS poll_ns
FROM (SELECT *, CASE WHEN start_ns IS NOT NULL AND end_ns IS NULL THEN 1 ELSE 0 END AS in_progress,
             CASE WHEN posted_any > 0 THEN recv_world END AS any_world, CASE WHEN posted_any > 0 THEN recv_tag END AS any_tag
      FROM (` + events + `) AS e) AS e
GROUP BY run, rank, thread, call, class, comm, callsite, error_class, posted_any, proc_null, in_progress, any_world, any_tag`
}
