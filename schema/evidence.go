package schema

// Evidence names what the calls of a run are evidence of: how they came about.
const (
	EvidenceCaptured  = "captured"  // a program made them
	EvidenceImported  = "imported"  // a trace of another tool has them
	EvidencePredicted = "predicted" // commq predict made them
	EvidenceReplaced  = "replaced"  // commq replaced messages of another run by collectives
	EvidenceSimulated = "simulated" // they are another run's, with times of commq simulate
	EvidenceReplayed  = "replayed"  // commq replay made them
)

// Evidence returns how the calls of the run came about: one of the constants Evidence. A run with virtual times of
// simulator ranks is captured. Where several hold, it returns the one farthest from a program: a simulation of a
// predicted run is predicted.
func (m *Manifest) Evidence() string {
	o := &m.Origin
	switch {
	case o.Prediction != nil, o.Replay != nil && o.Replay.Of == EvidencePredicted:
		return EvidencePredicted
	case o.Replacement != nil, o.Replay != nil && o.Replay.Of == EvidenceReplaced:
		return EvidenceReplaced
	case m.TimeOrigin == "simulated" && (o.Simulation != nil || o.Trace == nil), o.Replay != nil && o.Replay.Of == EvidenceSimulated:
		return EvidenceSimulated
	case o.Replay != nil:
		return EvidenceReplayed
	case o.Trace != nil:
		return EvidenceImported
	}
	return EvidenceCaptured
}
