package ui_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/commq/commq/internal/chrome"
)

// TestIcicle shows the call paths of rma.3, of which main calls all, and then those below one function alone.
func TestIcicle(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=rma.3&view=callsites&by=path&measure=calls", chrome.Desktop)
	frames := func() []string {
		return chrome.Eval[[]string](p, `[...document.querySelectorAll(".icicle button")].map(b => b.getAttribute("aria-label"))`)
	}
	all := frames()
	if !strings.HasPrefix(all[0], "all calls, ") || !strings.HasSuffix(all[0], ", 100.0 %") || len(all) < 20 {
		t.Errorf("%q", all)
	}
	rows := func() int { return chrome.Eval[int](p, `document.querySelectorAll(".rows tbody tr").length`) }
	whole := rows()
	p.KeepPicture("ui-icicle")
	chrome.Eval[bool](p, `[...document.querySelectorAll(".icicle button")].find(b => b.title.startsWith("fences")).click(), true`)
	until(p, "show a path alone", func() bool { return rows() < whole })
	if hash := chrome.Eval[string](p, `location.hash`); !strings.Contains(hash, "path=main+%3E+fences") {
		t.Errorf("the address: %s", hash)
	}
	places := chrome.Eval[string](p, `[...document.querySelectorAll(".rows tbody tr")].map(r => r.innerText).join()`)
	if n := strings.Count(places, "fences"); n != rows() || n == 0 {
		t.Errorf("%d rows of fences in %s", n, places)
	}
	p.KeepPicture("ui-icicle-path")
	chrome.Do(p, chromedp.Focus(chromedp.CSS(".icicle button")))
	chrome.Do(p, chromedp.KeyEvent("\x1b"))
	until(p, "show all paths", func() bool { return rows() == whole })
	said(p, server)
}
