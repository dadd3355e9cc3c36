package hang

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/internal/printable"
)

// Write prints the report for people: first the findings, then what each rank is doing, with equal ranks in one line.
// It prints at most this number of lines; 0 means all.
func (r *Report) Write(w io.Writer, lines int) error {
	out := []string{fmt.Sprintf("job %s: %s of %s, %s", r.Job, ranksText(r), filepath.Base(r.Program), r.State)}
	for _, f := range r.Findings {
		out = append(out, f.Kind+": "+f.Text)
	}
	for _, g := range groups(r.Threads) {
		out = append(out, "  "+g)
	}
	if lines > 0 && len(out) > lines {
		hidden := len(out) - lines + 1
		out = append(out[:lines-1], fmt.Sprintf("  ... and %d lines more", hidden))
	}
	for i := range out {
		out[i] = printable.Line(out[i]) // names of communicators and programs may hold anything
	}
	_, err := io.WriteString(w, strings.Join(out, "\n")+"\n")
	return err
}

func ranksText(r *Report) string {
	if r.Seen < int(r.Ranks) {
		return fmt.Sprintf("%d of %d ranks", r.Seen, r.Ranks)
	}
	return plural(int(r.Ranks), "rank")
}

// groups describes the states, equal ones in one line, in the order of their first rank.
func groups(states []State) []string {
	type group struct {
		label       string
		ranks       []int32
		first, last int64
		timed       bool
		text        string
	}
	var order []*group
	byText := map[string]*group{}
	for i := range states {
		s := &states[i]
		label := ""
		if s.Thread > 0 {
			label = fmt.Sprintf(", thread %d", s.Thread)
		}
		key := label + "\x00" + s.line()
		g := byText[key]
		if g == nil {
			g = &group{label: label, text: s.line()}
			byText[key] = g
			order = append(order, g)
		}
		if n := len(g.ranks); n == 0 || g.ranks[n-1] != s.Rank {
			g.ranks = append(g.ranks, s.Rank)
		}
		if s.SinceNs == nil || s.State != InCall && s.State != Outside && s.State != Unrecorded {
			continue
		}
		if !g.timed {
			g.first, g.last, g.timed = *s.SinceNs, *s.SinceNs, true
		}
		g.first, g.last = min(g.first, *s.SinceNs), max(g.last, *s.SinceNs)
	}
	var out []string
	for _, g := range order {
		name := "rank " + rankList(g.ranks)
		if len(g.ranks) > 1 {
			name = "ranks " + rankList(g.ranks)
		}
		since := ""
		if g.timed {
			since = "since " + seconds(g.first) + " "
			if seconds(g.last) != seconds(g.first) {
				since = "since " + strings.TrimSuffix(seconds(g.first), " s") + " to " + seconds(g.last) + " "
			}
		}
		out = append(out, name+g.label+": "+since+g.text)
	}
	return out
}

// line describes a state without its rank and time.
func (s *State) line() string {
	text := s.Text + s.afterText()
	if s.State == InCall {
		text = "in " + text
	}
	if s.Site != "" && !strings.Contains(text, s.Site) {
		text += ", at " + s.Site
	}
	if len(s.WaitsFor) == 0 || len(s.Pending) == 1 && s.Pending[0].Peer != nil {
		return text
	}
	waits := slices.DeleteFunc(slices.Clone(s.WaitsFor), func(r int32) bool { return r == s.Rank })
	if len(waits) == 0 {
		return text
	}
	what := "rank"
	if len(waits) > 1 {
		what = "ranks"
	}
	if s.Any {
		return fmt.Sprintf("%s, waiting for one of %s %s", text, what, rankList(waits))
	}
	return fmt.Sprintf("%s, waiting for %s %s", text, what, rankList(waits))
}
