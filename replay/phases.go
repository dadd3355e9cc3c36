package replay

import "slices"

// PlayedPhase is a phase that was played.
type PlayedPhase struct {
	// Phase is its number, from 1 as commq phases has it. Weight is how often the program repeats it.
	Phase  int   `json:"phase"`
	Weight int64 `json:"weight"`
	// TimeNs is the mean time of the repetitions that were played, each the mean over ranks; TimeNsMin and TimeNsMax
	// are the shortest and the longest.
	TimeNs    int64 `json:"time_ns"`
	TimeNsMin int64 `json:"time_min_ns"`
	TimeNsMax int64 `json:"time_max_ns"`
	// TotalNs is TimeNs times the weight.
	TotalNs int64 `json:"total_ns"`
	// RunNs is the time of a repetition in the run that was played, nil if it has no times. Share is the phase's
	// fraction of the ranks' time, or of their calls in an untimed run.
	RunNs *int64  `json:"run_time_ns"`
	Share float64 `json:"share"`
}

// PhasePrediction is the time of a program as predicted from its phases, which were played.
type PhasePrediction struct {
	// Run is the name of the run.
	Run string `json:"run"`
	// Ranks is its number of ranks.
	Ranks int32 `json:"ranks"`
	// Repeat is how many repetitions of each phase were played.
	Repeat int `json:"repeat"`
	// Phases are the phases that were played.
	Phases []PlayedPhase `json:"phases"`
	// PETNs is the predicted execution time, the sum of each phase's time times its weight (PAS2P, equation 1).
	// PETNsMin and PETNsMax are the least and the greatest of the sums of single repetitions.
	PETNs    int64 `json:"predicted_ns"`
	PETNsMin int64 `json:"predicted_min_ns"`
	PETNsMax int64 `json:"predicted_max_ns"`
	// Coverage is the phases' fraction of the run's time, or of its calls if it is untimed.
	Coverage float64 `json:"coverage"`
	// RunNs is how long the run that was played took; nil if its times were not measured.
	RunNs *int64 `json:"run_ns"`
	// PlayedNs is how long playing the phases took.
	PlayedNs int64 `json:"played_ns"`
	// Notes are what the player could not do as the program did.
	Notes []string `json:"notes,omitempty"`
}

// AddPhase adds a phase to be played.
func (p *PhasePrediction) AddPhase(phase int, weight int64, runNs *int64, share float64) {
	p.Coverage += share
	p.Phases = append(p.Phases, PlayedPhase{Phase: phase, Weight: weight, RunNs: runNs, Share: share})
}

// SetTimes sets the times of the phases, in the order in which they were added, and predicts the whole.
func (p *PhasePrediction) SetTimes(t *Times) {
	sums := make([]float64, p.Repeat)
	for i := range p.Phases {
		f := &p.Phases[i]
		ns := t.Repetitions(i)
		total := 0.0
		for k, x := range ns {
			sums[k] += x * float64(f.Weight)
			total += x
		}
		mean := total / float64(len(ns))
		f.TimeNs, f.TimeNsMin, f.TimeNsMax = int64(mean), int64(slices.Min(ns)), int64(slices.Max(ns))
		f.TotalNs = int64(mean * float64(f.Weight))
		p.PETNs += f.TotalNs
	}
	p.PETNsMin, p.PETNsMax = int64(slices.Min(sums)), int64(slices.Max(sums))
	p.PlayedNs = t.Duration()
}
