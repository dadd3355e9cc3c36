package schema

import (
	"fmt"
	"strconv"
)

// Manifest describes a run. It is the file manifest.json in the run's folder and is written last: a folder without
// one is not a run. Everything but Origin and the layout of files is part of the run's identity.
type Manifest struct {
	// SchemaVersion is Version at the time of writing.
	SchemaVersion int `json:"schema_version"`
	// Ranks is the number of processes in MPI_COMM_WORLD.
	Ranks int32 `json:"ranks"`
	// TimeOrigin is where start_ns and end_ns come from: measured, virtual, simulated or untimed. Simulated times are
	// those of commq simulate, or places that an importer gave to the durations of a trace without times (Simulation
	// is then nil).
	TimeOrigin string `json:"time_origin"`
	// TimeResolutionNs is the resolution of start_ns and end_ns: 1, or the power of two they were rounded down to.
	TimeResolutionNs int64 `json:"time_resolution_ns"`
	// ComputeClock is the clock that compute_ns was taken with: cpu, wall, device (when the rank's own device, such as
	// a GPU, computed) or none.
	ComputeClock string `json:"compute_clock"`
	// Record tells which rows of events the run has: all; messages, where the rows of matched messages and their
	// completion calls were dropped after matching; or collectives, where all rows of point-to-point communication and
	// its messages were dropped.
	Record string `json:"record"`
	// Filters lists what else was dropped after matching, a word each: pcontrol where MPI_Pcontrol switched recording
	// off, call:PATTERN and -call:PATTERN for calls kept and dropped by name. A message is dropped with the row that
	// sent it. Empty when nothing was dropped.
	Filters []string `json:"filters,omitempty"`
	// Hash is the payload hash: none, crc64 or crc32.
	Hash string `json:"hash"`
	// HashVerify reports whether receives were hashed too (recv_hash of messages).
	HashVerify bool `json:"hash_verify,omitempty"`
	// Callsites reports whether the rows have call sites.
	Callsites bool `json:"callsites"`
	// Stack is the number of frames recorded for a call site: 1 means the return address only, 0 none.
	Stack int32 `json:"stack,omitempty"`
	// Counters is where instructions and cycles come from: perf, or fake in tests; empty when they were not counted.
	Counters string `json:"counters,omitempty"`
	// Ended is finalized when every rank reached MPI_Finalize, else aborted or killed.
	Ended string `json:"ended"`
	// EndNs is the latest end_ns of the run, in ns since its start; 0 in an untimed run.
	EndNs int64 `json:"end_ns"`
	// Epochs is the number of epochs: epoch runs from 0 to Epochs-1.
	Epochs int32 `json:"epochs"`
	// Counts are the run's totals.
	Counts Counts `json:"counts"`
	// Payloads is a fingerprint of the payloads of all messages that have a hash, with their senders, receivers and
	// sizes, whatever their order: the measure payloads. It is missing in runs without hashes, and in those of older
	// commqs.
	Payloads *int64 `json:"payloads,omitempty"`
	// Collectives is the number of collective operations by MPI name; nonblocking forms count under their own names.
	// The sum is Counts.Collectives.
	Collectives map[string]int64 `json:"collectives,omitempty"`
	// Tables lists the run's tables in the order of docs/SCHEMA.md. A derived table without files is missing in the
	// run.
	Tables []TableInfo `json:"tables"`
	// Digest is the run's digest: it depends on the tables' rows and the schema version, not on file layout or codec.
	Digest string `json:"digest"`
	// Warnings tell what a reader of the run should know, in a sentence each.
	Warnings []string `json:"warnings,omitempty"`
	// Origin tells where the run came from; it is not part of the digest.
	Origin Origin `json:"origin"`
	// Sum is the 64-bit xxh3 hash of the text of the manifest before this field, without the comma, 16 hexadecimal
	// digits; empty in runs of older commqs. Readers compare it. Without the field nothing is compared.
	Sum string `json:"sum,omitempty"`
}

// Counts are totals over all ranks. With Record messages or collectives, and with Filters, they still count
// everything that was captured.
type Counts struct {
	// Calls is the number of MPI calls recorded (rows of events before any were dropped).
	Calls int64 `json:"calls"`
	// Polls is the number of failed tests and probes, which are counted and not recorded.
	Polls int64 `json:"polls"`
	// Messages is the number of matched point-to-point messages; MessageBytes their payload.
	Messages     int64 `json:"messages"`
	MessageBytes int64 `json:"message_bytes"`
	// Collectives is the number of collective operations: P ranks in one barrier are one. Calls that returned an error
	// are none.
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
	// OverlappingCalls is the number of calls that had not ended when the next call of their thread began, which
	// happens when calls are captured twice. The writer counts them.
	OverlappingCalls int64 `json:"overlapping_calls,omitempty"`
	// Choices is, in a run of virtual times, the number of messages and requests that a call took or completed where
	// the program left open which one (MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_Waitany and the like). OutOfOrder is how many
	// of them were not the earliest in virtual time, because the earliest came later.
	Choices    int64 `json:"choices,omitempty"`
	OutOfOrder int64 `json:"out_of_order,omitempty"`
	// EarlyCollectives is, in such a run, the number of nonblocking collectives that a test found complete before the
	// simulator knew their end.
	EarlyCollectives int64 `json:"early_collectives,omitempty"`
	// HashesVerified is the number of messages with a payload_hash and a recv_hash, HashMismatches the number of those
	// where the two differ.
	HashesVerified int64 `json:"hashes_verified,omitempty"`
	HashMismatches int64 `json:"hash_mismatches,omitempty"`
}

// TableInfo describes a table of the run.
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

// FileBytes is the size of its files.
func (t *TableInfo) FileBytes() int64 {
	var sum int64
	for _, f := range t.Files {
		sum += f.Bytes
	}
	return sum
}

// BytesPerRow returns the size of its files by rows; false if it has none.
func (t *TableInfo) BytesPerRow() (bytes float64, known bool) {
	if t.Rows == 0 {
		return 0, false
	}
	return float64(t.FileBytes()) / float64(t.Rows), true
}

// FileInfo is one Parquet file of a run.
type FileInfo struct {
	// Path is the file's path within the run, with slashes.
	Path string `json:"path"`
	// Rows is the number of rows in it.
	Rows int64 `json:"rows"`
	// Bytes is its size.
	Bytes int64 `json:"bytes"`
	// Sum is the 64-bit xxh3 hash of the file, 16 hexadecimal digits; empty in runs of older commqs.
	Sum string `json:"sum,omitempty"`
	// FooterSum is the same of its footer: the metadata, their length and the last four bytes.
	FooterSum string `json:"footer_sum,omitempty"`
	// HeadersSum is the same of what is neither footer nor data of pages: the headers of pages, the metadata behind each
	// column, the index of pages.
	HeadersSum string `json:"headers_sum,omitempty"`
}

// Origin tells where a run came from: names, hosts, dates and command lines. It is not part of the digest, so two
// captures of the same communication can have the same digest.
type Origin struct {
	// Name is the name the run was written under.
	Name string `json:"name"`
	// Label is the user's name for the conditions of the run, to tell it from other runs of the same program.
	Label string `json:"label,omitempty"`
	// Command is the traced program and its arguments.
	Command []string `json:"command,omitempty"`
	// Launcher is the launcher line.
	Launcher []string `json:"launcher,omitempty"`
	// MPI is the version text of the MPI library.
	MPI string `json:"mpi,omitempty"`
	// Hosts are the names of the machines, indexed by the column host of ranks.
	Hosts []string `json:"hosts,omitempty"`
	// Cores are the cores of the hosts, in the order of Hosts. A host whose ranks do not tell is left out; runs of
	// older versions of commq have none.
	Cores []HostCores `json:"cores,omitempty"`
	// Started is when the run began, RFC 3339 in UTC.
	Started string `json:"started,omitempty"`
	// ExitStatus is the launcher's exit status; nil when it is not known.
	ExitStatus *int `json:"exit_status,omitempty"`
	// Commq is the version of commq that wrote the run.
	Commq string `json:"commq"`
	// Job is the job's id in the spool.
	Job string `json:"job,omitempty"`
	// Trace is the trace of another tool that the run was imported from; nil for other runs.
	Trace *Trace `json:"trace,omitempty"`
	// Simulation is how the run got its virtual or simulated times; nil for other runs.
	Simulation *Simulation `json:"simulation,omitempty"`
	// Replacement tells that messages of a run were replaced by collectives; nil for other runs.
	Replacement *Replacement `json:"replacement,omitempty"`
	// Replay tells that the run replayed another one; nil for other runs.
	Replay *Replay `json:"replay,omitempty"`
	// Prediction tells which runs the run was extrapolated from; nil for other runs.
	Prediction *Prediction `json:"prediction,omitempty"`
}

// HostCores tells which cores the ranks on a host might use at MPI_Init. A core is a CPU of the operating system, so
// that two hardware threads are two cores; limits of CPU time, which containers have, do not count.
type HostCores struct {
	// Host is the index of the host's name in Hosts.
	Host int32 `json:"host"`
	// Ranks is the number of ranks on the host, Cores the number of cores that they might use, all together.
	Ranks int32 `json:"ranks"`
	Cores int32 `json:"cores"`
	// Least and Most are the least and the largest number of cores that a rank might use: less than Cores where the
	// launcher binds ranks to cores.
	Least int32 `json:"least"`
	Most  int32 `json:"most"`
	// SharingRanks is the number of ranks that have only SharedCores cores together, fewer than they are: of several
	// such groups the one with the fewest cores per rank. Both are 0 where each rank can have a core.
	SharingRanks int32 `json:"sharing_ranks,omitempty"`
	SharedCores  int32 `json:"shared_cores,omitempty"`
}

// FileBytes is the size of the files of all tables.
func (m *Manifest) FileBytes() int64 {
	var sum int64
	for i := range m.Tables {
		sum += m.Tables[i].FileBytes()
	}
	return sum
}

// HeldTables returns the tables that the run has: derived ones may be missing.
func (m *Manifest) HeldTables() (held []*TableInfo) {
	for i := range m.Tables {
		if len(m.Tables[i].Files) > 0 {
			held = append(held, &m.Tables[i])
		}
	}
	return held
}

// SharedCores returns the hosts on which ranks had fewer cores than they are.
func (m *Manifest) SharedCores() (shared []HostCores) {
	for _, c := range m.Origin.Cores {
		if c.SharingRanks > 0 {
			shared = append(shared, c)
		}
	}
	return shared
}

// HostName is the name of the host with this index, or its number where names are not known.
func (o *Origin) HostName(host int32) string {
	if host >= 0 && int(host) < len(o.Hosts) {
		return o.Hosts[host]
	}
	return strconv.Itoa(int(host))
}

// Replay describes a replay.
type Replay struct {
	// Run and RunDigest are the name and digest of the run that was replayed.
	Run       string `json:"run"`
	RunDigest string `json:"run_digest"`
	// Compute is how ranks spent the program's compute times: busy, sleep or zero.
	Compute string `json:"compute"`
	// Skip lists the classes of calls that were left out.
	Skip []string `json:"skip,omitempty"`
	// Of is how the run that was replayed came about: captured, imported, predicted, replaced, simulated or replayed.
	Of string `json:"of,omitempty"`
}

// Prediction describes how a run was predicted from others.
type Prediction struct {
	// Runs are the runs it was predicted from, by number of ranks.
	Runs []PredictedFrom `json:"runs"`
	// Inexact is how many of the Numbers in the prediction (bytes, counts, tags, roots) are estimates.
	Numbers int64 `json:"numbers"`
	Inexact int64 `json:"inexact"`
}

// PredictedFrom is a run that another one was predicted from.
type PredictedFrom struct {
	// Run is the name of the run.
	Run string `json:"run"`
	// Digest is its digest.
	Digest string `json:"digest"`
	// Ranks is its number of ranks.
	Ranks int32 `json:"ranks"`
}

// Replacement describes the replacement of messages by collectives.
type Replacement struct {
	// Run and RunDigest are the name and digest of the run that has the messages.
	Run       string `json:"run"`
	RunDigest string `json:"run_digest"`
	// Collectives is the number of collectives inserted, Messages that of messages removed.
	Collectives int64 `json:"collectives"`
	Messages    int64 `json:"messages"`
	// Left is the number of occurrences of findings that could not be replaced: their messages stay.
	Left int64 `json:"left,omitempty"`
}

// Trace describes the trace of another tool that a run was imported from.
type Trace struct {
	// Format is the trace format: dim for Dimemas, otf2 for the Open Trace Format 2, kineto for training jobs,
	// chakra for execution traces, tit for the simulator of that name, dumpi and liballprof for traces of calls,
	// prv for Paraver.
	Format string `json:"format"`
	// File is the file's name, without its folders.
	File string `json:"file"`
	// Program is the program that the trace names.
	Program string `json:"program,omitempty"`
}

// Simulation describes how a run got its virtual or simulated times.
type Simulation struct {
	// Ranks is the number of simulator ranks, 0 for a run that was simulated after its capture. Times do not depend on
	// it.
	Ranks int32 `json:"ranks,omitempty"`
	// Machine is the name of the machine, or the path of its file.
	Machine string `json:"machine,omitempty"`
	// Description is the text of the machine's file.
	Description string `json:"description,omitempty"`
	// Digest is the SHA-256 of Description, hexadecimal.
	Digest string `json:"digest,omitempty"`
	// Set lists parameters of the machine that were changed, each as KEY=VALUE.
	Set []string `json:"set,omitempty"`
	// Dialect is the dialect of a simulation after capture. Run and RunDigest are the name and digest of the simulated
	// run.
	Dialect   string `json:"dialect,omitempty"`
	Run       string `json:"run,omitempty"`
	RunDigest string `json:"run_digest,omitempty"`
}

// GivenTwice is the error of a run that is given twice, where runs are told apart.
func GivenTwice(name string) error { return fmt.Errorf("run %q is given twice; give it once", name) }

// CalledAlike is the error of two runs with one name, where runs are told apart by their names.
func CalledAlike(name string) error {
	return fmt.Errorf("two runs are called %q; give each once, or copy one of them to another name", name)
}
