package check

import (
	"fmt"
	"strings"

	"github.com/commq/commq/schema"
)

// Rule is an invariant of runs.
type Rule struct {
	// Name is a word or two; problems refer to it.
	Name string
	// Doc states the rule in a sentence.
	Doc string

	tables []*schema.Table // that batch looks at; nil means all
	// start begins the check of a run. batch then gets the rows of tables, and finish is called after the last of
	// them; either may be nil. A rule without start is checked by the code that reads the files.
	start func(*run, *reporter) (batch func(schema.Batch), finish func())
}

// Names of the rules that are checked by the code that reads the files, because the Checker does not see the files.
const (
	RuleFiles   = "files"
	RuleDigests = "digests"
	RuleRepeats = "repeats"

	RuleCollectiveParts = "collective-parts"
)

// Rules lists the invariants of a run in the order in which they are checked.
func Rules() []Rule {
	events, messages := []*schema.Table{&schema.EventsTable}, []*schema.Table{&schema.MessagesTable}
	both := []*schema.Table{&schema.EventsTable, &schema.MessagesTable}
	return []Rule{
		{Name: RuleFiles, Doc: "The files of a table are those that the manifest lists, with the bytes, rows and " +
			"hashes it lists, and every value can be read."},
		{Name: RuleDigests, Doc: "The digests of the tables and of the run match the rows and the manifest."},
		{Name: "not-null", Doc: "Only nullable columns hold null.", start: checkNulls},
		{Name: "sorted", Doc: "The rows of a file are sorted by the table's key, after merging the row groups of an " +
			"epoch of events, and no two rows have the same key.", start: checkSorted},
		{Name: "ranks", Doc: "ranks has one row per world rank, and every world rank in any table has a row there; a " +
			"rank has at most 32,768 threads; hosts are numbered from 0, below the number of ranks.",
			start: checkWorlds},
		{Name: "ended", Doc: "A run is finalized exactly when each of its ranks is.", start: checkEnded},
		{Name: "epochs", Doc: "An epoch lies between 0 and the manifest's epochs, and never decreases along a rank.",
			tables: []*schema.Table{&schema.EventsTable, &schema.MessagesTable, &schema.PartsTable},
			start:  checkEpochs},
		{Name: "seq", Doc: "Along a rank seq counts from 0 without gaps; where rows were dropped (record messages or " +
			"collectives, filters) it increases.", tables: events, start: checkSeq},
		{Name: "times", Doc: "No call and no message ends before it starts, and no duration or count is negative; " +
			"end_ns of the manifest is the latest.", tables: both, start: checkTimes},
		{Name: "thread-order", Doc: "Along a thread of a rank start_ns never decreases; threads have numbers below 32,768.",
			tables: events,
			start:  checkThreads},
		{Name: "untimed", Doc: "The times of events and messages are null in an untimed run; in any other, every " +
			"event has a start.", tables: both, start: checkUntimed},
		{Name: "comms", Doc: "Communicator 0 holds every rank; the ranks of every group count from 0, its members " +
			"differ, and its parent is a communicator.", tables: []*schema.Table{&schema.CommsTable},
			start: checkComms},
		{Name: "references", Doc: "Every communicator, datatype and call site that a row names has its row in comms, " +
			"datatypes or callsites.", tables: []*schema.Table{&schema.EventsTable, &schema.MessagesTable,
			&schema.CallsitesTable, &schema.DatatypesTable}, start: checkReferences},
		{Name: "callsites", Doc: "The ids of callsites count from 0, and a parent is an earlier row, so paths end; " +
			"no row has a call site in a run captured without them.",
			tables: []*schema.Table{&schema.CallsitesTable, &schema.EventsTable}, start: checkCallsites},
		{Name: "members", Doc: "A rank calls only on communicators that it is a member of; source and destination of " +
			"a message are members of its communicator.", tables: both, start: checkMembers},
		{Name: "peers", Doc: "send_world and recv_world are the world ranks of send_peer and recv_peer in the " +
			"communicator.", tables: events, start: checkPeers},
		{Name: "flags", Doc: "posted_any and proc_null have only the bits of the schema, and a side to MPI_PROC_NULL " +
			"has no peer.", tables: events, start: checkFlags},
		{Name: "requests", Doc: "A request is completed by a later row of its rank: done_seq is greater than seq, and " +
			"is a row.", tables: events, start: checkRequests},
		{Name: "rma", Doc: "A row of one-sided communication has the sides that its call has, to a target or, with 0 " +
			"bytes, to MPI_PROC_NULL; its window was made by an earlier row of the rank on the same communicator.",
			tables: events, start: checkOneSided},
		{Name: "io", Doc: "A row of I/O has no peer, a send side if it writes and a receive side if it reads; its " +
			"file was opened by an earlier row of the rank on the same communicator.", tables: events,
			start: checkFiles},
		{Name: "instances", Doc: "Collective operations on a communicator count from 0 on each of its ranks, and so " +
			"do the starts of a persistent one; in a finalized run every rank made the same ones. Filters leave gaps.",
			tables: events, start: checkInstances},
		{Name: "parts", Doc: "Every row of parts belongs to a collective call, and the parts of a call add up to its " +
			"send_bytes and recv_bytes; neighbourhood collectives always have parts.",
			tables: []*schema.Table{&schema.EventsTable, &schema.PartsTable}, start: checkParts},
		{Name: "messages", Doc: "Every message has the row that sent it and the row that received it, with the same " +
			"peer, communicator, tag, bytes and times (record all); filters may drop the row that received it.",
			tables: both, start: checkMessages},
		{Name: "message-rows", Doc: "The bytes of a message are not negative, and its receive is completed by the " +
			"posting row or a later one.", tables: messages, start: checkMessageRows},
		{Name: "causality", Doc: "In a run of virtual or simulated times no message is received before it was sent.",
			tables: messages, start: checkCausality},
		{Name: "hashes", Doc: "There are payload hashes only where the manifest names an algorithm, and recv_hash only " +
			"where receives were hashed; as many differ as the manifest counts.", tables: both, start: checkHashes},
		{Name: "waits", Doc: "The rows of waits, transfers and collective_waits are the sums of those of events and " +
			"messages, unless the run lacks these tables.", tables: []*schema.Table{&schema.RanksTable,
			&schema.CommsTable, &schema.EventsTable, &schema.MessagesTable, &schema.WaitsTable,
			&schema.TransfersTable, &schema.CollectiveWaitsTable}, start: checkWaits},
		{Name: RuleRepeats, Doc: "The rows of repeats are the sums of those of messages, unless the run lacks the table."},
		{Name: "channels", Doc: "The rows of channels are the sums of those of messages, unless the run lacks the table.",
			tables: []*schema.Table{&schema.MessagesTable, &schema.ChannelsTable}, start: checkChannels},
		{Name: "collective-calls", Doc: "The rows of collective_calls are the sums of those of events, unless the run " +
			"lacks the table.", tables: []*schema.Table{&schema.EventsTable, &schema.CollectiveCallsTable},
			start: checkCollectives},
		{Name: RuleCollectiveParts, Doc: "The rows of collective_parts are the sums of those of parts, by the calls in " +
			"events, unless the run lacks the table."},
		{Name: "activity", Doc: "The rows of activity are the sums of those of events and messages, unless the run lacks " +
			"the table.", tables: []*schema.Table{&schema.CommsTable, &schema.EventsTable,
			&schema.MessagesTable, &schema.ActivityTable}, start: checkActivity},
		{Name: "profile", Doc: "The rows of profile are the sums of those of events, unless the run was made by an " +
			"older commq without the table.", tables: []*schema.Table{&schema.EventsTable, &schema.ProfileTable},
			start: checkProfile},
		{Name: "counts", Doc: "The manifest's counts match the rows.", start: checkCounts},
	}
}

// Markdown returns the section of docs/SCHEMA.md that lists the rules.
func Markdown() string {
	var b strings.Builder
	b.WriteString("\n## Rules\n\nThese rules hold in every run; `commq runs check RUN` checks them.\n\n" +
		"| rule | meaning |\n|---|---|\n")
	for _, r := range Rules() {
		fmt.Fprintf(&b, "| %s | %s |\n", r.Name, r.Doc)
	}
	return b.String()
}
