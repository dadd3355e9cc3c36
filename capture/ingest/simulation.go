package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/commq/commq/capture/simrank"
	"github.com/commq/commq/schema"
)

// summaryName is the name of what a simulator rank's process leaves in the spool.
var summaryName = regexp.MustCompile(`^([0-9a-f]{16})\.simulator\.[0-9]{1,9}\.json$`)

// maxSummaryBytes bounds what is read of such a file, most of which is the machine's description.
const maxSummaryBytes = 4 << 20

// readSummaries reads what the simulator ranks of the job left.
func (j *job) readSummaries(names []string) error {
	if !j.virtual() {
		j.o.Origin.Simulation = nil // nobody simulated: the program was not the one that was meant
		return nil
	}
	for _, name := range names {
		path := filepath.Join(j.dir, name)
		s, err := readSummary(path)
		if err != nil {
			return fmt.Errorf("%s: not what a simulator rank left: %w; without the file the run does not say what was simulated", path, err)
		}
		j.counts.Choices += s.Choices
		j.counts.OutOfOrder += s.OutOfOrder
		j.counts.EarlyCollectives += s.Early
		if j.o.Origin.Simulation == nil {
			j.o.Origin.Simulation = &schema.Simulation{Ranks: int32(len(names)), Machine: s.Machine, Description: s.Description}
		}
	}
	if s := j.o.Origin.Simulation; s != nil {
		sum := sha256.Sum256([]byte(s.Description))
		s.Digest = hex.EncodeToString(sum[:])
	}
	return nil
}

func readSummary(path string) (*simrank.Summary, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSummaryBytes))
	if err != nil {
		return nil, err
	}
	s := new(simrank.Summary)
	return s, json.Unmarshal(text, s)
}

// warnVirtual says where virtual times depend on real ones.
func (j *job) warnVirtual() {
	c := &j.counts
	if c.OutOfOrder > 0 {
		j.warn("%d of %d choices that the program left open (MPI_ANY_SOURCE, MPI_Waitany and their like) fell on a message or request although one that came later was earlier in virtual time: the virtual times depend on the real ones.", c.OutOfOrder, c.Choices)
	}
	if c.EarlyCollectives > 0 {
		j.warn("%d nonblocking collectives were complete in a test before their virtual end was known: they end when the test was made.", c.EarlyCollectives)
	}
}
