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
// and a line that begins with two dashes and five spaces or more continues the field before it. The fields, in any
// order:
//
//	summary: what it answers, one sentence. Required.
//	source: the paper and section the measure comes from, or why it is there. Required.
//	needs: what a run must hold, separated by commas: tables (messages, events, ...) and facts (times, compute, hashes,
//	    callsites, every-call, every-send). Required. It is compared with the run's manifest before anything is read.
//	origins: the time origins it accepts: measured, virtual, simulated or some of them. Required where it needs times, and
//	    only there; runs of other origins are refused.
//	over: runs. The query is asked once over all runs given, with their name in the column run of every table and a row for
//	    each in the view runs. Optional; without it the query is asked of each run by itself, and where there are several,
//	    the engine puts the column run before its columns.
//	param NAME KIND = DEFAULT: meaning. KIND is one of
//	    choice A|B|C           one of these words
//	    integer LOW..HIGH      an integer in that range
//	    number LOW..HIGH       a number in that range, a DOUBLE
//	    text                   any text; the default stands in quotes: param NAME text = 'it'
//	    condition TABLE        an SQL condition on the columns of TABLE
//	    file a:INTEGER,b:TYPE  a CSV file of the user with these columns (INTEGER, BIGINT, DOUBLE, VARCHAR), named in its
//	                           first line; the default is none, a table without rows
//	column NAME TYPE UNIT: meaning. One for each output column in order. TYPE is INTEGER, BIGINT, DOUBLE, BOOLEAN or
//	    VARCHAR; UNIT is 1 (how many), ns, bytes, bytes/s, elements or - (a name or an id: ranks and tags are numbers that
//	    nobody adds up). At least one. Tables group the digits of the former, and name a unit that the column's name does
//	    not have.
//	order: the ORDER BY of the query; its key makes rows unique. Required.
//	cost: what it reads and how that grows. Required.
//	example: arguments that the query is worth asking with, for the second example of its help; without it that is a guess.
//	    Optional.
//	plot: how --plot draws it, with the names of output columns. Optional. One of
//	    matrix ROW COLUMN VALUE         darker is more; several runs are drawn side by side
//	    histogram X Y BY                bars that touch; of several runs a group of bars for each BY
//	    bars X Y [SERIES]               bars stacked by SERIES
//	    grouped X Y SERIES              bars side by side
//	    lines X Y [SERIES]              a line for each SERIES
//	    points X Y [FIT [SERIES]]       points, with the curve that the column FIT has the values of
//	    timeline RANK RANKS START END KIND TIME AMOUNT DESTINATION
//	                                    a row for RANKS ranks from RANK on, coloured by KIND: a row of the answer with a TIME is
//	                                    that time of KIND between START and END, one with a DESTINATION a message, any other an
//	                                    AMOUNT that is sent between them; of one run
//	  and after it log-x, log-y or log-log for logarithmic axes (grouped and histogram: log-y alone), and LOW..HIGH, values that
//	  the axis of Y has at least. Several runs of a query that is not
//	  over runs are told apart as groups of bars, or as series. For bars and lines Y may be several columns of one unit,
//	  A+B+C, each a series. Bars of a column rank are in its order; those of the columns callsite, comm and datatype have
//	  names in place of numbers.
//	title: what the picture shows, in words. {PARAM} stands for that parameter's value. Optional; else the query's name.
//	label COLUMN: what the column is called in pictures, without its unit, with {PARAM} as in the title; label y is for the
//	    axis of Y columns that are drawn together. Optional; else the column's name.
//	axis COLUMN: PARAM. In a picture the column is called what that parameter, a choice, says, which also tells its unit
//	    (...bytes, ...-ns). Optional.
//
// In the SQL, {{NAME}} stands for a parameter: a choice or a text is filled in as a quoted string, an integer or a
// number as digits (one below zero in parentheses), a condition in parentheses, a file as a table in parentheses.
// {{include NAME}} stands for the text of sql/include/NAME.sql, a chain of common table expressions that several
// queries share, which may include others; the parameters it uses are the query's. Every parameter must be used and
// every use declared. {{default NAME}} is TRUE where the parameter has its default, else FALSE, {{TABLE unless
// default NAME}} is the table where it has not, else a table without rows, whose files are then not opened; so is
// {{TABLE unless NAME VALUE}}, which a query without that parameter may include: there it is the table. The lines
// between a line {{unless NAME VALUE}} and a line {{end}} are left out where the parameter, a choice, has that value,
// those between {{only NAME VALUE}} and {{end}} where it has not. In an included file the former stay and the latter
// go if the query has no such parameter or value; one of the queries that include the file must have it.
//
// The SQL keeps to what DuckDB and Trino both speak: no lists, nothing unsigned, no HUGEINT (cast sums), no GROUP BY
// ALL, no integer division operator, no median; every division cast. A query that finds its arguments wrong only when
// it sees the rows says so by a cast that fails, CAST('refused: ' || reason AS INTEGER): every engine has that, and
// the reason is shown.
//
// # A finding file
//
// findings/NAME.sql is a rule of commq diagnose, in the same form. Its header has no summary, over, example nor what is
// for pictures, and has
//
//	question: what an engineer asks, in one sentence. Required.
//	advice: what to do about what is found, in one sentence. Required.
//	gain: bound, messages or standard: how the gain is found (see Gains). Required.
//
// The first columns of the SELECT are those of every finding, which the header does not have: callsite INTEGER, call
// VARCHAR, ranks VARCHAR, cost_ns BIGINT and found VARCHAR, and for gain messages latency DOUBLE and bytes DOUBLE (see
// Found). The columns of the header follow: the evidence. Parameters have their defaults. needs must name events and
// messages if they are read: runs with many of these rows are then left out.
//
// # The files
//
// In reading order:
//
//	library.go, own.go    the canned queries, and a user's own; ownfile.go makes one of SQL that was answered
//	finding.go, found.go  the finding files of commq diagnose in findings/, and what they say of a run
//	foundkept.go          their answers, kept for the next search
//	header.go, param.go, plot.go, place.go  a query file -> Query, Param, Plot; errors name file and line
//	startup.go            the time in MPI_Init and MPI_Finalize, which queries with the parameter init leave out
//	cores.go              runs whose ranks shared cores, of which answers about times warn
//	needs.go              Run, and what a run lacks for a query
//	fill.go, block.go, file.go  parameters -> SQL
//	activity.go           whether a query reads rows or the sums over time
//	engine.go             DB: DuckDB on the files of runs; views.go opens those of the tables that a query names,
//	                      derived.go makes derived tables that a run lacks, damage.go explains errors, objects.go
//	                      reaches object storage
//	trino.go, register.go a DB on a Trino server, and registering runs there
//	result.go             Rows, Ask, Query; batches.go reads answers by columns; wire.go counts messages for commq diff
//	version.go            the version of DuckDB
//	drawing.go, drawn.go  rows -> a picture of package plot
//	help.go, markdown.go, outline.go, macros.go  help, docs/QUERIES.md, docs/skill and commq.sql
package queries

//go:generate go run ./internal/gendocs
