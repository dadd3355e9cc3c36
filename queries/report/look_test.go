package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"github.com/commq/commq/internal/chrome"
	"image"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/queries/report"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// TestInBrowser tests how a page looks and behaves in a browser.
func TestInBrowser(t *testing.T) {
	chromium := chrome.Start(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, context.Context)
	}{
		{"the test hears what a page does", testHears},
		{"hover", testHover},
		{"touch", testTouch},
		{"keys", testKeys},
		{"cells are as dark as they have messages", testShades},
		{"sort", testSort},
		{"copy", testCopy},
		{"hostile names", testHostile},
		{"looks", testLooks},
		{"print", testPrint},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, chromium) })
	}
}

// answerTo returns the engine's answer as CSV, and its values by column.
func answerTo(t *testing.T, in report.Input, name string) (csv string, values map[string][]any) {
	t.Helper()
	ctx := context.Background()
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	q := all[slices.IndexFunc(all, func(q *queries.Query) bool { return q.Name == name })]
	db, err := queries.Open(ctx, []queries.Run{in.Run}, queries.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Ask(ctx, q, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	kept, err := queries.Keep(rows)
	if err != nil {
		t.Fatal(err)
	}
	values = map[string][]any{}
	for again := queries.Again(kept); again.Next(); {
		for i, v := range again.Row() {
			c := again.Columns()[i].Name
			values[c] = append(values[c], v)
		}
	}
	var b bytes.Buffer
	if err := output.Write(&b, "csv", queries.Again(kept)); err != nil {
		t.Fatal(err)
	}
	return b.String(), values
}

// pair is a row of density.
type pair struct{ messages, bytes int64 }

func pairsOf(t *testing.T, in report.Input) map[[2]int]pair {
	t.Helper()
	_, v := answerTo(t, in, "density")
	pairs := map[[2]int]pair{}
	for i := range v["src"] {
		pairs[[2]int{int(v["src"][i].(int32)), int(v["dst"][i].(int32))}] = pair{v["messages"][i].(int64),
			v["bytes"][i].(int64)}
	}
	return pairs
}

func testHears(t *testing.T, chromium context.Context) {
	p := open(t, chromium, `<!DOCTYPE html><title>x</title><img src="http://example.org/x.png">
<script>console.log("said"); alert(9); undefined.x</script>`, chrome.Desktop)
	requests, console, dialogs := p.Heard()
	if len(requests) != 1 || requests[0] != "http://example.org/x.png" || len(console) < 2 || len(dialogs) != 1 {
		t.Errorf("requests %q, console %q, dialogs %q", requests, console, dialogs)
	}
}

// centre returns the position, in the viewport, of the middle of a cell of the first matrix in a section.
func centre(p *chrome.Tab, section string, row, column, n int) (x, y float64) {
	p.T.Helper()
	at := chrome.Eval[[]float64](p, fmt.Sprintf(`(() => {
		const image = document.querySelector("#%s .cells");
		image.scrollIntoView({block: "center", behavior: "instant"});
		const r = image.getBoundingClientRect();
		return [r.left + (%d + 0.5) * r.width / %d, r.top + (%d + 0.5) * r.height / %[3]d];
	})()`, section, column, n, row))
	return at[0], at[1]
}

func said(p *chrome.Tab, section string) string {
	p.T.Helper()
	return chrome.Eval[string](p, fmt.Sprintf(`document.querySelector("#%s .said").textContent`, section))
}

var saidPair = regexp.MustCompile(`^(\d+) → (\d+): ([\d,]+) bytes, ([\d,]+) messages$`)

// wantSaid compares the page's text about a pair of ranks with the query.
func wantSaid(p *chrome.Tab, got string, src, dst int, pairs map[[2]int]pair) {
	p.T.Helper()
	want, some := pairs[[2]int{src, dst}]
	if !some {
		if text := fmt.Sprintf("%d → %d: none", src, dst); got != text {
			p.T.Errorf("the page says %q, want %q", got, text)
		}
		return
	}
	m := saidPair.FindStringSubmatch(got)
	if m == nil {
		p.T.Errorf("the page says %q of %d → %d", got, src, dst)
		return
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(strings.ReplaceAll(s, ",", ""), 10, 64)
		if err != nil {
			p.T.Error(err)
		}
		return n
	}
	if number(m[1]) != int64(src) || number(m[2]) != int64(dst) || number(m[3]) != want.bytes ||
		number(m[4]) != want.messages {
		p.T.Errorf("the page says %q, the query of %d → %d %d bytes, %d messages", got, src, dst, want.bytes,
			want.messages)
	}
}

// The tooltip of a cell shows what the query answers for that pair of ranks: checked for every cell of 4 ranks, some
// of 64.
func testHover(t *testing.T, chromium context.Context) {
	for _, test := range []struct {
		run   string
		ranks int
		step  int
	}{{"cg.A.4", 4, 1}, {"bt.C.64", 64, 13}} {
		in := input(t, runDir(test.run))
		pairs := pairsOf(t, in)
		p := open(t, chromium, pageOf(t, report.Options{}, in), chrome.Desktop)
		for _, section := range []string{"density", "data-density"} {
			for cell := 0; cell < test.ranks*test.ranks; cell += test.step * test.step {
				src, dst := cell/test.ranks, cell%test.ranks
				x, y := centre(p, section, src, dst, test.ranks)
				chrome.Do(p, chromedp.MouseEvent("mouseMoved", x, y))
				wantSaid(p, said(p, section), src, dst, pairs)
			}
		}
		p.Quiet()
	}
}

func testTouch(t *testing.T, chromium context.Context) {
	in := input(t, runDir("cg.A.16"))
	pairs := pairsOf(t, in)
	p := open(t, chromium, pageOf(t, report.Options{}, in), chrome.Phone)
	for _, cell := range [][2]int{{0, 0}, {3, 12}, {15, 1}, {9, 9}} {
		x, y := centre(p, "density", cell[0], cell[1], 16)
		chrome.Do(p, chromedp.TapXY(x, y))
		wantSaid(p, said(p, "density"), cell[0], cell[1], pairs)
	}
	p.Quiet()
}

// Tab moves to the matrix, the arrow keys move from cell to cell and stop at its border.
func testKeys(t *testing.T, chromium context.Context) {
	in := input(t, runDir("cg.A.4"))
	pairs := pairsOf(t, in)
	p := open(t, chromium, pageOf(t, report.Options{}, in), chrome.Desktop)
	chrome.Do(p, chromedp.Focus(chromedp.CSS("#density .matrix")))
	src, dst := 0, 0
	// chromedp's codes: down, right, left
	for _, key := range []string{"\u0301", "\u0303", "\u0303", "\u0301", "\u0301", "\u0301", "\u0302"} {
		chrome.Do(p, chromedp.KeyEvent(key))
		switch key {
		case "\u0301":
			src = min(src+1, 3)
		case "\u0303":
			dst = min(dst+1, 3)
		case "\u0302":
			dst = max(dst-1, 0)
		}
		wantSaid(p, said(p, "density"), src, dst, pairs)
	}
	p.Quiet()
}

// luminance returns the luminance of a pixel, 0 for black and 1 for white, as the filter or theme shows it.
func luminance(img image.Image, x, y int) float64 {
	r, g, b, _ := img.At(x, y).RGBA()
	return (0.2126*float64(r) + 0.7152*float64(g) + 0.0722*float64(b)) / 0xffff
}

// Of two pairs the one with more messages contrasts more with the background: in a light page, a dark one and in
// print.
func testShades(t *testing.T, chromium context.Context) {
	in := input(t, runDir("mg.W.8"))
	pairs := pairsOf(t, in)
	p := open(t, chromium, pageOf(t, report.Options{}, in), chrome.Desktop)
	for name, l := range map[string]chrome.Look{"light": chrome.Desktop, "dark": chrome.Dark, "print": chrome.Paper} {
		p.Show(l)
		img := p.Picture("#density .matrix", "matrix-"+name)
		at := chrome.Eval[[]float64](p, `(() => {
			const r = document.querySelector("#density .cells").getBoundingClientRect(), o = document.querySelector("#density .matrix").getBoundingClientRect();
			return [(r.left - o.left) / o.width, (r.top - o.top) / o.height, r.width / o.width, r.height / o.height];
		})()`)
		size := img.Bounds().Size()
		shade := func(src, dst int) float64 {
			x, y := at[0]+(float64(dst)+0.5)/8*at[2], at[1]+(float64(src)+0.5)/8*at[3]
			return luminance(img, int(x*float64(size.X)), int(y*float64(size.Y)))
		}
		ground := shade(0, 0) // rank 0 does not send to itself
		if _, some := pairs[[2]int{0, 0}]; some {
			t.Fatal("rank 0 sends to itself")
		}
		if l.Dark != (ground < 0.5) {
			t.Errorf("%s: the paper has luminance %.2f", name, ground)
		}
		type point struct {
			messages int64
			stands   float64
		}
		var points []point
		for src := range 8 {
			for dst := range 8 {
				points = append(points, point{pairs[[2]int{src, dst}].messages, math.Abs(shade(src, dst) - ground)})
			}
		}
		slices.SortFunc(points, func(a, b point) int { return int(a.messages - b.messages) })
		for i := 1; i < len(points); i++ {
			a, b := points[i-1], points[i]
			if a.messages < b.messages && a.stands >= b.stands || a.messages == b.messages &&
				math.Abs(a.stands-b.stands) > 0.01 {
				t.Errorf("%s: %d messages stand out by %.3f, %d by %.3f", name, a.messages, a.stands, b.messages,
					b.stands)
			}
		}
		if last := points[len(points)-1]; last.stands < 0.8 {
			t.Errorf("%s: the most messages stand out by %.2f only", name, last.stands)
		}
	}
}

// column returns the texts in a column of a table.
func column(p *chrome.Tab, section string, n int) []string {
	p.T.Helper()
	return chrome.Eval[[]string](p, fmt.Sprintf(`[...document.querySelectorAll("#%s tbody tr")].map(r => r.cells[%d].textContent)`, section, n))
}

func numbers(t *testing.T, texts []string) []float64 {
	t.Helper()
	var all []float64
	for _, s := range texts {
		x, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

// A click on a header sorts, numbers as numbers; a second click reverses the order. Rows stay together.
func testSort(t *testing.T, chromium context.Context) {
	in := input(t, runDir("cg.A.16"))
	p := open(t, chromium, pageOf(t, report.Options{}, in), chrome.Desktop)
	rows := func() []string {
		all := chrome.Eval[[]string](p, `[...document.querySelectorAll("#density tbody tr")].map(r => [...r.cells].map(c => c.textContent).join(" "))`)
		slices.Sort(all)
		return all
	}
	before := rows()
	bytesHeader := chromedp.CSS("#density thead th:nth-child(4) button")
	chrome.Do(p, chromedp.Click(bytesHeader))
	exact := func() []float64 {
		return numbers(t, chrome.Eval[[]string](p, `[...document.querySelectorAll("#density tbody tr")].map(r => r.cells[3].dataset.exact ?? r.cells[3].textContent)`))
	}
	up := exact()
	if !slices.IsSorted(up) || up[0] == up[len(up)-1] {
		t.Errorf("bytes after a click: %v", up)
	}
	if texts := column(p, "density", 3); slices.IsSorted(texts) {
		t.Error("the numbers are sorted as texts as well, which tests nothing")
	}
	chrome.Do(p, chromedp.Click(bytesHeader))
	down := exact()
	slices.Reverse(up)
	if !slices.Equal(up, down) {
		t.Errorf("bytes after two clicks: %v", down)
	}
	if after := rows(); !slices.Equal(before, after) {
		t.Errorf("sorting changed the rows %q into %q", before, after)
	}
	if got := chrome.Eval[string](p, `[...document.querySelectorAll("#density th")].map(h => h.getAttribute("aria-sort") || "-").join(" ")`); got != "- - - descending" {
		t.Errorf("aria-sort: %s", got)
	}
	chrome.Do(p, chromedp.Click(chromedp.CSS("#collectives thead th:nth-child(2) button")))
	if names := column(p, "collectives", 1); !slices.IsSorted(names) || len(names) < 2 {
		t.Errorf("operations after a click: %q", names)
	}
	p.Quiet()
}

// The buttons copy what commq query prints.
func testCopy(t *testing.T, chromium context.Context) {
	chrome.Allow(t, chromium, "clipboard-read")
	in := input(t, runDir("cg.A.4"))
	csv, values := answerTo(t, in, "density")
	rows := fmt.Sprintf("%d rows copied", len(values["src"]))
	p := open(t, chromium, pageOf(t, report.Options{}, in), chrome.Desktop)
	for i, want := range []string{strings.ReplaceAll(csv, ",", "\t"), csv} {
		chrome.Do(p, chromedp.Click(chromedp.CSS(fmt.Sprintf("#density .tools button:nth-of-type(%d)", i+1))))
		said := chrome.Do(p, chromedp.Poll[string](`document.querySelector("#density .tools span").textContent`))
		if said != rows {
			t.Errorf("the page says %q, want %q", said, rows)
		}
		if got := chrome.Do(p, chromedp.Evaluate[string]("navigator.clipboard.readText()",
			chromedp.EvalAwaitPromise)); got != want {
			t.Errorf("copied %q, want %q", got, want)
		}
		chrome.Eval[bool](p, `document.querySelector("#density .tools span").textContent = ""; true`)
	}
	// Spreadsheets take what is copied for texts and numbers.
	chrome.Eval[bool](p, `[...document.querySelector("#density tbody tr").cells].forEach((c, i) => {
		c.textContent = ["=1+1", "-5.5e-7", "\uff20x", "-"][i]; delete c.dataset.exact; }), true`)
	for i, separator := range []string{"\t", ","} {
		chrome.Do(p, chromedp.Click(chromedp.CSS(fmt.Sprintf("#density .tools button:nth-of-type(%d)", i+1))))
		chrome.Do(p, chromedp.Poll[string](`document.querySelector("#density .tools span").textContent`))
		want := strings.Join([]string{"'=1+1", "-5.5e-7", "'\uff20x", "-"}, separator)
		got := chrome.Do(p, chromedp.Evaluate[string]("navigator.clipboard.readText()", chromedp.EvalAwaitPromise))
		if line := strings.Split(got, "\n")[1]; line != want {
			t.Errorf("copied %q, want %q", line, want)
		}
		chrome.Eval[bool](p, `document.querySelector("#density .tools span").textContent = ""; true`)
	}
	p.Quiet()
}

// hostileRun returns a run of three ranks whose names contain HTML, scripts and control characters.
func hostileRun(t *testing.T) report.Input {
	t.Helper()
	const sql = `'; DROP TABLE messages; --`
	m := untimed(3)
	m.Origin.Command, m.Origin.Hosts, m.Origin.Label = []string{"./" + hostile + sql}, []string{hostile}, hostile
	store := t.TempDir()
	run, err := writer.Create(store, "hostile", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Abort()
	comms, messages := &schema.Comms{}, &schema.Messages{}
	for rank := range int32(3) {
		c := schema.NullComm
		c.CommRank, c.WorldRank, c.Name = rank, rank, strings.TrimSuffix(hostile, "\xff")+sql
		comms.Append(&c)
		e := schema.NullMessage
		e.Src, e.Dst, e.Tag, e.Bytes = rank, (rank+2)%3, 9, 4097
		messages.Append(&e)
	}
	for _, b := range []schema.Batch{comms, messages} {
		if err := run.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := run.Commit(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	in := input(t, filepath.Join(store, "hostile"))
	in.Name = strings.TrimSuffix(hostile, "\xff") + sql
	in.Args = []string{"--run", in.Name}
	in.Facts = []report.Fact{{Name: "command", Value: m.Origin.Command[0]}}
	in.Findings = []report.Finding{{Check: hostile, Status: "warning", Found: hostile, Do: hostile}}
	return in
}

// Names of runs, programs, hosts and communicators appear in a page as text, without any effect.
func testHostile(t *testing.T, chromium context.Context) {
	in, plain := hostileRun(t), newRun(t, "plain", twoSends, untimed(3))
	o := report.Options{More: []string{"communicators"}}
	p := open(t, chromium, pageOf(t, o, in, plain), chrome.Desktop)
	p.KeepPicture("hostile")
	p.Quiet()
	shown := report.Printable(in.Name)
	letters := []rune(shown)
	for selector, want := range map[string]string{
		"h1":                         shown + ", plain",
		"#runs tbody td:first-child": shown,
		"#density figcaption":        shown,
		// The name of the communicator, with its middle left out.
		"#communicators td:nth-child(4)": string(letters[:27]) + "…" + string(letters[len(letters)-28:]),
		"#runs dd":                       report.Printable(in.Facts[0].Value),
		"#findings .check":               report.Printable(hostile),
	} {
		quoted, _ := json.Marshal(selector)
		if got := chrome.Eval[string](p, fmt.Sprintf("document.querySelector(%s).textContent", quoted)); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	elements := `[...document.querySelectorAll("*")].map(e => e.tagName).join(" ")`
	hostileElements := chrome.Eval[string](p, elements)
	in.Name, in.Facts, in.Findings = "x", []report.Fact{{Name: "x", Value: "y"}},
		[]report.Finding{{Check: "x", Status: "warning", Found: "y", Do: "z"}}
	if plainElements := chrome.Eval[string](open(t, chromium, pageOf(t, o, in, plain), chrome.Desktop),
		elements); hostileElements != plainElements {
		t.Errorf("the page has the elements %s, with harmless names %s", hostileElements, plainElements)
	}
}

// contrast lists the texts in the page with too little contrast: less than 4.5 to 1 (WCAG 2.2, 1.4.3).
const contrast = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const colour = text => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const light = c => { const f = x => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
	const behind = e => { for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
	const bad = [];
	for (const e of document.querySelectorAll("body *")) {
		if (e.closest("script, style, title") || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
		const s = getComputedStyle(e), front = light(colour(e.closest("svg") ? s.fill : s.color)), back = light(behind(e));
		const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
		if (ratio < 4.5) bad.push(e.tagName + " " + e.textContent.slice(0, 40) + ": " + ratio.toFixed(2));
	}
	return bad;
})()`

// wide lists the elements that extend beyond the right edge of the page and are not in a box that scrolls.
const wide = `(() => {
	const width = document.documentElement.clientWidth, bad = [];
	for (const e of document.querySelectorAll("body *")) {
		if (e.closest(".skip, script, style") || e.parentElement.closest(".scroll, .wide, pre, svg")) continue;
		const r = e.getBoundingClientRect();
		if (r.width > 0 && (r.right > width + 1 || r.left < -1)) bad.push(e.tagName + "." + e.className + " " + r.left + " to " + r.right);
	}
	if (document.documentElement.scrollWidth > width) bad.push("the page is " + document.documentElement.scrollWidth + " wide");
	return bad;
})()`

// Pages of all kinds of runs fit a desktop and a chrome.Phone, are readable in light and dark themes, and stay small.
func testLooks(t *testing.T, chromium context.Context) {
	several := func(names ...string) (all []report.Input) {
		for _, name := range names {
			all = append(all, input(t, runDir(name)))
		}
		return all
	}
	warned := input(t, runDir("cg.A.4"))
	warned.Facts = []report.Fact{{Name: "command", Value: "./cg.A.x"}, {Name: "mpi", Value: "Open MPI v4.1.4"},
		{Name: "captured with", Value: "record all; clock cpu; hash crc64; no call sites"}}
	warned.Findings = []report.Finding{
		{Check: "end", Status: "failed", Found: "rank 3 was killed in MPI_Allreduce",
			Do: "commq watch --hang shows what it waited for"},
		{Check: "clocks", Status: "warning", Found: "the hosts' clocks differ by up to 17 us",
			Do: "compare latencies between hosts only beyond that"}}
	for _, test := range []struct {
		name   string
		inputs []report.Input
		more   []string
		most   int // bytes
	}{
		{"ranks-64", several("bt.C.64"), nil, 150_000},
		{"warned", []report.Input{warned}, nil, 150_000},
		{"several", several("mg.W.2", "mg.W.4", "mg.W.8", "mg.W.16", "mg.W.32"), nil, 300_000},
		{"untimed", []report.Input{newRun(t, "untimed", twoSends, untimed(3))}, []string{"time-by-rank"}, 80_000},
		{"empty", []report.Input{newRun(t, "empty",
			"comms comm comm_rank world_rank kind\n0 0 0 world\n0 1 1 world\n", untimed(2))}, nil, 80_000},
		{"one-rank", []report.Input{newRun(t, "one", oneRank, untimed(1))}, nil, 80_000},
		{"ranks-1000", []report.Input{sparse(t, 1000)}, nil, 400_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := pageOf(t, report.Options{More: test.more}, test.inputs...)
			if len(text) > test.most {
				t.Errorf("the page has %d bytes", len(text))
			}
			p := open(t, chromium, text, chrome.Desktop)
			for _, shown := range []struct {
				name string
				chrome.Look
			}{{"desktop", chrome.Desktop}, {"dark", chrome.Dark}, {"phone", chrome.Phone},
				{"phone-dark", chrome.Look{Width: 390, Height: 844, Mobile: true, Dark: true}}} {
				p.Show(shown.Look)
				chrome.Eval[bool](p, `document.querySelectorAll("details").forEach(d => d.open = true); true`)
				if bad := chrome.Eval[[]string](p, wide); len(bad) > 0 {
					t.Errorf("%s: too wide: %q", shown.name, bad)
				}
				if bad := chrome.Eval[[]string](p, contrast); len(bad) > 0 {
					t.Errorf("%s: hard to read: %q", shown.name, bad)
				}
				chrome.Eval[bool](p, `document.querySelectorAll("details.how").forEach(d => d.open = false); true`)
				p.KeepPicture(test.name + "-" + shown.name)
			}
			elements := chrome.Eval[int](p, `document.querySelectorAll("*").length`)
			if elements > 9000 {
				t.Errorf("the page has %d elements", elements)
			}
			t.Logf("%d bytes, %d elements, loaded in %.0f ms", len(text), elements,
				chrome.Eval[float64](p, `performance.getEntriesByType("navigation")[0].loadEventEnd`))
			p.Quiet()
		})
	}
}

// sparse returns a run whose ranks send to their neighbours on a ring and to one distant rank.
func sparse(t *testing.T, ranks int32) report.Input {
	t.Helper()
	store := t.TempDir()
	run, err := writer.Create(store, "sparse", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Abort()
	messages := &schema.Messages{}
	for rank := range ranks {
		for seq, to := range []int32{(rank + 1) % ranks, (rank + ranks - 1) % ranks, rank * 17 % ranks} {
			m := schema.NullMessage
			m.Src, m.Dst, m.Tag, m.Bytes, m.SendSeq = rank, to, 9, int64(4097*(seq+1)), int64(seq)
			messages.Append(&m)
		}
	}
	m := untimed(ranks)
	if err := run.Write(0, messages); err != nil {
		t.Fatal(err)
	}
	if err := run.Commit(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	return input(t, filepath.Join(store, "sparse"))
}

// A page is printed on a few sheets, with its matrices, in colours for paper even if the screen is dark.
func testPrint(t *testing.T, chromium context.Context) {
	in, other := input(t, runDir("bt.C.64")), input(t, runDir("cg.A.4"))
	in.Facts, other.Facts = []report.Fact{{Name: "captured with", Value: "record messages"}},
		[]report.Fact{{Name: "captured with", Value: "record all"}}
	p := open(t, chromium, pageOf(t, report.Options{}, in), chrome.Dark)
	sheet := chrome.Do(p, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
	chrome.Keep(t, "print.pdf", sheet)
	if !bytes.HasPrefix(sheet, []byte("%PDF-")) || !bytes.Contains(sheet[len(sheet)-64:], []byte("%%EOF")) {
		t.Fatalf("%d bytes are no PDF", len(sheet))
	}
	if n := len(regexp.MustCompile(`/Type /Page\b[^s]`).FindAll(sheet, -1)); n < 2 || n > 8 {
		t.Errorf("the report prints on %d sheets", n)
	}
	if n := len(regexp.MustCompile(`/Subtype /Image\s+/Width 768\s+/Height 768\b`).FindAll(sheet, -1)); n < 2 {
		t.Errorf("%d pictures of 64 by 64 cells of 12 by 12 dots in the PDF, want one for density and one for data-density", n)
	}
	p.Show(chrome.Paper)
	if back := chrome.Eval[string](p, "getComputedStyle(document.body).backgroundColor"); back != "rgb(255, 255, 255)" {
		t.Errorf("the sheet is %s", back)
	}
	if bad := chrome.Eval[[]string](p, contrast); len(bad) > 0 {
		t.Errorf("hard to read: %q", bad)
	}
	p.KeepPicture("print")
	p.Quiet()
	// Folded text is printed, too: how each of several runs was captured.
	p = open(t, chromium, pageOf(t, report.Options{}, in, other), chrome.Paper)
	if n := chrome.Eval[int](p, `[...document.querySelectorAll("#runs dd")].filter(e => e.checkVisibility({contentVisibilityAuto: true}) && e.getBoundingClientRect().height > 0).length`); n != 2 {
		t.Errorf("%d of 2 facts are printed", n)
	}
	chrome.Keep(t, "print-two.pdf", chrome.Do(p, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4))))
	p.Quiet()
}
