// Command ui measures how fast commq ui answers the timeline of runs of any size (bench/ui.md).
//
//	go run ./bench/gen --pattern halo --ranks 64 --messages 1000000 --store runs --run halo.1000000
//	go run ./bench/ui --commq ./commq --store runs halo.1000000 ... >> ui.md
//
// Each run has a server of its own. It is asked what the page asks: first the whole run, then a path that zooms by a
// half to 100 µs, at each depth with two steps aside. A window is asked in tiles, those that were asked before not
// again, and then for its calls and messages where its tiles have few. With --read rows nothing is answered from sums.
//
//	go run ./bench/ui --commq ./commq --store runs --browser --perfetto FOLDER halo.1000000 ...
//
// opens each run in a headless browser instead, and its export in Perfetto's page (scripts/perfetto-ui.txt has it).
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

func main() {
	commq := flag.String("commq", "commq", "program to measure")
	store := flag.String("store", "runs", "folder of runs")
	read := flag.String("read", "auto", "what the timeline reads: auto, rows or sums")
	browser := flag.Bool("browser", false, "open each run in a browser, and measure its frames and its memory")
	perfetto := flag.String("perfetto", "", "with --browser: folder of Perfetto's user interface, to open each run in too")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "ui: name runs of the store")
		os.Exit(2)
	}
	if *browser {
		if err := browseAll(*commq, *store, *perfetto, flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, "ui:", err)
			os.Exit(2)
		}
		return
	}
	fmt.Println("| run | ranks | messages | calls | first picture, s | tile, median, ms | 95th percentile, ms | CPU time of a tile, " +
		"median, ms | 95th percentile, ms | tiles | most rows of a tile | calls and messages of a window, median, ms | " +
		"95th percentile, ms | whole window, median, ms | 95th percentile, ms | peak memory of the server, MiB |")
	fmt.Println("|" + strings.Repeat("---|", 16))
	for _, run := range flag.Args() {
		line, err := measure(*commq, *store, run, *read)
		if err != nil {
			fmt.Fprintln(os.Stderr, "ui:", run+":", err)
			os.Exit(2)
		}
		fmt.Println(line)
	}
}

// listed is a run in the page's list.
type listed struct {
	Name                   string
	Ranks, Calls, Messages int64
	EndNs                  float64 `json:"end_ns"`
}

// measure starts a server on a run, asks it, and returns a line of the table.
func measure(commq, store, run, read string) (line string, err error) {
	cmd := exec.Command(commq, "ui", "--store", store, "--run", run, "--browser=false")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := func() int64 { // KiB
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait() // it ends by the signal, which is no error here
		return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", fmt.Errorf("the server printed no address: %w", err)
	}
	p, err := open(strings.TrimSpace(address), run, read, cmd.Process.Pid)
	if err != nil {
		stop()
		return "", err
	}
	first := time.Since(begin)
	p.tiles, p.cores, p.details, p.windows = nil, nil, nil, nil
	err = p.zoom()
	peak := stop()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %.2f | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |", run, p.run.Ranks,
		p.run.Messages, p.run.Calls, first.Seconds(), share(p.tiles, 0.5), share(p.tiles, 0.95), share(p.cores, 0.5),
		share(p.cores, 0.95), len(p.tiles), p.mostRows, share(p.details, 0.5), share(p.details, 0.95), share(p.windows, 0.5),
		share(p.windows, 0.95), peak>>10), nil
}

// share returns a quantile in ms.
func share(times []time.Duration, q float64) int64 { return quantile(times, q).Milliseconds() }

// quantile returns a quantile of values, which it sorts; 0 of none.
func quantile[T cmp.Ordered](values []T, q float64) (v T) {
	if len(values) == 0 {
		return v
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}

// coreTime returns the CPU time of a process so far, of all cores; on a busy machine it tells more than the clock.
func coreTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name before it can have spaces
	fields := strings.Fields(after)
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	const tick = time.Second / 100
	return time.Duration(user+system) * tick, nil
}

// page asks what the page in a browser asks.
type page struct {
	client   *http.Client
	base     *url.URL
	run      listed
	read     string
	pid      int // of the server
	mostRows int
	kept     map[[2]int64]tile // by length and number
	// How long each tile took, and the CPU time of the server for it; the calls and messages of each window that has
	// few; all that was asked for each window.
	tiles, cores, details, windows []time.Duration
}

// tile is what the page keeps of a tile.
type tile struct {
	calls, messages int64
}

// open loads the page and asks its first picture.
func open(address, run, read string, pid int) (*page, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	p := &page{client: &http.Client{Jar: jar}, read: read, pid: pid, kept: map[[2]int64]tile{}}
	if p.base, err = url.Parse(address); err != nil {
		return nil, err
	}
	if _, err := p.get(address); err != nil {
		return nil, err
	}
	for _, file := range []string{"app.js", "app.css"} {
		if _, err := p.get(p.base.ResolveReference(&url.URL{Path: file}).String()); err != nil {
			return nil, err
		}
	}
	body, err := p.get(p.base.ResolveReference(&url.URL{Path: "api/runs"}).String())
	if err != nil {
		return nil, err
	}
	var runs []listed
	if err := json.Unmarshal(body, &runs); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(runs, func(r listed) bool { return r.Name == run })
	if at < 0 {
		return nil, errors.New("the server does not list the run")
	}
	p.run = runs[at]
	return p, p.window(0, p.run.EndNs)
}

// zoom goes into the run.
func (p *page) zoom() error {
	for span := p.run.EndNs / 2; span > 1e5; span /= 2 {
		for _, aside := range []float64{0, 0.25, -0.25} {
			from := 0.618*p.run.EndNs - span/2 + aside*span
			if err := p.window(max(0, from), min(from+span, p.run.EndNs)); err != nil {
				return err
			}
		}
	}
	return nil
}

// window asks for a window of time, as timeline-scene.ts does in one of 1200 by 700 pixels.
func (p *page) window(from, to float64) error {
	const bins, mostCalls, mostArrows = 600, 20000, 2000
	begin := time.Now()
	length := tileSteps * int64(math.Pow(2, max(0, math.Ceil(math.Log2((to-from)/bins)))))
	var in tile
	for n := int64(from) / length; n*length <= int64(to); n++ {
		t, ok := p.kept[[2]int64{length, n}]
		if !ok {
			var err error
			if t, err = p.tile(n*length, (n+1)*length-1); err != nil {
				return err
			}
			p.kept[[2]int64{length, n}] = t
		}
		in.calls += t.calls
		in.messages += t.messages
	}
	detailed := time.Now()
	given := url.Values{"run": {p.run.Name}, "from-s": {seconds(from)}, "to-s": {seconds(to)}, "order": {"any"}}
	few := false
	for _, of := range []struct {
		query   string
		n, most int64
	}{{"timeline-calls", in.calls, mostCalls}, {"timeline-messages", in.messages, mostArrows}} {
		if of.n > of.most {
			continue
		}
		few = true
		given.Set("limit", fmt.Sprint(2*of.most))
		if _, err := p.ask(of.query, given); err != nil {
			return err
		}
	}
	if few {
		p.details = append(p.details, time.Since(detailed))
	}
	p.windows = append(p.windows, time.Since(begin))
	return nil
}

// tileSteps is that of timeline-tiles.ts.
const tileSteps = 64

// tile asks for a tile, as timeline-tiles.ts does.
func (p *page) tile(from, to int64) (t tile, err error) {
	given := url.Values{"run": {p.run.Name}, "bins": {strconv.Itoa(tileSteps)}, "rows": {"350"}, "lines": {"0"}, "read": {p.read},
		"order": {"any"}, "to-s": {seconds(float64(to))}}
	if from > 0 {
		given.Set("from-s", seconds(float64(from)))
	}
	before, err := coreTime(p.pid)
	if err != nil {
		return t, err
	}
	begin := time.Now()
	body, err := p.ask("timeline", given)
	if err != nil {
		return t, err
	}
	p.tiles = append(p.tiles, time.Since(begin))
	after, err := coreTime(p.pid)
	p.cores = append(p.cores, after-before)
	if err != nil {
		return t, err
	}
	r, err := ipc.NewReader(bytes.NewReader(body))
	if err != nil {
		return t, err
	}
	defer r.Release()
	rows := 0
	for r.Next() {
		rows += int(r.RecordBatch().NumRows())
		for name, to := range map[string]*int64{"calls": &t.calls, "messages": &t.messages} {
			for _, i := range r.Schema().FieldIndices(name) {
				column := r.RecordBatch().Column(i).(*array.Int64)
				for at := range column.Len() {
					if column.IsValid(at) {
						*to += column.Value(at)
					}
				}
			}
		}
	}
	p.mostRows = max(p.mostRows, rows)
	return t, r.Err()
}

// seconds writes ns as the page does.
func seconds(ns float64) string { return fmt.Sprintf("%.9f", ns/1e9) }

// ask asks a canned query.
func (p *page) ask(query string, given url.Values) ([]byte, error) {
	return p.get(p.base.ResolveReference(&url.URL{Path: "api/ask/" + query, RawQuery: given.Encode()}).String())
}

// get returns the body of an answer.
func (p *page) get(address string) ([]byte, error) {
	r, err := p.client.Get(address)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", r.Request.URL.Path, r.Status, bytes.TrimSpace(body))
	}
	return body, err
}
