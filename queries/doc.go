// Package queries holds all SQL of commq: the canned queries in sql/*.sql, their headers, and the engine that runs them
// and the user's own SQL over the Parquet files of runs.
//
// # A query file
//
// sql/NAME.sql is the query the user types as NAME: a header of SQL comments, then one SELECT without a semicolon. The
// header is read by help, completion, docs/QUERIES.md and the tests, so its form is strict. A field is a line
//
//	-- key rest: text
//
// and a line that begins with two dashes and five spaces or more continues the field before it. The fields, in any order:
//
//	summary: what it answers, one sentence. Required.
//	source: the paper and section the measure comes from, or why it is there. Required.
//	needs: what a run must hold, separated by commas: tables (messages, events, ...) and facts (times, compute, hashes,
//	    callsites, every-call). Required. It is compared with the run's manifest before anything is read.
//	param NAME KIND = DEFAULT: meaning. KIND is one of
//	    choice A|B|C           one of these words
//	    integer LOW..HIGH      an integer in that range
//	    condition TABLE        an SQL condition on the columns of TABLE
//	column NAME TYPE UNIT: meaning. One for each output column in order. TYPE is INTEGER, BIGINT, DOUBLE, BOOLEAN or
//	    VARCHAR; UNIT is 1 (a plain number), ns, bytes, elements or - (a name or an id). At least one.
//	order: the ORDER BY of the query; its key makes rows unique. Required.
//	cost: what it reads and how that grows. Required.
//	plot: matrix ROW COLUMN VALUE: how --plot draws it, with three output columns. Optional.
//
// In the SQL, {{NAME}} stands for a parameter: a choice is filled in as a quoted string, an integer as digits, a condition
// in parentheses. {{include NAME}} stands for the text of sql/include/NAME.sql, a chain of common table expressions that
// several queries share; the parameters it uses are the query's. Every parameter must be used and every use declared.
//
// The SQL keeps to what DuckDB and Trino both speak: no lists, nothing unsigned, no HUGEINT (cast sums), no GROUP BY ALL,
// no integer division operator, no median; every division cast.
package queries

//go:generate go run ./internal/gendocs
