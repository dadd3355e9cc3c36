// Package doctor checks what a capture depends on and what came out of it: the machine (compilers, launchers,
// libraries, folders), a program (its MPI library and what it calls), and a run (lost records, clocks, unmatched
// messages). Every check is a Finding with what was found and what to do about it.
package doctor

import (
	"fmt"
	"os"
	"slices"
)

// Status is the outcome of a check.
type Status string

// The outcomes of a check.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failed  Status = "failed"
)

// Finding is the outcome of one check.
type Finding struct {
	// Check is the name of the check.
	Check string `json:"check"`
	// Status is ok, warning or failed.
	Status Status `json:"status"`
	// Found is what was found, as a sentence or a few lines.
	Found string `json:"found"`
	// Do is what the user should do about it; empty where nothing is to be done.
	Do string `json:"do,omitempty"`
}

// AnyFailed reports whether a check failed.
func AnyFailed(list []Finding) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.Status == Failed })
}

func ok(check, found string, args ...any) Finding {
	return Finding{Check: check, Status: OK, Found: fmt.Sprintf(found, args...)}
}

func warning(check, do, found string, args ...any) Finding {
	return Finding{check, Warning, fmt.Sprintf(found, args...), do}
}

func failure(check, do, found string, args ...any) Finding {
	return Finding{check, Failed, fmt.Sprintf(found, args...), do}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
