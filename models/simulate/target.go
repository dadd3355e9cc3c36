package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// Target is a machine and the dialect to simulate it in.
type Target struct {
	Machine *models.Machine
	Dialect Dialect
	// Changes lists the changes made to the machine after it was read, as KEY=VALUE.
	Changes []string
	// LostPieces lists those of them that replaced bandwidths by size with one for all sizes.
	LostPieces []string
}

// TargetOptions describe a target by the flags of commq simulate.
type TargetOptions struct {
	// Machine is a file or the name of a machine that commq knows; see models.Load.
	Machine string
	// Dialect is one of Dialects; "" is Dimemas5 for a configuration of Dimemas, else Paper.
	Dialect string
	// Set lists changes of the machine, as KEY=VALUE.
	Set []string
	// Mapping is the node of each rank; see models.ParseMapping.
	Mapping string
}

// ReadTarget reads the machine and applies the changes. Errors name the flag that is wrong.
func ReadTarget(o TargetOptions) (*Target, error) {
	m, err := models.Load(o.Machine)
	if err != nil {
		return nil, err
	}
	lost, err := setAll(m, o.Set)
	if err != nil {
		return nil, err
	}
	t := &Target{Machine: m, Changes: slices.Clone(o.Set), LostPieces: lost}
	if o.Mapping != "" {
		t.Changes = append(t.Changes, mappingKey+o.Mapping)
	}
	if t.Dialect, err = parseDialect(o.Dialect, m); err != nil {
		return nil, err
	}
	return t, models.ParseMapping(m, o.Mapping)
}

// setAll changes keys of a machine, each as KEY=VALUE, and returns the changes that removed pieces.
func setAll(m *models.Machine, changes []string) (lostPieces []string, err error) {
	for _, kv := range changes {
		key, value, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, fmt.Errorf("--set %s: want KEY=VALUE, for example latency_ns=1500", kv)
		}
		if models.LosesPieces(m, key) {
			lostPieces = append(lostPieces, kv)
		}
		if err := m.Set(key, value); err != nil {
			return nil, fmt.Errorf("--set %s: %w", kv, err)
		}
	}
	if err := m.Consistent(); err != nil {
		return nil, fmt.Errorf("machine %s: %w", m.Name, err)
	}
	return lostPieces, nil
}

// TargetOf returns the target that the times of a run are from, by its manifest; see Target.Origin.
func TargetOf(s *schema.Simulation) (*Target, error) {
	if models.IsCFG([]byte(s.Description)) {
		return nil, fmt.Errorf("machine %s: a configuration of Dimemas names other files; name the machine "+
			"with --machine", s.Machine)
	}
	m, err := models.Read(s.Machine, strings.NewReader(s.Description))
	if err != nil {
		return nil, err
	}
	t, mapping := &Target{Machine: m, Changes: slices.Clone(s.Set)}, ""
	changes := slices.Clone(s.Set)
	if i := slices.IndexFunc(changes, isMapping); i >= 0 {
		mapping = strings.TrimPrefix(changes[i], mappingKey)
		changes = slices.DeleteFunc(changes, isMapping)
	}
	if _, err := setAll(m, changes); err != nil {
		return nil, err
	}
	if t.Dialect, err = parseDialect(s.Dialect, m); err != nil {
		return nil, err
	}
	return t, setMapping(m, mapping)
}

// setMapping sets the node of each rank by the mapping of a manifest, which is a word or a list, not a file.
func setMapping(m *models.Machine, mapping string) error {
	if isMappingWord(mapping) {
		return models.ParseMapping(m, mapping)
	}
	nodes, err := models.ReadMappingText(mapping)
	if err != nil {
		return fmt.Errorf("machine %s: the mapping of the run's ranks is not in its manifest: %w; simulate it again, "+
			"or name a machine with --machine", m.Name, err)
	}
	m.Mapping, m.NodeOf = models.Listed, nodes
	return nil
}

// mappingKey begins the change of a machine that --mapping makes.
const mappingKey = "mapping="

// isMappingWord reports whether the value of --mapping is no file.
func isMappingWord(mapping string) bool {
	return mapping == "" || mapping == "block" || mapping == "cyclic"
}

func isMapping(change string) bool { return strings.HasPrefix(change, mappingKey) }

// parseDialect finds a dialect by its name; "" is the machine's usual one.
func parseDialect(name string, m *models.Machine) (Dialect, error) {
	if name == "" {
		if models.IsCFG([]byte(m.Description)) {
			return Dimemas5, nil
		}
		return Paper, nil
	}
	i := slices.Index(Dialects, name)
	if i < 0 {
		return 0, fmt.Errorf("--dialect %s: want one of %s", name, strings.Join(Dialects, ", "))
	}
	return Dialect(i), nil
}

// SendWaits reports whether a call waits on the target for the receiver of a send. call is the send, or the call that
// made a persistent one; nonblocking: another call completes it.
func (t *Target) SendWaits(call schema.CallID, src, dst int32, bytes int64, nonblocking bool) bool {
	r := &rulesOf[t.Dialect]
	if r.arrivalOrder && (nonblocking || src == dst) { // Dimemas goes on at once
		return false
	}
	if call < 0 || int(call) >= len(sendFlags) { // unknown to this version
		return true
	}
	return r.waitsForReceiver(t.Machine, sendFlags[call], bytes, src == dst)
}

// Origin describes the target for the manifest of a run with its times. Instead of the file of a mapping, which may
// change, it has the node of each rank.
func (t *Target) Origin() *schema.Simulation {
	sum := sha256.Sum256([]byte(t.Machine.Description))
	set := slices.Clone(t.Changes)
	for i, change := range set {
		if mapping, is := strings.CutPrefix(change, mappingKey); is && !isMappingWord(mapping) {
			set[i] = mappingKey + models.MappingText(t.Machine.NodeOf)
		}
	}
	return &schema.Simulation{Machine: t.Machine.Name, Description: t.Machine.Description,
		Digest: hex.EncodeToString(sum[:]), Dialect: t.Dialect.String(), Set: set}
}

// Nanoseconds rounds a time to whole nanoseconds, half up.
func Nanoseconds(p Picoseconds) int64 { return int64((p + 500) / 1000) }

// Efficiency splits the parallel efficiency of a program into its factors, each a fraction of 1.
type Efficiency struct {
	// Parallel is the product of the other three: the mean computing time over the predicted time.
	Parallel float64
	// LoadBalance is the mean over the largest computing time of a rank.
	LoadBalance float64
	// Serialisation is the largest computing time over the time on an ideal network.
	Serialisation float64
	// Transfer is the time on an ideal network over the predicted time.
	Transfer float64
}

// NewEfficiency compares the results of one program on a machine and on the same machine with an ideal network. It
// returns nil for a program that takes no time, or whose ranks have several threads: their computing is a sum.
func NewEfficiency(r, ideal *Result) *Efficiency {
	var sum, most Picoseconds
	for _, t := range r.Ranks {
		sum += t.Compute
		most = max(most, t.Compute)
	}
	if r.Threads > 1 || most == 0 || ideal.Time == 0 || r.Time == 0 {
		return nil
	}
	mean := float64(sum) / float64(len(r.Ranks))
	return &Efficiency{Parallel: mean / float64(r.Time), LoadBalance: mean / float64(most),
		Serialisation: float64(most) / float64(ideal.Time), Transfer: float64(ideal.Time) / float64(r.Time)}
}
