// Package extrap writes measurements for Extra-P, which models how metrics grow with parameters: its JSON Lines, a line
// for each measurement.
package extrap

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/commq/commq/internal/units"
)

// Measurement is a value of a metric at a number of ranks. Several of the same metric, place and ranks are repetitions.
type Measurement struct {
	Ranks  int32  // number of ranks, Extra-P's parameter p
	Metric string // name of the measure
	// Place is the call or the place in the source that the value is of; empty for the whole program.
	Place string
	Value int64 // in the unit of the metric
}

// wantedRanks is how many numbers of ranks Extra-P wants for a model.
const wantedRanks = 5

// TooFew says that measurements are at fewer numbers of ranks than Extra-P wants; "" if they are not.
func TooFew(all []Measurement) string {
	ranks := map[int32]bool{}
	for i := range all {
		ranks[all[i].Ranks] = true
	}
	if len(ranks) >= wantedRanks {
		return ""
	}
	return fmt.Sprintf("Extra-P wants %d numbers of ranks or more for a model; the runs have %s", wantedRanks,
		units.Count(int64(len(ranks)), "number"))
}

// line is a line of the file.
type line struct {
	Params   params  `json:"params"`
	Callpath string  `json:"callpath"`
	Metric   string  `json:"metric"`
	Value    float64 `json:"value"`
}

// params are the parameters; p is the usual name for processes.
type params struct {
	P int32 `json:"p"`
}

// root is the call path of the whole program; the places are below it.
const root = "main"

// Write writes the measurements. Call paths separate functions by ->, so that a place with these characters gets
// others.
func Write(w io.Writer, all []Measurement) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, m := range all {
		l := line{params{m.Ranks}, root, m.Metric, float64(m.Value)}
		if m.Place != "" {
			l.Callpath += "->" + strings.ReplaceAll(m.Place, "->", "-")
		}
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	return nil
}
