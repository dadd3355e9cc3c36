// Package ui serves the pages of commq ui: a run's overview, timeline, matrix, call sites, communication over time and
// SQL in a browser on the same machine.
//
// The server answers only questions that commq query and commq sql answer too, as Arrow streams, and tells the SQL and
// the command line of each. The page (web/src, TypeScript; web/README.md says how it is built) draws the answers. It
// asks for no more rows than it has pixels.
//
// # Who may ask
//
// The server listens on 127.0.0.1. Other users of the node and web pages that the user has open can reach that address
// too, so every request needs the secret of the printed address, a Host header that names this machine (a page of
// another site whose name was made to point here has another one), and, where the browser tells, no other site as its
// origin. Nothing can be written: the engine runs one SELECT at a time and reads only the files of the runs.
//
// # The files
//
//	server.go   Server: the routes, the page and its files
//	guard.go    who may ask: secret, Host, Origin; headers of every answer
//	engines.go  open engines, a few at a time, one question each; a broken one is replaced
//	ask.go      canned queries, SQL, and what they are on a command line
//	facts.go    runs, queries, diagnoses: what is known without SQL
//	whatif.go   a run on another machine
//	predicted.go  runs with the times of another machine, in a folder of the server's own
//	path.go     the critical path
//	once.go     the page with its answers inside, for --once
//	web/        the page's sources
//	assets/     the page as it is served, built from web/
package ui

//go:generate ../scripts/page
