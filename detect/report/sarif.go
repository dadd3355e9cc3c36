package report

import (
	"io"
	"slices"
	"strings"

	sarif210 "github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/price"
	"github.com/commq/commq/internal/sarif"
)

// SARIF writes SARIF 2.1.0 with a rule per operation and a result per finding. A result is at the first call that
// sends; the other calls are related locations. version is commq's.
func (p *Report) SARIF(w io.Writer, version string) error {
	log := sarif.New(version)
	for i := range p.Findings {
		f := &p.Findings[i]
		id := "manual-" + strings.ToLower(strings.TrimPrefix(f.Operation, "MPI_"))
		log.Rule(id, f.Operation+" done with point-to-point messages")
		text := strings.Join(slices.Concat([]string{f.Scope(), f.Amount()}, f.remarks(), f.Price.Remarks(p.Pricing)),
			"; ")
		level := "warning"
		if f.BetweenNeighbors() || f.Certainty == detect.Candidate.String() {
			level = "note"
		}
		result := log.Result(id, level, text)
		result.WithProperties(f.properties(p.Pricing))
		f.addLocations(result)
	}
	return log.Write(w)
}

// addLocations adds the call sites whose file is known.
func (f *Finding) addLocations(result *sarif210.Result) {
	first := true
	for _, group := range f.sites() {
		for k := range group.sites {
			s := &group.sites[k]
			if s.File == "" {
				continue
			}
			if l := sarif.Location(s.File, int(s.Line), s.Function); first {
				result.AddLocation(l)
			} else {
				result.AddRelatedLocation(l.WithMessage(sarif.Text(s.text())))
			}
			first = false
		}
	}
}

// properties returns the evidence for a result, and its price if there is one.
func (f *Finding) properties(pricing *price.Pricing) *sarif210.PropertyBag {
	bag, p := sarif210.NewPropertyBag(), f.Price
	bag.Add("certainty", f.Certainty).Add("bits", f.Bits).Add("basis", f.Basis).Add("where", f.Where)
	if len(f.Alternatives) > 0 {
		bag.Add("alternatives", f.Alternatives)
	}
	if p == nil {
		return bag
	}
	bag.Add("machine", pricing.Machine).Add("predicted_ns", pricing.PredictedNs)
	if p.SavedNs != nil {
		bag.Add("replaced_ns", *p.ReplacedNs).Add("saved_ns", *p.SavedNs)
	}
	if p.PaysFrom != nil {
		bag.Add("pays_from", *p.PaysFrom)
	}
	if p.CalledAs != "" {
		bag.Add("called_as", p.CalledAs)
	}
	if p.Problem != "" {
		bag.Add("problem", p.Problem)
	}
	return bag
}
