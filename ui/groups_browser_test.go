package ui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/commq/commq/internal/chrome"
)

// TestGroupsInTheTimeline groups ranks by their time in MPI: those that wait for rank 2 of uneven.4 are one row, which a
// click on its name unfolds.
func TestGroupsInTheTimeline(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=uneven.4&view=timeline", chrome.Desktop)
	label := func() string {
		return chrome.Eval[string](p, `document.querySelector("canvas").getAttribute("aria-label")`)
	}
	rows := func(want string) {
		t.Helper()
		until(p, "show "+want, func() bool { return strings.Contains(label(), want) })
		settle(p)
	}
	chrome.Eval[bool](p, `(() => { const s = [...document.querySelectorAll("label select")].find(s => s.value === "" &&
		[...s.options].some(o => o.value === "time")); s.value = "time";
		s.dispatchEvent(new Event("change", { bubbles: true })); return true; })()`)
	rows("ranks 0 to 3 in 2 rows")
	p.KeepPicture("ui-groups")
	unfolded := `[...document.querySelectorAll("label select")].at(-1).selectedOptions[0].textContent`
	if said := chrome.Eval[string](p, unfolded); said != "no group" {
		t.Errorf("unfolded: %s", said)
	}
	// The second of two rows is that of ranks 0, 1 and 3.
	at := chrome.Eval[[]float64](p, `(() => { const r = document.querySelector("canvas").getBoundingClientRect();
		return [r.left + 60, r.top + 24 + 0.75 * (r.height - 24)]; })()`)
	chrome.Do(p, chromedp.MouseClickXY(at[0], at[1]))
	rows("in 4 rows")
	if said := chrome.Eval[string](p, unfolded); said != "60-70 % MPI" {
		t.Errorf("unfolded: %s", said)
	}
	if hash := chrome.Eval[string](p, `location.hash`); !strings.Contains(hash, "group=time&unfold=0") {
		t.Errorf("the address: %s", hash)
	}
	if note := chrome.Eval[string](p, `document.querySelector("section > .note").textContent`); !strings.Contains(note,
		"Each of ") {
		t.Errorf("calls of unfolded ranks are not drawn: %s", note)
	}
	p.KeepPicture("ui-groups-unfolded")
	said(p, server)
	for _, by := range []string{"host", "communicator", "calls"} {
		for run, look := range map[string]chrome.Look{"cg.A.16": chrome.Dark, "rma.3": chrome.Desktop} {
			p := visit(t, chromium, server, fmt.Sprintf("run=%s&view=timeline&colour=waits&group=%s", run, by), look)
			if label := chrome.Eval[string](p, `document.querySelector("canvas").getAttribute("aria-label")`); !strings.Contains(label,
				" rows from") {
				t.Errorf("%s by %s: %s", run, by, label)
			}
			p.KeepPicture("ui-groups-" + run + "-" + by)
			said(p, server)
		}
	}
}
