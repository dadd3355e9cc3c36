package schema

import "testing"

func TestEvidence(t *testing.T) {
	for want, m := range map[string]Manifest{
		EvidenceCaptured:  {TimeOrigin: "virtual", Origin: Origin{Simulation: &Simulation{Ranks: 1}}},
		EvidenceImported:  {TimeOrigin: "untimed", Origin: Origin{Trace: &Trace{}}},
		EvidencePredicted: {TimeOrigin: "simulated", Origin: Origin{Prediction: &Prediction{}}},
		EvidenceReplaced:  {TimeOrigin: "untimed", Origin: Origin{Replacement: &Replacement{}}},
		EvidenceSimulated: {TimeOrigin: "simulated"},
		EvidenceReplayed:  {TimeOrigin: "measured", Origin: Origin{Replay: &Replay{Of: EvidenceCaptured}}},
	} {
		if got := m.Evidence(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	m := Manifest{TimeOrigin: "measured", Origin: Origin{Replay: &Replay{Of: EvidencePredicted}}}
	if got := m.Evidence(); got != EvidencePredicted {
		t.Errorf("a replay of a prediction is %s", got)
	}
}
