package ui_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/commq/commq/internal/chrome"
)

// TestGraph shows the partners of rank 2 of cg.A.4 by keyboard, and the first 2 of bt.C.64's ranks.
func TestGraph(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=cg.A.4&view=graph&amount=messages", chrome.Desktop)
	label := chrome.Eval[string](p, `document.querySelectorAll(".graph .rank")[2].getAttribute("aria-label")`)
	if want := "rank 2 sends 1,680 messages, 46.6 MB to 2 ranks and receives 1,680 messages, 46.6 MB from 2"; label != want {
		t.Errorf("%s, want %s", label, want)
	}
	chrome.Eval[bool](p, `document.querySelectorAll(".graph .rank")[2].focus(), true`)
	chrome.Do(p, chromedp.KeyEvent("\r"))
	until(p, "show the partners", func() bool { return chrome.Eval[bool](p, `!!document.querySelector(".details tbody td")`) })
	if hash := chrome.Eval[string](p, `location.hash`); !strings.Contains(hash, "node=2") {
		t.Errorf("the address: %s", hash)
	}
	if faint := chrome.Eval[int](p, `document.querySelectorAll(".graph > g[opacity='0.07']").length`); faint != 4 {
		t.Errorf("%d edges are faint, want the four of ranks 0, 1 and 3 alone", faint)
	}
	p.KeepPicture("ui-graph-partners")
	said(p, server)
	p = visit(t, chromium, server, "run=bt.C.64&view=graph&first=0&last=1&layout=circle", chrome.Dark)
	note := chrome.Eval[string](p, `document.querySelector("section > .note").textContent`)
	if !strings.HasPrefix(note, "ranks 0 to 1: ") || !strings.Contains(note, " with others.") {
		t.Errorf("two ranks of 64: %s", note)
	}
	said(p, server)
}
