package hang

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/commq/commq/capture/spool"
)

// Values of State.State.
const (
	InCall    = "in_call"   // in an MPI call
	Outside   = "outside"   // outside MPI: it computes, or polls with tests that fail
	Finalized = "finalized" // MPI_Finalize returned
	Aborted   = "aborted"   // it called MPI_Abort
	Missing   = "missing"   // it has no records in the folder
	// Unrecorded: its recording stopped, because its records reached their limit or could not be written.
	Unrecorded = "unrecorded"
)

// Values of Report.State, besides Finalized and Aborted.
const (
	Running = "running" // a process of the job is alive on this machine
	Killed  = "killed"  // neither finalized nor aborted, and the job is over or no process of it is alive here
)

// Report says what every thread of a job is doing and which ranks wait for which.
type Report struct {
	// Job is the job's id, Program the path of its executable.
	Job     string `json:"job"`
	Program string `json:"program"`
	// Ranks is the size of MPI_COMM_WORLD, Seen how many of its ranks have records.
	Ranks int32 `json:"ranks"`
	Seen  int   `json:"seen"`
	// State is running, finalized, aborted or killed; a job on other machines that did not end counts as killed.
	State string `json:"state"`
	// EndNs is the latest time in the records, in ns since the first MPI_Init.
	EndNs int64 `json:"end_ns"`
	// Findings are the conclusions from the states of the threads, the most important first.
	Findings []Finding `json:"findings"`
	// Threads are sorted by rank and thread.
	Threads []State `json:"threads"`
}

// Values of Finding.Kind.
const (
	Deadlock = "deadlock" // ranks that wait for each other in a circle
	Mismatch = "mismatch" // ranks in different collective operations at the same place
	Ended    = "ended"    // ranks wait for one that has ended
	Waiting  = "waiting"  // ranks wait for one that does not wait itself
	Unclear  = "unclear"  // something could not be read
)

// Finding is a conclusion about some ranks of a job.
type Finding struct {
	// Kind is deadlock (ranks wait for each other in a circle), mismatch (ranks are, or were lately, in different
	// collective operations at the same place), ended (ranks wait for one that has ended), waiting (ranks wait for one that does not wait
	// itself) or unclear (something could not be read, or was not recorded).
	Kind string `json:"kind"`
	// Ranks are the circle of a deadlock, in order; in other findings the waiting ranks, or those that were not recorded.
	Ranks []int32 `json:"ranks"`
	// For is the rank they wait for; null for a deadlock.
	For *int32 `json:"for"`
	// Text is the finding as a sentence.
	Text string `json:"text"`
}

// State is what a thread is doing.
type State struct {
	// Rank is the thread's rank in MPI_COMM_WORLD.
	Rank int32 `json:"rank"`
	// Thread is its number among the threads of the rank, from 0.
	Thread int32 `json:"thread"`
	// State is in_call, outside (outside MPI: it computes, or polls with tests that fail), finalized, aborted, missing
	// (it has no records in the folder) or unrecorded (its recording stopped, so what it does is not known).
	State string `json:"state"`
	// Call is the call that the thread is in; outside MPI the last one that it made.
	Call string `json:"call,omitempty"`
	// SinceNs is when the state began, in ns since the first MPI_Init (in virtual time in a job with simulator ranks);
	// null when it is not known.
	SinceNs *int64 `json:"since_ns"`
	// Calls is the number of calls recorded before.
	Calls int64 `json:"calls"`
	// Site is where the call is in the program; empty when it is not known.
	Site string `json:"callsite,omitempty"`
	// Pending are the operations that the call waits for: itself, or the requests of a completion call. For MPI_Waitany
	// and MPI_Waitsome these are all requests of the rank.
	Pending []Operation `json:"pending,omitempty"`
	// WaitsFor are the world ranks that must act before the call can return. With Any, one of them is enough.
	WaitsFor []int32 `json:"waits_for"`
	Any      bool    `json:"any,omitempty"`
	// Text describes the state, without the time and without the ranks that the thread waits for.
	Text string `json:"text"`

	known bool // WaitsFor is complete
}

// Operation is a send, a receive or a collective operation that is not complete.
type Operation struct {
	// Call is the MPI function.
	Call string `json:"call"`
	// Peer is the world rank of the receiver or the source; null for MPI_ANY_SOURCE and collectives, and when it is not
	// known.
	Peer *int32 `json:"peer"`
	// Tag is null for MPI_ANY_TAG and collectives.
	Tag *int32 `json:"tag"`
	// Comm is the name of the communicator, or how it was made.
	Comm string `json:"comm_name,omitempty"`
	// Bytes is the payload of a send, the size of the buffer of a receive, or the send argument of a collective; null
	// when it is not known.
	Bytes *int64 `json:"bytes"`
	// Instance counts the collective operations on the communicator, from 0; null for other operations.
	Instance *int64 `json:"instance"`
	// Matched is true when the other side has posted its part too, so that nothing but progress is missing.
	Matched bool `json:"matched"`
	// WaitsFor are the world ranks that have not posted their part. With Any, one of them is enough.
	WaitsFor []int32 `json:"waits_for"`
	Any      bool    `json:"any,omitempty"`
	// Hint is a further clue, as a clause; it may be empty.
	Hint string `json:"hint,omitempty"`
	// Site is where the operation was posted; empty when it is not known.
	Site string `json:"callsite,omitempty"`

	send bool
	null bool // the peer is MPI_PROC_NULL
}

// Report describes the job as the last Update found it. Files are read one after the other, so their states may be from
// different times. Therefore it draws no conclusions from a call of a running job that the update before did not find
// in progress too.
func (j *Job) Report() *Report {
	r := &Report{Job: j.Info.ID, Program: j.Info.Program, Ranks: j.Info.Ranks, Seen: len(j.ranks)}
	a := newAnalysis(j)
	if a.err != nil {
		r.Findings = append(r.Findings, Finding{Kind: Unclear, Ranks: []int32{},
			Text: "the communicators cannot be told apart: " + a.err.Error()})
	}
	r.State = j.state()
	for _, k := range j.sorted() {
		for _, t := range k.threads {
			s := a.describe(t)
			s.known = s.known && (t.seen > 1 || r.State != Running)
			if s.SinceNs != nil {
				r.EndNs = max(r.EndNs, *s.SinceNs)
			}
			r.Threads = append(r.Threads, s)
		}
	}
	r.Threads = append(r.Threads, missingStates(a.ranks, r.Ranks)...)
	slices.SortStableFunc(r.Threads, func(x, y State) int { return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Thread, y.Thread)) })
	mismatched, in := a.mismatches()
	r.Findings = append(r.Findings, mismatched...)
	r.Findings = append(r.Findings, unexplained(findings(r.Threads), in)...)
	r.Findings = append(r.Findings, unrecorded(r.Threads)...)
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	return r
}

// unrecorded makes a finding of the ranks whose recording stopped.
func unrecorded(states []State) []Finding {
	var ranks []int32
	for i := range states {
		if s := &states[i]; s.State == Unrecorded && !slices.Contains(ranks[max(0, len(ranks)-1):], s.Rank) {
			ranks = append(ranks, s.Rank)
		}
	}
	switch len(ranks) {
	case 0:
		return nil
	case 1:
		return []Finding{{Kind: Unclear, Ranks: ranks,
			Text: fmt.Sprintf("rank %d is no longer recorded, so what it does is not known", ranks[0])}}
	}
	return []Finding{{Kind: Unclear, Ranks: ranks,
		Text: fmt.Sprintf("ranks %s are no longer recorded, so what they do is not known", rankList(ranks))}}
}

// maxMissing is the largest number of ranks without records that a report lists.
const maxMissing = 1 << 16

// missingStates returns states for the ranks without records in a job of this size.
func missingStates(ranks []*rank, size int32) []State {
	var missing []State
	next := int32(0)
	addUpTo := func(end int32) {
		for ; next < end && len(missing) < maxMissing; next++ {
			missing = append(missing, State{Rank: next, State: Missing, WaitsFor: []int32{}, Text: "no records"})
		}
	}
	for _, k := range ranks {
		addUpTo(k.rank)
		next = k.rank + 1
	}
	addUpTo(size)
	return missing
}

// state returns the state of the whole job.
func (j *Job) state() string {
	finalized := len(j.ranks) >= int(j.Info.Ranks)
	for _, r := range j.ranks {
		t := r.threads[0]
		switch t.h.Ended {
		case spool.EndedAborted:
			return Aborted
		case spool.EndedNot:
			finalized = false
		}
	}
	if finalized {
		return Finalized
	}
	for _, r := range j.ranks {
		if !j.Over && isAlive(&r.threads[0].h) {
			return Running
		}
	}
	return Killed
}

// isAlive reports whether the process that wrote the file is alive on this machine.
func isAlive(h *spool.Header) bool {
	if h.Pid <= 0 || h.Pid > math.MaxInt32 || h.Ended != spool.EndedNot || !onThisMachine(h) {
		return false
	}
	if err := syscall.Kill(int(h.Pid), 0); err != nil && err != syscall.EPERM {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.Pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	if strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X") {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", h.Pid))
	return runs(exe, err, spool.Text(h.Program[:]))
}

// runs reports whether a process runs a program, given the link to its executable or the error of reading it. A process
// that is ending has no executable any more, often for long before it is a zombie. Without permission to read the link
// the process is taken for the program.
func runs(exe string, err error, program string) bool {
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return strings.HasSuffix(strings.TrimSuffix(exe, " (deleted)"), filepath.Base(program))
}

// onThisMachine reports whether the file was written on this machine since it was booted.
func onThisMachine(h *spool.Header) bool {
	boot := bootID()
	return boot != "" && boot == spool.Text(h.BootID[:])
}

// bootID identifies the current boot of this machine; it is empty if it cannot be read.
var bootID = sync.OnceValue(func() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot))
})
