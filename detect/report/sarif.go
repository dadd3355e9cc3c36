package report

import (
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/commq/commq/detect/price"
)

// SARIF writes SARIF 2.1.0 with a rule per operation and a result per finding. A result is at the first call that
// sends; the other calls are related locations. version is commq's.
func (p *Report) SARIF(w io.Writer, version string) error {
	tool := sarif.NewRunWithInformationURI("commq", "https://github.com/commq/commq")
	tool.Tool.Driver.WithVersion(version)
	for i := range p.Findings {
		f := &p.Findings[i]
		id := "manual-" + strings.ToLower(strings.TrimPrefix(f.Operation, "MPI_"))
		tool.AddRule(id).WithDescription(f.Operation + " done with point-to-point messages")
		text := strings.Join(slices.Concat([]string{f.Scope(), f.Amount()}, f.remarks(), f.Price.Remarks(p.Pricing)),
			"; ")
		level := "warning"
		if f.BetweenNeighbors() {
			level = "note"
		}
		result := tool.CreateResultForRule(id).WithLevel(level).WithMessage(sarif.NewTextMessage(text))
		if f.Price != nil {
			result.WithProperties(properties(f.Price, p.Pricing))
		}
		f.addLocations(result)
	}
	report := sarif.NewReport()
	report.AddRun(tool)
	return report.PrettyWrite(w)
}

// addLocations adds the call sites whose file is known.
func (f *Finding) addLocations(result *sarif.Result) {
	first := true
	for _, group := range f.sites() {
		for k := range group.sites {
			s := &group.sites[k]
			if s.File == "" {
				continue
			}
			if l := s.location(); first {
				result.AddLocation(l)
			} else {
				result.AddRelatedLocation(l.WithMessage(sarif.NewTextMessage(s.text())))
			}
			first = false
		}
	}
}

// location returns the place as SARIF has it.
func (s *Site) location() *sarif.Location {
	uri := url.URL{Path: filepath.ToSlash(s.File)}
	if filepath.IsAbs(s.File) {
		uri.Scheme = "file"
	}
	l := sarif.NewLocationWithPhysicalLocation(sarif.NewPhysicalLocation().
		WithArtifactLocation(sarif.NewSimpleArtifactLocation(uri.String())).
		WithRegion(sarif.NewRegion().WithStartLine(int(s.Line))))
	if s.Function != "" {
		l.AddLogicalLocation(sarif.NewLogicalLocation().WithName(s.Function))
	}
	return l
}

// properties returns the price of a result.
func properties(p *price.Price, pricing *price.Pricing) *sarif.PropertyBag {
	bag := sarif.NewPropertyBag()
	bag.Add("machine", pricing.Machine).Add("predicted_ns", pricing.PredictedNs)
	if p.SavedNs != nil {
		bag.Add("replaced_ns", *p.ReplacedNs).Add("saved_ns", *p.SavedNs)
	}
	if p.PaysFrom != nil {
		bag.Add("pays_from", *p.PaysFrom)
	}
	return bag
}
