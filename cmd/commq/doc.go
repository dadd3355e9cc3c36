// Command commq answers questions about how MPI programs communicate. A command's file has its flags, help, completion
// and printing; the work is done in the packages that it calls. Read main.go (exit statuses, global flags) and
// commands.go (the list of commands) first.
//
// A file has the name of its command, or begins with it: store_compact.go has commq store compact, watch_hang.go the
// flag --hang of commq watch. What several commands share is in:
//
//   - engine.go, ask.go: which SQL engine answers, and reading its rows by column names
//   - query.go: flags for runs, formats and output, finding runs, writing files; own.go: the user's own queries
//   - capture.go: flags for the shim and the launcher, also used by exec, replay and calibrate; simulation.go: those
//     for simulator ranks
//   - measures.go: measures of runs, for diff, check and export benchfmt; findings.go: the rules of diagnose that are
//     files
//   - picture.go: flags of pictures; checkpoint.go: flags of commands that continue after they were killed
//   - read_runs.go: the runs that a command reads, as flags and arguments; written.go: what it writes, and --replace
//   - export_run.go: the formats in which a run is written with no options, as one file or one folder
//   - mistakes.go: messages about unknown commands and flags
//   - json.go: answers in JSON
//   - version.go: what --version prints
//   - limits.go, limits.c: names limits of the process that are too small to start, before Go's runtime does
//   - terminal.go, progress.go, working.go, help.go, summary.go: notes, progress, signs of life, help, summaries
//
// The tests make the reference of the commands and, with -man FOLDER, manual pages.
package main

//go:generate go test -vet=off -run ^(TestCommandReference|TestJSONSchemas)$ . -update
