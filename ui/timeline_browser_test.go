package ui_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/commq/commq/internal/chrome"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema/schematest"
)

// TestGroupsInTheTimeline groups ranks by their time in MPI: those that wait for rank 2 of uneven.4 are one row, which
// a click on its name unfolds.
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

// TestCriticalPathInTheTimeline: the line is on rank 0 in the first half of the time and on rank 1 in the second.
func TestCriticalPathInTheTimeline(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	for name, look := range map[string]chrome.Look{"light": chrome.Desktop, "dark": chrome.Dark} {
		p := visit(t, chromium, server, "run=cg.A.4&view=timeline", look)
		chrome.Eval[bool](p, `document.querySelector(".toggle").click(), true`)
		until(p, "tell the path", func() bool {
			return chrome.Eval[bool](p, `document.body.innerText.includes("Critical path: as long as cg.A.4.")`)
		})
		settle(p)
		if hash := chrome.Eval[string](p, `location.hash`); !strings.Contains(hash, "critical=shown") {
			t.Errorf("the address: %s", hash)
		}
		// At a quarter and at three quarters of the time: which ranks have the colour in the middle of their lanes?
		// The line is drawn a frame or more after the words are there.
		until(p, "draw the path on rank 0 and then on rank 1", func() bool {
			on := chrome.Eval[[][]bool](p, `(() => {
				const shown = document.querySelector("canvas"), c = new OffscreenCanvas(shown.width, shown.height);
				const g = c.getContext("2d", { willReadFrequently: true });
				const want = matchMedia("(prefers-color-scheme: dark)").matches ? 255 : 0;
				g.drawImage(shown, 0, 0);
				const r = devicePixelRatio, left = 56 * r, above = 24 * r, w = c.width - left, h = c.height - above;
				return [0.25, 0.75].map(t => [0, 1, 2, 3].map(rank =>
					[...g.getImageData(left + t * w, above + (rank + 0.5) * h / 4, 1, 1).data].slice(0, 3).every(v => v === want)));
			})()`)
			return fmt.Sprint(on) == "[[true false false false] [false true false false]]"
		})
		p.KeepPicture("ui-path-" + name)
		said(p, server)
	}
}

// TestTilesOfTheTimeline: a window that was reached by moving has the picture of one that was opened, and asks only for
// tiles that were not there.
func TestTilesOfTheTimeline(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	picture := func(p *chrome.Tab) string {
		return chrome.Eval[string](p, `document.querySelector("canvas").toDataURL()`)
	}
	asked := func(p *chrome.Tab) int {
		return chrome.Eval[int](p, `performance.getEntriesByType("resource").filter(e => e.name.includes("/ask/timeline?")).length`)
	}
	p := visit(t, chromium, server, "run=cg.A.16&view=timeline&from=0.4&to=2.4", chrome.Desktop)
	settle(p)
	first := asked(p)
	if first < 4 {
		t.Fatalf("the window was asked in %d tiles", first)
	}
	before := picture(p)
	chrome.Do(p, chromedp.Focus(chromedp.CSS("canvas")))
	chrome.Do(p, chromedp.KeyEvent(kb.ArrowRight))
	until(p, "move", func() bool { return chrome.Eval[bool](p, `location.hash.includes("from=0.9")`) })
	other := visit(t, chromium, server, "run=cg.A.16&view=timeline&from=0.9&to=2.9", chrome.Desktop)
	settle(other)
	// The address changes before tiles are asked for: they are counted when all are drawn.
	until(p, "draw what a new page draws", func() bool { return picture(p) == picture(other) })
	if picture(p) == before {
		t.Error("the picture did not change")
	}
	moved := asked(p) - first
	if moved < 1 || moved > first/2 {
		t.Errorf("%d tiles were asked for a quarter of a window, %d for all of it", moved, first)
	}
	chrome.Do(p, chromedp.Focus(chromedp.CSS("canvas")))
	chrome.Do(p, chromedp.KeyEvent(kb.ArrowLeft))
	until(p, "move back", func() bool { return picture(p) == before })
	settle(p)
	if again := asked(p) - first - moved; again != 0 {
		t.Errorf("%d tiles were asked twice", again)
	}
	// On a screen of 1.5 device pixels a pixel too, every one is painted.
	chrome.Do(p, chromedp.EmulateViewport(1281, 900, chromedp.EmulateScale(1.5)))
	until(p, "paint every pixel", func() bool {
		return chrome.Eval[int](p, `(() => {
			const shown = document.querySelector("canvas"), c = new OffscreenCanvas(shown.width, shown.height);
			const g = c.getContext("2d", { willReadFrequently: true });
			g.drawImage(shown, 0, 0);
			const left = Math.ceil(56 * devicePixelRatio), above = Math.ceil(24 * devicePixelRatio);
			const d = g.getImageData(left, above + 5, c.width - left - 1, 1).data;
			let bad = Math.abs(shown.width - 1.5 * shown.clientWidth) < 2 ? 0 : 1;
			for (let i = 3; i < d.length; i += 4) if (d[i] !== 255) bad++;
			return bad;
		})()`) == 0
	})
	p.KeepPicture("ui-tiles")
	said(p, server)
	said(other, server)
}

// TestReplacedRun: a page does not draw tiles of a run beside those of another one that has taken its name.
func TestReplacedRun(t *testing.T) {
	chromium := chrome.Start(t)
	o := options(t, "cg.A.16")
	var replaced atomic.Bool
	listed := o.Runs
	o.Runs = func(ctx context.Context) ([]run.Found, error) {
		found, err := listed(ctx)
		if err == nil && replaced.Load() {
			m := *found[0].Manifest
			m.EndNs++
			m.Digest, found[0].Manifest = schematest.DigestOf(&m), &m
		}
		return found, err
	}
	server := serveWith(t, o)
	p := visit(t, chromium, server, "run=cg.A.16&view=timeline&from=1.5&to=1.6", chrome.Desktop)
	said := func() string {
		return chrome.Eval[string](p, `[...document.querySelectorAll(".error")].map((e) => e.textContent).join()`)
	}
	if text := said(); text != "" {
		t.Errorf("before the run is replaced: %q", text)
	}
	replaced.Store(true)
	// The server may use the list of runs that it has for a moment, so the page moves on until it is told.
	moves := 0
	until(p, "say that the run was replaced", func() bool {
		if !chrome.Eval[bool](p, `!!document.querySelector("section[aria-busy=true]")`) {
			moves++
			from := 1.6 + 0.01*float64(moves%100)
			chrome.Eval[any](p, fmt.Sprintf(`location.hash = "run=cg.A.16&view=timeline&from=%g&to=%g"`, from, from+0.1))
		}
		return strings.Contains(said(), "The run cg.A.16 was replaced while this page was open: load the page again.")
	})
}
