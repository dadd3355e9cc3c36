package report

import "github.com/commq/commq/predict/model"

// Unexplained are communications that have no law, for the same reason.
type Unexplained struct {
	// Why is the reason.
	Why string `json:"why"`
	// Slots name the communications.
	Slots []string `json:"communications"`
}

// UnexplainedOf returns the communications of a model that have no law, by reason.
func UnexplainedOf(m *model.Model) (all []Unexplained) {
	byReason := map[string]int{}
	for _, u := range m.Pattern.Unexplained {
		i, known := byReason[u.Why]
		if !known {
			i = len(all)
			byReason[u.Why] = i
			all = append(all, Unexplained{Why: u.Why})
		}
		all[i].Slots = append(all[i].Slots, u.Slot)
	}
	return all
}
