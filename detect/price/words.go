package price

import (
	"fmt"
	"math"
	"strings"

	"github.com/commq/commq/internal/units"
)

// leastSaved is the least fraction of a run's time that people are told about.
const leastSaved = 0.0001

// Remarks describe a finding's price, a sentence each; none for a nil price.
func (p *Price) Remarks(pricing *Pricing) (out []string) {
	if p == nil {
		return nil
	}
	if pricing.Withheld == "" {
		out = append(out, p.Text(pricing))
	}
	switch {
	case p.PatternProblem != "":
		out = append(out, "other numbers of ranks: not known, "+p.PatternProblem)
	case len(p.AtRanks) > 0:
		out = append(out, p.ranksText())
	}
	return out
}

// ranksText tells the times with other numbers of ranks.
func (p *Price) ranksText() string {
	text := p.Pattern
	for i := range p.AtRanks {
		at := &p.AtRanks[i]
		if at.Problem != "" {
			text += fmt.Sprintf("; %d ranks: %s", at.Ranks, firstLine(at.Problem))
			continue
		}
		text += fmt.Sprintf("; %d ranks: %s by hand, %s called", at.Ranks, units.Duration(*at.ByHandNs),
			units.Duration(*at.CalledNs))
	}
	return text + p.paysText()
}

// paysText tells from how many ranks on the collective pays, as far as that is known; "" if no times are.
func (p *Price) paysText() string {
	largest, last := 0, 0
	for i := range p.AtRanks {
		if last = p.AtRanks[i].Ranks; p.AtRanks[i].Problem == "" {
			largest = last
		}
	}
	switch {
	case largest == 0:
		return ""
	case p.PaysFrom == nil:
		return fmt.Sprintf("; does not pay at %d ranks", largest)
	case largest == last:
		return fmt.Sprintf("; pays from %d ranks", *p.PaysFrom)
	case *p.PaysFrom == largest:
		return fmt.Sprintf("; pays at %d ranks", largest)
	}
	return fmt.Sprintf("; pays from %d to %d ranks", *p.PaysFrom, largest)
}

// Text tells what the replacement saves.
func (p *Price) Text(pricing *Pricing) string {
	if pricing.Withheld != "" {
		return fmt.Sprintf("no price on %s: %s", pricing.Machine, pricing.Withheld)
	}
	if p.Problem != "" {
		return fmt.Sprintf("no price on %s: the replaced run cannot be simulated: %s", pricing.Machine,
			firstLine(p.Problem))
	}
	verb, saved := "saves", *p.SavedNs
	if saved < 0 {
		verb, saved = "costs", -saved
	}
	text := fmt.Sprintf("saves and costs nothing measurable of %s on %s", units.Duration(pricing.PredictedNs),
		pricing.Machine)
	if part := float64(saved) / float64(max(pricing.PredictedNs, 1)); part >= leastSaved {
		text = fmt.Sprintf("%s %s of %s on %s (%s)", verb, units.Duration(saved),
			units.Duration(pricing.PredictedNs), pricing.Machine, units.Percent(part))
	}
	if p.CalledAs != "" {
		text += "; the call is priced as " + p.CalledAs
	}
	return text + leftText(p.Left)
}

// Text tells what the replacement saved.
func (m *Measured) Text() string {
	verb, saved := "saves", m.SavedNs
	if saved < 0 {
		verb, saved = "costs", -saved
	}
	text := fmt.Sprintf("played here, %d times each by turns: %s as it is, %s with %s; that %s %s (%s; a turn %s to "+
		"%s)", m.Repeat, units.Duration(m.OriginalNs), units.Duration(m.ReplacedNs),
		units.Count(m.Collectives, "collective"), verb, units.Duration(saved), units.Percent(math.Abs(m.Saved)),
		signed(m.SavedNsMin), signed(m.SavedNsMax))
	return text + leftText(m.Left)
}

// leastDifference is the least difference between a predicted and a measured share of the time that is told.
const leastDifference = 0.01

// Contradicts says that the measured saving of all findings is not the predicted one, and what the simulation leaves
// out; "" if they agree: the prediction lies within what the turns saved, or within 1 % of the run's time of their
// median, or there is none.
func (m *Measured) Contradicts(pricing *Pricing) string {
	if pricing == nil || pricing.All.Saved == nil {
		return ""
	}
	predicted, base := *pricing.All.Saved, float64(max(m.OriginalNs, 1))
	if predicted*base >= float64(m.SavedNsMin) && predicted*base <= float64(m.SavedNsMax) ||
		math.Abs(predicted-m.Saved) < leastDifference {
		return ""
	}
	why := "the library's own algorithm and its time for each message are not those of the machine's description"
	if ratio := float64(pricing.PredictedNs) / base; math.Abs(math.Log(ratio)) > leastRatio {
		why = fmt.Sprintf("the run itself takes %s simulated and %s played, so %s does not describe this machine "+
			"(commq calibrate does)", units.Duration(pricing.PredictedNs), units.Duration(m.OriginalNs), pricing.Machine)
	}
	return fmt.Sprintf("The two contradict each other: simulated, all findings together save %s of the time; played, %s. "+
		"Trust the played figure here: %s.", units.Percent(predicted), units.Percent(m.Saved), why)
}

// leastRatio is the logarithm of the least ratio of a simulated to a played time that is told: about a quarter.
const leastRatio = 0.22

// leftText tells how many instances stay as they are.
func leftText(left int) string {
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("; %s cannot be replaced", units.Count(int64(left), "instance"))
}

// signed returns a time that may be negative.
func signed(ns int64) string {
	if ns < 0 {
		return "-" + units.Duration(-ns)
	}
	return units.Duration(ns)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
