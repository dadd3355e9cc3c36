package ui_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/commq/commq/internal/chrome"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/ui"
	"github.com/commq/commq/writer"
)

// visit opens a view of a run and waits until it has its answer.
func visit(t *testing.T, chromium context.Context, server *httptest.Server, state string,
	l chrome.Look) *chrome.Tab {
	t.Helper()
	p := chrome.Open(t, chromium, server.URL+"/?token="+token+"#"+state, l)
	settle(p)
	return p
}

// settle waits until no view waits for an answer.
func settle(p *chrome.Tab) {
	p.T.Helper()
	until(p, "answer", func() bool {
		return chrome.Eval[bool](p, `!!document.querySelector("section") &&
			!document.querySelector("section[aria-busy=true]")`)
	})
}

// until waits for something that the page does soon.
func until(p *chrome.Tab, what string, does func() bool) {
	p.T.Helper()
	for end := time.Now().Add(testenv.Patience); !does(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.T.Fatalf("the page does not %s: %s", what, chrome.Eval[string](p, `document.body.innerText`))
		}
	}
}

// said fails the test if the page has an error or complained; its requests must be to the server alone.
func said(p *chrome.Tab, server *httptest.Server) {
	p.T.Helper()
	if err := chrome.Eval[string](p, `[...document.querySelectorAll(".error")].map(e => e.textContent).join()`); err != "" {
		p.T.Errorf("the page shows an error: %s", err)
	}
	requests, console, dialogs := p.Heard()
	if len(console)+len(dialogs) > 0 {
		p.T.Errorf("the page said %q %q", console, dialogs)
	}
	for _, r := range requests {
		if !strings.HasPrefix(r, server.URL) {
			p.T.Errorf("the page asked %s", r)
		}
	}
}

// TestViews looks at every view of four runs, in both themes and on a phone.
func TestViews(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	for _, name := range []string{"uneven.4", "cg.A.16", "bt.C.64", "rma.3"} {
		for _, view := range []string{"overview", "timeline", "matrix", "graph", "callsites", "overtime", "compare",
			"whatif", "sql"} {
			t.Run(name+"/"+view, func(t *testing.T) {
				p := visit(t, chromium, server, "run="+name+"&view="+view, chrome.Desktop)
				heading := chrome.Eval[string](p, `document.querySelector("nav [aria-current]").textContent`)
				until(p, "have a title that begins with "+name+": "+heading, func() bool {
					return strings.HasPrefix(chrome.Eval[string](p, `document.title`), name+": "+heading)
				})
				said(p, server)
				p.KeepPicture("ui-" + name + "-" + view)
				looks := map[string]chrome.Look{"dark": chrome.Dark, "phone": chrome.Phone}
				if name == "uneven.4" || name == "rma.3" {
					looks = nil // the other two are enough
				}
				for look, l := range looks {
					p.Show(l)
					time.Sleep(200 * time.Millisecond) // until the new size is asked for
					settle(p)
					if wide := chrome.Eval[int](p, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
						t.Errorf("%s: the page is %d pixels too wide", look, wide)
					}
					p.KeepPicture("ui-" + name + "-" + view + "-" + look)
				}
				said(p, server)
			})
		}
	}
}

// TestLinks follows a finding into the timeline, a call to its messages, and takes back what is selected.
func TestLinks(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=cg.A.16&view=timeline&from=1.5&to=1.502&first=0&last=3", chrome.Desktop)
	note := chrome.Eval[string](p, `document.querySelector("section > .note:last-of-type").textContent`)
	if !strings.HasPrefix(note, "Each of ") {
		t.Errorf("the calls are not drawn: %s", note)
	}
	p.KeepPicture("ui-links-calls")
	// A click in the middle of rank 1's lane hits a call or the time between two: try along the lane.
	picked := false
	for x := 0.2; x < 1 && !picked; x += 0.02 {
		at := chrome.Eval[[]float64](p, fmt.Sprintf(`(() => {
			const r = document.querySelector("canvas").getBoundingClientRect();
			return [r.left + 56 + %g * (r.width - 56), r.top + 24 + 1.5 * (r.height - 24) / 4];
		})()`, x))
		chrome.Do(p, chromedp.MouseClickXY(at[0], at[1]))
		picked = chrome.Eval[bool](p, `!!document.querySelector(".details")`)
	}
	if !picked {
		t.Fatal("no click on the lane of rank 1 shows a call")
	}
	if picked := chrome.Eval[string](p, `document.querySelector(".details h3").textContent`); !strings.Contains(picked,
		"on rank 1") {
		t.Errorf("picked %s", picked)
	}
	p.KeepPicture("ui-links-picked")
	// In another window the call has another row of another answer; it stays the one that is shown.
	facts := func() string {
		return chrome.Eval[string](p, `document.querySelector(".details dl")?.textContent ?? ""`)
	}
	before := facts()
	chrome.Do(p, chromedp.Focus(chromedp.CSS("canvas")))
	for _, step := range []struct{ key, from string }{{"-", "from=1.499"}, {"+", "from=1.5&"}} {
		chrome.Do(p, chromedp.KeyEvent(step.key))
		until(p, "zoom", func() bool { return chrome.Eval[bool](p, `location.hash.includes("`+step.from+`")`) })
		settle(p)
		until(p, "show the call again", func() bool { return facts() == before })
	}
	chrome.Eval[bool](p, `document.querySelector(".details button").click(), true`)
	hash := chrome.Eval[string](p, `location.hash`)
	if !strings.Contains(hash, "view=matrix") || !strings.Contains(hash, "site=") || !strings.Contains(hash, "from=1.5") {
		t.Errorf("the address after the link: %s", hash)
	}
	total := func() string {
		return chrome.Eval[string](p, `document.querySelector("canvas")?.getAttribute("aria-label") ?? ""`)
	}
	until(p, "show the messages of the call site", func() bool { return strings.Contains(total(), "in all") })
	until(p, "name the call site", func() bool {
		return strings.Contains(chrome.Eval[string](p, `document.querySelector(".chips").innerText`), "call site conj_grad (cg.f:")
	})
	few := total()
	chrome.Eval[bool](p, `[...document.querySelectorAll(".chips button")].at(-1).click(), true`)
	until(p, "show all messages", func() bool { return strings.Contains(total(), "in all") && total() != few })
	chrome.Eval[bool](p, `history.back(), true`)
	until(p, "go back", func() bool { return total() == few })
	said(p, server)
	p = visit(t, chromium, server, "run=gone.8&view=matrix&site=3", chrome.Desktop)
	if text := chrome.Eval[string](p, `document.querySelector("main").innerText + location.hash`); !strings.HasPrefix(text,
		"There is no run gone.8 here; this is ") || chrome.Eval[bool](p, `!!document.querySelector(".chips")`) {
		t.Errorf("a run that is not there: %s", text)
	}
}

// TestWaitsInTheTimeline colours the timeline by waits: far out uneven.4 has the colours of late senders and of
// collectives; the next wait that is found is shown with what it waits for.
func TestWaitsInTheTimeline(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=uneven.4&view=timeline&colour=waits", chrome.Desktop)
	p.KeepPicture("ui-waits")
	shares := func() []float64 { // of the canvas: late senders, collectives, sends
		return chrome.Eval[[]float64](p, `(() => {
			const shown = document.querySelector("canvas"), c = new OffscreenCanvas(shown.width, shown.height);
			const g = c.getContext("2d", { willReadFrequently: true });
			g.drawImage(shown, 0, 0);
			const d = g.getImageData(0, 0, c.width, c.height).data;
			const n = [0, 0, 0];
			for (let i = 0; i < d.length; i += 4) [[230, 159, 0], [213, 94, 0], [0, 114, 178]].forEach((rgb, k) => {
				if (rgb.every((v, j) => Math.abs(v - d[i + j]) < 12)) n[k]++;
			});
			return n.map(v => v / (d.length / 4));
		})()`)
	}
	until(p, "draw late senders and collectives", func() bool { s := shares(); return s[0] >= 0.05 && s[1] >= 0.02 })
	if s := shares(); s[2] > 0.01 {
		t.Errorf("shares of late senders, collectives and late receivers: %v", s)
	}
	chrome.Eval[bool](p, `(() => { for (const [i, v] of [[0, "last rank of a collective"], [1, "5"]]) {
		const input = document.querySelectorAll(".search input")[i];
		input.value = v; input.dispatchEvent(new Event("input", { bubbles: true })); }
		return true; })()`)
	chrome.Eval[bool](p, `document.querySelector(".search").requestSubmit(), true`)
	until(p, "zoom in on a wait", func() bool { return chrome.Eval[bool](p, `location.hash.includes("from=")`) })
	settle(p)
	p.KeepPicture("ui-waits-found")
	until(p, "draw the wait that was found", func() bool { return shares()[1] >= 0.01 })
	dark := visit(t, chromium, server, "run=cg.A.16&view=timeline&colour=waits&from=1.5&to=1.502", chrome.Dark)
	dark.KeepPicture("ui-waits-dark")
	said(p, server)
	said(dark, server)
}

// TestMatrixIsTheQuerysAnswer compares what the matrix says in all with the engine's sums.
func TestMatrixIsTheQuerysAnswer(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=cg.A.16&view=matrix&collectives=none&amount=messages", chrome.Desktop)
	label := chrome.Eval[string](p, `document.querySelector("canvas").getAttribute("aria-label")`)
	if !strings.Contains(label, ": 47,104 messages") {
		t.Errorf("the matrix: %s", label)
	}
}

// TestKeysMoveTheTimeline zooms and moves without a mouse.
func TestKeysMoveTheTimeline(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=cg.A.16&view=timeline", chrome.Desktop)
	chrome.Do(p, chromedp.Focus(chromedp.CSS("canvas")))
	window := func() (from, to float64) {
		w := chrome.Eval[[]float64](p, `["from", "to"].map(n =>
			Number(new URLSearchParams(location.hash.slice(1)).get(n)))`)
		return w[0], w[1]
	}
	for _, step := range []struct {
		key      string
		from, to float64 // shares of the run's time
	}{{"+", 0.25, 0.75}, {"+", 0.375, 0.625}, {"-", 0.25, 0.75}} {
		chrome.Do(p, chromedp.KeyEvent(step.key))
		settle(p)
		from, to := window()
		const end = 3.07
		if from < step.from*end-0.02 || from > step.from*end+0.02 || to < step.to*end-0.02 || to > step.to*end+0.02 {
			t.Errorf("after %s: %g to %g", step.key, from, to)
		}
	}
	p.KeepPicture("ui-keys")
	// A wheel makes more changes in a second than browsers let a page write into the address.
	chrome.Eval[bool](p, `(() => {
		const canvas = document.querySelector("canvas"), write = history.replaceState.bind(history);
		window.written = 0;
		history.replaceState = (...all) => { window.written++; write(...all); };
		for (let i = 0; i < 300; i++) canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: 1, cancelable: true }));
		return true;
	})()`)
	until(p, "write the address", func() bool { return chrome.Eval[int](p, `window.written`) > 0 })
	settle(p)
	if n := chrome.Eval[int](p, `window.written`); n > 3 {
		t.Errorf("the wheel wrote %d addresses", n)
	}
	said(p, server)
}

// TestSQLView runs SQL, and shows the engine's own error.
func TestSQLView(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=cg.A.16&view=sql&sql=SELECT+count(*)+AS+n+FROM+messages", chrome.Desktop)
	until(p, "answer", func() bool { return chrome.Eval[bool](p, `!!document.querySelector("tbody td")`) })
	if cell := chrome.Eval[string](p, `document.querySelector("tbody td").textContent`); cell != "47,104" {
		t.Errorf("count: %s", cell)
	}
	p.KeepPicture("ui-sql")
	said(p, server)
	p = visit(t, chromium, server, "run=cg.A.16&view=sql&sql="+url.QueryEscape("SELECT -1.25 AS n, "+
		"sum(bytes) - 1e11::BIGINT AS n, 0.0004::DOUBLE AS n, 1234567.8::DOUBLE, DATE '2024-01-02', "+
		"TIMESTAMP '2024-01-02 03:04:05' FROM messages"), chrome.Desktop)
	until(p, "answer", func() bool { return chrome.Eval[bool](p, `!!document.querySelector("tbody td")`) })
	if row := chrome.Eval[string](p, `document.querySelector("tbody tr").innerText`); row !=
		"-1.25\t-99,440,674,816\t0.0004\t1,234,568\t2024-01-02\t2024-01-02 03:04:05" {
		t.Errorf("columns of one name, and types: %q", row)
	}
	backToOtherSQL(t, p)
	const twoRanks = "run=cg.A.4&view=sql&sql=" +
		"SELECT+src,+sum(bytes)+AS+bytes+FROM+messages+WHERE+src+<+2+GROUP+BY+src+ORDER+BY+src"
	for chart, shows := range map[string]string{"bars": ".bars rect", "lines": ".uplot canvas", "points": ".uplot canvas"} {
		p := visit(t, chromium, server, twoRanks+"&chart="+chart, chrome.Dark)
		until(p, "draw "+chart, func() bool { return chrome.Eval[bool](p, `!!document.querySelector("`+shows+`")`) })
		p.KeepPicture("ui-sql-" + chart)
		said(p, server)
		if chart != "bars" {
			continue
		}
		text := chrome.Eval[string](p, `document.querySelector(".bars").innerText`)
		if !strings.Contains(text, "bytes by src") || strings.Count(text, "MB") != 2 {
			t.Errorf("bars: %s", text)
		}
		// The file that the page gives away is made by TestOwnQueries.
		chrome.Eval[bool](p, `(() => {
			for (const [i, v] of [[0, "heaviest"], [1, "Who sends most."]]) {
				const input = document.querySelectorAll(".keep input")[i];
				input.value = v; input.dispatchEvent(new Event("input", { bubbles: true }));
			}
			URL.createObjectURL = b => { b.text().then(t => window.kept = t); return "#"; };
			HTMLAnchorElement.prototype.click = function () { window.file = this.download; };
			return true;
		})()`)
		chrome.Eval[bool](p, `document.querySelector(".keep").requestSubmit(), true`)
		until(p, "make a file", func() bool { return chrome.Eval[bool](p, `!!window.kept`) })
		if file := chrome.Eval[string](p, `window.file + "\n" + window.kept`); !strings.HasPrefix(file,
			"heaviest.sql\n-- summary: Who sends most.\n") || !strings.Contains(file, "-- plot: bars src bytes\nSELECT") {
			t.Errorf("the file: %s", file)
		}
	}
	p = visit(t, chromium, server, "run=cg.A.16&view=sql&sql=SELECT+nosuch+FROM+messages", chrome.Desktop)
	until(p, "show an error", func() bool { return chrome.Eval[bool](p, `!!document.querySelector(".error")`) })
	if text := chrome.Eval[string](p, `document.querySelector(".error").textContent`); !strings.Contains(text, "nosuch") {
		t.Errorf("the error: %s", text)
	}
}

// backToOtherSQL asks other SQL in a later step of the history: the step before has its own SQL, rows and command.
func backToOtherSQL(t *testing.T, p *chrome.Tab) {
	t.Helper()
	shows := func(n string) {
		t.Helper()
		until(p, "show "+n+" and its command line", func() bool {
			return chrome.Eval[string](p, `document.querySelector("tbody td:last-child")?.textContent + " " +
				document.querySelector("main pre")?.textContent.split("'")[1] + " " + document.querySelector(".editor").
				shadowRoot.querySelector(".cm-content").textContent`) == n+" SELECT "+n+" AS n SELECT "+n+" AS n"
		})
	}
	ask := func(n string) {
		chrome.Eval[bool](p, `(location.hash = new URLSearchParams({ run: "cg.A.16", view: "sql",
			sql: "SELECT `+n+` AS n" })), true`)
		shows(n)
	}
	ask("3")
	ask("4")
	chrome.Eval[bool](p, `history.back(), true`)
	shows("3")
}

// TestAccessible lets axe look for what keeps people with a keyboard or a screen reader out.
func TestAccessible(t *testing.T) {
	chromium := chrome.Start(t)
	axe, err := os.ReadFile("web/node_modules/axe-core/axe.min.js")
	if err != nil {
		testenv.Need(t, "npm")
		if out, err := exec.Command("../scripts/page").CombinedOutput(); err != nil {
			t.Fatalf("scripts/page: %v\n%s", err, out)
		}
		if axe, err = os.ReadFile("web/node_modules/axe-core/axe.min.js"); err != nil {
			t.Fatal(err)
		}
	}
	server := serve(t)
	for _, view := range []string{"overview", "timeline", "timeline&colour=waits", "matrix", "graph&node=0", "callsites&by=path",
		"overtime", "compare&other=cg.A.4", "whatif", "sql"} {
		for name, look := range map[string]chrome.Look{"light": chrome.Desktop, "dark": chrome.Dark} {
			t.Run(view+"/"+name, func(t *testing.T) {
				p := visit(t, chromium, server, "run=cg.A.16&comm=0&view="+view, look)
				chrome.Eval[bool](p, string(axe)+";true")
				chrome.Eval[bool](p, `axe.run().then(r => { window.found = r.violations; }), true`)
				until(p, "end its search", func() bool { return chrome.Eval[bool](p, `!!window.found`) })
				for _, found := range chrome.Eval[[]string](p, `window.found.filter(v => v.impact !== "minor").map(v =>
					v.impact + ": " + v.help + ": " + v.nodes.map(n => n.html).join(" ").slice(0, 400))`) {
					t.Error(found)
				}
			})
		}
	}
}

// TestWhatIf moves a slider, and the answer and the command line follow.
func TestWhatIf(t *testing.T) {
	chromium := chrome.Start(t)
	server := serve(t)
	p := visit(t, chromium, server, "run=cg.A.4&view=whatif&machine=flat", chrome.Desktop)
	verdict := func() string { return chrome.Eval[string](p, `document.querySelector(".verdict")?.textContent ?? ""`) }
	wait := func(want string) {
		t.Helper()
		until(p, "say "+want, func() bool { return strings.Contains(verdict(), want) })
	}
	wait("1 s on flat")
	chrome.Eval[bool](p, `(() => { const s = document.querySelector("input[type=range]");
		s.value = 5; s.dispatchEvent(new Event("input", { bubbles: true })); return true; })()`)
	wait("2 s on flat, 1 s without the changes")
	command := chrome.Eval[string](p, `document.querySelector("pre").textContent`)
	if want := "commq simulate --run cg.A.4 --machine flat --set latency_ns=20000 --critical-path"; command != want {
		t.Errorf("%s, want %s", command, want)
	}
	if hash := chrome.Eval[string](p, `location.hash`); !strings.Contains(hash, "latency=2") {
		t.Errorf("the address: %s", hash)
	}
	p.KeepPicture("ui-whatif")
	said(p, server)
}

// TestOnce opens a saved page from a file: every view that it has inside shows the same as with a server, and what it
// has not it says.
func TestOnce(t *testing.T) {
	chromium := chrome.Start(t)
	o, many := options(t, "cg.A.4", "bt.C.64"), manyRanks(t)
	listed := o.Runs
	o.Runs = func(ctx context.Context) ([]run.Found, error) {
		found, err := listed(ctx)
		return append(found, many), err
	}
	s, err := ui.New(o)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.WritePage(context.Background(), f), f.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	server := serve(t)
	for _, run := range []string{"cg.A.4", "bt.C.64"} {
		for _, view := range []string{"overview", "timeline", "matrix", "graph", "callsites", "overtime", "whatif"} {
			p := chrome.Open(t, chromium, "file://"+file+"#run="+run+"&view="+view, chrome.Desktop)
			settle(p)
			if requests, console, _ := p.Heard(); len(console)+len(requests) > 0 {
				t.Errorf("%s %s: the page asked %q and said %q", run, view, requests, console)
			}
			p.KeepPicture("ui-once-" + run + "-" + view)
			live := visit(t, chromium, server, "run="+run+"&view="+view, chrome.Desktop)
			if view == "timeline" {
				continue // a saved page has no single calls
			}
			text := func(p *chrome.Tab) string {
				all := chrome.Eval[string](p, `document.querySelector("main").innerText`)
				for _, needsServer := range []string{"SQL and command", "Show its timeline beside the captured one"} {
					all = strings.ReplaceAll(all, needsServer, "")
				}
				return strings.Join(strings.Fields(all), " ")
			}
			// Charts are drawn after the answer is there.
			until(p, "show what a server does, "+text(live), func() bool { return text(p) == text(live) })
		}
	}
	// Of many ranks a cell is of several, and the graph is of the first ones: rank 0 sends 9 bytes to the last rank.
	for view, want := range map[string]string{
		"matrix": "1 messages, 9 B. Rows send, columns receive. A cell is of 2 times 2 ranks",
		"graph":  "ranks 0 to 63: 0 messages, 0 B between them, 1 messages, 9 B with others."} {
		p := chrome.Open(t, chromium, "file://"+file+"#run="+many.Name+"&view="+view, chrome.Desktop)
		settle(p)
		if text := chrome.Eval[string](p, `document.querySelector("main").innerText`); !strings.Contains(text, want) {
			t.Errorf("%s of many ranks: %s", view, text)
		}
	}
	p := chrome.Open(t, chromium, "file://"+file+"#run=cg.A.4&view=matrix&comm=0", chrome.Desktop)
	settle(p)
	if views := chrome.Eval[string](p, `document.querySelector("nav").innerText`); strings.Contains(views, "SQL") ||
		strings.Contains(views, "Two runs") || !strings.Contains(views, "What if") {
		t.Errorf("views of a saved page: %s", views)
	}
	if text := chrome.Eval[string](p, `document.querySelector(".error").textContent`); !strings.Contains(text, "was saved") {
		t.Errorf("a selection: %s", text)
	}
}

// manyRanks returns a run of more ranks than an answer has pairs of: rank 0 sends 9 bytes to the last one.
func manyRanks(t *testing.T) run.Found {
	t.Helper()
	const ranks = 1025
	store := t.TempDir()
	w, err := writer.Create(store, "many", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	messages := &schema.Messages{}
	m := schema.NullMessage
	m.Dst, m.Bytes = ranks-1, 9
	messages.Append(&m)
	err = w.Write(0, messages)
	if err == nil {
		err = w.Commit(t.Context(), &schema.Manifest{Ranks: ranks, TimeOrigin: "untimed", ComputeClock: "none",
			Record: "messages", Hash: "none", Ended: "finalized", Epochs: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	found, err := run.Find(store, "many")
	if err != nil {
		t.Fatal(err)
	}
	return found
}
