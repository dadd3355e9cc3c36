package ingest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/commq/commq/schema"
)

// SimulationSuffix ends the name of the file, behind the job's id, in which a simulator rank leaves what it simulates: a
// schema.Simulation as JSON.
const SimulationSuffix = ".sim.json"

// maxSimulationBytes bounds what is read of such a file: a machine's description has some hundred bytes.
const maxSimulationBytes = 4 << 20

// readSimulation reads what a simulator rank left.
func readSimulation(path string) (*schema.Simulation, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSimulationBytes))
	s := new(schema.Simulation)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: not what a simulator rank left: %w; without the file the run does not say which machine its times are of", path, err)
	}
	return s, nil
}

// addSimulation counts what made the virtual times depend on the real ones, and says so.
func (j *job) addSimulation() {
	c := &j.counts
	for _, r := range j.ranks {
		for _, f := range r.files {
			c.OutOfOrder += int64(f.Header.OutOfOrder)
			c.EarlyCollectives += int64(f.Header.Early)
		}
	}
	if c.OutOfOrder > 0 {
		j.warn("%d receives got a message, or completions a request, although one that was earlier in virtual time came later (MPI_ANY_SOURCE, MPI_Waitany and their like): the virtual times depend on the real ones.", c.OutOfOrder)
	}
	if c.EarlyCollectives > 0 {
		j.warn("%d nonblocking collectives were complete in a test before their virtual end was known: they end when the test was made.", c.EarlyCollectives)
	}
}
