package ui_test

import (
	"strings"
	"testing"

	"github.com/commq/commq/internal/chrome"
)

// TestTwoRuns aligns CG on 4 and 16 ranks by the collectives that both call, and shows the phase that differs most.
func TestTwoRuns(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=cg.A.4&view=compare&other=cg.A.16", chrome.Desktop)
	until(p, "draw both", func() bool { return chrome.Eval[int](p, `document.querySelectorAll(".strip canvas").length`) == 2 })
	settle(p)
	labels := func() []string {
		return chrome.Eval[[]string](p, `[...document.querySelectorAll(".strip canvas")].map(c => c.getAttribute("aria-label"))`)
	}
	// Each calls a barrier, a broadcast and a reduction or more, in the same order; start and end are marks too.
	all := labels()
	if !strings.HasPrefix(all[0], "Timeline of cg.A.4 from 0.000000 to 1.7") ||
		!strings.HasPrefix(all[1], "Timeline of cg.A.16 from 0.000000 to 3.0") || !strings.HasSuffix(all[0], " operations of all ranks") {
		t.Errorf("%q", all)
	}
	_, marks, _ := strings.Cut(all[0], " s, ")
	if !strings.HasSuffix(all[1], " s, "+marks) {
		t.Errorf("%q have not the same operations", all)
	}
	p.KeepPicture("ui-compare")
	first := chrome.Eval[string](p, `document.querySelector("[aria-label=Phases] tbody tr").innerText`)
	chrome.Eval[bool](p, `document.querySelector("[aria-label=Phases] tbody button").click(), true`)
	until(p, "show a phase", func() bool { return chrome.Eval[bool](p, `location.hash.includes("from=")`) })
	settle(p)
	if now := labels(); now[0] == all[0] || now[1] == all[1] {
		t.Errorf("after a click on %s: %q", first, now)
	}
	if rows := chrome.Eval[[]string](p, `[...document.querySelectorAll("[aria-label=Phases] tbody tr")].map(r => r.innerText)`); len(rows) != 1 ||
		rows[0] != first {
		t.Errorf("phases %q, want %q", rows, first)
	}
	p.KeepPicture("ui-compare-phase")
	said(p, server)
	p = visit(t, chromium, server, "run=bt.C.64&view=compare", chrome.Desktop)
	if text := chrome.Eval[string](p, `document.querySelector(".lacks").textContent`); !strings.Contains(text, "record all") {
		t.Errorf("a run without all calls: %s", text)
	}
}
