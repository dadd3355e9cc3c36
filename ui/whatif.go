package ui

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/run"
)

// Machine is a machine that commq knows by name, with the values that the page changes.
type Machine struct {
	// Name is what --machine takes.
	Name string `json:"name"`
	// LatencyNs and BytesPerSecond are of the network between nodes; 0 bytes/s is infinitely fast.
	LatencyNs      float64 `json:"latency_ns"`
	BytesPerSecond float64 `json:"bandwidth_bytes_per_s"`
	// Buses is the number of messages that can be under way at a time; 0 is any number.
	Buses int `json:"buses"`
	// CPUsPerNode is the number of CPUs of a node.
	CPUsPerNode int `json:"cpus_per_node"`
	// CPURatio is the speed of its CPUs relative to those that the run was captured on.
	CPURatio float64 `json:"cpu_ratio"`
}

// Simulation simulates a run on a machine with changes KEY=VALUE, and returns the answer of commq simulate with the
// critical path, as a value to be encoded in JSON.
type Simulation func(ctx context.Context, found run.Found, machine string, changes []string) (any, error)

// changeable are the keys of a machine that the page changes.
var changeable = []string{"latency_ns", "bandwidth_bytes_per_s", "buses", "cpu_ratio", "cpus_per_node"}

// machines lists the machines.
func (s *Server) machines(w http.ResponseWriter, _ *http.Request) { answer(w, s.options.Machines) }

// Simulated is the answer of a what-if.
type Simulated struct {
	// Answer is that of commq simulate.
	Answer any `json:"answer"`
	// Command is the command line.
	Command string `json:"command"`
}

// whatIf simulates a run on a machine. Its network and CPUs may have other values; a machine of a file cannot be named.
func (s *Server) whatIf(w http.ResponseWriter, r *http.Request) {
	found, err := s.singleRun(r)
	machine, changes, badMachine := readMachine(r, s.options.Machines)
	if err = cmp.Or(err, badMachine, s.predictions.refuse(found)); err != nil {
		fail(w, r, err)
		return
	}
	simulated, err := s.options.Simulate(r.Context(), found, machine, changes)
	if err != nil {
		fail(w, r, badRequest{err})
		return
	}
	words := append(s.options.simulateCommand(found, machine, changes), "--critical-path")
	answerAbout(w, found, Simulated{simulated, shellquote.Join(words...)})
}

// readMachine reads the machine and its changes that a request names.
func readMachine(r *http.Request, machines []Machine) (machine string, changes []string, err error) {
	machine, changes = r.URL.Query().Get("machine"), r.URL.Query()["set"]
	if !slices.ContainsFunc(machines, func(m Machine) bool { return m.Name == machine }) {
		return "", nil, badRequest{fmt.Errorf("there is no machine %q", machine)}
	}
	for _, change := range changes {
		if key, _, _ := strings.Cut(change, "="); !slices.Contains(changeable, key) {
			return "", nil, badRequest{fmt.Errorf("set %s: want %s", change, strings.Join(changeable, ", "))}
		}
	}
	return machine, changes, nil
}

// simulateCommand returns the command line that simulates a run on a machine.
func (o *Options) simulateCommand(found run.Found, machine string, changes []string) []string {
	words := append([]string{"commq", "simulate"}, o.Args(found)...)
	words = append(words, "--machine", machine)
	for _, change := range changes {
		words = append(words, "--set", change)
	}
	return words
}
