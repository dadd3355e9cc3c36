package report_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"image/png"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/queries/report"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// newRun writes a run from text; see package example.
func newRun(t *testing.T, name, text string, m schema.Manifest) report.Input {
	t.Helper()
	dir, err := example.Write(t.TempDir(), name, text, m)
	if err != nil {
		t.Fatal(err)
	}
	return input(t, dir)
}

func input(t *testing.T, dir string) report.Input {
	t.Helper()
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return report.Input{Run: queries.Run{Name: filepath.Base(dir), Dir: dir, Manifest: m},
		Args: []string{"--run", filepath.Base(dir)}}
}

func pageOf(t *testing.T, o report.Options, inputs ...report.Input) string {
	t.Helper()
	o.Engine.Threads = 1
	r, err := report.Build(context.Background(), inputs, o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// cells returns the embedded cells of the n-th matrix.
func cells(t *testing.T, page string, n int) (c struct {
	Ranks, Block, N int
	Names           []string
	Cells           []int64
}) {
	t.Helper()
	_, rest, ok := strings.Cut(page, fmt.Sprintf(`<script type="application/json" id="cells-%d">`, n))
	text, _, ok2 := strings.Cut(rest, "</script>")
	if !ok || !ok2 {
		t.Fatalf("no cells-%d in the page", n)
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// twoSends is rank 0 sending 4097 bytes twice to rank 2, and rank 1 sending 17 to itself.
const twoSends = `
comms comm comm_rank world_rank kind
0 0 0 world
0 1 1 world
0 2 2 world

ranks rank host threads ended events
0 0 1 finalized 2
1 0 1 finalized 1
2 0 1 finalized 0

messages src dst epoch comm tag bytes send_count send_seq recv_post_seq
0 2 0 0 9 4097 4097 0 0
0 2 0 0 9 4097 4097 1 1
1 1 0 0 9 17 17 0 1
`

func untimed(ranks int32) schema.Manifest {
	return schema.Manifest{Ranks: ranks, TimeOrigin: "untimed", ComputeClock: "none", Record: "messages",
		Hash: "none", Ended: "finalized", Epochs: 1}
}

func TestMatrixHasEachCellOnce(t *testing.T) {
	page := pageOf(t, report.Options{}, newRun(t, "three", twoSends, untimed(3)))
	c := cells(t, page, 0)
	if got, want := fmt.Sprint(c.Ranks, c.Block, c.N, c.Names, c.Cells),
		"3 1 3 [bytes messages] [2 8194 2 4 17 1]"; got != want {
		t.Errorf("cells: %s, want %s", got, want)
	}
	if strings.Contains(page, `id="cells-1"`) || strings.Count(page, `data-cells="cells-0"`) != 2 {
		t.Error("density and data-density have the same cells and do not share them")
	}
}

// oneRank is a rank that sends to itself.
const oneRank = `
comms comm comm_rank world_rank kind
0 0 0 world

ranks rank host threads ended events
0 0 1 finalized 1

messages src dst epoch comm tag bytes send_seq recv_post_seq
0 0 0 0 9 17 0 1
`

func TestOneRank(t *testing.T) {
	page := pageOf(t, report.Options{}, newRun(t, "one", oneRank, untimed(1)))
	if c := cells(t, page, 0); c.N != 1 || fmt.Sprint(c.Cells) != "[0 17 1]" {
		t.Errorf("cells: %v", c)
	}
}

func TestNoMessagesAtAll(t *testing.T) {
	page := pageOf(t, report.Options{}, newRun(t, "silent",
		"comms comm comm_rank world_rank kind\n0 0 0 world\n0 1 1 world\n", untimed(2)))
	if c := cells(t, page, 0); len(c.Cells) != 0 {
		t.Errorf("cells: %v", c)
	}
	if !strings.Contains(page, "no messages") || !strings.Contains(page, "no rows") {
		t.Error("the page does not say that there are no messages")
	}
}

// A run of 100,000 ranks, each sending to the next, has cells of several ranks: their sums are the run's, and the page
// stays small.
func TestManyRanks(t *testing.T) {
	const ranks = 100_000
	store := t.TempDir()
	run, err := writer.Create(store, "ring", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Abort()
	messages := &schema.Messages{}
	for rank := range int32(ranks) {
		m := schema.NullMessage
		m.Src, m.Dst, m.Tag, m.Bytes = rank, (rank+1)%ranks, 9, 4097
		messages.Append(&m)
	}
	m := untimed(ranks)
	if err := run.Write(0, messages); err != nil {
		t.Fatal(err)
	}
	if err := run.Commit(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	page := pageOf(t, report.Options{}, input(t, filepath.Join(store, "ring")))
	if len(page) > 400_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	c := cells(t, page, 0)
	var bytes, messagesSum, pairs, most int64
	for i := 0; i < len(c.Cells); i += 6 { // place, bytes, messages, pairs, most bytes, most messages
		bytes, messagesSum, pairs, most = bytes+c.Cells[i+1], messagesSum+c.Cells[i+2], pairs+c.Cells[i+3],
			max(most, c.Cells[i+4])
	}
	if bytes != ranks*4097 || messagesSum != ranks || pairs != ranks || most != 4097 {
		t.Errorf("%d bytes, %d messages, %d pairs, at most %d bytes; want %d, %d, %d, 4097", bytes, messagesSum,
			pairs, most, ranks*4097, ranks, ranks)
	}
	if !strings.Contains(page, "A cell is ") || !strings.Contains(page, "The first 200 of 100,000 rows") {
		t.Error("the page does not say what it leaves out")
	}
}

// All-to-all communication of many ranks would have too many cells for tooltips.
func TestDenseMatrixIsBounded(t *testing.T) {
	const ranks = 200
	var b strings.Builder
	b.WriteString("messages src dst epoch comm tag bytes send_seq recv_post_seq\n")
	for src := range ranks {
		for dst := range ranks {
			fmt.Fprintf(&b, "%d %d 0 0 9 3 %d 0\n", src, dst, dst)
		}
	}
	page := pageOf(t, report.Options{}, newRun(t, "dense", b.String(), untimed(ranks)))
	if c := cells(t, page, 0); c.Block != 2 || c.N != 100 || len(c.Cells) != 100*100*6 {
		t.Errorf("block %d, %d cells in a row, %d numbers", c.Block, c.N, len(c.Cells))
	}
	if len(page) > 500_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

func TestSkippedWithReason(t *testing.T) {
	in := newRun(t, "three", twoSends, untimed(3))
	page := pageOf(t, report.Options{More: []string{"overlaps"}}, in)
	if !strings.Contains(html.UnescapeString(page),
		`Not asked: run "three" is untimed; give it times with commq simulate`) {
		t.Error("the page does not say why overlaps is not asked")
	}
	if _, err := report.Build(context.Background(), []report.Input{in},
		report.Options{More: []string{"nothing"}}); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("a query that there is not: %v", err)
	}
}

func TestFindings(t *testing.T) {
	good, bad := newRun(t, "good", twoSends, untimed(3)), newRun(t, "bad", twoSends, untimed(3))
	good.Findings = []report.Finding{{Check: "end", Status: "ok", Found: "all ranks finalized"}}
	bad.Findings = []report.Finding{{Check: "dropped", Status: "failed", Found: "9 calls", Do: "more room"},
		{Check: "clocks", Status: "warning", Found: "far apart"}}
	page := pageOf(t, report.Options{}, good, bad)
	for _, want := range []string{"Nothing was found wrong with the recording of good.",
		`<li class="failed"><b>failed</b> <span class="check">dropped</span>: 9 calls`, "more room",
		`<li class="warning">`, `id="scaling"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// The page begins with the diagnosis of each run, or with why there is none.
func TestDiagnosis(t *testing.T) {
	slow, lacking := newRun(t, "slow", twoSends, untimed(3)), newRun(t, "lacking", twoSends, untimed(3))
	slow.Diagnosis = report.Diagnosis{Verdict: "slow: 1 s of 3 ranks", Warnings: []string{"few cores"}, Left: "2 smaller findings",
		Causes: []report.Cause{{Rule: "imbalance", Gain: "9 ms (1 %)", Found: "Rank 2 computes <b>long</b>", Do: "Share.", Waits: []string{"3 s in MPI_Wait"}}}}
	lacking.Diagnosis = report.Diagnosis{Missing: "no times:\n  of rank 1"}
	page := pageOf(t, report.Options{}, slow, lacking)
	for _, want := range []string{`<p class="verdict">slow: 1 s of 3 ranks</p>`, "<b>warning</b> few cores",
		"<b>imbalance</b>, gain 9 ms (1 %): Rank 2 computes &lt;b&gt;long&lt;/b&gt;.", "<li>waits 3 s in MPI_Wait</li>", "2 smaller findings",
		"No diagnosis: no times:\n  of rank 1</p>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Index(page, `id="diagnosis"`) > strings.Index(page, `id="runs"`) {
		t.Error("the diagnosis does not come first")
	}
	if page := pageOf(t, report.Options{}, newRun(t, "plain", twoSends, untimed(3))); strings.Contains(page, `id="diagnosis"`) {
		t.Error("a page without any diagnosis has a place for it")
	}
}

// Runs are examined while queries are asked: the page has what that says, and an error of it is one of Build, after the
// examination of the next run has ended.
func TestExaminedMeanwhile(t *testing.T) {
	first, second := newRun(t, "first", twoSends, untimed(3)), newRun(t, "second", twoSends, untimed(3))
	examine := func(err error) func(context.Context, *report.Input) error {
		return func(_ context.Context, in *report.Input) error {
			in.Findings = []report.Finding{{Check: "end", Status: "warning", Found: in.Name + " was killed"}}
			in.Diagnosis = report.Diagnosis{Verdict: "why " + in.Name + " is slow"}
			return err
		}
	}
	first.Examine, second.Examine = examine(nil), examine(nil)
	page := pageOf(t, report.Options{}, first, second)
	for _, want := range []string{"first was killed", "second was killed", "why first is slow", "why second is slow"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	ended := false
	first.Examine = examine(errors.New("cannot be read"))
	second.Examine = func(ctx context.Context, _ *report.Input) error {
		<-ctx.Done()
		ended = true
		return ctx.Err()
	}
	_, err := report.Build(t.Context(), []report.Input{first, second}, report.Options{})
	if err == nil || err.Error() != "cannot be read" || !ended {
		t.Errorf("%v; the other examination ended: %v", err, ended)
	}
}

// hostile has texts that would have an effect in a page, a script, a style, an attribute or a terminal.
const hostile = `</script></title></style><script>alert(9)</script><img src=x onerror=alert(9)>"'` + "`" +
	`{{.}}${9}` + "\x1b[2J\x07\u202egnp.exe\xff"

func TestHostileNames(t *testing.T) {
	m := untimed(3)
	m.Origin.Command, m.Origin.Hosts, m.Origin.MPI, m.Origin.Started = []string{"./" + hostile}, []string{hostile},
		hostile, hostile
	m.Ended = "finalized"
	in := newRun(t, "three", twoSends, m)
	in.Name = strings.TrimSuffix(hostile, "\xff") // the engine takes UTF-8
	in.Args = []string{"--run", hostile}
	in.Facts = []report.Fact{{Name: hostile, Value: hostile}}
	in.Findings = []report.Finding{{Check: hostile, Status: "warning", Found: hostile, Do: hostile}}
	in.Diagnosis = report.Diagnosis{Verdict: hostile, Warnings: []string{hostile}, Left: hostile, Missing: hostile,
		Causes: []report.Cause{{Rule: hostile, Gain: hostile, Found: hostile, Do: hostile, Waits: []string{hostile}}}}
	other := newRun(t, "other", twoSends, untimed(3))
	page := pageOf(t, report.Options{Version: hostile, More: []string{"calls", "overlaps"}}, in, other)
	for _, bad := range []string{"<script>alert", "<img src=x", "\x1b", "\x07", "\u202e", "\xff", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			i := strings.Index(page, bad)
			t.Errorf("the page has %q: %q", bad, page[max(0, i-80):min(len(page), i+80)])
		}
	}
	if !strings.Contains(page, `\x1b[2J\a\u202egnp.exe\xff`) {
		t.Error("what does not show is not shown as an escape")
	}
	// Nothing of it became an element: the page has as many as with harmless names.
	in.Name, in.Facts, in.Findings = "plain", []report.Fact{{Name: "x", Value: "y"}},
		[]report.Finding{{Check: "x", Status: "warning", Found: "y", Do: "z"}}
	in.Diagnosis = report.Diagnosis{Verdict: "v", Warnings: []string{"w"}, Left: "l", Missing: "m",
		Causes: []report.Cause{{Rule: "r", Gain: "g", Found: "f", Do: "d", Waits: []string{"w"}}}}
	in.Manifest.Origin = schema.Origin{Command: []string{"x"}, Hosts: []string{"y"}}
	plain := pageOf(t, report.Options{More: []string{"calls", "overlaps"}}, in, other)
	if got, want := strings.Count(page, "<"), strings.Count(plain, "<"); got != want {
		t.Errorf("%d times < with hostile names, %d without", got, want)
	}
}

// The page refers to nothing outside itself and its links lead somewhere.
func TestSelfContained(t *testing.T) {
	page := pageOf(t, report.Options{}, input(t, runDir("cg.A.4")), input(t, runDir("cg.A.16")))
	for _, m := range regexp.MustCompile(`\b(?:src|href|action|url)\s*[=(]\s*["']?([^"'\s>)]*)`).FindAllStringSubmatch(page, -1) {
		switch {
		case strings.HasPrefix(m[1], "data:"):
		case strings.HasPrefix(m[1], "#") && strings.Contains(page, `id="`+m[1][1:]+`"`):
		case strings.HasPrefix(m[1], "&#"), m[1] == "": // in SQL and the script
		default:
			t.Errorf("%s leads outside or nowhere", m[0])
		}
	}
	if strings.Contains(page, "http://") && strings.Count(page, "http://") != strings.Count(page,
		"http://www.w3.org/2000/svg") || strings.Contains(page, "https://") {
		t.Error("an address in the page")
	}
	if len(page) > 500_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	if again := pageOf(t, report.Options{}, input(t, runDir("cg.A.4")), input(t, runDir("cg.A.16"))); again != page {
		t.Error("the same runs gave another page")
	}
}

// The commands on the page name each run that they are about.
func TestCommands(t *testing.T) {
	a, b := newRun(t, "a", twoSends, untimed(3)), newRun(t, "b", twoSends, untimed(3))
	b.Args = []string{"--run", "a folder/b"}
	page := html.UnescapeString(pageOf(t, report.Options{}, a, b))
	for _, want := range []string{"commq query density --run a\ncommq query density --run 'a folder/b'<",
		"commq query scaling --run a --run 'a folder/b'<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestProgress(t *testing.T) {
	var steps []string
	total := 0
	pageOf(t, report.Options{Progress: func(step string, done, of int) {
		if done != len(steps) {
			t.Errorf("%s: %d done after %d steps", step, done, len(steps))
		}
		steps, total = append(steps, step), of
	}}, newRun(t, "a", twoSends, untimed(3)), newRun(t, "b", twoSends, untimed(3)))
	if total != len(steps) || total < 10 || steps[0] != "density of a" {
		t.Errorf("%d steps, announced %d: %q", len(steps), total, steps)
	}
}

// The diagnosis has the efficiencies of all runs, the smallest first, and a cause its pictures.
func TestDiagnosisHasPictures(t *testing.T) {
	large, small := input(t, runDir("cg.A.16")), input(t, runDir("cg.A.4"))
	large.Diagnosis = report.Diagnosis{Verdict: "large", ComputingNs: 500, Factors: []report.Factor{{Name: "all", Share: 0.55}}}
	small.Diagnosis = report.Diagnosis{Verdict: "small", ComputingNs: 400, Factors: []report.Factor{{Name: "all", Share: 0.9}}, Basis: "of a simulation",
		Causes: []report.Cause{{Rule: "imbalance", Computing: []int64{1e6, 2e6, 3e6, 2e6}, Marked: []int32{2}, See: "data-density",
			Window: &report.Window{Args: map[string]string{"from-s": "0.100000000", "to-s": "0.101000000"}, Ranks: []int32{1, 3}}}}}
	page := pageOf(t, report.Options{}, large, small)
	for _, want := range []string{`<th scope="col">cg.A.4</th><th scope="col">cg.A.16</th>`, `class="good" width="90.0"`,
		`class="poor" width="55.0"`, "90 %", `<p class="note">of a simulation</p>`, "computation scaling", "80 %", "<title>rank 2: 3 ms</title>",
		`<rect class="c5" x="300.00" y="0.00" width="129.00" height="110.00">`, `y1="36.67"`,
		`alt="Timeline of ranks 1, 3 around the longest wait"`,
		"commq query timeline --run cg.A.4 --from-s 0.100000000 --to-s 0.101000000 --plot window.png", `<a href="#data-density">`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if one := pageOf(t, report.Options{}, small); strings.Contains(one, "computation scaling") || strings.Count(one, "data:image/png") < 2 {
		t.Error("a single run is compared with others, or has no picture")
	}
}

// A cause of messages has their matrix, variation a heat map, and a cause of simulated times its course.
func TestCausesHavePictures(t *testing.T) {
	in := input(t, runDir("uneven.4"))
	sites := []int32{}
	for site := range int32(50) {
		sites = append(sites, site)
	}
	in.Diagnosis = report.Diagnosis{Verdict: "slow", Causes: []report.Cause{
		{Rule: "communication", Place: "u.c:3", Messages: sites},
		{Rule: "communication", Place: "u.c:36", Messages: []int32{5}}, // MPI_Wait, which completes the receives of three ranks
		{Rule: "small-messages", Place: "u.c:4", Messages: []int32{1 << 20}},
		{Rule: "variation", Place: "u.c:5", InTurn: [][]float64{{1, 2}, {2, 1}}},
		{Rule: "late-sender", Lost: []report.Slice{{FromNs: 0, ToNs: 1e6, Ns: 3e6}}}}}
	page := pageOf(t, report.Options{}, in)
	for _, want := range []string{`alt="Matrix of the messages of u.c:3: 400 messages, 3.2 MB from rank to rank, 4 ranks"`,
		`alt="Matrix of the messages of u.c:36: 300 messages, 2.4 MB from`,
		`alt="Computing of each of 2 ranks before u.c:5, in 2 parts of the run"`, "<title>from 0 ns to 1 ms: 3 ms</title>"} {
		if !strings.Contains(html.UnescapeString(page), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page, "messages of u.c:4") {
		t.Error("a matrix of no messages")
	}
}

func runDir(name string) string { return filepath.Join("..", "..", "testdata", "runs", name) }

// The four measures of time tell what they leave out; others, and runs without MPI_Init, have nothing to tell.
func TestStartupIsToldOfTimes(t *testing.T) {
	page := pageOf(t, report.Options{}, input(t, runDir("cg.A.4")))
	const note = "MPI_Init and MPI_Finalize took 20 % of the run's time and are left out; --init include counts them."
	if n := strings.Count(html.UnescapeString(page), note); n != 4 {
		t.Errorf("%d notes of the startup, want one each for efficiency, wait-states, time-by-rank and callsite-time", n)
	}
}

// Axes of time have units that fit, not nanoseconds.
func TestAxesHaveFittingUnits(t *testing.T) {
	page := html.UnescapeString(pageOf(t, report.Options{More: []string{"over-time", "latency"}}, input(t, runDir("cg.A.4"))))
	for _, want := range []string{"start of the step [s]<", "sent data per step [MB]<", "time from send to receive [µs]<", ">16 Ki<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page, "[ns]<") {
		t.Error("an axis is in ns")
	}
}

// Cells that differ a hundredfold have logarithmic shades, and the scale says so.
func TestShadesOfUnequalCellsAreLogarithmic(t *testing.T) {
	page := pageOf(t, report.Options{}, input(t, runDir("cg.A.4")), input(t, runDir("mg.W.4")))
	ramps := regexp.MustCompile(`<p class="ramp"><span>(.*?)</span> .*? <span>(.*?)</span> <span class="note">(.*?)</span>`).FindAllStringSubmatch(page, -1)
	var got []string
	for _, r := range ramps {
		got = append(got, strings.Join(r[1:], " "))
	}
	want := []string{"2 1,266 messages, logarithmic", "none 309 messages", "4 B 23.3 MB sent data, logarithmic",
		"1,032 B 3.36 MB sent data, logarithmic"}
	if !slices.Equal(got, want) {
		t.Errorf("scales %q; want %q", got, want)
	}
}

// A timeline is a picture for light and for dark pages; its command gives the rows that it shows.
func TestTimelineIsDrawn(t *testing.T) {
	more := report.Options{More: []string{"timeline"}}
	page := pageOf(t, more, input(t, runDir("cg.A.4")), input(t, runDir("mg.W.16")))
	images := regexp.MustCompile(`(?:srcset|<img src)="data:image/png;base64,([^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(images) != 4 {
		t.Fatalf("%d images of two runs in two themes", len(images))
	}
	for i, light := range []bool{false, true, false, true} {
		data, err := base64.StdEncoding.DecodeString(html.UnescapeString(images[i][1]))
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if r, _, _, _ := img.At(0, 0).RGBA(); (r > 0x8000) != light {
			t.Errorf("image %d: light paper %v, want %v", i, !light, light)
		}
		if len(data) > 150_000 {
			t.Errorf("image %d has %d bytes", i, len(data))
		}
	}
	if want := "commq query timeline --run cg.A.4 --bins 275 --rows 64\n"; !strings.Contains(page, want) {
		t.Errorf("the page lacks %s", want)
	}
	if again := pageOf(t, more, input(t, runDir("cg.A.4")), input(t, runDir("mg.W.16"))); again != page {
		t.Error("the same runs gave another page")
	}
}
