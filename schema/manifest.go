package schema

// Manifest says what a run is. It is the file manifest.json of a run's folder and is written last: a folder without
// one is not a run. Everything but Origin and the files' layout is part of the run's identity.
type Manifest struct {
	// SchemaVersion is Version at the time of writing.
	SchemaVersion int `json:"schema_version"`
	// Ranks is the number of processes in MPI_COMM_WORLD.
	Ranks int32 `json:"ranks"`
	// TimeOrigin says where start_ns and end_ns come from: measured, virtual, simulated or untimed.
	TimeOrigin string `json:"time_origin"`
	// TimeResolutionNs is what start_ns and end_ns are multiples of: 1, or the power of two they were rounded down to.
	TimeResolutionNs int64 `json:"time_resolution_ns"`
	// ComputeClock says what compute_ns was taken with: cpu, wall or none.
	ComputeClock string `json:"compute_clock"`
	// Record says which rows of events are there: all; messages, where the rows of matched messages and their
	// completion calls were dropped after matching; or collectives, where those of all point-to-point communication
	// were, and its messages.
	Record string `json:"record"`
	// Filters say what else was dropped after matching, a word each: pcontrol where MPI_Pcontrol switched recording
	// off, call:PATTERN and -call:PATTERN for calls kept and left out by name. A message is dropped with the row that
	// sent it. Empty: nothing.
	Filters []string `json:"filters,omitempty"`
	// Hash is the payload hash: none, crc64 or crc32.
	Hash string `json:"hash"`
	// HashVerify says whether receives were hashed too (recv_hash of messages).
	HashVerify bool `json:"hash_verify,omitempty"`
	// Callsites says whether the rows have call sites.
	Callsites bool `json:"callsites"`
	// Stack is the number of frames that were walked for a call site: 1 is the return address alone, 0 none.
	Stack int32 `json:"stack,omitempty"`
	// Counters says where instructions and cycles come from: perf, or fake in tests; empty: they were not counted.
	Counters string `json:"counters,omitempty"`
	// Ended is finalized when every rank reached MPI_Finalize, else aborted or killed.
	Ended string `json:"ended"`
	// EndNs is the latest end_ns of the run, in ns since its start; 0 in an untimed run.
	EndNs int64 `json:"end_ns"`
	// Epochs is the number of epochs: epoch runs from 0 to Epochs-1.
	Epochs int32 `json:"epochs"`
	// Counts are the run's totals.
	Counts Counts `json:"counts"`
	// Collectives is the number of collective operations by MPI name, the nonblocking ones by their own; their sum is
	// Counts.Collectives.
	Collectives map[string]int64 `json:"collectives,omitempty"`
	// Tables lists the run's tables in the order of Tables. A derived one without files is one that the run lacks.
	Tables []TableInfo `json:"tables"`
	// Digest is the run's digest: it depends on the tables' rows and the schema version, not on file layout or codec.
	Digest string `json:"digest"`
	// Warnings say what a reader of the run should know, a sentence each.
	Warnings []string `json:"warnings,omitempty"`
	// Origin says where the run came from; it is outside the digest.
	Origin Origin `json:"origin"`
}

// Counts are totals over all ranks. With Record messages or collectives, and with Filters, they still count everything that was captured.
type Counts struct {
	// Calls is the number of MPI calls recorded (rows of events before any were dropped).
	Calls int64 `json:"calls"`
	// Polls is the number of failed tests and probes, which are counted and not recorded.
	Polls int64 `json:"polls"`
	// Messages is the number of matched point-to-point messages; MessageBytes their payload.
	Messages     int64 `json:"messages"`
	MessageBytes int64 `json:"message_bytes"`
	// Collectives is the number of collective operations: P ranks in one barrier are one.
	Collectives int64 `json:"collectives"`
	// UnmatchedSends and UnmatchedReceives count posted operations without a partner (cancelled ones excluded).
	UnmatchedSends    int64 `json:"unmatched_sends"`
	UnmatchedReceives int64 `json:"unmatched_receives"`
	// WildcardReceives counts matched receives posted with MPI_ANY_SOURCE or MPI_ANY_TAG.
	WildcardReceives int64 `json:"wildcard_receives"`
	// Dropped is the number of calls that could not be recorded.
	Dropped int64 `json:"dropped"`
	// InProgress is the number of calls that never returned.
	InProgress int64 `json:"in_progress"`
	// OverlappingCalls is the number of calls that were under way when the next one of their thread began, as they cannot be unless calls were
	// captured twice. The writer counts them.
	OverlappingCalls int64 `json:"overlapping_calls,omitempty"`
	// Choices is the number of messages and requests, in a run of virtual times, that a call took or completed where the program
	// left open which (MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_Waitany and their like); OutOfOrder is how many of them although one
	// that was earlier in virtual time came later.
	Choices    int64 `json:"choices,omitempty"`
	OutOfOrder int64 `json:"out_of_order,omitempty"`
	// EarlyCollectives is the number of nonblocking collectives, in such a run, that a test found complete before the
	// simulator knew their end.
	EarlyCollectives int64 `json:"early_collectives,omitempty"`
	// HashesVerified is the number of messages with a payload_hash and a recv_hash, HashMismatches of those where they differ.
	HashesVerified int64 `json:"hashes_verified,omitempty"`
	HashMismatches int64 `json:"hash_mismatches,omitempty"`
}

// TableInfo says what a table of the run holds and where.
type TableInfo struct {
	// Name is the table's name.
	Name string `json:"name"`
	// Rows is the number of its rows.
	Rows int64 `json:"rows"`
	// Digest is the 128-bit sum of the hashes of its rows, hexadecimal.
	Digest string `json:"digest"`
	// Files are its files.
	Files []FileInfo `json:"files"`
}

// FileInfo is one Parquet file of a run.
type FileInfo struct {
	// Path is the file's path within the run, with slashes.
	Path string `json:"path"`
	// Rows is the number of rows in it.
	Rows int64 `json:"rows"`
	// Bytes is its size.
	Bytes int64 `json:"bytes"`
}

// Origin says where a run came from: names, hosts, dates and command lines. It is free of the digest, so two
// captures of the same communication can have the same digest.
type Origin struct {
	// Name is the name the run was written under.
	Name string `json:"name"`
	// Label is what the user calls the conditions of the run, to tell it from others of the same program.
	Label string `json:"label,omitempty"`
	// Command is the traced program and its arguments.
	Command []string `json:"command,omitempty"`
	// Launcher is the launcher line.
	Launcher []string `json:"launcher,omitempty"`
	// MPI is the MPI library's own version text.
	MPI string `json:"mpi,omitempty"`
	// Hosts are the names of the machines, indexed by the column host of ranks.
	Hosts []string `json:"hosts,omitempty"`
	// Started is when the run began, RFC 3339 in UTC.
	Started string `json:"started,omitempty"`
	// ExitStatus is the launcher's exit status; nil when not known.
	ExitStatus *int `json:"exit_status,omitempty"`
	// Commq is the version of commq that wrote the run.
	Commq string `json:"commq"`
	// Job is the job's id in the spool.
	Job string `json:"job,omitempty"`
	// Trace says which trace of another tool the run was made from; nil when it was not.
	Trace *Trace `json:"trace,omitempty"`
	// Simulation says which machine the virtual times are of; nil in a run without.
	Simulation *Simulation `json:"simulation,omitempty"`
	// Replacement says of which run messages were replaced by collectives; nil in any other run.
	Replacement *Replacement `json:"replacement,omitempty"`
	// Replay says which run was played; nil in any other run.
	Replay *Replay `json:"replay,omitempty"`
	// Prediction says of which runs the run was extrapolated; nil in any other run.
	Prediction *Prediction `json:"prediction,omitempty"`
}

// Replay is the run that was played, and how.
type Replay struct {
	// Run and RunDigest are the name and the digest of the run that was played.
	Run       string `json:"run"`
	RunDigest string `json:"run_digest"`
	// Compute is what ranks did where the program computed: busy, sleep or zero.
	Compute string `json:"compute"`
	// Skip are the classes of calls that were left out.
	Skip []string `json:"skip,omitempty"`
}

// Prediction is how a run was predicted from others.
type Prediction struct {
	// Runs are the runs, with fewer or more ranks, by number of ranks.
	Runs []PredictedFrom `json:"runs"`
	// Inexact is how many of Numbers (bytes, counts, tags, roots) are estimates.
	Numbers int64 `json:"numbers"`
	Inexact int64 `json:"inexact"`
}

// PredictedFrom is a run that another one was predicted from.
type PredictedFrom struct {
	Run    string `json:"run"`
	Digest string `json:"digest"`
	Ranks  int32  `json:"ranks"`
}

// Replacement is what was replaced in a run.
type Replacement struct {
	// Run and RunDigest are the name and the digest of the run that has the messages.
	Run       string `json:"run"`
	RunDigest string `json:"run_digest"`
	// Collectives is the number of collectives that were put in place, Messages that of the messages that are gone.
	Collectives int64 `json:"collectives"`
	Messages    int64 `json:"messages"`
	// Left is the number of instances of findings that could not be put in place: their messages stay.
	Left int64 `json:"left,omitempty"`
}

// Trace is a trace of another tool that a run was made from.
type Trace struct {
	// Format is dim, the traces of Dimemas.
	Format string `json:"format"`
	// File is the file's name, without its folders.
	File string `json:"file"`
	// Program is what the trace says that it is of.
	Program string `json:"program,omitempty"`
}

// Simulation says how a run got its virtual times.
type Simulation struct {
	// Ranks is the number of simulator ranks, 0 for a run that was simulated afterwards. The times do not depend on it.
	Ranks int32 `json:"ranks,omitempty"`
	// Machine is the name of the machine, or the path of its file.
	Machine string `json:"machine,omitempty"`
	// Description is the text of the machine's file.
	Description string `json:"description,omitempty"`
	// Digest is the SHA-256 of Description, hexadecimal: equal for equal files, whatever they are called.
	Digest string `json:"digest,omitempty"`
	// Set is what was changed on the machine, KEY=VALUE each.
	Set []string `json:"set,omitempty"`
	// Dialect is that of a simulation afterwards; Run and RunDigest are the name and the digest of the run that was simulated.
	Dialect   string `json:"dialect,omitempty"`
	Run       string `json:"run,omitempty"`
	RunDigest string `json:"run_digest,omitempty"`
}
