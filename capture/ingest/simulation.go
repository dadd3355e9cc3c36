package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/commq/commq/capture/simrank"
	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/schema"
)

// summaryName is the name of the summary that the process of a simulator rank writes into the spool.
var summaryName = regexp.MustCompile(`^([0-9a-f]{16})\.simulator\.[0-9]{1,9}\.json$`)

// maxSummaryBytes limits the size of such a file. Most of it is the machine's description.
const maxSummaryBytes = 4 << 20

// maxChoices is more choices than all ranks of a simulator rank make.
const maxChoices = 1 << 48

// simulation has the counts of the simulator ranks of a job together, and the simulation that they made.
type simulation struct {
	choices, outOfOrder, early int64
	origin                     *schema.Simulation // nil: nothing was simulated
}

// readSimulation reads the summaries of the job's simulator ranks. given is what the caller knows about the
// simulation. It is dropped if the times are measured: then this is not the program that the caller meant to
// simulate.
func readSimulation(j *job, given *schema.Simulation) (*simulation, error) {
	sim := &simulation{}
	if !j.virtual() {
		return sim, nil
	}
	if given != nil {
		known := *given
		sim.origin = &known
	}
	for _, name := range j.summaries {
		path := filepath.Join(j.dir, name)
		s, err := readSummary(path)
		if err != nil {
			return nil, fmt.Errorf("%s: not the summary of a simulator rank: %w; without the file the run does not tell what was simulated",
				path, err)
		}
		sim.choices += s.Choices
		sim.outOfOrder += s.OutOfOrder
		sim.early += s.Early
		if sim.origin == nil {
			sim.origin = &schema.Simulation{Ranks: int32(len(j.summaries)), Machine: s.Machine,
				Description: s.Description}
		}
	}
	if s := sim.origin; s != nil {
		sum := sha256.Sum256([]byte(s.Description))
		s.Digest = hex.EncodeToString(sum[:])
	}
	return sim, nil
}

func readSummary(path string) (*simrank.Summary, error) {
	text, err := bounded.ReadRegular(path, maxSummaryBytes)
	if err != nil {
		return nil, err
	}
	s := new(simrank.Summary)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, err
	}
	for _, n := range []int64{s.Choices, s.OutOfOrder, s.Early} {
		if n < 0 || n > maxChoices {
			return nil, fmt.Errorf("choices %d, out_of_order %d, early %d; want numbers from 0 to %d", s.Choices, s.OutOfOrder,
				s.Early, int64(maxChoices))
		}
	}
	return s, nil
}

// warn warns of virtual times that depend on real ones.
func (s *simulation) warn(w *warnings) {
	if s.outOfOrder > 0 {
		w.add("In %d of %d choices that the program left open (MPI_ANY_SOURCE, MPI_Waitany and the like), it got a message or request although one that came later was earlier in virtual time: the virtual times depend on the real ones.",
			s.outOfOrder, s.choices)
	}
	if s.early > 0 {
		w.add("%d nonblocking collectives were complete in a test before their virtual end was known: they end at the time of that test.",
			s.early)
	}
}
